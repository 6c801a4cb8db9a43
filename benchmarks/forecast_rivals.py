"""Rivals of `make forecasts`: last values, and direct models that are fitted anew.

A direct model has one horizon: it maps what is known at t to y[t + h]. LightGBM and ridge
regression are given the inputs x[t], the last 24 targets, the inputs at t + h that are known in
advance, and for every period the newest target of the same phase as y[t + h]. They are fitted on
all past rows whose target y[t + h] is known, every `every` rows; in between the last model
forecasts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from forecast_streams import ForecastStream
from forecasters import Forecaster, Forecasts, Task, empty, has_period, has_two_periods

LAGS = 24
EVERY = 100
_SEED = 42


# --- last values ----------------------------------------------------------------------------------


def last_value(task: Task) -> Forecasts:
    """y[t], for every horizon."""
    return Forecasts(np.repeat(task.stream.y[:, None], len(task.horizons), axis=1))


def seasonal_last_value(which: int, task: Task) -> Forecasts:
    """The newest target of the same phase as y[t + h] of a period of the stream: 0 is its shortest
    period, -1 its longest."""
    rows = task.stream.periods[which]
    return Forecasts(np.stack([same_phase(task.stream.y, rows, h) for h in task.horizons], axis=1))


def same_phase(y: np.ndarray, period: int, horizon: int) -> np.ndarray:
    """(n,): at t, the newest known target that is whole periods before y[t + horizon].

    NaN where the stream is too short for it.
    """
    back = -horizon % period  # t - back is the newest row of this phase
    found = np.full(len(y), np.nan)
    found[back:] = y[: len(y) - back]
    return found


# --- direct models --------------------------------------------------------------------------------


def direct_inputs(stream: ForecastStream, horizon: int) -> np.ndarray:
    """(n, m): what a direct model of this horizon is given at t. NaN where it is not there."""
    n = len(stream)
    lags = np.full((n, LAGS), np.nan)
    for lag in range(min(LAGS, n)):
        lags[lag:, lag] = stream.y[: n - lag]
    ahead = np.full((n, len(stream.known)), np.nan)
    ahead[:-horizon] = stream.X[horizon:, list(stream.known)]
    phases = [same_phase(stream.y, period, horizon)[:, None] for period in stream.periods]
    return np.hstack([stream.X, lags, ahead, *phases])


def run_direct(make: Callable[[], Any], every: int, task: Task) -> Forecasts:
    """Fit a new model of `make` per horizon, when `start` + 1 rows are known and every `every`
    rows from then on."""
    y, n = task.stream.y, len(task.stream)
    values = empty(task)
    began = time.perf_counter()
    for column, horizon in enumerate(task.horizons):
        inputs = direct_inputs(task.stream, horizon)
        for now in range(task.start, n, every):
            past = now + 1 - horizon  # rows whose target, y[now] at the latest, is known at `now`
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that columns have no names, and the like
                model = make().fit(inputs[:past], y[horizon : now + 1])
                values[now : now + every, column] = model.predict(inputs[now : now + every])
    return Forecasts(values, seconds=time.perf_counter() - began)


def _boosted_trees() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=100,
        random_state=_SEED,
        deterministic=True,
        force_row_wise=True,  # to be deterministic it must not choose by measuring times
        n_jobs=1,
        verbose=-1,
    )


class Ridge:
    """Least squares on standardised inputs with a small penalty; what is missing is the mean."""

    penalty = 1.0

    def fit(self, inputs: np.ndarray, targets: np.ndarray) -> Ridge:
        seen = np.isfinite(inputs)
        count = np.maximum(seen.sum(axis=0), 1)
        self.mean = np.where(seen, inputs, 0.0).sum(axis=0) / count
        spread = np.where(seen, inputs - self.mean, 0.0)
        scale = np.sqrt((spread**2).sum(axis=0) / count)
        self.scale = np.where(scale > 0, scale, 1.0)
        Z = self._scaled(inputs)
        self.level = targets.mean()
        gram = Z.T @ Z + self.penalty * np.eye(Z.shape[1])
        self.coefficients = np.linalg.solve(gram, Z.T @ (targets - self.level))
        return self

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        return self.level + self._scaled(inputs) @ self.coefficients

    def _scaled(self, inputs: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(inputs), (inputs - self.mean) / self.scale, 0.0)


# --- all ------------------------------------------------------------------------------------------


def naive_rivals() -> list[Forecaster]:
    """The last value and those of earlier periods. They need no library."""
    return [
        Forecaster("last", last_value, "the last target"),
        Forecaster(
            "seasonal",
            partial(seasonal_last_value, 0),
            "the last target of the same phase of the shortest period",
            accepts=has_period,
        ),
        Forecaster(
            "seasonal-long",
            partial(seasonal_last_value, -1),
            "the last target of the same phase of the longest period",
            accepts=has_two_periods,
        ),
    ]


def direct_rivals(every: int = EVERY) -> list[Forecaster]:
    """One model per horizon, fitted anew every `every` rows."""
    given = f"inputs, {LAGS} lags, known inputs, one target per period; fitted every {every} rows"
    return [
        Forecaster(
            "ridge",
            partial(run_direct, Ridge, every),
            f"ridge regression, one per horizon: {given}",
            libraries=("numpy",),
        ),
        Forecaster(
            "lightgbm",
            partial(run_direct, _boosted_trees, every),
            f"LightGBM, 100 trees, one per horizon: {given}",
            every_horizon=False,
            libraries=("lightgbm", "numpy"),
        ),
    ]

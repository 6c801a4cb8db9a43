"""What forecasts in `make forecasts`: the interface of AutoBank and of all rivals, and the rivals.

A forecast *at* t is made when x[0], ..., x[t] and y[0], ..., y[t] are known, and of x[t + h] the
columns that the stream lists as known in advance. It is a forecast of y[t + h], where h is the
horizon.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from forecast_streams import ForecastStream

LAGS = 24
EVERY = 100
"""Rows between two fits of a direct model."""
CHOSEN_EVERY = 500
"""Rows between two choices of a model of statsforecast."""
CHOSEN_ON = 1000
"""Targets on which such a model is chosen and fitted."""
STATE_FROM = 500
"""Targets from which the state of an ARIMA model at t is computed."""
LEVEL = 90
_SEED = 42


@dataclass(frozen=True)
class Task:
    """What is to be forecast: a stream, for each of the horizons, at every row from `start` on.

    Forecasts at earlier rows are not scored. A forecaster may leave them NaN.
    """

    stream: ForecastStream
    horizons: tuple[int, ...]
    start: int


@dataclass(frozen=True)
class Forecasts:
    """One pass over a stream of n rows, for H horizons.

    - values: (n, H), forecasts of y[t + h] made at t; NaN where none was made
    - lower, upper: (n, H), intervals meant to hold 90 %; None if there are none
    - seconds: of the whole pass
    - versions: of the libraries that it depends on
    - note: what went otherwise than described, for readers; empty if nothing did
    """

    values: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    note: str = ""


def any_stream(stream: ForecastStream) -> bool:
    return True


def has_period(stream: ForecastStream) -> bool:
    return bool(stream.periods)


def has_two_periods(stream: ForecastStream) -> bool:
    return len(stream.periods) > 1


@dataclass(frozen=True)
class Forecaster:
    """A name, and how to forecast one stream from nothing.

    - every_horizon: whether a further horizon costs nothing, so that it is run with all up to the
      largest one
    - description: what it is, for readers; runs are kept by it
    - libraries: those that must be installed and whose versions the forecasts depend on
    - accepts: whether it can forecast a stream
    """

    name: str
    run: Callable[[Task], Forecasts]
    description: str
    every_horizon: bool = True
    libraries: tuple[str, ...] = ()
    accepts: Callable[[ForecastStream], bool] = any_stream

    def task(self, stream: ForecastStream, horizons: tuple[int, ...], start: int) -> Task:
        """The task with the horizons that this forecaster is run with."""
        own = tuple(range(1, max(horizons) + 1)) if self.every_horizon else horizons
        return Task(stream, own, start)


def empty(task: Task) -> np.ndarray:
    """(n, H) of NaN."""
    return np.full((len(task.stream), len(task.horizons)), np.nan)


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
#
# A direct model has one horizon: it maps what is known at t to y[t + h]. LightGBM and ridge
# regression are given the inputs x[t], the last 24 targets, the inputs at t + h that are known in
# advance, and for every period the newest target of the same phase as y[t + h]. They are fitted on
# all past rows whose target y[t + h] is known, every `every` rows; in between the last model
# forecasts.


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


# --- models of statsforecast: AutoARIMA and AutoETS -----------------------------------------------
#
# A model is chosen and fitted on the last 1,000 targets, every `every` rows. To choose an ARIMA
# model takes up to 80 s for a seasonal stream, so `approximation=True` is given, which is what the
# function auto.arima of R does for more than 150 rows, and no model is chosen every day. Where the
# optimiser fails with it, the model is chosen again without it, as statsforecast does by default.
#
# Between two choices `forward` gives the forecasts at t: those of the same model with its state at
# t. So every forecast uses y[t], and only the coefficients are up to `every` rows old. The state of
# an ETS model is followed from the first row that it was fitted on, because its initial state
# belongs there; that of an ARIMA model is computed from the last 500 targets, which is enough and
# takes half the time.
#
# Left alone, AutoETS chose a model without a season on the hourly streams that were tried, and
# AutoARIMA often one without seasonal differences. So models that must have them ("-seasonal") take
# part as well, where a stream has a period; AutoARIMA of smaller orders, so that a choice takes 2 s
# and not up to 100 s.


def run_statsforecast(
    makers: tuple[Callable[[int], Any], ...], every: int, state_from: int | None, task: Task
) -> Forecasts:
    """Forecast with a model of the first of `makers` whose model can be fitted. Each is given the
    shortest period, 1 if there is none.

    Its state at t is computed from the last `state_from` targets, or from all since the first one
    that it was fitted on. Where a model cannot be fitted the one before is used, and the last
    target where no model forecasts. The note says how often: such rows do not measure the model.
    """
    y, n = np.ascontiguousarray(task.stream.y), len(task.stream)
    period = task.stream.periods[0] if task.stream.periods else 1
    columns = np.array(task.horizons) - 1
    values, lower, upper = empty(task), empty(task), empty(task)
    model, first = None, 0
    unfitted = replaced = 0
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optimisers that stop early
        for t in range(task.start, n):
            if (t - task.start) % every == 0:
                start = max(0, t + 1 - CHOSEN_ON)
                past = y[start : t + 1]
                new = next(filter(None, (_fitted(make, period, past) for make in makers)), None)
                unfitted += new is None
                model, first = (model, first) if new is None else (new, start)
            state = first if state_from is None else max(0, t + 1 - state_from)
            found = _forward(model, y[state : t + 1], max(task.horizons))
            if found is None:
                replaced += 1
                found = (np.full(max(task.horizons), y[t]),) * 3
            values[t], lower[t], upper[t] = (part[columns] for part in found)
    seconds = time.perf_counter() - began
    return Forecasts(values, lower, upper, seconds, note=_note(unfitted, replaced))


def _note(unfitted: int, replaced: int) -> str:
    parts = []
    if unfitted:
        parts.append(f"{unfitted} models could not be fitted: the one before was used")
    if replaced:
        parts.append(f"at {replaced} rows no model forecast: the last target was used")
    return "; ".join(parts)


def _fitted(make: Callable[[int], Any], period: int, past: np.ndarray) -> Any:
    """The fitted model; None if it could not be fitted.

    An ARIMA model whose coefficients are all 0 is what AutoARIMA returns if its optimiser failed.
    """
    try:
        model = make(period).fit(past.copy())
    except Exception:  # errors of many kinds, where a stretch of a stream is constant or the like
        return None
    coefficients = list(model.model_.get("coef", {}).values())
    return None if coefficients and not any(coefficients) else model


def _forward(model: Any, past: np.ndarray, horizon: int) -> tuple[np.ndarray, ...] | None:
    """Forecasts, lower and upper ends of the intervals, (horizon,) each; None without a model, or
    where it fails."""
    if model is None:
        return None
    try:
        found = model.forward(past.copy(), horizon, level=[LEVEL])
        parts = tuple(np.asarray(found[k]) for k in ("mean", f"lo-{LEVEL}", f"hi-{LEVEL}"))
    except Exception:  # likewise
        return None
    return parts if all(np.isfinite(part).all() for part in parts) else None


def _arima(approximation: bool, period: int, **more: Any) -> Any:
    from statsforecast.models import AutoARIMA

    return AutoARIMA(season_length=period, approximation=approximation, **more)


def _arimas(**more: Any) -> tuple[Callable[[int], Any], ...]:
    """Chosen by approximation, and exactly."""
    return tuple(partial(_arima, approximation, **more) for approximation in (True, False))


def _ets(period: int, **more: Any) -> Any:
    from statsforecast.models import AutoETS

    return AutoETS(season_length=period, **more)


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


def statsforecast_rivals(every: int = CHOSEN_EVERY) -> list[Forecaster]:
    """The rivals with their model chosen every `every` rows."""
    fitted = f"chosen every {every} rows on the last {CHOSEN_ON:,}, its state followed to every row"
    seasonal_ets = (partial(_ets, model="ZZA"),)
    seasonal_arimas = _arimas(D=1, max_p=3, max_q=3, max_P=1, max_Q=1)
    exact = "by approximation, else exactly"
    small = f"AutoARIMA with D = 1, p, q <= 3, P, Q <= 1, {exact}"
    models: tuple[tuple[str, str, tuple[Callable[[int], Any], ...], int | None], ...] = (
        ("autoets", "AutoETS", (_ets,), None),
        ("autoets-seasonal", "AutoETS with a season (ZZA)", seasonal_ets, None),
        ("autoarima", f"AutoARIMA, {exact}", _arimas(), STATE_FROM),
        ("autoarima-seasonal", small, seasonal_arimas, STATE_FROM),
    )
    return [
        Forecaster(
            name,
            partial(run_statsforecast, makers, every, state_from),
            f"statsforecast: {what}, {fitted}",
            libraries=("statsforecast", "numpy"),
            accepts=has_period if name.endswith("-seasonal") else any_stream,
        )
        for name, what, makers, state_from in models
    ]

"""Rivals of `make forecasts` from statsforecast: AutoARIMA and AutoETS.

statsforecast is optional: without it, runs that were kept are used, and the others are left out.

A model is chosen and fitted on the last 1,000 targets, every `every` rows. To choose an ARIMA model
takes up to 80 s for a seasonal stream, so `approximation=True` is given, which is what the function
auto.arima of R does for more than 150 rows, and no model is chosen every day. Where the optimiser
fails with it, the model is chosen again without it, as statsforecast does by default.

Between two choices `forward` gives the forecasts at t: those of the same model with its state at t.
So every forecast uses y[t], and only the coefficients are up to `every` rows old. The state of an
ETS model is followed from the first row that it was fitted on, because its initial state belongs
there; that of an ARIMA model is computed from the last 500 targets, which is enough and takes half
the time.

Left alone, AutoETS chose a model without a season on the hourly streams that were tried, and
AutoARIMA often one without seasonal differences. So models that must have them ("-seasonal") take
part as well, where a stream has a period; AutoARIMA of smaller orders, so that a choice takes 2 s
and not up to 100 s.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from forecasters import Forecaster, Forecasts, Task, any_stream, empty, has_period

EVERY = 500
CHOSEN_ON = 1000
"""Targets on which a model is chosen and fitted."""
STATE_FROM = 500
"""Targets from which the state of an ARIMA model at t is computed."""
LEVEL = 90


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


# --- models ---------------------------------------------------------------------------------------


def _arima(approximation: bool, period: int, **more: Any) -> Any:
    from statsforecast.models import AutoARIMA

    return AutoARIMA(season_length=period, approximation=approximation, **more)


def _arimas(**more: Any) -> tuple[Callable[[int], Any], ...]:
    """Chosen by approximation, and exactly."""
    return tuple(partial(_arima, approximation, **more) for approximation in (True, False))


def _ets(period: int, **more: Any) -> Any:
    from statsforecast.models import AutoETS

    return AutoETS(season_length=period, **more)


def statsforecast_rivals(every: int = EVERY) -> list[Forecaster]:
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

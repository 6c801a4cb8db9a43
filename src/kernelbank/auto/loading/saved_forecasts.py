"""Checks of forecasts from a file, which may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import FileRefused
from ...utils.validation import Floats
from .. import model_state
from ..forecasts.forecaster import RECENT, Forecaster

_TARGETS = ("targets", "late_targets", "observed")
_MAY_MISS = ("inputs", "recent_inputs", "past", "slots", "seasons/targets", *_TARGETS)
"""Arrays that may hold NaN. Of the last targets all must be numbers that have come."""


def whole_number(value: Any, least: int, most: int, what: str) -> int:
    """A whole number from a file."""
    if isinstance(value, bool) or not (least <= value <= most and value == int(value)):
        raise FileRefused(f"it claims {value!r} for {what}.")
    return int(value)


def check_forecasts(
    forecaster: Forecaster, state: Mapping[str, Floats], counters: Mapping[str, Any]
) -> None:
    """Refuse a state that no forecaster with these settings has; before `Forecaster.restore`."""
    _check_shapes(forecaster, state)
    for name, array in state.items():
        inner = name.removeprefix("model/")
        may_miss = inner.endswith(("lagged", "inputs")) if inner != name else name in _MAY_MISS
        if not np.isfinite(array).all() and not may_miss:
            raise FileRefused(f"its forecasts are not numbers: {name}.")
    samples = whole_number(counters["samples"], 0, 2**53, "rows")
    whole_number(counters["begun"], 0, samples, "the first forecast")
    longest, inner_counters = forecaster.horizons[-1], counters["model"]
    learned = max(samples - longest, 0)
    whole_number(inner_counters["rows"], learned, learned, "the rows of its forecasts")
    whole_number(inner_counters["unscored"], 0, learned, "forecasts that do not count")
    for name in {*_TARGETS} & {*state}:
        come = min(samples, len(state[name]))
        if not np.isfinite(state[name][len(state[name]) - come :]).all():
            raise FileRefused(f"its last {name} are not numbers.")
    series, kept = counters["series"], min(samples, model_state.RESTARTS[-1] + longest + 1)
    if len(series) != kept or not all(map(_is_number, series)):
        raise FileRefused("its series does not fit its rows.")


def _check_shapes(forecaster: Forecaster, state: Mapping[str, Floats]) -> None:
    shapes = {name: array.shape for name, array in state.items()}
    recent = len(state["recent_values"])
    wanted = {name: array.shape for name, array in forecaster.state().items()}
    wanted |= {"recent_inputs": (recent, forecaster.dimension), "recent_values": (recent, 3)}
    if shapes != wanted or recent > RECENT:
        raise FileRefused("its forecasts do not fit its settings.")


def check_scaling(forecaster: Forecaster) -> None:
    """Refuse running statistics that no series has; after `Forecaster.restore`."""
    scaling = forecaster.model.scaling
    if not scaling.is_plausible(scaling.held):
        raise FileRefused("no series has such running statistics.")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and bool(np.isfinite(value))

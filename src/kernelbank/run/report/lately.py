"""How good the predictions were lately, for the first sentence of a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...utils.validation import Floats
from ..history import History

DAY = 86_400.0
PERIODS = {
    "24 hours": DAY,
    "7 days": 7 * DAY,
    "30 days": 30 * DAY,
    "365 days": 365 * DAY,
    "hour": DAY / 24,
}
"""Seconds of the periods that a sentence may be about, the most natural one first."""

LEAST_ROWS = 20
"""Fewer scored rows do not tell how good a model is."""

LEAST_SHARE = 0.8
"""The points of the history must fill at least this share of a period, to stand for it."""

LATEST = 100
"""Without a time, the last tenth of the rows, but at least so many."""

MEANS = ("loss", "baseline_loss", "absolute_error", "baseline_absolute_error")


def lately(history: History, *, labels: bool) -> dict[str, Any] | None:
    """The mean errors over a natural last period, or over the last rows; None if there are too few.

    The period is "24 hours" or the like, None where there is no time or the run is too short. Rows
    are taken one by one where they are kept, else by points.
    """
    totals = history.totals
    if totals["scored"].sum() < LEAST_ROWS:
        return None
    low, high = history.extremes["time_low"], history.extremes["time_high"]
    if np.isfinite(low).all() and np.isfinite(high).all() and (np.diff(high) >= 0).all():
        for period, seconds in PERIODS.items():
            start = high[-1] - seconds
            if low[0] > start:
                continue
            found = _of_rows(history, start, labels) or _of_points(history, start, seconds)
            if found is not None:
                return {"period": period, "whole": False, **found}
    wanted = max(LATEST, history.rows // 10)
    counted = np.cumsum(totals["rows"][::-1])
    first = max(0, history.points - 1 - int(np.searchsorted(counted, wanted)))
    return {"period": None, "whole": first == 0, **_sums(history, first)}


def _of_rows(history: History, start: float, labels: bool) -> dict[str, Any] | None:
    """The means over the last rows, if these go back to `start`."""
    recent = history.recent
    times = recent["time"]
    if not (len(times) and times[0] <= start):
        return None
    known = ~np.isnan(recent["target"] + recent["prediction"] + recent["baseline"])
    own = known & (times > start)
    if own.sum() < LEAST_ROWS:
        return None
    target = recent["target"][own]
    sizes = [np.abs(recent[name][own] - target) for name in ("prediction", "baseline")]
    losses: list[Floats] = [(one != 0.0).astype(float) if labels else one**2 for one in sizes]
    values = [float(one.mean()) for one in (*losses, *sizes)]
    return {"rows": int(own.sum()), **dict(zip(MEANS, values, strict=True))}


def _of_points(history: History, start: float, seconds: float) -> dict[str, Any] | None:
    """The means over the points after `start`, if these are most of the period."""
    low, end = history.extremes["time_low"], history.extremes["time_high"][-1]
    after = np.flatnonzero(low > start)
    if not len(after) or end - low[after[0]] < LEAST_SHARE * seconds:
        return None
    first = int(after[0])
    return None if history.totals["scored"][first:].sum() < LEAST_ROWS else _sums(history, first)


def _sums(history: History, first: int) -> dict[str, Any]:
    """The means over all points from the first one on."""
    totals = {name: float(values[first:].sum()) for name, values in history.totals.items()}
    means = {name: totals[name] / totals["scored"] if totals["scored"] else None for name in MEANS}
    return {"rows": int(totals["rows"]), **means}

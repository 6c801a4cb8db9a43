"""Intervals of forecasts, calibrated for every horizon from its own past errors.

As in `calibration`, quantiles of the error in units of its running root mean square move after
every target. But the target of a forecast comes h rows later, and errors of neighboring rows are
alike. So each error is compared with the ends of intervals *as they were made*, with the width and
the quantiles of that time, in their order (see `calibration.quantile`): then the share of errors
beyond an end differs from its tail by (how far the quantile has moved) * sqrt(tail) / (step *
samples), whatever the delay. An error that repeats for h rows moves a quantile h times. So that it
moves no farther than independent errors would, steps are divided by sqrt(h); and the mean square is
over more rows, the longer the horizon.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...native.arguments import Arguments, floats, ints
from ...native.functions import native
from ...native.jit import inline
from ...native.phases import Phase
from ...utils.validation import Floats
from ..calibration.calibration import (
    ERROR_STATS,
    HIGH,
    LOSS,
    LOW,
    ROWS,
    VARIANCE,
    WEIGHT,
    predict_value,
    quantile,
    within,
)
from ..calibration.normal_tails import TAILS, normal_quantiles_of_tails
from ..scaling.running_stats import FAR_DEVIATIONS

_STEP = 0.05
_START = 10.0
_MEMORY, _LONGEST_MEMORY = 50.0, 1000.0
_LEAP = 100.0

LAST_LOSS, SEASON_LOSS, COVERED, WIDTHS, ABSOLUTE = range(5)
TOTALS = 5
"""Sums over all scored forecasts: squared errors of the last value and of the last value of the
same phase, how many targets were inside their intervals, their widths, absolute errors."""

INTERVALS = Arguments(
    "horizon_intervals",
    outputs=int,
    tracked=int,
    moments=int,  # the longest horizon: that many moments wait for targets
    horizons=ints("outputs"),
    tails=floats("tracked"),
    ranged=int,  # whether forecasts stay near the range of the targets
    tail=floats(1),  # the probability beyond each end of an interval
    bounds=floats(2),
    # State of every horizon:
    stats=floats("outputs", ERROR_STATS),
    quantiles=floats("outputs", 2, "tracked"),  # of errors below and above
    totals=floats("outputs", TOTALS),
    # Forecasts that wait, that of moment n in row n % moments:
    points=floats("moments", "outputs"),
    ends=floats("moments", "outputs", 2),
    baselines=floats("moments", "outputs", 2),  # last value, last value of the phase
    widths=floats("moments", "outputs"),
    issued=floats("moments", "outputs", 2, "tracked"),  # the quantiles at that time, in order
    # The present moment:
    points_now=floats("outputs"),  # forecasts
    spreads=floats("outputs"),  # of the slots around them
    scale=floats(2),  # of the target: center and scale
    y=floats("outputs"),  # what was forecast: with known inputs, what these leave of the target
    target=floats(1),
    output=floats("outputs", 3),
)


@inline
def _forecast(a, k):
    """output[k]: the forecast and the ends of its interval, within the bounds."""
    stats, out = a.stats[k], a.output[k]
    value = within(a.points_now[k], a.bounds)
    if a.ranged == 1:
        value = predict_value(a.points_now[k], a.spreads[k], 0.0, 1.0, stats, a.bounds)
    width = math.sqrt(stats[VARIANCE])
    low = value - width * quantile(a.tails, a.quantiles[k, 0], a.tail[0])
    high = value + width * quantile(a.tails, a.quantiles[k, 1], a.tail[0])
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        low = high = value
    out[0], out[1], out[2] = value, within(low, a.bounds), within(high, a.bounds)


@native(INTERVALS)
def forecast(a, first, count):
    """output: forecasts and the ends of their intervals."""
    for k in range(a.outputs):
        _forecast(a, k)


@native(INTERVALS)
def issue(a, first, count):
    """Keep the forecasts of moment `first`, which are in `output`, until their targets come."""
    row = first % a.moments
    for k in range(a.outputs):
        a.points[row, k] = a.output[k, 0]
        a.ends[row, k, 0], a.ends[row, k, 1] = a.output[k, 1], a.output[k, 2]
        a.widths[row, k] = math.sqrt(a.stats[k, VARIANCE])
        for side in range(2):
            highest = -np.inf
            for g in range(a.tracked - 1, -1, -1):
                highest = max(highest, a.quantiles[k, side, g])
                a.issued[row, k, side, g] = highest


@inline
def _move_quantiles(a, k, row, error):
    """Each quantile q of tail p moves by step / sqrt(p) * ((error > its end) - p)."""
    stats, width, issued = a.stats[k], a.widths[row, k], a.issued[row, k]
    step = max(_STEP / math.sqrt(float(a.horizons[k])), 1.0 / (stats[ROWS] + _START))
    for g in range(a.tracked if width > 0.0 else 0):
        move = step / math.sqrt(a.tails[g])
        below = 1.0 if -error > width * issued[0, g] else 0.0
        above = 1.0 if error > width * issued[1, g] else 0.0
        a.quantiles[k, 0, g] += move * (below - a.tails[g])
        a.quantiles[k, 1, g] += move * (above - a.tails[g])


@inline
def _add_totals(a, k, row, y, error):
    totals, ends, target = a.totals[k], a.ends[row, k], a.target[0]
    totals[LAST_LOSS] += (target - a.baselines[row, k, 0]) ** 2
    totals[SEASON_LOSS] += (target - a.baselines[row, k, 1]) ** 2
    totals[COVERED] += 1.0 if ends[0] <= y <= ends[1] else 0.0
    totals[WIDTHS] += ends[1] - ends[0]
    totals[ABSOLUTE] += abs(error)


@native(INTERVALS)
def score(a, first, count):
    """Score the forecasts whose target is that of moment `first`; `count` forecasts wait."""
    mean, sd = a.scale[0], a.scale[1]
    far = FAR_DEVIATIONS * sd
    for k in range(a.outputs):
        horizon, stats, y = a.horizons[k], a.stats[k], a.y[k]
        if horizon > count:
            continue
        usual = y if sd == 0.0 else min(max(y, mean - far), mean + far)
        row = (first - horizon) % a.moments
        error = y - a.points[row, k]
        if stats[ROWS] == 0.0:
            stats[LOW] = stats[HIGH] = usual
            stats[VARIANCE] = max(sd * sd, error * error)
            stats[WEIGHT] = 1.0
        stats[LOW], stats[HIGH] = min(stats[LOW], usual), max(stats[HIGH], usual)
        stats[LOSS] += error * error
        _add_totals(a, k, row, y, error)
        _move_quantiles(a, k, row, error)
        stats[WEIGHT] = min(stats[WEIGHT] + 1.0, _MEMORY * horizon, _LONGEST_MEMORY)
        square = error * error
        if stats[VARIANCE] > 0.0:
            square = min(square, _LEAP * stats[VARIANCE])
        stats[VARIANCE] += (square - stats[VARIANCE]) / stats[WEIGHT]
        stats[ROWS] += 1.0


class HorizonIntervals:
    """The calibration of all horizons, and the forecasts that wait for their targets.

    Parameters
    ----------
    horizons : in rows, ascending.
    bounds : (2,), of the targets.
    ranged : whether forecasts stay near the range of the targets so far.
    """

    def __init__(self, horizons: Sequence[int], bounds: Floats, ranged: bool = True) -> None:
        outputs, tracked, moments = len(horizons), len(TAILS), horizons[-1]
        self._horizons = np.array(horizons, dtype=np.int64)
        self._bounds, self._ranged = bounds, ranged
        self.stats = np.zeros((outputs, ERROR_STATS))
        normal = normal_quantiles_of_tails()
        self.quantiles = np.tile(normal, (outputs, 2, 1))
        self.totals = np.zeros((outputs, TOTALS))
        self.points = np.zeros((moments, outputs))
        self.ends = np.zeros((moments, outputs, 2))
        self.baselines = np.zeros((moments, outputs, 2))
        self.widths = np.zeros((moments, outputs))
        self.issued = np.zeros((moments, outputs, 2, tracked))

    @cached_property
    def _batch(self) -> dict[str, Any]:
        outputs = len(self._horizons)
        arrays: dict[str, Any] = {
            "tail": np.zeros(1),
            "points_now": np.zeros(outputs),
            "spreads": np.zeros(outputs),
            "scale": np.zeros(2),
            "y": np.zeros(outputs),
            "target": np.zeros(1),
            "output": np.zeros((outputs, 3)),
        }
        arguments = {
            **self.state(),
            **arrays,
            "outputs": outputs,
            "tracked": len(TAILS),
            "moments": len(self.points),
            "horizons": self._horizons,
            "tails": TAILS,
            "ranged": int(self._ranged),
            "bounds": self._bounds,
        }
        steps = {name: Phase(step, **arguments) for name, step in _STEPS.items()}
        return {**arrays, **steps}

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but what holds the addresses of arrays."""
        return {name: value for name, value in self.__dict__.items() if name != "_batch"}

    def forecast(self, points: Floats, spreads: Floats, tail: float) -> Floats:
        """(H, 3): forecasts and the ends of their intervals, from combined forecasts (H,)."""
        batch = self._batch
        batch["points_now"][:], batch["spreads"][:] = points, spreads
        batch["tail"][0] = tail
        batch["forecast"].run(0, 1)
        found: Floats = batch["output"].copy()
        return found

    def issue(self, moment: int, output: Floats, baselines: Floats) -> None:
        """Keep forecasts (H, 3) and baselines (H, 2) of a moment until their targets come."""
        self._batch["output"][:] = output
        self.baselines[moment % len(self.points)] = baselines
        self._batch["issue"].run(moment, 1)

    def score(self, moment: int, y: Floats, target: float, waiting: int, scale: Floats) -> None:
        """Score the forecasts of y (H,), of this moment; the last `waiting` moments count.

        target : the target of this moment, for the baselines; y unless some inputs are known.
        """
        self._batch["y"][:], self._batch["target"][0] = y, target
        self._batch["scale"][:] = scale
        self._batch["score"].run(moment, waiting)

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        names = ("stats", "quantiles", "totals", "points", "ends", "baselines", "widths", "issued")
        return {name: getattr(self, name) for name in names}


_STEPS = {"forecast": forecast, "issue": issue, "score": score}

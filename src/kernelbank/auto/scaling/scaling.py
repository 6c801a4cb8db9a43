"""Online scaling: of every input in up to three ways, and of the target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...transforms import ShiftedLog
from ...utils.validation import LARGEST, Floats
from ..season_steps import INPUTS, PAST
from . import scaling_steps as steps
from .running_stats import (
    CENTER,
    CHANGE_AFTER,
    COUNT,
    FAR_DEVIATIONS,
    MEAN,
    POWER,
    PRODUCT,
    SCALE,
    SEEN,
    STATS,
    STREAK,
)
from .scaling_batch import CHUNK, ScalingBatch, fit_columns
from .target_skewness import is_plausible_shift, log_shift

RING = 1000
"""Values among which a value is ranked."""

_INDEX = {
    "standard": steps.STANDARD,
    "asinh": steps.ASINH,
    "rank": steps.RANKS,
    "none": steps.PLAIN,
}

SCALINGS = tuple(_INDEX)


class Scaling:
    """Scales rows by running statistics of the inputs and of the target (`running_stats`).

    - "standard": (x - center) / scale, at most 8 in size. Center and scale are the mean and
      standard deviation of some time ago, which follow once these have moved by a tenth;
    - "asinh": asinh((x - mean) / sd) by the rows so far, for heavy tails;
    - "rank": the normal quantile of the rank among the last 1,000 values;
    - "none": the inputs as they are, for kernels that know their units.

    A scaled row has `width` columns: the scalings side by side. Lagged targets follow the inputs,
    normalized by the target's statistics, in all scalings but asinh (unless it is the only one):
    some slots should not see them, since on a stream whose targets do not depend on the last ones
    they are noise. After all scalings come the columns of seasons (`season_steps`), and for slots
    that see more of the past the *past columns*, in the first scaling: targets before the lagged
    ones, and the inputs of the row before. The *relevant columns* are those of the first scaling
    and the past columns again, each multiplied by its relevance (`relevance`). Inputs beyond the
    first `core` were added later: they are at the end, one after the other in all their scalings,
    so that all other columns keep their index.

    Parameters
    ----------
    dimension : number of inputs.
    lags : number of lagged targets.
    names : the scalings, in the order of `SCALINGS`.
    target : whether the target is a number, which has statistics too.
    core : number of inputs at the start; all by default.
    seasons : number of places for periods.
    periods : how many of them are known.
    remembered : number of targets that a row knows, at least `lags`.
    previous : number of inputs of the row before that a row knows.
    relevant : whether there are relevant columns.
    """

    def __init__(
        self,
        dimension: int,
        lags: int,
        names: Sequence[str],
        *,
        target: bool,
        core: int | None = None,
        seasons: int = 0,
        periods: int = 0,
        remembered: int = 0,
        previous: int = 0,
        relevant: bool = False,
    ) -> None:
        remembered = max(remembered, lags)
        self.dimension = dimension
        self.core = core = dimension if core is None else core
        self.lags = lags
        self.past = remembered + seasons * PAST + previous
        self.seasons = seasons
        self.periods = periods
        self.names = tuple(names)
        self.has_target = target
        self.columns = np.zeros((dimension, STATS))
        self.rings = np.zeros((dimension, RING if "rank" in names else CHANGE_AFTER))
        self.target = np.zeros(STATS)
        self.ring = np.zeros(RING if lags and target and "rank" in names else CHANGE_AFTER)
        self._places = np.full((steps.SCALINGS, dimension + remembered), -1)
        """The column of a scaled row for each scaling of each input and past target, or -1."""
        self.columns_of: dict[str, tuple[int, ...]] = {}
        """The columns of each scaling: its first inputs, lagged targets, later inputs."""
        self.lag_columns: list[int] = []
        width = 0
        for name in self.names:
            own = [*range(core)]
            if name != "asinh" or len(self.names) == 1:
                own += range(dimension, dimension + lags)
            self.columns_of[name] = tuple(range(width, width + len(own)))
            self._places[_INDEX[name], own] = self.columns_of[name]
            self.lag_columns += self.columns_of[name][core:]
            width += len(own)
        self.season_columns = tuple(range(width, width + seasons * INPUTS))
        """The columns of all places for periods."""
        width += len(self.season_columns)
        older = tuple(range(width, width + remembered - lags))
        self._places[_INDEX[self.names[0]], dimension + lags :] = older
        width += len(older)
        self._previous_columns = tuple(range(width, width + previous))
        width += previous
        self.past_columns = (*older, *self._previous_columns)
        """The columns of the past beyond lagged targets and seasons."""
        first = self.columns_of[self.names[0]]
        self._relevant_sources = (*first, *self.past_columns) if relevant else ()
        self.relevance = np.ones(len(self._relevant_sources))
        """The factor of each relevant column."""
        self.target_shift = np.zeros(1)
        """The shift of the target's logarithm for slots on ranks and relevant columns, or 0."""
        self.relevant_columns = tuple(range(width, width + len(self.relevance)))
        width += len(self.relevance)
        for column in range(core, dimension):
            for name in self.names:
                self.columns_of[name] += (width,)
                self._places[_INDEX[name], column] = width
                width += 1
        self.width = width

    @cached_property
    def batch(self) -> ScalingBatch:
        """The arrays of a batch, and the steps on them."""
        return ScalingBatch(
            self.columns,
            self.rings,
            self.target,
            self.ring,
            self._places,
            width=self.width,
            shown=self.lags,
            seasons=self.seasons,
            season_column=self.season_columns[0] if self.seasons else 0,
            previous_columns=self._previous_columns,
            relevant_columns=self.relevant_columns,
            relevant_sources=self._relevant_sources,
            relevance=self.relevance,
            target_shift=self.target_shift,
            has_target=self.has_target,
        )

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but what holds the addresses of arrays."""
        return {name: value for name, value in self.__dict__.items() if name != "batch"}

    # --- inputs ---------------------------------------------------------------------------------

    def fit(self, X: Floats, targets: Floats | None) -> None:
        """Start all statistics from some first rows."""
        fit_columns(self.columns, self.rings, X)
        if targets is not None:
            fit_columns(self.target[None], self.ring[None], targets[:, None])
            if len(self.relevance):
                self.target_shift[0] = log_shift(self.scale_targets(targets))

    def scale_rows(self, X: Floats, lagged: Floats) -> Floats:
        """(n, width): scaled inputs (n, d) and past targets (n, past); changes nothing."""
        out = np.empty((len(X), self.width))
        batch = self.batch
        for start in range(0, len(X), CHUNK):
            rows = X[start : start + CHUNK]
            count = len(rows)
            batch.X[:count] = rows
            if self.past:
                batch.lagged[:count] = lagged[start : start + CHUNK]
            batch.run(steps.scale_rows, count)
            out[start : start + CHUNK] = batch.out[:count]
        return out

    def update_inputs(self, x: Floats) -> list[int]:
        """Add one input (d,) to the statistics; the columns that have a new level."""
        batch = self.batch
        batch.X[0] = x
        batch.run(steps.update_inputs)
        return [column for _, column in self.new_levels(1)]

    def new_levels(self, count: int) -> list[tuple[int, int]]:
        """(row, column) of the new levels that the last step has found in `count` rows."""
        if not self.batch.result[1]:
            return []
        return [(int(t), int(k)) for t, k in np.argwhere(self.batch.new_levels[:count])]

    def scale_and_update(
        self, X: Floats, lagged: Floats, y: Floats | None
    ) -> tuple[Floats, Floats, Floats, list[tuple[int, int]]]:
        """Scale up to CHUNK rows and add each to the statistics, up to the first far target.

        Returns the scaled rows (m, width), the scaled targets (m,), the target's center and scale
        before each row (m, 2), and the (row, column) of new levels, for the m rows that were done.
        Without targets `y`, the second and third are empty.
        """
        batch, count = self.batch, len(X)
        batch.X[:count] = X
        if y is not None:
            batch.y[:count] = y
        if self.past:
            batch.lagged[:count] = lagged
        batch.run(steps.scale_and_update, count)
        done = int(batch.result[0])
        known = 0 if y is None else done
        return (
            batch.out[:done].copy(),
            batch.scaled[:known].copy(),
            batch.scale[:known].copy(),
            self.new_levels(done),
        )

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input.

        Where too few are kept or all are equal, the ends are 2.5 standard deviations of all values
        so far to both sides of their mean.
        """
        found = np.empty((self.dimension, 3))
        for column, ring, out in zip(self.columns, self.rings, found, strict=True):
            last = ring[: int(min(column[SEEN], len(ring)))]
            out[:] = column[CENTER] + column[SCALE] * np.array([0.0, -2.5, 2.5])
            if len(last) > CHANGE_AFTER:
                out[0] = np.median(last)
                if last.min() < last.max():
                    out[1:] = last.min(), last.max()
        return found

    def input_deviations(self, row: Floats) -> Floats:
        """(d,): the deviations of the inputs of a scaled row (width,), without lagged targets."""
        own = self.columns_of[self.names[0]]
        added = self.dimension - self.core
        inputs = row[[*own[: self.core], *own[len(own) - added :]]]
        if self.names[0] != "none":
            return inputs
        scales = self.columns[:, SCALE]
        away = inputs - self.columns[:, CENTER]
        return np.divide(away, scales, out=np.zeros_like(away), where=scales > 0.0)

    # --- the target -----------------------------------------------------------------------------

    @property
    def target_scale(self) -> tuple[float, float]:
        """The target's center and scale."""
        return float(self.target[CENTER]), float(self.target[SCALE])

    @property
    def target_transform(self) -> ShiftedLog | None:
        """The transform of the scaled target for slots on ranks and relevant columns.

        None unless the target is skewed.
        """
        if not (self.has_target and len(self.relevance)):
            return None
        shift = float(self.target_shift[0])
        return ShiftedLog(shift) if shift and is_plausible_shift(shift) else None

    @property
    def target_correlation(self) -> float:
        """The correlation of a target with the next one, at least 0."""
        product, power = float(self.target[PRODUCT]), float(self.target[POWER])
        return min(max(product / power, 0.0), 1.0) if power > 0.0 else 0.0

    def scale_targets(self, y: Floats) -> Floats:
        """Targets in their present deviations, at most 10 in size."""
        mean, sd = self.target_scale
        if sd == 0.0:
            return np.zeros(len(y))
        return np.clip((y - mean) / sd, -FAR_DEVIATIONS, FAR_DEVIATIONS)

    def outlier_level(self, y: float) -> int:
        """0 for a usual target; `steps.FAR` beyond 10 deviations, `steps.EXTREME` beyond 1,000."""
        batch = self.batch
        batch.y[0] = y
        batch.run(steps.outlier_levels)
        return int(batch.levels[0])

    def update_target(self, y: float, *, hold: bool) -> bool:
        """Add a target to its statistics, or hold it back; True if it is the fifth held in a row.

        Then one of `widen_target`, `shift_target` and `restart_target` has to follow.
        """
        batch = self.batch
        batch.y[0] = y
        batch.run(steps.hold_target if hold else steps.add_target)
        return hold and bool(batch.result[0])

    def widen_target(self) -> None:
        """Add the last five targets to the statistics as they are."""
        self.batch.run(steps.widen_target)

    def shift_target(self, shift: float) -> None:
        """Shift the target's level."""
        self.batch.shift[0] = shift
        self.batch.run(steps.shift_target)

    def restart_target(self) -> None:
        """Start the target's statistics anew from the last five."""
        self.batch.run(steps.restart_target)

    # --- saving and restarting ------------------------------------------------------------------

    def is_plausible(self, held: int) -> bool:
        """Whether statistics from a file can be those of a stream with `held` targets held back."""
        both = np.vstack([self.columns, self.target])
        sizes = np.abs(both[:, [MEAN, CENTER, SCALE]])
        # A shift by a prediction may move the level beyond the largest target.
        return bool(
            (both[:, [COUNT, SCALE]] >= 0.0).all()
            and (sizes <= 1000.0 * LARGEST).all()
            and ((self.relevance > 0.0) & (self.relevance <= len(self.relevance))).all()
            and is_plausible_shift(float(self.target_shift[0]))
            and self.target[STREAK] == held
        )

    def continue_from(self, before: Scaling) -> None:
        """Take over the statistics of a scaling that had fewer inputs."""
        self.columns[: before.dimension] = before.columns
        self.rings[: before.dimension] = before.rings
        self.target[:] = before.target
        self.target_shift[:] = before.target_shift
        self.ring[:] = before.ring
        if len(self.relevance) == len(before.relevance):  # not if all inputs are new
            self.relevance[:] = before.relevance

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        own = {
            "columns": self.columns,
            "rings": self.rings,
            "target": self.target,
            "ring": self.ring,
        }
        if len(self.relevance):
            own |= {"relevance": self.relevance, "target_shift": self.target_shift}
        return own

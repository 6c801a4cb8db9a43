"""Online scaling: of every input in up to three ways, and of the target."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from ..utils.validation import LARGEST, Floats
from . import scaling_steps as steps
from .running_stats import (
    CENTER,
    CHANGE_AFTER,
    COUNT,
    FAR_DEVIATIONS,
    MEAN,
    SCALE,
    SEEN,
    STATS,
    STREAK,
)

RING = 1000
"""Values among which a value is ranked."""

_STEPS = 2048
_NORMAL = NormalDist()
QUANTILES = np.array(
    [
        _NORMAL.inv_cdf(min(max(i / _STEPS, 0.5 / _STEPS), 1 - 0.5 / _STEPS))
        for i in range(_STEPS + 1)
    ]
)
"""Normal quantiles over equal steps of probability."""


_INDEX = {"standard": 0, "asinh": 1, "rank": 2, "none": 4}
"""The index of each scaling in `starts` (`scaling_steps.scale_row`)."""

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
    they are noise. Inputs beyond the first `core` were added later: they are at the end, one after
    the other in all their scalings, so that all other columns keep their index.

    Parameters
    ----------
    dimension : number of inputs.
    lags : number of lagged targets.
    names : the scalings, in the order of `SCALINGS`.
    target : whether the target is a number, which has statistics too.
    core : number of inputs at the start; all by default.
    """

    def __init__(
        self,
        dimension: int,
        lags: int,
        names: Sequence[str],
        *,
        target: bool,
        core: int | None = None,
    ) -> None:
        self.dimension = dimension
        self.core = core = dimension if core is None else core
        self.lags = lags
        self.names = tuple(names)
        self.has_target = target
        self.columns = np.zeros((dimension, STATS))
        self.rings = np.zeros((dimension, RING if "rank" in names else CHANGE_AFTER))
        self.target = np.zeros(STATS)
        self.ring = np.zeros(RING if lags and target and "rank" in names else CHANGE_AFTER)
        self.starts = np.full(5, -1)
        self.columns_of: dict[str, tuple[int, ...]] = {}
        """The columns of each scaling: its first inputs, lagged targets, later inputs."""
        self.lag_columns: list[int] = []
        order: list[int] = []
        width = 0
        for name, index in _INDEX.items():
            if name in self.names:
                self.starts[index] = width
                own = dimension + (0 if name == "asinh" and len(self.names) > 1 else lags)
                if name == "asinh" and own > dimension:
                    self.starts[3] = width + dimension
                first = len(order)
                order += [*range(width, width + core), *range(width + dimension, width + own)]
                self.columns_of[name] = tuple(range(first, len(order)))
                self.lag_columns += self.columns_of[name][core:]
                width += own
        for column in range(core, dimension):
            for name, index in _INDEX.items():
                if name in self.names:
                    self.columns_of[name] += (len(order),)
                    order.append(int(self.starts[index]) + column)
        self.width = width
        self._order = None if core == dimension else np.array(order)
        """The columns of the compiled loops' output, in the order of the scaled row."""

    # --- inputs ---------------------------------------------------------------------------------

    def fit(self, X: Floats, targets: Floats | None) -> None:
        """Start all statistics from some first rows."""
        steps.fit_columns(self.columns, self.rings, QUANTILES, X)
        if targets is not None:
            steps.fit_columns(self.target[None], self.ring[None], QUANTILES, targets[:, None])

    def scale_rows(self, X: Floats, lagged: Floats) -> Floats:
        """(n, width): scaled inputs (n, d) and lagged targets (n, lags); changes nothing."""
        out = np.zeros((len(X), self.width))
        steps.scale_rows(
            X,
            lagged,
            self.columns,
            self.rings,
            self.target,
            self.ring,
            QUANTILES,
            self.starts,
            out,
        )
        return self._reorder(out)

    def _reorder(self, out: Floats) -> Floats:
        return out if self._order is None else out[:, self._order]

    def update_inputs(self, x: Floats) -> list[int]:
        """Add one input (d,) to the statistics; the columns that have a new level."""
        new_levels = np.zeros(self.dimension, dtype=np.bool_)
        steps.update_inputs(x, self.columns, self.rings, QUANTILES, new_levels)
        return [int(k) for k in np.flatnonzero(new_levels)]

    def scale_and_update(
        self, X: Floats, lagged: Floats, y: Floats
    ) -> tuple[Floats, Floats, Floats, list[tuple[int, int]]]:
        """Scale each row, then add it to the statistics, up to the first far target.

        Returns the scaled rows (m, width), the scaled targets (m,), the target's center and scale
        before each row (m, 2), and the (row, column) of new levels, for the m rows that were done.
        """
        count = len(X)
        out = np.zeros((count, self.width))
        scaled, scale = np.empty(count), np.empty((count, 2))
        new_levels = np.zeros((count, self.dimension), dtype=np.bool_)
        done = steps.scale_and_update(
            X,
            lagged,
            y,
            self.columns,
            self.rings,
            self.target if self.has_target else np.zeros_like(self.target),
            self.ring if self.has_target else np.zeros_like(self.ring),
            QUANTILES,
            self.starts,
            out,
            scaled,
            scale,
            new_levels,
        )
        found = [(int(t), int(k)) for t, k in np.argwhere(new_levels[:done])]
        return self._reorder(out[:done]), scaled[:done], scale[:done], found

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

    def scale_targets(self, y: Floats) -> Floats:
        """Targets in their present deviations, at most 10 in size."""
        mean, sd = self.target_scale
        if sd == 0.0:
            return np.zeros(len(y))
        return np.clip((y - mean) / sd, -FAR_DEVIATIONS, FAR_DEVIATIONS)

    def outlier_level(self, y: float) -> int:
        """0 for a usual target; `steps.FAR` beyond 10 deviations, `steps.EXTREME` beyond 1,000."""
        return int(steps.outlier_level(self.target, y))

    def update_target(self, y: float, *, hold: bool) -> bool:
        """Add a target to its statistics, or hold it back; True if it is the fifth held in a row.

        Then one of `widen_target`, `shift_target` and `restart_target` has to follow.
        """
        return bool(steps.update_target(y, hold, self.target, self.ring, QUANTILES))

    def widen_target(self) -> None:
        """Add the last five targets to the statistics as they are."""
        steps.widen_target(self.target, self.ring)

    def shift_target(self, shift: float) -> None:
        """Shift the target's level."""
        steps.shift_target(self.target, self.ring, shift)

    def restart_target(self) -> None:
        """Start the target's statistics anew from the last five."""
        steps.restart_target(self.target, self.ring)

    # --- saving and restarting ------------------------------------------------------------------

    def is_plausible(self, held: int) -> bool:
        """Whether statistics from a file can be those of a stream with `held` targets held back."""
        both = np.vstack([self.columns, self.target])
        sizes = np.abs(both[:, [MEAN, CENTER, SCALE]])
        # A shift by a prediction may move the level beyond the largest target.
        return bool(
            (both[:, [COUNT, SCALE]] >= 0.0).all()
            and (sizes <= 1000.0 * LARGEST).all()
            and self.target[STREAK] == held
        )

    def continue_from(self, before: Scaling) -> None:
        """Take over the statistics of a scaling that had fewer inputs."""
        self.columns[: before.dimension] = before.columns
        self.rings[: before.dimension] = before.rings
        self.target, self.ring = before.target, before.ring

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        return {
            "columns": self.columns,
            "rings": self.rings,
            "target": self.target,
            "ring": self.ring,
        }

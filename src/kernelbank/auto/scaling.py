"""Scaling online: every input shown in up to three ways, and the target in its deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from ..utils.validation import LARGEST, Floats
from . import scaling_steps as hot
from .running_stats import BASE, COUNT, FIGURES, LIMIT, MEAN, PATIENCE, SEEN, STREAK, UNIT

MEMORY = 1000
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


_NUMBERS = {"standard": 0, "asinh": 1, "rank": 2, "none": 4}
"""Where the loops look up the place of a scaling."""

KNOWN = tuple(_NUMBERS)


class Scaling:
    """The running figures of the inputs and of the target, and what is made of them.

    - "standard": (x - base) / unit, at most 8 in size. Base and unit are mean and sd of some time
      ago, which follow once these have moved by a tenth of the sd;
    - "asinh": asinh((x - mean) / sd) by the rows so far, for heavy tails;
    - "rank": the normal quantile of the rank among the last 1,000 values;
    - "none": the inputs as they are, for kernels that know their units.

    A value enters mean and sd as if it were at most 10 sd away. Five in a row beyond 10 units are a
    new level or scale, from which mean and sd start anew. A missing value, or one beyond 1,000
    units, stands at the last one's standing times its column's correlation from row to row, to the
    power of the rows since. Targets that are far may have to wait: see `take_target`.

    Lagged targets stand behind the inputs, in the target's own figures, in all scalings but asinh
    (unless it is the only one): some slots should not see them, since a stream whose targets say
    nothing about the next would only be blurred.

    Inputs beyond the first `core` came later: they stand at the end, one after the other in all
    their scalings, so that all others stay where they are.
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
        self.columns = np.zeros((dimension, FIGURES))
        self.rings = np.zeros((dimension, MEMORY if "rank" in names else PATIENCE))
        self.target = np.zeros(FIGURES)
        self.ring = np.zeros(MEMORY if lags and target and "rank" in names else PATIENCE)
        self.starts = np.full(5, -1)
        self.places: dict[str, tuple[int, ...]] = {}
        """Where each scaling's columns are: the first inputs, lagged targets, later inputs."""
        self.lag_columns: list[int] = []
        order: list[int] = []
        width = 0
        for name, number in _NUMBERS.items():
            if name in self.names:
                self.starts[number] = width
                own = dimension + (0 if name == "asinh" and len(self.names) > 1 else lags)
                if name == "asinh" and own > dimension:
                    self.starts[3] = width + dimension
                place = len(order)
                order += [*range(width, width + core), *range(width + dimension, width + own)]
                self.places[name] = tuple(range(place, len(order)))
                self.lag_columns += self.places[name][core:]
                width += own
        for column in range(core, dimension):
            for name, number in _NUMBERS.items():
                if name in self.names:
                    self.places[name] += (len(order),)
                    order.append(int(self.starts[number]) + column)
        self.width = width
        self._order = None if core == dimension else np.array(order)
        """Where what the loops write side by side belongs."""

    def begin(self, rows: Floats, targets: Floats | None) -> None:
        """Start all figures from some first rows."""
        hot.begin_columns(self.columns, self.rings, QUANTILES, rows)
        if targets is not None:
            hot.begin_columns(self.target[None], self.ring[None], QUANTILES, targets[:, None])

    def rows(self, X: Floats, lagged: Floats) -> Floats:
        """(n, width): inputs, and the lagged targets of each, as the slots see them now."""
        out = np.zeros((len(X), self.width))
        hot.scale_rows(
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
        return self._arranged(out)

    def _arranged(self, out: Floats) -> Floats:
        return out if self._order is None else out[:, self._order]

    def take(self, x: Floats) -> list[int]:
        """Let an input enter the figures; the columns that have a new level."""
        changed = np.zeros(self.dimension, dtype=np.bool_)
        hot.take_row(x, self.columns, self.rings, QUANTILES, changed)
        return [int(k) for k in np.flatnonzero(changed)]

    def take_target(self, y: float, wait: bool) -> bool:
        """Let a target enter its figures, or wait; True if it is the fifth in a row that waits.

        Then one of `new_scale`, `new_level` and `wider` has to follow.
        """
        return bool(hot.take_target(y, wait, self.target, self.ring, QUANTILES))

    def new_scale(self) -> None:
        """The target's figures start anew from the last five."""
        hot.new_scale(self.target, self.ring)

    def new_level(self, shift: float) -> None:
        """The target goes on as before, but for a shift."""
        hot.new_level(self.target, self.ring, shift)

    def wider(self) -> None:
        """The target's figures take in the last five as they are."""
        hot.wider(self.target, self.ring)

    def stream(
        self, X: Floats, y: Floats, lagged: Floats
    ) -> tuple[Floats, Floats, Floats, list[tuple[int, int]]]:
        """Scale and take in row after row, up to a target that is far off.

        Returns the scaled rows, the scaled targets, the target's (base, unit) before each, and the
        (row, column) of new levels; as many rows as were done. `lagged` moves on.
        """
        count = len(X)
        out = np.zeros((count, self.width))
        scaled, scale = np.empty(count), np.empty((count, 2))
        news = np.zeros((count, self.dimension), dtype=np.bool_)
        done = hot.scale_stream(
            X,
            y,
            self.columns,
            self.rings,
            self.target if self.has_target else np.zeros_like(self.target),
            self.ring if self.has_target else np.zeros_like(self.ring),
            QUANTILES,
            self.starts,
            lagged,
            out,
            scaled,
            scale,
            news,
        )
        found = [(int(t), int(k)) for t, k in np.argwhere(news[:done])]
        return self._arranged(out[:done]), scaled[:done], scale[:done], found

    def typical(self) -> Floats:
        """(inputs, 3): the median of the last values of every input, and the ends of their range.

        Where too few are kept or all are the same, the ends are 2.5 standard deviations of all
        values so far to both sides of their mean.
        """
        found = np.empty((self.dimension, 3))
        for column, ring, out in zip(self.columns, self.rings, found, strict=True):
            last = ring[: int(min(column[SEEN], len(ring)))]
            out[:] = column[BASE] + column[UNIT] * np.array([0.0, -2.5, 2.5])
            if len(last) > PATIENCE:
                out[0] = np.median(last)
                if last.min() < last.max():
                    out[1:] = last.min(), last.max()
        return found

    def distances(self, row: Floats) -> Floats:
        """How far from usual the inputs of a scaled row are, without lagged targets."""
        own = self.places[self.names[0]]
        late = self.dimension - self.core
        shown = row[[*own[: self.core], *own[len(own) - late :]]]
        if self.names[0] != "none":
            return shown
        units = self.columns[:, UNIT]
        away = shown - self.columns[:, BASE]
        return np.divide(away, units, out=np.zeros_like(away), where=units > 0.0)

    def farness(self, y: float) -> int:
        """0 for a usual target; `hot.FAR` beyond 10 units, `hot.WILD` beyond 1,000."""
        return int(hot.farness(self.target, y))

    @property
    def scale(self) -> tuple[float, float]:
        """The target's base and unit."""
        mean, sd = hot.target_scale(self.target)
        return float(mean), float(sd)

    def scaled(self, y: Floats) -> Floats:
        """Targets in their present deviations, at most 10 in size."""
        mean, sd = self.scale
        if sd == 0.0:
            return np.zeros(len(y))
        return np.clip((y - mean) / sd, -LIMIT, LIMIT)

    def sound(self, waiting: int) -> bool:
        """Whether figures from a file can be those of a stream of which so many targets wait."""
        both = np.vstack([self.columns, self.target])
        sizes = np.abs(both[:, [MEAN, BASE, UNIT]])
        # A level may be moved beyond the largest target by what a bank had predicted.
        return bool(
            (both[:, [COUNT, UNIT]] >= 0.0).all()
            and (sizes <= 1000.0 * LARGEST).all()
            and self.target[STREAK] == waiting
        )

    def go_on(self, before: Scaling) -> None:
        """Take over the figures of a scaling that had fewer inputs."""
        self.columns[: before.dimension] = before.columns
        self.rings[: before.dimension] = before.rings
        self.target, self.ring = before.target, before.ring

    def state(self) -> dict[str, Floats]:
        return {
            "columns": self.columns,
            "rings": self.rings,
            "target": self.target,
            "ring": self.ring,
        }

    def restore(self, state: Mapping[str, Floats]) -> None:
        for name, array in self.state().items():
            array[...] = state[name]

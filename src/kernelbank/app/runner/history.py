"""The history of a run: what pictures are drawn from, in bounded room whatever the run's length.

A *point* sums up a stretch of rows. When there are POINTS of them, neighbours are joined and later
ones are twice as long: so there are between half of POINTS and POINTS, all of one length but the
last. Snapshots of the function are thinned out in the same way. All of it follows from the rows and
their numbers alone, not from how they came in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import FileRefused
from ...utils.validation import Floats

POINTS = 512
"""Most points; even."""

SNAPSHOTS = 32
"""Most snapshots; even."""

GRID = 24
"""Inputs along which a snapshot is taken, for each column."""

DRAWN = 8
"""Most inputs that snapshots are taken along."""

EARLY = (64, 128, 256, 512)
"""Rows of snapshots that are always taken: most is learned at the beginning."""

FIRST_SNAPSHOT = 1024
"""Rows between snapshots after these, at first."""

TOTALS = ("rows", "scored", "loss", "baseline_loss", "covered", "width")
"""Sums over the rows of a point: all rows; the rows that are scored (a target was known before the
prediction); and over the scored rows the squared errors, or wrong labels, of the model and of the
baseline (last value); targets inside their interval, or correct labels; widths of the intervals, or
predicted probabilities."""

EXTREMES = ("worst_loss", "target_high", "prediction_high", "target_low", "prediction_low")
"""Over the rows of a point, so that merged points keep spikes: the largest loss; the highest and
lowest target and prediction. Labels have no order: NaN."""

_SIGNS = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
"""A lowest value is kept as the highest of the negative ones."""


_MOST_ROWS = 2**53


class History:
    """Points and snapshots of a run whose bank has so many slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stride = 1
        self.rows = 0
        self._sums = np.zeros((POINTS, len(TOTALS) + 2 * slots))
        self._tops = np.full((POINTS, len(EXTREMES) + slots), -np.inf)
        self.snapshots: list[Snapshot] = []
        self.snapshot_stride = FIRST_SNAPSHOT

    @property
    def points(self) -> int:
        """How many points there are."""
        return -(-self.rows // self.stride)

    @property
    def totals(self) -> dict[str, Floats]:
        """(points,) each: the sums by name."""
        return {name: self._sums[: self.points, i] for i, name in enumerate(TOTALS)}

    @property
    def weights(self) -> Floats:
        """(points, P): the mean weights of each point."""
        own = self._sums[: self.points, len(TOTALS) : len(TOTALS) + self.slots]
        return np.asarray(own / self._sums[: self.points, :1])

    @property
    def losses(self) -> Floats:
        """(points, P): sums of what every slot alone would have lost."""
        return self._sums[: self.points, len(TOTALS) + self.slots :]

    @property
    def extremes(self) -> dict[str, Floats]:
        """(points,) each: by name; infinite where there were none."""
        own = _SIGNS * self._tops[: self.points, : len(EXTREMES)]
        return {name: own[:, i] for i, name in enumerate(EXTREMES)}

    @property
    def highest_weights(self) -> Floats:
        """(points, P): the highest weight of each slot in each point."""
        return self._tops[: self.points, len(EXTREMES) :]

    def add(self, figures: Floats, extremes: Floats, weights: Floats, losses: Floats) -> None:
        """Take in some rows: (n, figures), (n, extremes), (n, P) and (n, P)."""
        rows = np.hstack([figures, weights, losses])
        tops = np.hstack([_SIGNS * extremes, weights])
        done = 0
        while done < len(rows):
            if self.rows == POINTS * self.stride:
                self._join()
            place, inside = divmod(self.rows, self.stride)
            some = rows[done : done + self.stride - inside]
            # `accumulate` adds row after row, wherever a block begins: the same bits.
            self._sums[place] = np.add.accumulate(np.vstack([self._sums[place], some]))[-1]
            highest = np.fmax.reduce(tops[done : done + len(some)])  # without what is NaN
            self._tops[place] = np.fmax(self._tops[place], highest)
            self.rows += len(some)
            done += len(some)

    def _join(self) -> None:
        half = POINTS // 2
        self._sums[:half] = self._sums[::2] + self._sums[1::2]
        self._sums[half:] = 0.0
        self._tops[:half] = np.fmax(self._tops[::2], self._tops[1::2])
        self._tops[half:] = -np.inf
        self.stride *= 2

    # --- snapshots ------------------------------------------------------------------------------

    @property
    def until_snapshot(self) -> int:
        """How many rows there are before the next snapshot is due."""
        later = self.snapshot_stride - self.rows % self.snapshot_stride
        return min([row - self.rows for row in EARLY if row > self.rows] + [later])

    def due(self, row: int) -> bool:
        """Whether there is to be a snapshot after so many rows."""
        return row in EARLY or (row > 0 and row % self.snapshot_stride == 0)

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot that was due."""
        self.snapshots.append(snapshot)
        if sum(s.row not in EARLY for s in self.snapshots) > SNAPSHOTS:
            self.snapshot_stride *= 2
            self.snapshots = [s for s in self.snapshots if self.due(s.row)]

    # --- in a file ------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "stride": self.stride,
            "rows": self.rows,
            "snapshot_stride": self.snapshot_stride,
            "snapshots": [s.row for s in self.snapshots],
        }

    def arrays(self) -> dict[str, Floats]:
        own = {"sums": self._sums[: self.points].copy(), "tops": self._tops[: self.points].copy()}
        for number, snapshot in enumerate(self.snapshots):
            own[f"snapshot{number}"] = snapshot.values
        return own

    @classmethod
    def restore(cls, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> History:
        """What `facts` and `state` said. Nothing of it is believed before it is looked at."""
        rows = _whole(facts["rows"], 0, _MOST_ROWS, "rows")
        stride = _doubled(facts["stride"], 1, "rows of a point")
        points = -(-rows // stride)
        if points > POINTS or (stride > 1 and points <= POINTS // 2):
            raise FileRefused("its history has an impossible length.")
        sums = state["sums"]
        slots = _whole(facts["slots"], 0, max(sums.shape, default=0), "slots")
        if sums.shape != (points, len(TOTALS) + 2 * slots):
            raise FileRefused("its history does not fit its bank.")
        if (sums[:, 0] != np.minimum(rows - stride * np.arange(points), stride)).any():
            raise FileRefused("the points of its history do not have their rows.")
        tops = state["tops"]
        if tops.shape != (points, len(EXTREMES) + slots):
            raise FileRefused("the extremes of its history do not fit its bank.")
        history = cls(slots)
        history.stride, history.rows = stride, rows
        history._sums[:points] = sums
        history._tops[:points] = tops
        history.snapshot_stride = _doubled(
            facts["snapshot_stride"], FIRST_SNAPSHOT, "rows between snapshots"
        )
        if len(facts["snapshots"]) > SNAPSHOTS + len(EARLY):
            raise FileRefused("it has too many snapshots.")
        before = 0
        for number, row in enumerate(facts["snapshots"]):
            _whole(row, before + 1, rows, "a snapshot's row")
            if not history.due(row):
                raise FileRefused("a snapshot is where none is due.")
            values = state[f"snapshot{number}"]
            if values.ndim != 3 or len(values) > DRAWN or values.shape[1:] != (4, GRID):
                raise FileRefused("a snapshot has an impossible shape.")
            history.snapshots.append(Snapshot(row, values))
            before = row
        return history


def _whole(value: Any, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise FileRefused(f"its history claims {value!r} for {what}.")
    return value


def _doubled(value: Any, first: int, what: str) -> int:
    """A whole number that is `first`, doubled some times."""
    times, rest = divmod(_whole(value, first, _MOST_ROWS, what), first)
    if rest or times & (times - 1):
        raise FileRefused(f"its history claims {value!r} for {what}.")
    return int(value)


class Snapshot:
    """The function along some inputs after so many rows, the other inputs at their medians.

    values : (inputs, 4, GRID): where, the prediction, and the ends of its interval; for classes
        the probability of the first one, three times. `snapshots.drawn` says which inputs.
    """

    def __init__(self, row: int, values: Floats) -> None:
        self.row = row
        self.values = values

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

from .._validate import Floats
from ..errors import FileRefused

POINTS = 512
"""Most points; even."""

SNAPSHOTS = 32
"""Most snapshots; even."""

GRID = 24
"""Inputs along which a snapshot is taken, for each column."""

DRAWN = 4
"""Most columns that snapshots are taken along."""

FIRST_SNAPSHOT = 1024
"""Rows between snapshots, at first."""

FIGURES = ("rows", "answered", "loss", "persistence", "inside", "width")
"""Sums over a point's rows: how many; how many were answered when a target was known already, and
over these: squared errors, or wrong answers, of the bank and of the last target as an answer;
targets inside their intervals; and the intervals' widths."""


_MOST_ROWS = 2**53


class History:
    """Points and snapshots of a run whose bank has so many slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stride = 1
        self.rows = 0
        self._sums = np.zeros((POINTS, len(FIGURES) + 2 * slots))
        self.snapshots: list[Snapshot] = []
        self.snapshot_stride = FIRST_SNAPSHOT

    @property
    def points(self) -> int:
        """How many points there are."""
        return -(-self.rows // self.stride)

    @property
    def figures(self) -> dict[str, Floats]:
        """(points,) each: the sums by name."""
        return {name: self._sums[: self.points, i] for i, name in enumerate(FIGURES)}

    @property
    def weights(self) -> Floats:
        """(points, P): the mean weights of each point."""
        own = self._sums[: self.points, len(FIGURES) : len(FIGURES) + self.slots]
        return np.asarray(own / self._sums[: self.points, :1])

    @property
    def losses(self) -> Floats:
        """(points, P): sums of what every slot alone would have lost."""
        return self._sums[: self.points, len(FIGURES) + self.slots :]

    def add(self, figures: Floats, weights: Floats, losses: Floats) -> None:
        """Take in some rows: (n, figures), (n, P) and (n, P)."""
        rows = np.hstack([figures, weights, losses])
        done = 0
        while done < len(rows):
            if self.rows == POINTS * self.stride:
                self._join()
            place, inside = divmod(self.rows, self.stride)
            some = rows[done : done + self.stride - inside]
            # `accumulate` adds row after row, wherever a block begins: the same bits.
            self._sums[place] = np.add.accumulate(np.vstack([self._sums[place], some]))[-1]
            self.rows += len(some)
            done += len(some)

    def _join(self) -> None:
        half = POINTS // 2
        self._sums[:half] = self._sums[::2] + self._sums[1::2]
        self._sums[half:] = 0.0
        self.stride *= 2

    # --- snapshots ------------------------------------------------------------------------------

    @property
    def until_snapshot(self) -> int:
        """How many rows there are before the next snapshot is due."""
        return self.snapshot_stride - self.rows % self.snapshot_stride

    def take(self, snapshot: Snapshot) -> None:
        """Keep a snapshot that was due."""
        self.snapshots.append(snapshot)
        if len(self.snapshots) > SNAPSHOTS:
            self.snapshot_stride *= 2
            self.snapshots = [s for s in self.snapshots if s.row % self.snapshot_stride == 0]

    # --- in a file ------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "stride": self.stride,
            "rows": self.rows,
            "snapshot_stride": self.snapshot_stride,
            "snapshots": [[s.row, list(s.columns)] for s in self.snapshots],
        }

    def state(self) -> dict[str, Floats]:
        own = {"sums": self._sums[: self.points].copy()}
        for number, snapshot in enumerate(self.snapshots):
            own[f"snapshot{number}"] = snapshot.values
        return own

    @classmethod
    def restored(cls, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> History:
        """What `facts` and `state` said. Nothing of it is believed before it is looked at."""
        rows = _whole(facts["rows"], 0, _MOST_ROWS, "rows")
        stride = _doubled(facts["stride"], 1, "rows of a point")
        points = -(-rows // stride)
        if points > POINTS or (stride > 1 and points <= POINTS // 2):
            raise FileRefused("its history has an impossible length.")
        sums = state["sums"]
        slots = _whole(facts["slots"], 0, max(sums.shape, default=0), "slots")
        if sums.shape != (points, len(FIGURES) + 2 * slots):
            raise FileRefused("its history does not fit its bank.")
        if (sums[:, 0] != np.minimum(rows - stride * np.arange(points), stride)).any():
            raise FileRefused("the points of its history do not have their rows.")
        history = cls(slots)
        history.stride, history.rows = stride, rows
        history._sums[:points] = sums
        history.snapshot_stride = _doubled(
            facts["snapshot_stride"], FIRST_SNAPSHOT, "rows between snapshots"
        )
        if len(facts["snapshots"]) > SNAPSHOTS:
            raise FileRefused("it has too many snapshots.")
        before = 0
        for number, (row, columns) in enumerate(facts["snapshots"]):
            _whole(row, before + 1, rows, "a snapshot's row")
            if row % history.snapshot_stride:
                raise FileRefused("a snapshot is where none is due.")
            drawn = tuple(_whole(column, 0, DRAWN - 1, "a column") for column in columns)
            values = state[f"snapshot{number}"]
            if drawn != tuple(range(len(drawn))) or values.shape != (len(drawn), 4, GRID):
                raise FileRefused("a snapshot has an impossible shape.")
            history.snapshots.append(Snapshot(row, drawn, values))
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

    values : (columns, 4, GRID): where, the prediction, and the ends of its interval; for classes
        the probability of the first one, three times.
    """

    def __init__(self, row: int, columns: tuple[int, ...], values: Floats) -> None:
        self.row = row
        self.columns = columns
        self.values = values

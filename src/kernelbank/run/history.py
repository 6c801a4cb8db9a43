"""The history of a run, from which charts are drawn, in bounded memory.

A *point* holds sums and extremes over a number of consecutive rows. When there are POINTS points,
neighbours are merged and later points have twice as many rows: so there are between POINTS / 2 and
POINTS points, all with the same number of rows except the last. Snapshots of the function are
thinned out in the same way. Beside them are the last rows, the ranges of the inputs and the scores
of labels. All of it depends on the rows alone, not on how they came in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FileRefused
from ..utils.validation import Floats
from .label_scores import LabelScores
from .recent_rows import RecentRows
from .seen_inputs import CLOCK, SeenInputs

POINTS = 512
"""The most points; an even number."""

SNAPSHOTS = 32
"""The most snapshots after the early ones; an even number."""

GRID = CLOCK
"""The most values of an input that a snapshot has."""

DRAWN = 12
"""The most inputs of a snapshot."""

EARLY = (64, 128, 256, 512)
"""Rows after which a snapshot is always taken: most is learned at the beginning."""

FIRST_SNAPSHOT = 1024
"""Rows between the later snapshots, before they are thinned out."""

TOTALS = (
    "rows", "scored", "loss", "baseline_loss", "covered", "width",
    "absolute_error", "baseline_absolute_error", "log_loss",
)  # fmt: skip
"""Sums over the rows of a point: all rows; the rows that are scored (a target was known before the
prediction); and over the scored rows the squared errors, or wrong labels, of the model and of the
baseline (last value); targets inside their interval, or correct labels; widths of the intervals, or
predicted probabilities; the absolute errors of model and baseline, 0 for labels; the log losses, 0
for numbers."""

EXTREMES = (
    "worst_loss", "target_high", "prediction_high", "target_low", "prediction_low",
    "time_high", "time_low",
)  # fmt: skip
"""Over the rows of a point, so that merged points keep spikes: the largest loss; the highest and
lowest target and prediction, NaN for labels, which have no order; the first and the last time."""

_SIGNS = np.array([-1.0 if name.endswith("_low") else 1.0 for name in EXTREMES])
"""The lowest value is kept as the highest of the negative values."""

_MOST_ROWS = 2**53


class History:
    """Points and snapshots of a run whose model has P = `slots` slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stride = 1
        self.rows = 0
        self._sums = np.zeros((POINTS, len(TOTALS) + 2 * slots))
        self._tops = np.full((POINTS, len(EXTREMES) + slots), -np.inf)
        self.snapshots: list[Snapshot] = []
        self.snapshot_stride = FIRST_SNAPSHOT
        self.recent = RecentRows()
        self.seen = SeenInputs()
        self.labels = LabelScores()

    @property
    def points(self) -> int:
        """The number of points."""
        return -(-self.rows // self.stride)

    @property
    def totals(self) -> dict[str, Floats]:
        """By name, (points,): the sums over the rows of each point."""
        return {name: self._sums[: self.points, i] for i, name in enumerate(TOTALS)}

    @property
    def weights(self) -> Floats:
        """(points, P): the mean weights over the rows of each point."""
        own = self._sums[: self.points, len(TOTALS) : len(TOTALS) + self.slots]
        return np.asarray(own / self._sums[: self.points, :1])

    @property
    def losses(self) -> Floats:
        """(points, P): the summed losses of every slot alone."""
        return self._sums[: self.points, len(TOTALS) + self.slots :]

    @property
    def extremes(self) -> dict[str, Floats]:
        """By name, (points,): the extremes over the rows of each point; infinite without any."""
        own = _SIGNS * self._tops[: self.points, : len(EXTREMES)]
        return {name: own[:, i] for i, name in enumerate(EXTREMES)}

    @property
    def highest_weights(self) -> Floats:
        """(points, P): the highest weight of each slot in each point."""
        return self._tops[: self.points, len(EXTREMES) :]

    def add(self, totals: Floats, extremes: Floats, weights: Floats, losses: Floats) -> None:
        """Add n rows: (n, TOTALS), (n, EXTREMES), (n, P) and (n, P)."""
        rows = np.hstack([totals, weights, losses])
        tops = np.hstack([_SIGNS * extremes, weights])
        done = 0
        while done < len(rows):
            if self.rows == POINTS * self.stride:
                self._merge()
            point, inside = divmod(self.rows, self.stride)
            some = rows[done : done + self.stride - inside]
            # `accumulate` adds row by row, wherever a block begins: the same bits.
            self._sums[point] = np.add.accumulate(np.vstack([self._sums[point], some]))[-1]
            highest = np.fmax.reduce(tops[done : done + len(some)])  # ignores NaN
            self._tops[point] = np.fmax(self._tops[point], highest)
            self.rows += len(some)
            done += len(some)

    def _merge(self) -> None:
        half = POINTS // 2
        self._sums[:half] = self._sums[::2] + self._sums[1::2]
        self._sums[half:] = 0.0
        self._tops[:half] = np.fmax(self._tops[::2], self._tops[1::2])
        self._tops[half:] = -np.inf
        self.stride *= 2

    # --- snapshots ------------------------------------------------------------------------------

    @property
    def until_snapshot(self) -> int:
        """The number of rows until the next snapshot is due."""
        later = self.snapshot_stride - self.rows % self.snapshot_stride
        return min([row - self.rows for row in EARLY if row > self.rows] + [later])

    def due(self, row: int) -> bool:
        """Whether a snapshot is due after row `row`."""
        return row in EARLY or (row > 0 and row % self.snapshot_stride == 0)

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot that is due; thin out the others if there are too many."""
        self.snapshots.append(snapshot)
        if sum(s.row not in EARLY for s in self.snapshots) > SNAPSHOTS:
            self.snapshot_stride *= 2
            self.snapshots = [s for s in self.snapshots if self.due(s.row)]

    # --- in the checkpoint ----------------------------------------------------------------------

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
        return own | {"recent": self.recent.array()} | self.seen.arrays() | self.labels.arrays()

    @classmethod
    def restore(cls, facts: Mapping[str, Any], state: Mapping[str, Floats], slots: int) -> History:
        """The history from what `to_json` and `arrays` returned, after checking all of it.

        slots : of the model whose history it must be.
        """
        rows = _whole(facts["rows"], 0, _MOST_ROWS, "rows")
        stride = _doubled(facts["stride"], 1, "rows of a point")
        points = -(-rows // stride)
        if points > POINTS or (stride > 1 and points <= POINTS // 2):
            raise FileRefused("its history has an impossible length.")
        sums = state["sums"]
        if type(facts["slots"]) is not int or facts["slots"] != slots:
            raise FileRefused("its history belongs to another model.")
        if sums.shape != (points, len(TOTALS) + 2 * slots):
            raise FileRefused("its history does not fit its model.")
        if (sums[:, 0] != np.minimum(rows - stride * np.arange(points), stride)).any():
            raise FileRefused("the points of its history have wrong numbers of rows.")
        tops = state["tops"]
        if tops.shape != (points, len(EXTREMES) + slots):
            raise FileRefused("the extremes of its history do not fit its model.")
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
                raise FileRefused("a snapshot is at a row at which none is due.")
            values = state[f"snapshot{number}"]
            if values.ndim != 3 or len(values) > DRAWN or values.shape[1:] != (4, GRID):
                raise FileRefused("a snapshot has an impossible shape.")
            history.snapshots.append(Snapshot(row, values))
            before = row
        history.recent = RecentRows.restore(state["recent"])
        history.seen = SeenInputs.restore(state)
        history.labels = LabelScores.restore(state)
        return history


def _whole(value: Any, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise FileRefused(f"its history claims {value!r} for {what}.")
    return value


def _doubled(value: Any, first: int, what: str) -> int:
    """A whole number that is `first` times a power of two."""
    times, rest = divmod(_whole(value, first, _MOST_ROWS, what), first)
    if rest or times & (times - 1):
        raise FileRefused(f"its history claims {value!r} for {what}.")
    return int(value)


class Snapshot:
    """The function along some inputs after row `row`, with the other inputs at their medians.

    values : (inputs, 4, GRID): the input, the prediction, and the ends of its interval; for
        classification the probability of the first class, three times. NaN where the input has not
        been. `kept_inputs` says which inputs they are.
    """

    def __init__(self, row: int, values: Floats) -> None:
        self.row = row
        self.values = values

"""The history of a run, from which charts are drawn, in bounded memory.

A *point* holds sums and extremes over a number of consecutive rows. When there are POINTS points,
neighbours are merged and later points have twice as many rows: so there are between POINTS / 2 and
POINTS points, all with the same number of rows except the last. Beside them are the last rows, the
worst ones, the errors by category and the scores of labels. All of it depends on the rows alone,
not on how they came in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..utils.validation import Floats
from . import Saved
from .scores import EXTREMES, TOTALS, LabelScores
from .state_folder import Shapes, checked_arrays, require, saved_count

RECENT = 200
"""The most of the last rows."""

FIELDS = ("time", "target", "prediction", "low", "high", "baseline")
"""Of each row: its time in seconds since 1970, its target, the prediction, the ends of its interval
and the prediction of the baseline (last value); for labels the numbers of the classes, and twice
the probability of the predicted one. NaN where there is none."""


WORST = 20
"""The most rows with the largest losses."""


class ChosenRows:
    """Some rows of a run: the last ones, or those with the largest losses.

    fields : the names of the columns.
    most : the most rows.
    """

    def __init__(self, fields: tuple[str, ...], most: int) -> None:
        self._fields, self._most = fields, most
        self.rows = np.zeros((0, len(fields)))

    def __getitem__(self, field: str) -> Floats:
        """(rows,): one field of all rows."""
        return self.rows[:, self._fields.index(field)]

    def add_last(self, rows: Floats) -> None:
        """Add rows (n, fields), and keep the last ones."""
        self.rows = np.vstack([self.rows, rows])[-self._most :]

    def add_worst(self, rows: Floats) -> None:
        """Add rows (n, fields), and keep those with the largest first field, the largest first.

        Of equal ones the first are kept. A row whose loss is 0 was not scored, or was no loss.
        """
        rows = np.vstack([self.rows, rows[rows[:, 0] > 0]])
        self.rows = rows[np.argsort(-rows[:, 0], kind="stable")[: self._most]]


MOST_CATEGORIES = 1000
"""Of all columns; the rows of further ones are summed up by column."""

NO_CATEGORY, FURTHER = -np.inf, np.inf
"""Stand for the code of a missing category, and of all further ones."""


class CategoryErrors:
    """Sums over the scored rows of each category."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, float], list[float]] = {}
        """By the column's number and the category's code: rows, losses, losses of the baseline."""

    def add(self, codes: Floats, losses: Floats) -> None:
        """Add n rows: codes (n, C), NaN where there is none; losses, and the baseline's (n, 2)."""
        for row, (loss, baseline_loss) in zip(codes.tolist(), losses.tolist(), strict=True):
            for column, code in enumerate(row):
                key = (column, NO_CATEGORY if math.isnan(code) else code)
                if key not in self.sums and len(self.sums) >= MOST_CATEGORIES:
                    key = (column, FURTHER)
                sums = self.sums.setdefault(key, [0.0, 0.0, 0.0])
                sums[0] += 1.0
                sums[1] += loss
                sums[2] += baseline_loss

    def array(self) -> Floats:
        """(categories, 5): keys and sums."""
        rows = [[*key, *sums] for key, sums in self.sums.items()]
        return np.array(rows).reshape(len(rows), 5)

    @classmethod
    def restore(cls, rows: Floats) -> CategoryErrors:
        """What `array` returned, whose numbers are checked."""
        are_sums = (rows[:, [0, 2, 3, 4]] >= 0).all()
        require(are_sums, "the errors by category of its history are impossible.")
        errors = cls()
        errors.sums = {(int(row[0]), row[1]): row[2:] for row in rows.tolist()}
        return errors


POINTS = 512
"""The most points; an even number."""

DRAWN_TARGETS = 8
"""The most targets that a page shows."""

_SIGNS = np.array([-1.0 if name.endswith("_low") else 1.0 for name in EXTREMES])
"""The lowest value is kept as the highest of the negative values."""

_MOST_ROWS = 2**53


class History:
    """The points and the chosen rows of a run whose model has P = `slots` slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stride = 1
        self.rows = 0
        self._sums = np.zeros((POINTS, len(TOTALS) + 2 * slots))
        self._tops = np.full((POINTS, len(EXTREMES) + slots), -np.inf)
        self.recent = ChosenRows(FIELDS, RECENT)
        self.worst = ChosenRows(("loss", "row", *FIELDS), WORST)
        self.categories = CategoryErrors()
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
        sums = self._sums[: self.points, len(TOTALS) : len(TOTALS) + self.slots]
        return np.asarray(sums / self._sums[: self.points, :1])

    @property
    def losses(self) -> Floats:
        """(points, P): the summed losses of every slot alone."""
        return self._sums[: self.points, len(TOTALS) + self.slots :]

    @property
    def extremes(self) -> dict[str, Floats]:
        """By name, (points,): the extremes over the rows of each point; infinite without any."""
        extremes = _SIGNS * self._tops[: self.points, : len(EXTREMES)]
        return {name: extremes[:, i] for i, name in enumerate(EXTREMES)}

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
            added = rows[done : done + self.stride - inside]
            # `accumulate` adds row by row, wherever a block begins: the same bits.
            self._sums[point] = np.add.accumulate(np.vstack([self._sums[point], added]))[-1]
            highest = np.fmax.reduce(tops[done : done + len(added)])  # ignores NaN
            self._tops[point] = np.fmax(self._tops[point], highest)
            self.rows += len(added)
            done += len(added)

    def _merge(self) -> None:
        half = POINTS // 2
        self._sums[:half] = self._sums[::2] + self._sums[1::2]
        self._sums[half:] = 0.0
        self._tops[:half] = np.fmax(self._tops[::2], self._tops[1::2])
        self._tops[half:] = -np.inf
        self.stride *= 2

    # --- in the checkpoint ----------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        return {"slots": self.slots, "stride": self.stride, "rows": self.rows}

    def arrays(self) -> dict[str, Floats]:
        arrays = {
            "sums": self._sums[: self.points].copy(),
            "tops": self._tops[: self.points].copy(),
            "recent": self.recent.rows.copy(),
            "worst": self.worst.rows.copy(),
            "categories": self.categories.array(),
        }
        return arrays | self.labels.arrays()

    @classmethod
    def restore(cls, facts: Saved, state: Mapping[str, Floats], slots: int) -> History:
        """The history from what `to_json` and `arrays` returned, after checking all of it.

        slots : of the model whose history it must be.
        """
        history = cls(slots)
        other = "its history belongs to another model."
        require(type(facts["slots"]) is int and facts["slots"] == slots, other)
        rows = history.rows = saved_count(facts["rows"], "rows of a history")
        stride = history.stride = saved_count(facts["stride"], "rows of a point")
        require(stride > 0 and not stride & (stride - 1), f"its history claims {stride} rows.")
        points = history.points
        possible = points <= POINTS and (stride == 1 or points > POINTS // 2)
        require(possible, "its history has an impossible length.")
        shapes: Shapes = {
            "sums": (points, len(TOTALS) + 2 * slots),
            "tops": (points, len(EXTREMES) + slots),
            "recent": (range(RECENT + 1), len(FIELDS)),
            "worst": (range(WORST + 1), 2 + len(FIELDS)),
            "categories": (range(_MOST_ROWS), 5),
        }
        # A file of an earlier version has neither the worst rows nor the categories.
        state = {"worst": history.worst.rows, "categories": history.categories.array(), **state}
        arrays = checked_arrays(state, shapes, "its history")
        history._sums[:points], history._tops[:points] = arrays["sums"], arrays["tops"]
        counts = np.minimum(rows - stride * np.arange(points), stride)
        require(
            (arrays["sums"][:, 0] == counts).all(),
            "the points of its history have wrong numbers of rows.",
        )
        history.recent.rows, history.worst.rows = arrays["recent"], arrays["worst"]
        history.categories = CategoryErrors.restore(arrays["categories"])
        history.labels = LabelScores.restore(state)
        return history

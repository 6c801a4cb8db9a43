"""The last rows of a run, one by one, for the chart of the stream."""

from __future__ import annotations

import numpy as np

from ..errors import FileRefused
from ..utils.validation import Floats

RECENT = 200
"""The most rows."""

FIELDS = ("time", "target", "prediction", "low", "high", "baseline")
"""Of each row: its time in seconds since 1970, its target, the prediction, the ends of its interval
and the prediction of the baseline (last value); for labels the numbers of the classes, and twice
the probability of the predicted one. NaN where there is none."""


class RecentRows:
    """The last RECENT rows that were predicted, the oldest first."""

    def __init__(self) -> None:
        self._rows = np.zeros((0, len(FIELDS)))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, field: str) -> Floats:
        """(rows,): one field of all rows."""
        return self._rows[:, FIELDS.index(field)]

    def add(self, rows: Floats) -> None:
        """Add rows (n, FIELDS)."""
        self._rows = np.vstack([self._rows, rows])[-RECENT:]

    def array(self) -> Floats:
        return self._rows.copy()

    @classmethod
    def restore(cls, rows: Floats) -> RecentRows:
        """The rows from what `array` returned."""
        if rows.ndim != 2 or len(rows) > RECENT or rows.shape[1] != len(FIELDS):
            raise FileRefused("the recent rows of its history have an impossible shape.")
        recent = cls()
        recent._rows = rows.copy()
        return recent

"""Predictions whose targets have not come yet."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats

DEFAULT_LIMIT = 1000
"""How many are kept, unless a bank is set to targets that are delayed by more rows."""

LARGEST_LIMIT = 100_001
"""The largest limit that may be set."""


class PendingPredictions:
    """The newest predictions of single rows, the oldest first, by their input.

    Predicting the same input twice before anything is learned counts once.
    """

    def __init__(self) -> None:
        self.items: list[tuple[bytes, _core.Prediction]] = []
        """The bytes of each input, and its prediction. Changed by the methods below only."""
        self.limit = DEFAULT_LIMIT
        self.stale = 0
        """How many, the oldest, were made before the row that was learned last: their targets may
        never come."""

    @property
    def fresh(self) -> int:
        """How many were made after the row that was learned last."""
        return len(self.items) - self.stale

    def waiting_before(self, key: bytes, rows: int) -> int:
        """How many fresh ones are older than that of this input, after so many learned rows."""
        index = self._index(key, rows)
        return self.fresh if index is None else max(index - self.stale, 0)

    def _index(self, key: bytes, rows: int) -> int | None:
        """Where the prediction of this input is, if it was made after so many learned rows."""
        for index in range(len(self.items) - 1, -1, -1):
            other, earlier = self.items[index]
            if earlier.rows_before != rows:
                return None
            if other == key:
                return index
        return None

    def add(self, x: Floats, prediction: _core.Prediction, *, distinct: bool = False) -> None:
        """Keep a prediction; `distinct` if it is a row of its own even where the input is equal."""
        key = x.tobytes()
        index = None if distinct else self._index(key, prediction.rows_before)
        if index is not None:
            self.items[index] = (key, prediction)
            return
        if len(self.items) < self.limit:
            self.append(key, prediction)
            return
        with defer_signals():
            self.append(key, prediction)
            forgotten = len(self.items) - self.limit
            del self.items[:forgotten]
            self.stale = max(self.stale - forgotten, 0)

    def append(self, key: bytes, prediction: _core.Prediction) -> None:
        """Keep the prediction of a row of its own, whatever the limit."""
        self.items.append((key, prediction))

    def clear(self) -> None:
        """Forget all predictions."""
        self.items.clear()
        self.stale = 0

    def add_inputs(self, count: int) -> None:
        """Add `count` columns, which were missing when the predictions were made."""
        missing = np.full(count, np.nan).tobytes()
        self.items = [(key + missing, prediction) for key, prediction in self.items]

    def pop(self, x: Floats) -> _core.Prediction | None:
        """Remove and return the oldest prediction for this input, which is learned now, or None."""
        key = x.tobytes()
        for index, (other, prediction) in enumerate(self.items):
            if other == key:
                del self.items[index]
                self.stale = index
                return prediction
        self.stale = len(self.items)
        return None

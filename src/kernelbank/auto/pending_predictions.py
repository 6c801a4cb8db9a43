"""Predictions whose targets have not come yet."""

from __future__ import annotations

import numpy as np

from ..utils.validation import Floats
from .task_model import Prediction

DEFAULT_LIMIT = 1000
"""How many are kept, unless a bank is set to targets that are delayed by more rows."""

LARGEST_LIMIT = 100_001
"""The largest limit that may be set."""


class PendingPredictions:
    """The newest predictions of single rows, the oldest first, by their input.

    Predicting the same input twice before anything is learned counts once.
    """

    def __init__(self) -> None:
        self.items: list[tuple[bytes, Prediction]] = []
        """The bytes of each input, and its prediction."""
        self.limit = DEFAULT_LIMIT

    def add(self, x: Floats, prediction: Prediction, *, distinct: bool = False) -> None:
        """Keep a prediction; `distinct` if it is a row of its own even where the input is equal."""
        key = x.tobytes()
        for index in range(-1 if distinct else len(self.items) - 1, -1, -1):
            other, earlier = self.items[index]
            if earlier.rows_before != prediction.rows_before:
                break
            if other == key:
                self.items[index] = (key, prediction)
                return
        self.items.append((key, prediction))
        del self.items[: -self.limit]

    def add_inputs(self, count: int) -> None:
        """Add `count` columns, which were missing when the predictions were made."""
        missing = np.full(count, np.nan).tobytes()
        self.items = [(key + missing, prediction) for key, prediction in self.items]

    def pop(self, x: Floats) -> Prediction | None:
        """Remove and return the oldest prediction for this input; None if there is none."""
        key = x.tobytes()
        for index, (other, prediction) in enumerate(self.items):
            if other == key:
                del self.items[index]
                return prediction
        return None

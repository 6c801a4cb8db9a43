"""What is known about the categories of one column: how often each came, and its mean target.

The mean target is one input, whatever the number of categories. It uses earlier targets only: a row
is encoded before its own target is added. A mean of few rows is drawn towards the mean of all.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import FileRefused
from ...utils.validation import Floats

MOST_CATEGORIES = 10_000
"""The most categories of a column that have a mean of their own; later ones share one."""

PRIOR_ROWS = 1.0
"""The mean of a category is drawn towards the mean of all rows, as by so many rows with it."""

CATEGORY_ROWS = 200
"""About so many rows back a category's mean reaches, once there are as many."""

OVERALL_ROWS = 500
"""The same for the mean of all rows."""

FAR = 10.0
"""Targets count as at most so many mean deviations from the mean: an outlier must not stay."""


@lru_cache(maxsize=100_000)
def category_code(text: str) -> float:
    """A category as a number: 48 bits of a hash, which a float holds exactly."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6)
    return float(int.from_bytes(digest.digest()))


class CategoryStatistics:
    """Counts and mean targets of the categories of a column, by their codes.

    Parameters
    ----------
    width : how many numbers a target has: 1, or the shares of some classes.
    clipped : whether far targets are clipped: numbers, not shares.
    """

    def __init__(self, width: int, *, clipped: bool) -> None:
        self._width = width
        self._clipped = clipped
        self.names: list[str] = []
        """In the order in which they were first learned."""
        self._index: dict[float, int] = {}
        self._codes: list[float] = []
        self._counts: list[float] = []
        self._means: list[list[float]] = []
        self.rows = 0
        """Learned rows with a category."""
        self.rows_beyond = 0
        """Learned rows whose category has no input of its own, since all are taken."""
        self._overall = [0.0] * width
        self._deviation = 0.0

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, code: float) -> bool:
        return code in self._index

    def name(self, code: float) -> str:
        """The name of a category that was learned."""
        return self.names[self._index[code]]

    @property
    def codes(self) -> Sequence[float]:
        """The categories in the order in which they were first learned."""
        return self._codes

    def count(self, code: float) -> float:
        """How often a category was learned, at most CATEGORY_ROWS."""
        index = self._index.get(code)
        return 0.0 if index is None else self._counts[index]

    @property
    def is_full(self) -> bool:
        """Whether further categories share one mean."""
        return len(self._codes) > MOST_CATEGORIES

    def mean(self, code: float) -> list[float]:
        """The mean target of a category; NaN if the category is missing or nothing is known."""
        if math.isnan(code) or not self.rows:
            return [math.nan] * self._width
        index = self._index.get(code, MOST_CATEGORIES if self.is_full else -1)
        if index < 0:
            return self._overall
        count = self._counts[index]
        return [
            (count * own + PRIOR_ROWS * all_rows) / (count + PRIOR_ROWS)
            for own, all_rows in zip(self._means[index], self._overall, strict=True)
        ]

    def update(self, code: float, name: str, target: Sequence[float], *, beyond: bool) -> None:
        """Add the target of a row with a category; `name` is kept if the category is new.

        Where the target is missing, its expected value stands for it: the row only counts.
        """
        if math.isnan(target[0]):
            target = self.mean(code)
            if math.isnan(target[0]):
                return
        index = self._index.get(code)
        if index is None:
            index = min(len(self._codes), MOST_CATEGORIES)
            if index == len(self._codes):  # the last one stands for all that come later
                self._index[code] = index
                self._codes.append(code)
                self.names.append(name)
                self._counts.append(0.0)
                self._means.append([0.0] * self._width)
        self.rows += 1
        self.rows_beyond += beyond
        values = self._clip(target) if self._clipped else target
        self._counts[index] = min(self._counts[index] + 1.0, CATEGORY_ROWS)
        mean = self._means[index]
        for k, value in enumerate(values):
            mean[k] += (value - mean[k]) / self._counts[index]
            self._overall[k] += (value - self._overall[k]) / min(self.rows, OVERALL_ROWS)

    def _clip(self, target: Sequence[float]) -> list[float]:
        (value,) = target
        if self.rows == 1:
            return [value]
        step = value - self._overall[0]
        if self._deviation:
            farthest = FAR * self._deviation
            step = min(max(step, -farthest), farthest)
        self._deviation += (abs(step) - self._deviation) / min(self.rows, OVERALL_ROWS)
        return [self._overall[0] + step]

    # --- saving ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The names and counts as plain data."""
        return {
            "names": list(self.names),
            "rows": self.rows,
            "rows_beyond": self.rows_beyond,
        }

    def array(self) -> Floats:
        """(categories + 1, 2 + width): code, count and means of each; in the last row the
        deviation, 0 and the means of all rows."""
        rows = zip(self._codes, self._counts, self._means, strict=True)
        own = [[code, count, *means] for code, count, means in rows]
        return np.array([*own, [self._deviation, 0.0, *self._overall]])

    def restore(self, facts: Mapping[str, Any], array: Floats) -> None:
        """Continue from what `to_json` and `array` returned, after checking it."""
        names = [str(name) for name in facts["names"]]
        if array.shape != (len(names) + 1, 2 + self._width) or not np.isfinite(array).all():
            raise FileRefused("its categories do not fit their statistics.")
        codes = array[:-1, 0].tolist()
        if len(codes) > MOST_CATEGORIES + 1 or len(set(codes)) < len(codes):
            raise FileRefused("it has impossible categories.")
        if (array[:-1, 1] < 1).any() or (array[:-1, 1] > CATEGORY_ROWS).any():
            raise FileRefused("its categories have impossible counts.")
        self.names, self._codes = names, codes
        self._index = {code: index for index, code in enumerate(codes)}
        self._counts = array[:-1, 1].tolist()
        self._means = array[:-1, 2:].tolist()
        self._deviation, self._overall = float(array[-1, 0]), array[-1, 2:].tolist()
        self.rows, self.rows_beyond = int(facts["rows"]), int(facts["rows_beyond"])

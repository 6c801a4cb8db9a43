"""Learners on centres that keep the Gram matrix and its inverse (see `_hot.gram`)."""

from __future__ import annotations

from .centres import CentresBase
from .feature_learner import Shapes


class GramBase(CentresBase):
    """Centres with K and K^-1, and scratch for two vectors and two matrices."""

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        square = (capacity, capacity)
        return {**super().own_shapes(capacity, dimension), "gram": square, "inverse": square}

    def work(self, capacity: int, dimension: int) -> int:
        return 4 * capacity + 2 * capacity * capacity

"""Learners that solve kernel ridge regression on kept samples (see `_hot.ridge`)."""

from __future__ import annotations

from collections.abc import Mapping

from ..losses.objective import Objective
from .feature_learner import Shapes
from .gram import GramBase


class RidgeBase(GramBase):
    """Kept samples with their responses, and the inverse of K + ridge."""

    second_order = True
    ridge: float

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"responses": (capacity,), "noises": (capacity,)}
        return {**super().own_shapes(capacity, dimension), **own}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {"ridge": self.ridge}

    def work(self, capacity: int, dimension: int) -> int:
        return 2 * capacity + 3 * capacity * capacity

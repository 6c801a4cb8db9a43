"""The objective of a bank: what all of its slots minimise."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Loss


@dataclass(frozen=True)
class Objective:
    """The rules of one game."""

    loss: Loss
    window: int
    regularization: float
    dtype: str = "float64"
    """Precision in which learners keep their largest arrays; the arithmetic is always double."""

    @property
    def half_regularization(self) -> float:
        return 0.5 * self.regularization

"""The objective of a bank: the loss, window and regularization that all slots share."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Loss


@dataclass(frozen=True)
class Objective:
    """What the slots of a bank minimise: losses on a window plus regularization / 2 * norm^2."""

    loss: Loss
    window: int
    regularization: float

    @property
    def half_regularization(self) -> float:
        return 0.5 * self.regularization

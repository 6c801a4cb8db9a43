"""What perceptrons have in common: they learn from mistakes on labels."""

from __future__ import annotations

from ..losses.objective import Objective
from ..utils import validation as check
from .base import Learner


def for_labels(learner: Learner, objective: Objective) -> None:
    """Refuse a loss for regression."""
    if not objective.loss.labels:
        raise check.refuse(
            "loss",
            f"be one for labels -1 and +1 for {type(learner).__name__}",
            objective.loss,
            'Use "hinge", "squared_hinge" or "logistic", or another learner.',
        )

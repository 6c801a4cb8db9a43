"""What perceptrons have in common: they learn from mistakes on labels."""

from __future__ import annotations

from .. import _validate as check
from ..setting import Setting
from .base import Learner


def for_labels(learner: Learner, setting: Setting) -> None:
    """Refuse a loss for regression."""
    if not setting.loss.labels:
        raise check.refuse(
            "loss",
            f"be one for labels -1 and +1 for {type(learner).__name__}",
            setting.loss,
            'Use "hinge", "squared_hinge" or "logistic", or another learner.',
        )

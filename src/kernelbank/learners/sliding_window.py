"""SlidingWindowKRLS: kernel ridge regression on the last samples."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..native.functions import native
from ..utils import validation as check
from .feature_steps import size_of
from .ridge import RIDGE, RidgeBase, append_sample, finish_step, remove_sample


@dataclass(frozen=True)
class SlidingWindowKRLS(RidgeBase):
    """Kernel ridge regression on the last `budget` samples, by up- and downdating.

        alpha = (K + ridge I)^-1 y    over the last `budget` samples.

    Older samples are forgotten: the shorter the budget, the faster it follows change. For other
    losses the responses are f - l' / c and the ridge is 2 ridge / c, with f as it was when the
    sample came, and c the loss's curvature as in `KRLS`. The inverse is computed again once in
    `budget` samples.
    Cost per step: budget kernel values and O(budget^2) products; memory O(budget^2).

    Parameters
    ----------
    budget : number of samples that are kept.
    ridge : positive number on the diagonal: the noise's variance over the kernel's scale.

    Reference: Van Vaerenbergh, Via and Santamaria, A sliding-window kernel RLS algorithm and its
    application to nonlinear channel identification, ICASSP 2006.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.SlidingWindowKRLS(budget=30))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(9.5), 2)
    1.0
    """

    core_name: ClassVar[str] = "SlidingWindowKRLS"
    budget: int = 50
    ridge: float = 0.01

    def __post_init__(self) -> None:
        check.settings(
            self,
            budget=check.whole("Give how many samples to keep, 1 or more."),
            ridge=check.positive(0.01),
        )

    @staticmethod
    @native(RIDGE)
    def step(a, leaf, number):
        """Keep the sample; beyond the budget remove the oldest; solve."""
        append_sample(a, leaf)
        if size_of(a, leaf) == a.capacity:
            remove_sample(a, leaf, 0)
        finish_step(a, leaf, number)

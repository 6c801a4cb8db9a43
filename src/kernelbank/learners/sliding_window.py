"""SlidingWindowKRLS: kernel ridge regression on the last samples."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..native.phases import read_int
from .feature_steps import SINGLE, size_of
from .ridge import RidgeBase
from .ridge_steps import RIDGE, join, leave, settle


def sliding(args, leaf, number):
    """The sample joins; beyond the budget the oldest leaves; solve."""
    join(args, leaf)
    if size_of(args, leaf) == read_int(args, SINGLE.capacity):
        leave(args, leaf, 0)
    settle(args, leaf, number)


@dataclass(frozen=True)
class SlidingWindowKRLS(RidgeBase):
    """Kernel ridge regression on the last `budget` samples, by up- and downdating.

        alpha = (K + ridge I)^-1 y    over the last `budget` samples.

    It forgets all else, so it follows change as fast as the budget is short. For the logistic loss
    the responses are f - l' / c and the ridge is 2 ridge / c, c = tanh(f / 2) / 2 f, with f as it
    was when the sample came: a Newton step. The inverse is computed anew once in `budget` samples.
    Cost per step: budget kernel values and O(budget^2) products; memory O(budget^2).

    Parameters
    ----------
    budget : how many samples.
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

    budget: int = 50
    ridge: float = 0.01
    places = RIDGE
    step = sliding
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._count("budget", "how many samples to keep")
        self._positive("ridge", 0.01)

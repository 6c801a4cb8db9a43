"""FixedBudgetKRLS: kernel ridge regression on the samples that matter most."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..native.arguments import floats
from ..native.dense import argmin
from ..native.functions import native
from ..utils import validation as check
from .feature_steps import RESPONSE, size_of
from .ridge import RIDGE, RidgeBase, append_sample, finish_step, remove_sample, solve

ARGUMENTS = RIDGE.extended(
    "fixed_budget",
    label_rate=float,
    errors=floats("capacity"),  # scratch: leave-one-out errors
)


@dataclass(frozen=True)
class FixedBudgetKRLS(RidgeBase):
    """Kernel ridge regression on `budget` samples; the least significant one is removed.

    A new sample is kept. Beyond the budget, with A = K + ridge I and alpha = A^-1 y, the sample
    with the least |alpha_j| / (A^-1)_jj, its leave-one-out error, is removed. With label_rate > 0
    the kept responses first move towards the new one,

        y_j <- y_j - label_rate * k(c_j, x) (y_j - y),

    so that old samples follow change. For the logistic loss see `SlidingWindowKRLS`. Cost per step:
    budget kernel values and O(budget^2) products; memory O(budget^2).

    Parameters
    ----------
    budget : number of samples that are kept.
    ridge : positive number on the diagonal: the noise's variance over the kernel's scale.
    label_rate : 0 to 1, how far old responses follow new ones.

    Reference: Van Vaerenbergh, Santamaria, Liu and Principe, Fixed-budget kernel recursive
    least-squares, ICASSP 2010.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FixedBudgetKRLS(budget=30))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """

    core_name: ClassVar[str] = "FixedBudgetKRLS"
    budget: int = 50
    ridge: float = 0.01
    label_rate: float = 0.0

    def __post_init__(self) -> None:
        check.settings(
            self,
            budget=check.whole("Give how many samples to keep, 1 or more."),
            ridge=check.positive(0.01),
            label_rate=check.fraction(0.1),
        )

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """Keep the sample; beyond the budget remove the one with the least leave-one-out error."""
        y, responses, k = a.sample[RESPONSE], a.responses[leaf], a.point_features  # k(x, c_j)
        for m in range(size_of(a, leaf)):
            responses[m] -= a.label_rate * k[m] * (responses[m] - y)
        append_sample(a, leaf)
        size = size_of(a, leaf)
        if size == a.capacity:
            solve(a, leaf)
            for m in range(size):
                a.errors[m] = abs(a.coefficients[leaf, m]) / a.inverse[leaf, m, m]
            remove_sample(a, leaf, argmin(a.errors, size))
        finish_step(a, leaf, number)

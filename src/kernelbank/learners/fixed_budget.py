"""FixedBudgetKRLS: kernel ridge regression on the samples that matter most."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..losses.objective import Objective
from ..native.dense import least
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from .feature_steps import RESPONSE, SINGLE, coefficients_of, size_of
from .gram_steps import inverse_of
from .ridge import RidgeBase
from .ridge_steps import RIDGE, join, leave, settle, solve

FIXED_ARGUMENTS = argument_fields(*RIDGE._fields, "label_rate")


def fixed_budget(args, leaf, number):
    """The sample joins; beyond the budget the one that errs least without itself leaves."""
    capacity = read_int(args, SINGLE.capacity)
    now = float_array(args, SINGLE.now)
    response = float_array(args, SINGLE.sample)[RESPONSE]
    responses = pointer(float_array(args, RIDGE.responses), leaf * capacity)
    size = size_of(args, leaf)
    for m in range(size):
        responses[m] -= (
            read_float(args, FIXED_ARGUMENTS.label_rate) * now[m] * (responses[m] - response)
        )
    join(args, leaf)
    size = size_of(args, leaf)
    if size == capacity:
        solve(args, leaf)
        errors = float_array(args, SINGLE.work)
        inverse = inverse_of(args, leaf)
        coefficients = coefficients_of(args, leaf)
        for m in range(size):
            errors[m] = abs(coefficients[m]) / inverse[m * capacity + m]
        leave(args, leaf, least(errors, size))
    settle(args, leaf, number)


@dataclass(frozen=True)
class FixedBudgetKRLS(RidgeBase):
    """Kernel ridge regression on `budget` samples; the least significant one leaves.

    A new sample joins; then, with A = K + ridge I and alpha = A^-1 y, the sample with the least
    |alpha_j| / (A^-1)_jj leaves: the error that it would have if it had not been learned. With
    label_rate > 0 the kept responses first move towards the new one,

        y_j <- y_j - label_rate * k(c_j, x) (y_j - y),

    so that old samples follow change. For the logistic loss see `SlidingWindowKRLS`. Cost per step:
    budget kernel values and O(budget^2) products; memory O(budget^2).

    Parameters
    ----------
    budget : how many samples.
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

    budget: int = 50
    ridge: float = 0.01
    label_rate: float = 0.0
    places = FIXED_ARGUMENTS
    step = fixed_budget
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._count("budget", "how many samples to keep")
        self._positive("ridge", 0.01)
        self._share("label_rate", 0.1)

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {**super().settings(objective), "label_rate": self.label_rate}

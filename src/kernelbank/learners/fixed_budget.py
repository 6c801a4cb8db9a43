"""FixedBudgetKRLS: kernel ridge regression on the samples that matter most."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

from ..native.dense import argmin
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .feature_learner import SAMPLE, coefficients_of, size_of
from .gram import inverse_of
from .ridge import FIELDS as RIDGE_FIELDS
from .ridge import RidgeBase, append_sample, finish_step, remove_sample, responses_of, solve

FIELDS = argument_fields(*RIDGE_FIELDS._fields, "label_rate")


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

    budget: int = 50
    ridge: float = 0.01
    label_rate: float = 0.0
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            budget=check.whole("Give how many samples to keep, 1 or more."),
            ridge=check.positive(0.01),
            label_rate=check.fraction(0.1),
        )

    @staticmethod
    def step(args, leaf, number):
        """Keep the sample; beyond the budget remove the one with the least leave-one-out error."""
        capacity = read_int(args, FIELDS.capacity)
        row = float_array(args, FIELDS.point_features)  # k(x, c_j)
        label_rate = read_float(args, FIELDS.label_rate)
        response = float_array(args, FIELDS.sample)[SAMPLE.response]
        responses = responses_of(args, leaf)
        for m in range(size_of(args, leaf)):
            responses[m] -= label_rate * row[m] * (responses[m] - response)
        append_sample(args, leaf)
        size = size_of(args, leaf)
        if size == capacity:
            solve(args, leaf)
            errors = float_array(args, FIELDS.work)
            inverse = inverse_of(args, leaf)
            coefficients = coefficients_of(args, leaf)
            for m in range(size):
                errors[m] = abs(coefficients[m]) / inverse[m * capacity + m]
            remove_sample(args, leaf, argmin(errors, size))
        finish_step(args, leaf, number)

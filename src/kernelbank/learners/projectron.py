"""The Projectron: a kernel perceptron that projects instead of growing."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .base import check_labels
from .feature_learner import SAMPLE, coefficients_of, size_of
from .gram import (
    DEPENDENT,
    INVERSE_FIELDS,
    InverseBase,
    append_to_both,
    norm_from_gram,
    project_point,
    refresh_inverse,
)

FIELDS = argument_fields(*INVERSE_FIELDS._fields, "tolerance")


@dataclass(frozen=True)
class Projectron(InverseBase):
    """The Projectron: on a mistake it adds the sample, or the sample's projection on the centres.

    On a mistake, y f(x) <= 0, with d = K^-1 k(x, centres) and the new part of x,
    delta = sqrt(k(x, x) - k' d):

        alpha <- alpha + y d      if delta <= tolerance, or the budget is full,
        f <- f + y k(x, .)        otherwise.

    Cost per step: budget kernel values and, on a mistake, O(budget^2) products; memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    tolerance : how far a projection may be from its sample, in the norm of the RKHS; 0 or more.
    budget : largest number of centres.

    Reference: Orabona, Keshet and Caputo, Bounded kernel-based online learning, Journal of Machine
    Learning Research 10 (2009).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Projectron(), loss="hinge")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0 if n % 40 < 20 else -1.0)
    >>> bank.ledger.samples
    100
    """

    tolerance: float = 0.1
    budget: int = 100
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            tolerance=check.at_least(0, 0.1),
            budget=check.whole("Give how many centres to keep, 1 or more."),
        )

    def check(self, objective: Objective) -> None:
        check_labels(self, objective)

    @staticmethod
    def step(args, leaf, number):
        """On a mistake: alpha += y d if the projection is near enough, else f += y k(x, .)."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        d = float_array(args, FIELDS.work)  # K^-1 k(x, centres)
        factor = pointer(d, 2 * capacity)
        if sample[SAMPLE.target] * sample[SAMPLE.prediction] <= 0.0:
            size = size_of(args, leaf)
            rest = project_point(args, leaf, d)
            near = np.sqrt(rest) <= read_float(args, FIELDS.tolerance) and size > 0
            if near or rest <= DEPENDENT * sample[SAMPLE.self_kernel] or size == capacity - 1:
                coefficients = coefficients_of(args, leaf)
                for m in range(size):
                    coefficients[m] += sample[SAMPLE.target] * d[m]
            else:
                append_to_both(args, leaf, sample[SAMPLE.target], d, rest)
            sample[SAMPLE.squared_norm] = norm_from_gram(args, leaf, d)
        refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))

"""The Projectron: a kernel perceptron that projects instead of growing."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.functions import native
from ..utils import validation as check
from .base import check_labels
from .feature_steps import PREDICTION, SELF_KERNEL, SQUARED_NORM, TARGET, size_of
from .gram import (
    DEPENDENT,
    INVERSE,
    InverseBase,
    append_to_both,
    norm_from_gram,
    project_point,
    refresh_inverse,
)

ARGUMENTS = INVERSE.extended("projectron", tolerance=float)


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

    core_name: ClassVar[str] = "Projectron"
    tolerance: float = 0.1
    budget: int = 100

    def __post_init__(self) -> None:
        check.settings(
            self,
            tolerance=check.at_least(0, 0.1),
            budget=check.whole("Give how many centres to keep, 1 or more."),
        )

    def check(self, objective: Objective) -> None:
        check_labels(self, objective)

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """On a mistake: alpha += y d if the projection is near enough, else f += y k(x, .)."""
        y, d, alpha = a.sample[TARGET], a.solved, a.coefficients[leaf]
        if y * a.sample[PREDICTION] <= 0.0:
            size = size_of(a, leaf)
            rest = project_point(a, leaf)  # d = K^-1 k(x, centres); delta^2
            near = np.sqrt(rest) <= a.tolerance and size > 0
            if near or rest <= DEPENDENT * a.sample[SELF_KERNEL] or size == a.capacity - 1:
                for m in range(size):
                    alpha[m] += y * d[m]
            else:
                append_to_both(a, leaf, y, rest)
            a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)
        refresh_inverse(a, leaf, number)

"""The Projectron: a kernel perceptron that projects instead of growing."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from .feature_steps import NORM, PREDICTION, SELF, SINGLE, TARGET, coefficients_of, size_of
from .gram import GramBase
from .gram_steps import INVERSE, append_both, norm_by_gram, refresh_inverse, solve_now
from .perceptron import for_labels

PROJECTRON_ARGUMENTS = argument_fields(*INVERSE._fields, "tolerance")
_DEPENDENT = 1e-6  # of k(x, x): less is not worth a centre, and would spoil the inverse


def projectron(args, leaf, number):
    """On a mistake: add the sample's projection if that is near enough, else the sample."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    solved = float_array(args, SINGLE.work)
    factor = pointer(solved, 2 * capacity)
    if sample[TARGET] * sample[PREDICTION] <= 0.0:
        size = size_of(args, leaf)
        rest = solve_now(args, leaf, solved)
        near = np.sqrt(rest) <= read_float(args, PROJECTRON_ARGUMENTS.tolerance) and size > 0
        if near or rest <= _DEPENDENT * sample[SELF] or size == capacity - 1:
            coefficients = coefficients_of(args, leaf)
            for m in range(size):
                coefficients[m] += sample[TARGET] * solved[m]
        else:
            append_both(args, leaf, sample[TARGET], solved, rest)
        sample[NORM] = norm_by_gram(args, leaf, solved)
    refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))


@dataclass(frozen=True)
class Projectron(GramBase):
    """The Projectron: on a mistake the sample joins, or its projection on the centres does.

    On a mistake, y f(x) <= 0, with d = K^-1 k(x, centres) and what is new in x,
    delta = sqrt(k(x, x) - k' d):

        alpha <- alpha + y d      if delta <= tolerance, or the budget is full,
        f <- f + y k(x, .)        otherwise.

    Cost per step: budget kernel values and, on a mistake, O(budget^2) products; memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    tolerance : how far a projection may be from its sample, in the norm of the RKHS; 0 or more.
    budget : most centres.

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
    places = PROJECTRON_ARGUMENTS
    step = projectron
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._at_least("tolerance", 0, 0.1)
        self._count("budget", "how many centres to keep")

    def check(self, objective: Objective) -> None:
        for_labels(self, objective)

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {"tolerance": self.tolerance}

"""The Forgetron: a kernel perceptron on a budget, by forgetting."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from .base import check_labels
from .feature_learner import Shapes
from .feature_steps import PREDICTION, SQUARED_NORM, TARGET, size_of
from .gram import GRAM, GramBase, append_to_gram, norm_from_gram, remove_from_gram

ARGUMENTS = GRAM.extended(
    "forgetron",
    mistakes=floats("leaves"),
    deviation=floats("leaves"),  # in total
    dropped=floats("leaves"),  # norm^2 of all dropped terms
)
_ALLOWED = 15.0 / 32.0  # largest total deviation per mistake


@dataclass(frozen=True)
class Forgetron(GramBase):
    """The self-tuned Forgetron: a kernel perceptron on a budget, for labels -1 and +1.

    On a mistake, y f(x) <= 0, the term y k(x, .) is added. Beyond `budget` terms all coefficients
    are multiplied by the largest phi <= 1 for which the total deviation stays below 15/32 of the
    mistakes, and the oldest term is dropped. Its relative mistake bound holds for kernels with
    k(x, x) <= 1. Cost per step: budget kernel values and, on a mistake, O(budget^2) products (for
    norm^2); memory O(budget^2).

    Parameters
    ----------
    budget : largest number of terms.

    Reference: Dekel, Shalev-Shwartz and Singer, The Forgetron: a kernel-based perceptron on a
    budget, SIAM Journal on Computing 37 (2008).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Forgetron(budget=20), loss="hinge")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0 if n % 40 < 20 else -1.0)
    >>> bank.ledger.samples
    100
    """

    core_name: ClassVar[str] = "Forgetron"
    budget: int = 100

    def __post_init__(self) -> None:
        check.settings(self, budget=check.whole("Give how many terms to keep, 1 or more."))

    def check(self, objective: Objective) -> None:
        check_labels(self, objective)

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"mistakes": (), "deviation": (), "dropped": ()}
        return {**super().state_shapes(capacity, dimension), **own}

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """On a mistake: add the sample, shrink as little as the theory needs, drop the oldest."""
        alpha, target = a.coefficients[leaf], a.sample[TARGET]
        if target * a.sample[PREDICTION] > 0.0:
            return
        a.mistakes[leaf] += 1.0
        append_to_gram(a, leaf, target)
        size = size_of(a, leaf)
        if size == a.capacity:
            gram = a.gram[leaf]
            oldest = abs(alpha[0])
            value = dot(alpha, gram[0], size)  # f at the oldest centre
            aligned = value if alpha[0] > 0.0 else -value
            # The deviation grows by square phi^2 + slope phi if all is multiplied by phi.
            square = oldest * oldest - 2.0 * oldest * aligned
            slope = 2.0 * oldest
            rest = a.deviation[leaf] - _ALLOWED * a.mistakes[leaf]
            shrink = 1.0
            if square + slope + rest > 0.0:
                # The quadratic is negative at 0 and positive at 1: its root in between.
                root = np.sqrt(max(slope * slope - 4.0 * square * rest, 0.0))
                shrink = -2.0 * rest / (slope + root)
            a.deviation[leaf] += square * shrink * shrink + slope * shrink
            for m in range(size):
                alpha[m] *= shrink
            a.dropped[leaf] += alpha[0] * alpha[0] * gram[0, 0]
            remove_from_gram(a, leaf, 0)
        a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)

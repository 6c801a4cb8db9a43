"""The Forgetron: a kernel perceptron on a budget, by forgetting."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.dense import dot
from ..native.phases import argument_fields, float_array, read_int
from .centres import CentresBase
from .feature_learner import Shapes
from .feature_steps import NORM, PREDICTION, SINGLE, TARGET, coefficients_of, size_of
from .gram_steps import GRAM, append_gram, gram_of, norm_by_gram, remove_gram
from .perceptron import for_labels

FORGETRON_ARGUMENTS = argument_fields(*GRAM._fields, "mistakes", "deviation", "dropped")
_ALLOWED = 15.0 / 32.0  # of the mistakes: how much shrinking may deviate, in all


def forgetron(args, leaf, number):
    """On a mistake: add the sample, shrink as little as the theory needs, drop the oldest."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    if sample[TARGET] * sample[PREDICTION] > 0.0:
        return
    mistakes = float_array(args, FORGETRON_ARGUMENTS.mistakes)
    deviation = float_array(args, FORGETRON_ARGUMENTS.deviation)
    mistakes[leaf] += 1.0
    append_gram(args, leaf, sample[TARGET])
    coefficients = coefficients_of(args, leaf)
    size = size_of(args, leaf)
    if size == capacity:
        gram = gram_of(args, leaf)
        oldest = abs(coefficients[0])
        value = dot(coefficients, gram, size)
        aligned = value if coefficients[0] > 0.0 else -value
        square = oldest * oldest - 2.0 * oldest * aligned
        slope = 2.0 * oldest
        rest = deviation[leaf] - _ALLOWED * mistakes[leaf]
        shrink = 1.0
        if square + slope + rest > 0.0:
            # The quadratic is negative at 0 and positive at 1: its root in between.
            root = np.sqrt(max(slope * slope - 4.0 * square * rest, 0.0))
            shrink = -2.0 * rest / (slope + root)
        deviation[leaf] += square * shrink * shrink + slope * shrink
        for m in range(size):
            coefficients[m] *= shrink
        float_array(args, FORGETRON_ARGUMENTS.dropped)[leaf] += (
            coefficients[0] * coefficients[0] * gram[0]
        )
        remove_gram(args, leaf, 0)
    sample[NORM] = norm_by_gram(args, leaf, float_array(args, SINGLE.work))


@dataclass(frozen=True)
class Forgetron(CentresBase):
    """The self-tuned Forgetron: a kernel perceptron for labels -1 and +1 that keeps its budget.

    On a mistake, y f(x) <= 0, the term y k(x, .) joins. Beyond `budget` terms all coefficients are
    multiplied by the largest phi <= 1 for which the total deviation stays below 15/32 of the
    mistakes, and the oldest term is dropped. Its relative mistake bound holds for kernels with
    k(x, x) <= 1. Cost per step: budget kernel values and, on a mistake, O(budget^2) products (for
    norm^2); memory O(budget^2).

    Parameters
    ----------
    budget : most terms.

    Reference: Dekel, Shalev-Shwartz and Singer, The Forgetron: a kernel-based perceptron on a
    budget, SIAM Journal on Computing 37 (2008).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Forgetron(budget=20), loss="hinge")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0 if n % 40 < 20 else -1.0)
    >>> bank.ledger.samples
    100
    """

    budget: int = 100
    places = FORGETRON_ARGUMENTS
    step = forgetron
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._count("budget", "how many terms to keep")

    def check(self, objective: Objective) -> None:
        for_labels(self, objective)

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"gram": (capacity, capacity), "mistakes": (), "deviation": (), "dropped": ()}
        return {**super().own_shapes(capacity, dimension), **own}

    def work(self, capacity: int, dimension: int) -> int:
        return capacity

"""KNLMS: normalised kernel least mean squares with the coherence criterion."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.dense import dot
from ..native.phases import argument_fields, float_array, read_float, read_int
from .centres import CentresBase
from .feature_learner import Shapes
from .feature_steps import NORM, SELF, SINGLE, SLOPE, coefficients_of, size_of
from .gram_steps import GRAM, append_gram, gram_of, norm_by_gram

KNLMS_ARGUMENTS = argument_fields(*GRAM._fields, "learning_rate", "coherence", "epsilon")


def knlms(args, leaf, number):
    """Admit x if it is incoherent with the centres; then a normalised step on all of them."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    now = float_array(args, SINGLE.now)
    size = size_of(args, leaf)
    gram = gram_of(args, leaf)
    most = 0.0
    for m in range(size):
        both = sample[SELF] * gram[m * capacity + m]
        if both > 0.0:
            most = max(most, abs(now[m]) / np.sqrt(both))
    if not sample[SELF] > 0.0:
        most = 1.0  # k(x, .) = 0: there is nothing to admit
    if size == 0 or (most <= read_float(args, KNLMS_ARGUMENTS.coherence) and size < capacity - 1):
        append_gram(args, leaf, 0.0)
        size += 1
    change = read_float(args, KNLMS_ARGUMENTS.learning_rate) * sample[SLOPE]
    change /= read_float(args, KNLMS_ARGUMENTS.epsilon) + dot(now, now, size)
    coefficients = coefficients_of(args, leaf)
    for m in range(size):
        coefficients[m] -= change * now[m]
    sample[NORM] = norm_by_gram(args, leaf, float_array(args, SINGLE.work))


@dataclass(frozen=True)
class KNLMS(CentresBase):
    """Normalised kernel least mean squares on a dictionary of incoherent centres.

    x joins the centres while max_j |k(x, c_j)| / sqrt(k(x, x) k(c_j, c_j)) <= coherence and there
    are fewer than `budget`. Then, with h_j = k(x, c_j),

        alpha <- alpha - learning_rate * l'(f(x), y) h / (epsilon + h'h).

    Cost per step: budget kernel values and O(budget^2) products (for norm^2); memory O(budget^2).

    Parameters
    ----------
    learning_rate : positive number, the step size (half of the textbook's with the squared loss).
    coherence : between 0 and 1; larger admits more centres.
    epsilon : positive number that bounds the normalised step.
    budget : most centres.

    Reference: Richard, Bermudez and Honeine, Online prediction of time series data with kernels,
    IEEE Transactions on Signal Processing 57 (2009).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KNLMS(learning_rate=0.25))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    learning_rate: float = 0.1
    coherence: float = 0.9
    epsilon: float = 0.01
    budget: int = 100
    places = KNLMS_ARGUMENTS
    step = knlms
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._positive("learning_rate", 0.1)
        self._share("coherence", 0.9)
        self._positive("epsilon", 0.01)
        self._count("budget", "how many centres to keep")

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().own_shapes(capacity, dimension), "gram": (capacity, capacity)}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {
            "learning_rate": self.learning_rate,
            "coherence": self.coherence,
            "epsilon": self.epsilon,
        }

    def work(self, capacity: int, dimension: int) -> int:
        return capacity

"""QKLMS: kernel least mean squares with quantised inputs."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.dense import dot
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import float_array, read_float, read_int
from .centres import CentresBase, places
from .centres_steps import append, centre, centres_of, kernel_values, norm_by_definition
from .feature_steps import NORM, PREDICTION, SELF, SINGLE, SLOPE, coefficients_of, size_of

QKLMS_ARGUMENTS = places("learning_rate", "squared_quantization")


@inline
def nearest(args, leaf, distances):
    """The centre nearest to the present point, the first of equals; distances[j] is squared."""
    capacity = read_int(args, SINGLE.capacity)
    centres = centres_of(args, leaf)
    point = float_array(args, SINGLE.point)
    size = size_of(args, leaf)
    for m in range(size):
        distances[m] = 0.0
    for k in range(read_int(args, SINGLE.dimension)):
        column = pointer(centres, k * capacity)
        for m in range(size):
            distances[m] += (column[m] - point[k]) * (column[m] - point[k])
    best = 0
    for m in range(size):
        if distances[m] < distances[best]:
            best = m
    return best


def qklms(args, leaf, number):
    """The gradient step, on the nearest centre if it is near enough."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    work = float_array(args, SINGLE.work)
    size = size_of(args, leaf)
    change = -read_float(args, QKLMS_ARGUMENTS.learning_rate) * sample[SLOPE]
    value, own = sample[PREDICTION], sample[SELF]
    merged = False
    if size > 0:
        j = nearest(args, leaf, work)
        near = work[j] <= read_float(args, QKLMS_ARGUMENTS.squared_quantization)
        if near or size == capacity - 1:
            merged = True
            point = pointer(work, capacity)
            centre(args, leaf, j, point)
            kernel_values(args, leaf, point, centres_of(args, leaf), capacity, size, work)
            value, own = dot(coefficients_of(args, leaf), work, size), work[j]
            coefficients_of(args, leaf)[j] += change
    if not merged:
        append(args, leaf, change)
    norm = sample[NORM] + 2.0 * change * value + change * change * own
    if (number + 1) % read_int(args, SINGLE.slide_period) == 0:
        norm = norm_by_definition(args, leaf, work)
    sample[NORM] = max(norm, 0.0)


@dataclass(frozen=True)
class QKLMS(CentresBase):
    """KLMS on quantised inputs: a sample near a centre moves that centre's coefficient.

    With c_j the centre nearest to x:

        alpha_j <- alpha_j - learning_rate * l'(f(x), y)    if |x - c_j| <= quantization,
        f <- f - learning_rate * l'(f(x), y) k(x, .)        otherwise.

    Once `budget` centres are kept, every sample moves its nearest centre. Cost per step: 2 budget
    kernel values and O(budget (dimension + window)) products; memory O(budget (dimension +
    window)).

    Parameters
    ----------
    learning_rate : positive number, the step size (half of the textbook's with the squared loss).
    quantization : how near counts as the same, in units of the inputs; 0 for equal only.
    budget : most centres.

    Reference: Chen, Zhao, Zhu and Principe, Quantized kernel least mean square algorithm, IEEE
    Transactions on Neural Networks and Learning Systems 23 (2012).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.QKLMS(quantization=0.5))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    learning_rate: float = 0.1
    quantization: float = 0.1
    budget: int = 100
    places = QKLMS_ARGUMENTS
    step = qklms
    cost: ClassVar[str] = "O(budget dimension)"

    def __post_init__(self) -> None:
        self._positive("learning_rate", 0.1)
        self._at_least("quantization", 0, 0.1)
        self._count("budget", "how many centres to keep")

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {
            "learning_rate": self.learning_rate,
            "squared_quantization": float(np.square(self.quantization)),
        }

    def work(self, capacity: int, dimension: int) -> int:
        return capacity + dimension

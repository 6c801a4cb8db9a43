"""QKLMS: kernel least mean squares with quantised inputs."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..native.dense import dot
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .base import SlotGroup
from .centres import FIELDS as CENTRES_FIELDS
from .centres import (
    CentresBase,
    append_centre,
    centres_of,
    copy_centre,
    kernel_values,
    norm_from_centres,
)
from .feature_learner import SAMPLE, coefficients_of, size_of

FIELDS = argument_fields(*CENTRES_FIELDS._fields, "learning_rate", "squared_quantization")


@inline
def _nearest_centre(args, leaf, distances):
    """The index of the centre nearest to x, the first of equals; distances[j] = |x - c_j|^2."""
    capacity = read_int(args, FIELDS.capacity)
    centres = centres_of(args, leaf)
    point = float_array(args, FIELDS.point)
    size = size_of(args, leaf)
    for m in range(size):
        distances[m] = 0.0
    for k in range(read_int(args, FIELDS.dimension)):
        column = pointer(centres, k * capacity)
        for m in range(size):
            distances[m] += (column[m] - point[k]) * (column[m] - point[k])
    best = 0
    for m in range(size):
        if distances[m] < distances[best]:
            best = m
    return best


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
    budget : largest number of centres.

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
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            quantization=check.at_least(0, 0.1),
            budget=check.whole("Give how many centres to keep, 1 or more."),
        )

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "squared_quantization": float(np.square(self.quantization)),
        }

    def work_size(self, capacity: int, dimension: int) -> int:
        return capacity + dimension

    @staticmethod
    def step(args, leaf, number):
        """Add -learning_rate l' to the coefficient of the nearest centre, or of a new one."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        work = float_array(args, FIELDS.work)
        size = size_of(args, leaf)
        change = -read_float(args, FIELDS.learning_rate) * sample[SAMPLE.slope]
        value, self_kernel = sample[SAMPLE.prediction], sample[SAMPLE.self_kernel]
        merged = False
        if size > 0:
            j = _nearest_centre(args, leaf, work)
            near = work[j] <= read_float(args, FIELDS.squared_quantization)
            if near or size == capacity - 1:
                merged = True
                nearest = pointer(work, capacity)
                copy_centre(args, leaf, j, nearest)
                kernel_values(args, leaf, nearest, centres_of(args, leaf), capacity, size, work)
                value, self_kernel = dot(coefficients_of(args, leaf), work, size), work[j]
                coefficients_of(args, leaf)[j] += change
        if not merged:
            append_centre(args, leaf, change)
        # |f + change k(c, .)|^2 = |f|^2 + 2 change f(c) + change^2 k(c, c)
        norm = sample[SAMPLE.squared_norm] + 2.0 * change * value + change * change * self_kernel
        if (number + 1) % read_int(args, FIELDS.slide_period) == 0:
            norm = norm_from_centres(args, leaf, work)
        sample[SAMPLE.squared_norm] = max(norm, 0.0)

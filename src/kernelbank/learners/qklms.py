"""QKLMS: kernel least mean squares with quantised inputs."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..native.arguments import floats
from ..native.dense import argmin, dot
from ..native.functions import native
from ..native.jit import inline
from ..utils import validation as check
from .base import SlotGroup
from .centres import (
    CENTRES,
    CentresBase,
    append_centre,
    copy_centre,
    norm_from_centres,
    values_at_centres,
)
from .feature_steps import PREDICTION, SELF_KERNEL, SLOPE, SQUARED_NORM, size_of
from .step_size import FIRST_ORDER, FirstOrder, next_rate, step_size_rule

ARGUMENTS = CENTRES.extended(
    "qklms",
    **FIRST_ORDER,
    squared_quantization=float,
    distances=floats("capacity"),  # scratch: |x - c_j|^2,
    centre=floats("dimension"),  # a centre c,
    row=floats("capacity"),  # and k(c, c_j)
)


@inline
def _nearest_centre(a, leaf, distances):
    """The index of the centre nearest to x, the first of equals; distances[j] = |x - c_j|^2."""
    size = size_of(a, leaf)
    for m in range(size):
        distances[m] = 0.0
    for k in range(a.dimension):
        x = a.point[k]
        coordinates = a.centres[leaf, k]
        for m in range(size):
            distances[m] += (coordinates[m] - x) * (coordinates[m] - x)
    return argmin(distances, size)


@dataclass(frozen=True)
class QKLMS(FirstOrder, CentresBase):
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
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Chen, Zhao, Zhu and Principe, Quantized kernel least mean square algorithm, IEEE
    Transactions on Neural Networks and Learning Systems 23 (2012).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.QKLMS(quantization=0.5))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "QKLMS"
    learning_rate: float = 0.1
    quantization: float = 0.1
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            quantization=check.at_least(0, 0.1),
            budget=check.whole("Give how many centres to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "squared_quantization": float(np.square(self.quantization)),
        }

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """Add -rate l' to the coefficient of the nearest centre, or of a new one."""
        sample, alpha, c, row = a.sample, a.coefficients[leaf], a.centre, a.row
        size = size_of(a, leaf)
        slope = sample[SLOPE]
        change = -next_rate(a, leaf, number + 1, slope * slope * sample[SELF_KERNEL]) * slope
        value, self_kernel = sample[PREDICTION], sample[SELF_KERNEL]
        merged = False
        if size > 0:
            j = _nearest_centre(a, leaf, a.distances)
            if a.distances[j] <= a.squared_quantization or size == a.capacity - 1:
                merged = True
                copy_centre(a, leaf, j, c)
                values_at_centres(a, leaf, c, row)
                value, self_kernel = dot(alpha, row, size), row[j]  # f(c), k(c, c)
                alpha[j] += change
        if not merged:
            append_centre(a, leaf, change)
        # |f + change k(c, .)|^2 = |f|^2 + 2 change f(c) + change^2 k(c, c)
        norm = sample[SQUARED_NORM] + 2.0 * change * value + change * change * self_kernel
        if (number + 1) % a.slide_period == 0:
            norm = norm_from_centres(a, leaf, c, row)
        sample[SQUARED_NORM] = max(norm, 0.0)

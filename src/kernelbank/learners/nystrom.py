"""NystromSGD: gradient descent on the features that some landmarks span."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..native.dense import dot
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from .centres import CentresBase
from .centres_steps import CENTRES, append
from .feature_learner import Shapes
from .feature_steps import NORM, SELF, SINGLE, SLOPE, coefficients_of, size_of
from .gram_steps import JITTER

NYSTROM_ARGUMENTS = argument_fields(
    *CENTRES._fields, "factor", "weights", "learning_rate", "keep", "novelty"
)


def nystrom(args, leaf, number):
    """z = L^-1 k(x, landmarks); a gradient step on the weights of z; alpha = L'^-1 weights."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    now = float_array(args, SINGLE.now)
    z = float_array(args, SINGLE.work)
    factor = pointer(float_array(args, NYSTROM_ARGUMENTS.factor), leaf * capacity * capacity)
    weights = pointer(float_array(args, NYSTROM_ARGUMENTS.weights), leaf * capacity)
    size = size_of(args, leaf)
    for i in range(size):
        row = pointer(factor, i * capacity)
        z[i] = (now[i] - dot(row, z, i)) / row[i]
    rest = sample[SELF] - dot(z, z, size)
    if size < capacity and rest > read_float(args, NYSTROM_ARGUMENTS.novelty) * sample[SELF]:
        row = pointer(factor, size * capacity)
        for i in range(size):
            row[i] = z[i]
        row[size] = np.sqrt(rest + JITTER * sample[SELF])
        z[size] = rest / row[size]
        weights[size] = 0.0
        append(args, leaf, 0.0)
        size += 1
    change = read_float(args, NYSTROM_ARGUMENTS.learning_rate) * sample[SLOPE]
    for i in range(size):
        weights[i] = read_float(args, NYSTROM_ARGUMENTS.keep) * weights[i] - change * z[i]
    sample[NORM] = dot(weights, weights, size)
    coefficients = coefficients_of(args, leaf)
    for i in range(size):
        coefficients[i] = weights[i]
    for i in range(size - 1, -1, -1):  # back substitution, a row of the factor at a time
        row = pointer(factor, i * capacity)
        own = coefficients[i] / row[i]
        coefficients[i] = own
        for j in range(i):
            coefficients[j] -= own * row[j]


@dataclass(frozen=True)
class NystromSGD(CentresBase):
    """Gradient descent on Nystrom features: the kernel projected on some landmarks.

    The first inputs that are new enough become landmarks c. With K = L L' their Gram matrix, the
    features z(x) = L^-1 k(x, c) have z(x)'z(t) = k(x, c) K^-1 k(c, t), and

        weights <- (1 - learning_rate * regularization) weights - learning_rate * l'(f(x), y) z(x).

    Cost per step: landmarks kernel values and O(landmarks^2) products; memory O(landmarks^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    landmarks : most landmarks.
    learning_rate : positive number, the step size.
    novelty : an input becomes a landmark if more than this share of k(x, x) is new.

    Reference: Lu, Hoi, Wang, Zhao and Liu, Large scale online kernel learning, Journal of Machine
    Learning Research 17 (2016).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.NystromSGD(landmarks=20, learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    landmarks: int = 50
    learning_rate: float = 0.1
    novelty: float = 0.001
    places = NYSTROM_ARGUMENTS
    spare = 0
    step = nystrom
    cost: ClassVar[str] = "O(landmarks dimension + landmarks^2)"

    def __post_init__(self) -> None:
        self._count("landmarks", "how many landmarks to keep")
        self._positive("learning_rate", 0.1)
        self._share("novelty", 0.001)

    def check(self, objective: Objective) -> None:
        self._check_decay(objective)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.landmarks

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"factor": (capacity, capacity), "weights": (capacity,)}
        return {**super().own_shapes(capacity, dimension), **own}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {
            "learning_rate": self.learning_rate,
            "keep": 1.0 - self.learning_rate * objective.regularization,
            "novelty": self.novelty,
        }

    def work(self, capacity: int, dimension: int) -> int:
        return capacity

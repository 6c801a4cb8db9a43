"""NystromSGD: gradient descent on the features that some landmarks span."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..native.dense import dot
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .base import SlotGroup, check_decay
from .centres import FIELDS as CENTRES_FIELDS
from .centres import CentresBase, append_centre
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of
from .gram import JITTER

FIELDS = argument_fields(
    *CENTRES_FIELDS._fields, "factor", "weights", "learning_rate", "decay", "novelty"
)


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
    landmarks : largest number of landmarks.
    learning_rate : positive number, the step size.
    novelty : an input becomes a landmark if more than this fraction of k(x, x) is new.

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
    arguments = FIELDS
    extra_capacity = 0

    def __post_init__(self) -> None:
        check.settings(
            self,
            landmarks=check.whole("Give how many landmarks to keep, 1 or more."),
            learning_rate=check.positive(0.1),
            novelty=check.fraction(0.001),
        )

    def check(self, objective: Objective) -> None:
        check_decay(self, objective)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.landmarks

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"factor": (capacity, capacity), "weights": (capacity,)}
        return {**super().state_shapes(capacity, dimension), **own}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "decay": 1.0 - self.learning_rate * group.objective.regularization,
        }

    def work_size(self, capacity: int, dimension: int) -> int:
        return capacity

    @staticmethod
    def step(args, leaf, number):
        """Perhaps a new landmark; a gradient step on the weights of z; alpha from the weights."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        k = float_array(args, FIELDS.point_features)  # k(x, landmarks)
        z = float_array(args, FIELDS.work)
        factor = pointer(float_array(args, FIELDS.factor), leaf * capacity * capacity)
        weights = pointer(float_array(args, FIELDS.weights), leaf * capacity)
        size = size_of(args, leaf)
        for i in range(size):  # z = L^-1 k
            row = pointer(factor, i * capacity)
            z[i] = (k[i] - dot(row, z, i)) / row[i]
        rest = sample[SAMPLE.self_kernel] - dot(z, z, size)
        if size < capacity and rest > read_float(args, FIELDS.novelty) * sample[SAMPLE.self_kernel]:
            row = pointer(factor, size * capacity)
            for i in range(size):
                row[i] = z[i]
            row[size] = np.sqrt(rest + JITTER * sample[SAMPLE.self_kernel])
            z[size] = rest / row[size]
            weights[size] = 0.0
            append_centre(args, leaf, 0.0)
            size += 1
        # weights <- decay weights - learning_rate l' z
        change = read_float(args, FIELDS.learning_rate) * sample[SAMPLE.slope]
        for i in range(size):
            weights[i] = read_float(args, FIELDS.decay) * weights[i] - change * z[i]
        sample[SAMPLE.squared_norm] = dot(weights, weights, size)
        coefficients = coefficients_of(args, leaf)
        for i in range(size):
            coefficients[i] = weights[i]
        for i in range(size - 1, -1, -1):  # alpha = L'^-1 weights, a row of L at a time
            row = pointer(factor, i * capacity)
            alpha = coefficients[i] / row[i]
            coefficients[i] = alpha
            for j in range(i):
                coefficients[j] -= alpha * row[j]

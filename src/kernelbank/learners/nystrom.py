"""NystromSGD: gradient descent on the features that some landmarks span."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from .base import SlotGroup, check_decay
from .centres import CENTRES, CentresBase, append_centre
from .feature_learner import SELF_KERNEL, SLOPE, SQUARED_NORM, Shapes, size_of
from .gram import JITTER

ARGUMENTS = CENTRES.extended(
    "nystrom",
    factor=floats("leaves", "capacity", "capacity"),  # L
    weights=floats("leaves", "capacity"),
    learning_rate=float,
    decay=float,
    novelty=float,
    z=floats("capacity"),  # scratch: z(x)
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

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """Perhaps a new landmark; a gradient step on the weights of z; alpha from the weights."""
        k, z = a.point_features, a.z  # k(x, landmarks), z(x)
        factor, weights, alpha = a.factor[leaf], a.weights[leaf], a.coefficients[leaf]
        self_kernel = a.sample[SELF_KERNEL]
        size = size_of(a, leaf)
        for i in range(size):  # z = L^-1 k
            z[i] = (k[i] - dot(factor[i], z, i)) / factor[i, i]
        rest = self_kernel - dot(z, z, size)
        if size < a.capacity and rest > a.novelty * self_kernel:
            row = factor[size]
            for i in range(size):
                row[i] = z[i]
            row[size] = np.sqrt(rest + JITTER * self_kernel)
            z[size] = rest / row[size]
            weights[size] = 0.0
            append_centre(a, leaf, 0.0)
            size += 1
        # weights <- decay weights - learning_rate l' z
        change = a.learning_rate * a.sample[SLOPE]
        for i in range(size):
            weights[i] = a.decay * weights[i] - change * z[i]
        a.sample[SQUARED_NORM] = dot(weights, weights, size)
        for i in range(size):
            alpha[i] = weights[i]
        for i in range(size - 1, -1, -1):  # alpha = L'^-1 weights, a row of L at a time
            row = factor[i]
            own = alpha[i] / row[i]
            alpha[i] = own
            for j in range(i):
                alpha[j] -= own * row[j]

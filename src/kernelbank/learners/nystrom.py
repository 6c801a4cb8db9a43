"""NystromSGD: gradient descent on the features that some landmarks span."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..native.arguments import floats
from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from .centres import CENTRES, CentresBase, append_centre
from .feature_learner import Shapes
from .feature_steps import SELF_KERNEL, SLOPE, SQUARED_NORM, size_of
from .gram import JITTER
from .step_size import FIRST_ORDER, FirstOrder, next_rate, step_size_rule

ARGUMENTS = CENTRES.extended(
    "nystrom",
    factor=floats("leaves", "capacity", "capacity"),  # L
    weights=floats("leaves", "capacity"),
    **FIRST_ORDER,
    novelty=float,
    z=floats("capacity"),  # scratch: z(x)
)


@dataclass(frozen=True)
class NystromSGD(FirstOrder, CentresBase):
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
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Lu, Hoi, Wang, Zhao and Liu, Large scale online kernel learning, Journal of Machine
    Learning Research 17 (2016).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.NystromSGD(landmarks=20, learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "NystromSGD"
    landmarks: int = 50
    learning_rate: float = 0.1
    novelty: float = 0.001
    step_size: str = "constant"
    extra_capacity = 0
    decays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.settings(
            self,
            landmarks=check.whole("Give how many landmarks to keep, 1 or more."),
            learning_rate=check.positive(0.1),
            novelty=check.fraction(0.001),
            step_size=step_size_rule,
        )

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.landmarks

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"factor": (capacity, capacity), "weights": (capacity,)}
        return {**super().state_shapes(capacity, dimension), **own}

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
        # weights <- decay weights - rate l' z
        slope = a.sample[SLOPE]
        rate = next_rate(a, leaf, number + 1, slope * slope * dot(z, z, size))
        decay, change = 1.0 - rate * a.regularization, rate * slope
        for i in range(size):
            weights[i] = decay * weights[i] - change * z[i]
        a.sample[SQUARED_NORM] = dot(weights, weights, size)
        for i in range(size):
            alpha[i] = weights[i]
        for i in range(size - 1, -1, -1):  # alpha = L'^-1 weights, a row of L at a time
            row = factor[i]
            own = alpha[i] / row[i]
            alpha[i] = own
            for j in range(i):
                alpha[j] -= own * row[j]

"""FourierSGD: gradient descent on random features."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..losses.objective import Objective
from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from .base import SlotGroup, check_decay
from .feature_learner import SLOPE, SQUARED_NORM, size_of
from .fourier import FOURIER, FourierBase

ARGUMENTS = FOURIER.extended("fourier_sgd", learning_rate=float, decay=float)


@dataclass(frozen=True)
class FourierSGD(FourierBase):
    """Stochastic gradient descent on random Fourier features: a constant cost per step.

    With phi(x)'phi(t) close to k(x, t) (see `kb.kernels.feature_map`),

        weights <- (1 - learning_rate * regularization) weights
                   - learning_rate * l'(f(x), y) phi(x).

    Takes Gaussian, Laplacian, Matern and Linear kernels, their sums, multiples, `ActiveDims` and
    `Additive`.
    Cost per step: O(features (dimension + window)); memory O(features (dimension + window)).

    Parameters
    ----------
    features : number of features, even.
    learning_rate : positive number, the step size.
    seed : whole number; the frequencies are drawn from it and from the slot's index in the bank.

    Reference: Lu, Hoi, Wang, Zhao and Liu, Large scale online kernel learning, Journal of Machine
    Learning Research 17 (2016).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FourierSGD(features=50, learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(9.0) > 0.5
    True
    """

    features: int = 100
    learning_rate: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_features()
        check.settings(self, learning_rate=check.positive(0.1))

    def check(self, objective: Objective) -> None:
        check_decay(self, objective)

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "decay": 1.0 - self.learning_rate * group.objective.regularization,
        }

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """weights <- decay weights - learning_rate l' phi(x)."""
        phi, weights = a.point_features, a.coefficients[leaf]
        size = size_of(a, leaf)
        change = a.learning_rate * a.sample[SLOPE]
        for m in range(size):
            weights[m] = a.decay * weights[m] - change * phi[m]
        a.sample[SQUARED_NORM] = dot(weights, weights, size)

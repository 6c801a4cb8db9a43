"""FourierSGD: gradient descent on random features."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from .base import SlotGroup
from .feature_steps import SELF_KERNEL, SLOPE, SQUARED_NORM, size_of
from .fourier import FOURIER, FourierBase
from .step_size import FIRST_ORDER, FirstOrder, next_rate, step_size_rule

ARGUMENTS = FOURIER.extended("fourier_sgd", **FIRST_ORDER, period=int)


@dataclass(frozen=True)
class FourierSGD(FirstOrder, FourierBase):
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
    seed : whole number; the frequencies are drawn from it and from the slot's number:
        its index in the bank that it began in, counting on for slots that are added later.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).
    restart : forget everything every so many samples: f = 0 again, and t = 1 for the step size, at
        samples number restart, 2 restart, ..., counted from 1. None: never. AdaRaker restarts its
        instances so.

    Reference: Lu, Hoi, Wang, Zhao and Liu, Large scale online kernel learning, Journal of Machine
    Learning Research 17 (2016).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FourierSGD(features=50, learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(9.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "FourierSGD"
    features: int = 100
    learning_rate: float = 0.1
    seed: int = 0
    step_size: str = "constant"
    restart: int | None = None
    decays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_features()
        check.settings(self, learning_rate=check.positive(0.1), step_size=step_size_rule)
        if self.restart is not None:
            remedy = "Give a number of samples, or None to learn on without end."
            check.settings(self, restart=check.whole(remedy))

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "period": self.restart or 0,
        }

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """weights <- decay weights - rate l' phi(x); 0 before a sample whose number is a multiple.

        Sample `number` is the one with number + 1 if the first has number 1.
        """
        phi, weights = a.point_features, a.coefficients[leaf]
        size = size_of(a, leaf)
        t = number + 1  # samples since the last restart, this one included
        if a.period > 0 and t >= a.period:
            t = t % a.period + 1
        slope = a.sample[SLOPE]
        rate = next_rate(a, leaf, t, slope * slope * a.sample[SELF_KERNEL])
        decay, change = 1.0 - rate * a.regularization, rate * slope
        for m in range(size):
            weights[m] = decay * weights[m] - change * phi[m]
        if a.period > 0 and (number + 2) % a.period == 0:  # the next sample finds f = 0
            a.squares[leaf] = 0.0
            for m in range(size):
                weights[m] = 0.0
        a.sample[SQUARED_NORM] = dot(weights, weights, size)

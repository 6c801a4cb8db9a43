"""FourierSGD: gradient descent on random features."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..losses.objective import Objective
from ..native.dense import dot
from ..native.phases import argument_fields, float_array, read_float
from .feature_steps import NORM, SINGLE, SLOPE, coefficients_of, size_of
from .fourier import FourierBase
from .fourier_steps import WAVES

FOURIER_ARGUMENTS = argument_fields(*SINGLE._fields, *WAVES._fields, "learning_rate", "keep")


def fourier_sgd(args, leaf, number):
    """weights <- keep * weights - rate * slope * phi(x)."""
    sample = float_array(args, SINGLE.sample)
    now = float_array(args, SINGLE.now)
    size = size_of(args, leaf)
    weights = coefficients_of(args, leaf)
    keep = read_float(args, FOURIER_ARGUMENTS.keep)
    change = read_float(args, FOURIER_ARGUMENTS.learning_rate) * sample[SLOPE]
    for m in range(size):
        weights[m] = keep * weights[m] - change * now[m]
    sample[NORM] = dot(weights, weights, size)


@dataclass(frozen=True)
class FourierSGD(FourierBase):
    """Stochastic gradient descent on random Fourier features: NORMA at a fixed price for ever.

    With phi(x)'phi(t) close to k(x, t) (see `kb.kernels.feature_map`),

        weights <- (1 - learning_rate * regularization) weights
                   - learning_rate * l'(f(x), y) phi(x).

    Takes Gaussian, Laplacian, Matern and Linear kernels, their sums, multiples, `ActiveDims` and
    `Additive`.
    Cost per step: O(features (dimension + window)); memory O(features (dimension + window)).

    Parameters
    ----------
    features : how many, even.
    learning_rate : positive number, the step size.
    seed : whole number; the frequencies are drawn from it and from the slot's place in the bank.

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
    places = FOURIER_ARGUMENTS
    step = fourier_sgd
    cost: ClassVar[str] = "O(features dimension)"

    def __post_init__(self) -> None:
        self._check_features()
        self._positive("learning_rate", 0.1)

    def check(self, objective: Objective) -> None:
        self._check_decay(objective)

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {
            "learning_rate": self.learning_rate,
            "keep": 1.0 - self.learning_rate * objective.regularization,
        }

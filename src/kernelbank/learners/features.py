"""Learners that are linear in features: f(x) = weights . phi(x).

Random features are drawn once for each slot, from the seed and the slot's identity. Recursive least
squares forget in one of three ways, see `FourierRLS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, log
from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidArgument
from ..kernels import FeatureMap, Kernel, Linear, active_width, feature_counts, feature_map
from ..losses import Objective
from ..utils import validation as check
from .base import MOST, Learner, Values, forgetting_field, seed_field
from .centres import step_size_field

# --- random features --------------------------------------------------------------------------


def _features_field() -> Any:
    remedy = "Features come in pairs, a cosine and a sine: give an even number, such as 100."
    return check.count_field(100, remedy, least=2, most=MOST, even=True)


class _RandomFeatures(Learner):
    """Subclasses have settings `features` (how many) and `seed`."""

    accepts_new_inputs: ClassVar[bool] = False
    uses_values: ClassVar[bool] = False
    features: int
    seed: int

    def check_kernel(self, kernel: Kernel) -> None:
        super().check_kernel(kernel)
        try:
            feature_counts(kernel, self.features, kernel.fewest_columns())
        except InvalidArgument as error:  # name this learner
            owner = type(self).__name__
            words = str(error).replace("'count' of feature_map", f"'features' of {owner}")
            raise InvalidArgument(words.replace("of feature_map", f"of {owner}")) from None

    def most_initial_terms(self, objective: Objective) -> float:
        return inf  # weights = sum_j c_j phi(points_j)

    def feature_map(self, kernel: Kernel, dimension: int, identity: int) -> FeatureMap:
        """The features of a slot with that identity."""
        return _draw_features(kernel, self.features, dimension, self.seed, identity)

    def core_settings(self, kernels: Sequence[Kernel], dimension: int, identity: int) -> Values:
        phi = self.feature_map(kernels[0], dimension, identity)
        return super().core_settings(kernels, dimension, identity) | {
            "frequencies": phi.frequencies,
            "phases": phi.phases,
            "amplitudes": phi.amplitudes,
            "trigonometric": phi.trigonometric,
        }

    def described_numbers(self, kernel: Kernel, dimension: int) -> int:
        return 2 * self.features * (dimension + 4)


@lru_cache(maxsize=64)
def _draw_features(kernel: Kernel, count: int, dimension: int, seed: int, slot: int) -> FeatureMap:
    """The features of the slot with that identity. Equal banks draw the same ones."""
    return feature_map(kernel, count, dimension, np.random.default_rng([seed, slot]))


@dataclass(frozen=True)
class FourierSGD(_RandomFeatures):
    """Stochastic gradient descent on random Fourier features: a constant cost per step.

    With phi(x)'phi(t) close to k(x, t), for the kernels of `kb.kernels.feature_map`,

        weights <- (1 - learning_rate * regularization) weights
                   - learning_rate * l'(f(x), y) phi(x).

    Parameters
    ----------
    features : number of features, even.
    learning_rate : positive number, the step size.
    seed : whole number; the frequencies are drawn from it and from the slot's number: its index in
        the bank that it began in, counting on for slots that are added later.
    step_size : how the rate follows from learning_rate, as for `Norma`.
    restart : forget everything every so many samples: f = 0 again, and t = 1 for the step size, at
        samples number restart, 2 restart, ..., counted from 1. None: never.

    Reference: Lu, Hoi, Wang, Zhao and Liu, Journal of Machine Learning Research 17 (2016).
    """

    decays: ClassVar[bool] = True
    features: int = _features_field()
    learning_rate: float = check.number_field(0.1, above=0)
    seed: int = seed_field()
    step_size: str = step_size_field()
    restart: int | None = check.count_field(
        None, "Give a number of samples, or None to learn on without end.", most=MOST
    )


# --- recursive least squares ------------------------------------------------------------------

_MAX_GROWTH = 5.0
"""The covariance may grow by exp(this) at most until every weight had a dummy observation."""


class _Recursive(Learner):
    """Subclasses have the settings of recursive least squares."""

    second_order: ClassVar[bool] = True
    forgetting: float
    forget: str
    constant_forgetting: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        to_prior = self.forget == "prior" and self.forgetting < 1
        if self.constant_forgetting is not None and not to_prior:
            remedy = 'Use forget="prior" with forgetting below 1.'
            rule = "be given with forgetting to the prior only"
            raise self._refuse("constant_forgetting", rule, remedy)

    @property
    def late_price(self) -> float:
        return super().late_price if self.constant_forgetting is None else 1.0

    def weight_count(self, kernel: Kernel, dimension: int) -> int:
        """The number of weights of a slot."""
        raise NotImplementedError

    def core_settings(self, kernels: Sequence[Kernel], dimension: int, identity: int) -> Values:
        size = self.weight_count(kernels[0], dimension)
        if self.forget == "exponential" and -size * log(self.forgetting) > _MAX_GROWTH:
            least = f"{exp(-_MAX_GROWTH / size):.4g}"
            rule = f"be >= {least} for {size} features, if it is exponential"
            remedy = 'Raise it, use fewer features, or forget="prior".'
            raise self._refuse("forgetting", rule, remedy)
        return super().core_settings(kernels, dimension, identity)


def _forget_field() -> Any:
    return check.choice_field("exponential", "prior", "random_walk")


def _constant_field() -> Any:
    return check.number_field(None, "Give a number such as 0.9, or None.", least=0, most=1)


@dataclass(frozen=True)
class FourierRLS(_Recursive, _RandomFeatures):
    """Bayesian linear regression on random features: a Gaussian process at a constant cost.

    With P = I / ridge at first and phi(x)'phi(t) close to k(x, t), for the kernels of
    `kb.kernels.feature_map`:

        u = P phi(x),  s = 1 + phi(x)'u,  weights <- weights + u (y - f(x)) / s,  P <- P - u u' / s,

    so that weights minimise sum (w'phi(x_i) - y_i)^2 + ridge |w|^2. Then, with forgetting r < 1,

    - "exponential": the squares of i steps ago have weight r^i. P <- P / r, and a dummy observation
      that one weight, in turn, is 0, with precision D (1 - r) ridge, D the number of features. It
      renews the ridge, without which P would grow where there are no inputs.
    - "prior": P <- r P + (1 - r) I / ridge, weights <- sqrt(r) weights. Without new samples the
      weights return to the prior.
    - "random_walk": P <- P + (1 - r) I / ridge: before every sample, also the first, each weight
      takes a random step, with the part 1 - r of its prior variance. Without new samples the
      weights stay, and P grows.

    For other losses: an online Newton step, with -l' / c for y - f(x) and 2 / c for the 1, with c
    as in `KRLS`. Only half of P is kept, and it is read and written once per sample, in double
    precision: phi(x)'phi(x) / ridge beyond about 1e12 leaves no correct digits, so scale inputs to
    the order of one.

    Parameters
    ----------
    features, seed : as for `FourierSGD`.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    ridge : positive number: the prior's precision.
    forget : "exponential", "prior" or "random_walk".
    constant_forgetting : with "prior", the forgetting of the constant feature (Linear kernels with
        an offset have one): 0.9, say, makes it follow the mean residual.

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, NeurIPS 2007;
    forgetting to the prior after Van Vaerenbergh et al. 2012 (see `KRLSTracker`).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FourierRLS(features=50))
    >>> trace = bank.run([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    >>> round(bank.predict_one(1.0), 1)
    1.0
    """

    features: int = _features_field()
    forgetting: float = forgetting_field()
    ridge: float = check.number_field(0.01, above=0)
    seed: int = seed_field()
    forget: str = _forget_field()
    constant_forgetting: float | None = _constant_field()

    def weight_count(self, kernel: Kernel, dimension: int) -> int:
        return feature_counts(kernel, self.features, dimension)[1]


@dataclass(frozen=True)
class LinearRLS(_Recursive):
    """Recursive least squares for the kernel Linear: the second-order learner of a line.

    `FourierRLS` with phi(x) = (x, sqrt(offset)), so that phi(x)'phi(t) = k(x, t), of all inputs or
    of those of an `ActiveDims`.

    Parameters
    ----------
    forgetting, ridge, forget, constant_forgetting : as for `FourierRLS`.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank([kb.kernels.Linear(1.0)], kb.learners.LinearRLS())
    >>> trace = bank.run([0.0, 1.0, 2.0, 3.0], [-1.0, 1.0, 3.0, 5.0])
    >>> round(bank.predict_one(10.0))
    19
    """

    only_kernel: ClassVar[type[Kernel]] = Linear
    forgetting: float = forgetting_field()
    ridge: float = check.number_field(0.01, above=0)
    forget: str = _forget_field()
    constant_forgetting: float | None = _constant_field()

    @property
    def late_price(self) -> float:
        return super().late_price if self.forgetting < 1 else 0.0

    def weight_count(self, kernel: Kernel, dimension: int) -> int:
        return active_width(kernel, dimension) + 1

"""Learners that are linear in features: f(x) = weights . phi(x).

Random features are drawn once for each slot, from the seed and the slot's identity. Recursive least
squares forget in one of three ways, see `FourierRLS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from typing import ClassVar

import numpy as np

from ..errors import InvalidArgument
from ..kernels import Linear
from ..kernels.base import CoreSpec, Kernel
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..kernels.random_features import FeatureMap, feature_counts, feature_map
from ..losses.base import Objective
from ..utils import validation as check
from .base import MOST, Learner, whole
from .norma import check_decay, step_size_rule

# --- random features --------------------------------------------------------------------------


class _RandomFeatures(Learner):
    """Subclasses have settings `features` (how many) and `seed`."""

    accepts_new_inputs: ClassVar[bool] = False
    features: int
    seed: int

    def check_kernel(self, kernel: Kernel) -> None:
        super().check_kernel(kernel)
        try:
            feature_counts(kernel, self.features, _accepted_width(kernel))
        except InvalidArgument as error:  # name this learner
            owner = type(self).__name__
            words = str(error).replace("'count' of feature_map", f"'features' of {owner}")
            raise InvalidArgument(words.replace("of feature_map", f"of {owner}")) from None

    def check_initial(self, objective: Objective, terms: int) -> None:
        """Any number of terms: weights = sum_j c_j phi(points_j)."""

    def feature_map(self, kernel: Kernel, dimension: int, identity: int) -> FeatureMap:
        """The features of a slot with that identity."""
        return _draw_features(kernel, self.features, dimension, self.seed, identity)

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, object]:
        phi = self.feature_map(kernels[0], dimension, identity)
        return super().core_settings(kernels, dimension, identity) | {
            "frequencies": phi.frequencies,
            "phases": phi.phases,
            "amplitudes": phi.amplitudes,
            "trigonometric": phi.trigonometric,
            "coordinates": np.array(phi.coordinates, dtype=float),
        }

    def core_kernels(self, kernels: Sequence[Kernel], dimension: int) -> list[CoreSpec]:
        return []  # the features take their place

    def described_numbers(self, kernel: Kernel, dimension: int) -> int:
        return 2 * self.features * (dimension + 4)


def _features_rule(name: str, value: object, owner: str) -> int:
    remedy = "Features come in pairs, a cosine and a sine: give an even number, such as 100."
    count = check.count(name, value, owner, remedy, least=2, most=MOST)
    if count % 2:
        raise check.refuse(name, "be even", count, remedy, owner)
    return count


_seed_rule = check.whole("Give a whole number; the same draws the same features.", least=0)


@lru_cache(maxsize=64)
def _draw_features(kernel: Kernel, count: int, dimension: int, seed: int, slot: int) -> FeatureMap:
    """The features of the slot with that identity. Equal banks draw the same ones."""
    return feature_map(kernel, count, dimension, np.random.default_rng([seed, slot]))


def _accepted_width(kernel: Kernel) -> int:
    """A number of coordinates that the kernel accepts."""
    for width in (1, 64, 4096):
        try:
            kernel.check_width(width, "dimension")
        except ValueError:
            continue
        return width
    return 2**20


@dataclass(frozen=True)
class FourierSGD(_RandomFeatures):
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

    def __post_init__(self) -> None:
        check.settings(
            self,
            features=_features_rule,
            learning_rate=check.positive(0.1),
            seed=_seed_rule,
            step_size=step_size_rule,
        )
        if self.restart is not None:
            remedy = "Give a number of samples, or None to learn on without end."
            check.settings(self, restart=whole(remedy))

    def check(self, objective: Objective) -> None:
        check_decay(self, objective)


# --- recursive least squares ------------------------------------------------------------------

_MAX_GROWTH = 5.0
"""The covariance may grow by exp(this) at most until every weight had a dummy observation."""


def _check_recursive(learner: FourierRLS | LinearRLS) -> None:
    """Check the settings that recursive least squares have in common."""
    check.settings(
        learner,
        forgetting=check.fraction(0.999, positive=True),
        ridge=check.positive(0.01),
        forget=check.one_of(("exponential", "prior", "random_walk")),
    )
    if learner.constant_forgetting is None:
        return
    check.settings(learner, constant_forgetting=check.fraction(0.9))
    if learner.forget != "prior" or learner.forgetting == 1:
        remedy = 'Use forget="prior" with forgetting below 1.'
        rule = "be given with forgetting to the prior only"
        value = learner.constant_forgetting
        raise check.refuse("constant_forgetting", rule, value, remedy, type(learner).__name__)


def _check_growth(learner: FourierRLS | LinearRLS, size: int) -> None:
    """Refuse to forget so fast that the covariance of `size` weights would overflow."""
    if learner.forget == "exponential" and -size * log(learner.forgetting) > _MAX_GROWTH:
        raise check.refuse(
            "forgetting",
            f"be >= {exp(-_MAX_GROWTH / size):.4g} for {size} features, if it is exponential",
            learner.forgetting,
            'Raise it, use fewer features, or forget="prior".',
            type(learner).__name__,
        )


@dataclass(frozen=True)
class FourierRLS(_RandomFeatures):
    """Bayesian linear regression on random features: a Gaussian process at a constant cost.

    With P = I / ridge at first and phi(x)'phi(t) close to k(x, t):

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

    For other losses: an online Newton step, with -l' / c for y - f(x) and 2 / c for the 1, with
    the curvature c of the loss as in `KRLS`. Only half of P is kept, and it is read and
    written once per sample. Cost per step: O(features^2 + features dimension); memory
    O(features^2 / 2 + features dimension).

    It works in double precision: phi(x)'phi(x) / ridge beyond about 1e12 leaves no correct digits,
    so scale inputs to the order of one.

    Parameters
    ----------
    features : number of features, even.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    ridge : positive number: the prior's precision.
    seed : whole number; the frequencies are drawn from it and from the slot's number:
        its index in the bank that it began in, counting on for slots that are added later.
    forget : "exponential", "prior" or "random_walk".
    constant_forgetting : with "prior", the forgetting of the constant feature (Linear kernels with
        an offset have one): 0.9, say, makes it follow the mean residual.

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, NeurIPS 2007;
    forgetting to the prior after Van Vaerenbergh et al. 2012 (see `KRLSTracker`).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FourierRLS(features=50))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """

    core_name: ClassVar[str] = "FourierRLS"
    second_order: ClassVar[bool] = True
    features: int = 100
    forgetting: float = 1.0
    ridge: float = 0.01
    seed: int = 0
    forget: str = "exponential"
    constant_forgetting: float | None = None

    def __post_init__(self) -> None:
        check.settings(self, features=_features_rule, seed=_seed_rule)
        _check_recursive(self)

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, object]:
        _check_growth(self, feature_counts(kernels[0], self.features, dimension)[1])
        return super().core_settings(kernels, dimension, identity)


@dataclass(frozen=True)
class LinearRLS(Learner):
    """Recursive least squares for the kernel Linear: the second-order learner of a line.

    With phi(x) = (x, sqrt(offset)), so that phi(x)'phi(t) = k(x, t), and P = I / ridge at first:

        u = P phi(x),  s = 1 + phi(x)'u,  weights <- weights + u (y - f(x)) / s,  P <- P - u u' / s,

    then forgetting, as for `FourierRLS`. For the logistic loss: an online Newton step. Cost per
    step: O(dimension^2); memory O(dimension^2). With ActiveDims(Linear(...), coordinates), the
    dimension is the number of these coordinates.

    It works in double precision: phi(x)'phi(x) / ridge beyond about 1e12 leaves no correct digits,
    so scale inputs to the order of one.

    Parameters
    ----------
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    ridge : positive number: the prior's precision.
    forget : "exponential", "prior" or "random_walk".
    constant_forgetting : with "prior", the forgetting of the constant feature (Linear kernels with
        an offset have one): 0.9, say, makes it follow the mean residual.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank([kb.kernels.Linear(1.0)], kb.learners.LinearRLS())
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 2 * n / 10 - 1)
    >>> round(bank.predict_one(10.0), 1)
    19.0
    """

    core_name: ClassVar[str] = "LinearRLS"
    second_order: ClassVar[bool] = True
    forgetting: float = 1.0
    ridge: float = 0.01
    forget: str = "exponential"
    constant_forgetting: float | None = None

    def __post_init__(self) -> None:
        _check_recursive(self)

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(without_active_dims(kernel), Linear):
            remedy = "Use kb.kernels.Linear(...), or kb.learners.FourierRLS for other kernels."
            rule = "be Linear for LinearRLS, or ActiveDims(Linear(...), coordinates)"
            raise check.refuse("kernel", rule, kernel, remedy)

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, object]:
        _check_growth(self, len(active_coordinates(kernels[0], dimension)) + 1)
        return super().core_settings(kernels, dimension, identity)


# --- landmarks --------------------------------------------------------------------------------


@dataclass(frozen=True)
class NystromSGD(Learner):
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

    def __post_init__(self) -> None:
        check.settings(
            self,
            landmarks=whole("Give how many landmarks to keep, 1 or more."),
            learning_rate=check.positive(0.1),
            novelty=check.fraction(0.001),
            step_size=step_size_rule,
        )

    def check(self, objective: Objective) -> None:
        check_decay(self, objective)

"""Losses for regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..utils import validation as check
from .base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """(f - y)^2.

    >>> Squared().value(3.0, 1.0), Squared().derivative(3.0, 1.0)
    (np.float64(4.0), np.float64(4.0))
    """

    core_name = "squared"
    curvature = 2.0


@dataclass(frozen=True)
class Absolute(Loss):
    """|f - y|; derivative 0 at f = y.

    >>> Absolute().value(3.0, 1.0), Absolute().derivative(1.0, 1.0)
    (np.float64(2.0), np.float64(0.0))
    """

    core_name = "absolute"


@dataclass(frozen=True)
class Huber(Loss):
    """With r = f - y: r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) beyond.

    Parameters
    ----------
    delta : positive number, in the units of the target: where the loss turns linear.

    >>> Huber(delta=1.0).value([0.5, 3.0], 0.0).tolist()
    [0.125, 2.5]
    """

    core_name = "huber"
    delta: float = 1.0
    curvature = 1.0

    def __post_init__(self) -> None:
        remedy = "Give a positive delta, in the units of the target."
        object.__setattr__(
            self, "delta", check.number("delta", self.delta, "Huber", remedy, above=0)
        )


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, |f - y| - epsilon); derivative 0 inside the tube and on its edge.

    Parameters
    ----------
    epsilon : number >= 0, in the units of the target: half the width of the tube.

    >>> EpsilonInsensitive(epsilon=0.5).value([0.25, 2.0], 0.0).tolist()
    [0.0, 1.5]
    """

    core_name = "epsilon_insensitive"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        remedy = "Give 0 or more, in the units of the target."
        epsilon = check.number("epsilon", self.epsilon, "EpsilonInsensitive", remedy, least=0)
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class Pinball(Loss):
    """With r = y - f: max(q r, (q - 1) r), q the quantile; derivative 0 at f = y.

    Its minimiser is the q-quantile of the target: two of them give an interval.

    Parameters
    ----------
    quantile : number between 0 and 1.

    >>> Pinball(quantile=0.75).value([0.0, 2.0], 1.0).tolist()
    [0.75, 0.25]
    """

    core_name = "pinball"
    quantile: float = 0.5

    def __post_init__(self) -> None:
        remedy = "Give a probability between 0 and 1, such as 0.9."
        quantile = check.number("quantile", self.quantile, "Pinball", remedy, above=0, below=1)
        object.__setattr__(self, "quantile", quantile)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y f)), y = -1 or +1.

    >>> Logistic().value(0.0, 1.0).round(4), Logistic().derivative(0.0, 1.0)
    (np.float64(0.6931), np.float64(-0.5))
    """

    core_name = "logistic"
    labels = True
    curvature = 0.25


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y f), y = -1 or +1; derivative 0 at margin 1.

    >>> Hinge().value([0.0, 2.0], 1.0).tolist()
    [1.0, 0.0]
    """

    core_name = "hinge"
    labels = True


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - y f)^2, y = -1 or +1.

    >>> SquaredHinge().value([-1.0, 2.0], 1.0).tolist()
    [4.0, 0.0]
    """

    core_name = "squared_hinge"
    labels = True
    curvature = 2.0


@dataclass(frozen=True)
class Poisson(Loss):
    """For counts y, with f the logarithm of their rate: e^f - y f, less its least value.

        l(f, y) = e^f - y f - (y - y log y),        half the deviance,

    and what a bank uses is its Moreau envelope, min over u of l(u, y) + (u - f)^2 / 2 smoothing:
    the same minimisers, but no curvature above 1 / smoothing. For rates well below 1 / smoothing
    it is nearly l. `np.exp` of a prediction is a rate.

    Parameters
    ----------
    smoothing : number >= 0; with 0 the loss is l itself, which has no bounded curvature.

    >>> Poisson(smoothing=0).value(0.0, [0.0, 1.0]).tolist()
    [1.0, 0.0]
    >>> Poisson().derivative(0.0, [0.0, 1.0, 100.0]).round(3).tolist()
    [0.913, 0.0, -40.808]
    """

    core_name = "poisson"
    smoothing: float = 0.1
    targets = (0.0, np.inf)

    def __post_init__(self) -> None:
        remedy = "Give a number such as 0.1, or 0 for the loss without bounded curvature."
        smoothing = check.number("smoothing", self.smoothing, "Poisson", remedy, least=0)
        object.__setattr__(self, "smoothing", smoothing)

    @property
    def curvature(self) -> float | None:  # type: ignore[override]
        """1 / smoothing; None for 0."""
        return 1 / self.smoothing if self.smoothing > 0 else None


@dataclass(frozen=True)
class PoissonRate(Loss):
    """For counts y, with f the rate itself: f - y log f for f > 0, infinite elsewhere.

        l(f, y) = f - y log f - (y - y log y)  for f > 0 (for y = 0: f, for f >= 0),

    and what a bank uses is its Moreau envelope, min over u of l(u, y) + (u - f)^2 / 2 smoothing,
    which is finite for all f. A prediction may be a little below 0: take 0 for it. Where the rate
    is not well above `smoothing`, counts above 0 pull less than with l, and predictions are too
    low: lower `smoothing`, or use `Poisson`. Second-order methods keep the large curvature of early
    samples near 0, and then learn slowly.

    Parameters
    ----------
    smoothing : positive number, in the units of the target.

    >>> PoissonRate().value([2.0, 0.0, -1.0], 0.0).round(3).tolist()
    [1.95, 0.0, 5.0]
    >>> PoissonRate().derivative([4.0, -1.0], 4.0).round(3).tolist()
    [0.0, -12.882]
    """

    core_name = "poisson_rate"
    smoothing: float = 0.1
    targets = (0.0, np.inf)

    def __post_init__(self) -> None:
        remedy = "Give a number such as 0.1, in the units of the target."
        smoothing = check.number("smoothing", self.smoothing, "PoissonRate", remedy, above=0)
        object.__setattr__(self, "smoothing", smoothing)

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """1 / smoothing."""
        return 1 / self.smoothing

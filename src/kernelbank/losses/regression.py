"""Losses for regression."""

from __future__ import annotations

from dataclasses import dataclass

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

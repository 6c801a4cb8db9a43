"""Losses for regression."""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from dataclasses import dataclass

from ..native.formulas import loss_formula
from ..native.simd import absolute, where_less
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

    @loss_formula
    def _value(f, y, p):
        return (f - y) * (f - y)

    @loss_formula
    def _derivative(f, y, p):
        return 2.0 * (f - y)


@dataclass(frozen=True)
class Absolute(Loss):
    """|f - y|; derivative 0 at f = y.

    >>> Absolute().value(3.0, 1.0), Absolute().derivative(1.0, 1.0)
    (np.float64(2.0), np.float64(0.0))
    """

    core_name = "absolute"

    @loss_formula
    def _value(f, y, p):
        return absolute(f - y)

    @loss_formula
    def _derivative(f, y, p):
        return where_less(f, y, -1.0, where_less(y, f, 1.0, 0.0))


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

    def parameter(self) -> float:
        return self.delta

    @loss_formula
    def _value(f, y, p):
        r = absolute(f - y)
        return where_less(p, r, p * (r - 0.5 * p), 0.5 * r * r)

    @loss_formula
    def _derivative(f, y, p):
        r = f - y
        return where_less(p, r, p, where_less(r, -p, -p, r))


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

    def parameter(self) -> float:
        return self.epsilon

    @loss_formula
    def _value(f, y, p):
        beyond = absolute(f - y) - p
        return where_less(beyond, 0.0, 0.0, beyond)

    @loss_formula
    def _derivative(f, y, p):
        r = f - y
        return where_less(p, r, 1.0, where_less(r, -p, -1.0, 0.0))


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

    def parameter(self) -> float:
        return self.quantile

    @loss_formula
    def _value(f, y, p):
        r = y - f
        return where_less(r, 0.0, (p - 1.0) * r, p * r)

    @loss_formula
    def _derivative(f, y, p):
        return where_less(f, y, -p, where_less(y, f, 1.0 - p, 0.0))

"""Losses for counts. Both are Moreau envelopes, because the losses themselves have no bounds.

The Poisson losses have no bounded curvature, and one of them is infinite outside f > 0. A gradient
step on such a loss may be of any length, and a slot would be out at its first infinite loss. So
a bank works with the *Moreau envelope* of the loss l, with m = `smoothing`:

    e(f, y) = min over u of  l(u, y) + (u - f)^2 / 2 m.

It is finite and convex for all f, has the same minimisers and the same least value as l, lies below
l by at most m l'(f)^2 / 2, and its curvature is at most 1 / m. With u the minimiser above (the
*proximal point* of f), its derivative is l'(u) = (f - u) / m. `kb.losses.Custom` does the same
for other losses.

Reference: Moreau, Proximite et dualite dans un espace hilbertien, Bulletin de la Societe
Mathematique de France 93 (1965).
"""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native.formulas import loss_formula
from ..native.jit import inline
from ..native.scalar_math import exp, log
from ..native.simd import four, lane, sqrt, where_less
from ..utils import validation as check
from .base import Loss

_STEPS = 8  # of Newton's method: six reach the last digit from the worst start


@inline
def _log_or_zero(x):
    """log x for x > 0, else 0: for x log x, which is 0 at 0."""
    return log(x) if x > 0.0 else 0.0


@inline
def _log_of_lanes(x):
    """`_log_or_zero` in each lane."""
    one, two = _log_or_zero(lane(x, 0)), _log_or_zero(lane(x, 1))
    return four(one, two, _log_or_zero(lane(x, 2)), _log_or_zero(lane(x, 3)))


@inline
def _proximal_log_rate(f, y, smoothing):
    """The u with e^u - y + (u - f) / smoothing = 0; f for smoothing 0.

    Newton's method for u + m e^u = s, s = f + m y, from a point above the solution: the left side
    grows and is convex, so all steps go down. If m e^s > e, that is log(z / m) with z = s + log m.
    """
    s = f + smoothing * y
    u = s
    if smoothing > 0.0:
        z = s + log(smoothing)
        if z > 1.0:
            u = log(z) - log(smoothing)
        for _ in range(_STEPS):
            w = smoothing * exp(u)
            u -= (u + w - s) / (1.0 + w)
    return u


@inline
def _log_rates(f, y, p):
    """`_proximal_log_rate` in each lane."""
    return four(
        _proximal_log_rate(lane(f, 0), lane(y, 0), p),
        _proximal_log_rate(lane(f, 1), lane(y, 1), p),
        _proximal_log_rate(lane(f, 2), lane(y, 2), p),
        _proximal_log_rate(lane(f, 3), lane(y, 3), p),
    )


@inline
def _exp_of_lanes(x):
    """e^x in each lane."""
    return four(exp(lane(x, 0)), exp(lane(x, 1)), exp(lane(x, 2)), exp(lane(x, 3)))


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

    def parameter(self) -> float:
        return self.smoothing

    @loss_formula
    def _value(f, y, p):
        u = _log_rates(f, y, p)
        slope = _exp_of_lanes(u) - y
        return (slope - y * (u - _log_of_lanes(y))) + 0.5 * p * slope * slope

    @loss_formula
    def _derivative(f, y, p):
        return _exp_of_lanes(_log_rates(f, y, p)) - y


@inline
def _target_over_rate(f, y, p):
    """q = y / u with the u > 0 that solves 1 - y / u + (u - f) / p = 0, without cancellation."""
    d = f - p
    root = sqrt(d * d + 4.0 * p * y)
    return where_less(0.0, d, 2.0 * y / (d + root), (root - d) / (2.0 * p))


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

    def parameter(self) -> float:
        return self.smoothing

    @loss_formula
    def _value(f, y, p):
        q = _target_over_rate(f, y, p)
        above = where_less(p, f, f - p, 0.0)  # u where y = 0
        u = where_less(0.0, y, y / q, above)
        return ((u - y) + y * _log_of_lanes(q)) + 0.5 * p * (1.0 - q) * (1.0 - q)

    @loss_formula
    def _derivative(f, y, p):
        return 1.0 - _target_over_rate(f, y, p)

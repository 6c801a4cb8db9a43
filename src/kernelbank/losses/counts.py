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

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..utils import validation as check
from .base import Loss


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

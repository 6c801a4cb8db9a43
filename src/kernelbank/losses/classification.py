"""Losses for classification, with labels -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Loss


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

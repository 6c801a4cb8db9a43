"""Losses for classification, with labels -1 and +1."""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native.formulas import loss_formula
from ..native.jit import inline
from ..native.simd import absolute, exp2_of_product, log1p_of_fraction, where_less
from .base import Loss

_LOG2E = 1 / np.log(2)


@inline
def _margin_exponential(f, y):
    """exp(-|y f|), which does not overflow."""
    return exp2_of_product(absolute(y * f), -_LOG2E)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y f)), y = -1 or +1.

    >>> Logistic().value(0.0, 1.0).round(4), Logistic().derivative(0.0, 1.0)
    (np.float64(0.6931), np.float64(-0.5))
    """

    core_name = "logistic"
    labels = True
    curvature = 0.25

    @loss_formula
    def _value(f, y, p):
        margin = y * f
        return where_less(margin, 0.0, -margin, 0.0 * margin) + log1p_of_fraction(
            _margin_exponential(f, y)
        )

    @loss_formula
    def _derivative(f, y, p):
        small = _margin_exponential(f, y)
        return -y * where_less(y * f, 0.0, 1.0, small) / (1.0 + small)


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y f), y = -1 or +1; derivative 0 at margin 1.

    >>> Hinge().value([0.0, 2.0], 1.0).tolist()
    [1.0, 0.0]
    """

    core_name = "hinge"
    labels = True

    @loss_formula
    def _value(f, y, p):
        missing = 1.0 - y * f
        return where_less(missing, 0.0, 0.0, missing)

    @loss_formula
    def _derivative(f, y, p):
        return where_less(y * f, 1.0, -y, 0.0)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - y f)^2, y = -1 or +1.

    >>> SquaredHinge().value([-1.0, 2.0], 1.0).tolist()
    [4.0, 0.0]
    """

    core_name = "squared_hinge"
    labels = True
    curvature = 2.0

    @loss_formula
    def _value(f, y, p):
        missing = 1.0 - y * f
        return where_less(missing, 0.0, 0.0, missing * missing)

    @loss_formula
    def _derivative(f, y, p):
        missing = 1.0 - y * f
        return where_less(0.0, missing, -2.0 * y * missing, 0.0)

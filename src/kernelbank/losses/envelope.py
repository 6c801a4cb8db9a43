"""The Moreau envelope of a loss from its derivative, for losses of users (see `counts`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..utils.validation import Floats

Function = Callable[[Any, Any], Any]

_HALVINGS = 64
_FARTHEST = 2.0**60


def envelope(
    value: Function, derivative: Function, smoothing: float, domain: tuple[float, float]
) -> tuple[Function, Function]:
    """Value and derivative of min over u in the domain of l(u, y) + (u - f)^2 / 2 smoothing.

    value, derivative : of the loss, called with predictions inside the domain only.
    """

    def envelope_value(f: Floats, y: Floats) -> Floats:
        u = _proximal_point(derivative, f, y, smoothing, domain)
        return np.asarray(value(u, y)) + (f - u) ** 2 / (2 * smoothing)

    def envelope_derivative(f: Floats, y: Floats) -> Floats:
        return (f - _proximal_point(derivative, f, y, smoothing, domain)) / smoothing

    return envelope_value, envelope_derivative


def _proximal_point(
    derivative: Function, f: Floats, y: Floats, smoothing: float, domain: tuple[float, float]
) -> Floats:
    """The u in the domain where h(u) = l'(u, y) + (u - f) / smoothing changes its sign.

    From any start inside the domain u lies between start and start - smoothing h(start), because l'
    does not decrease; then by bisection. An element's result does not depend on the others.
    """
    low, high = domain

    def h(u: Floats) -> Floats:
        return np.asarray(derivative(u, y)) + (u - f) / smoothing

    ends = inside(domain)
    start = np.clip(f, *ends)
    slope, width = h(start), 1.0
    while (far := np.isinf(slope)).any() and width < _FARTHEST:  # overflow: go downhill first
        start = np.where(far, np.clip(start - np.sign(slope) * width, *ends), start)
        slope, width = h(start), 2 * width
    other = np.clip(start - smoothing * slope, low, high)
    lower, upper = np.minimum(start, other), np.maximum(start, other)
    for _ in range(_HALVINGS):
        middle = 0.5 * lower + 0.5 * upper
        between = (lower < middle) & (middle < upper)
        if not between.any():
            break
        above = h(np.where(between, middle, start)) > 0  # an end may lie outside the domain
        upper = np.where(between & above, middle, upper)
        lower = np.where(between & ~above, middle, lower)
    return 0.5 * lower + 0.5 * upper


def inside(domain: tuple[float, float]) -> tuple[float, float]:
    """Ends a little inside an open interval."""
    low, high = domain
    if np.isfinite(low) and np.isfinite(high):
        part = 2.0**-10 * (high - low)
        return low + part, high - part
    return low + 2.0**-10, high - 2.0**-10

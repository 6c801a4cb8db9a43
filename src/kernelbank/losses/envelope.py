"""The Moreau envelope of a loss from its derivative, for losses of users (see `counts`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..utils.validation import Floats

Function = Callable[[Any, Any], Any]

_HALVINGS = 64


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

    An element's result does not depend on the others.
    """

    def h(u: Floats) -> Floats:
        return np.asarray(derivative(u, y)) + (u - f) / smoothing

    start = np.clip(f, *inside(domain))
    near, far = _bracket(h, start, smoothing, domain)
    for _ in range(_HALVINGS):
        middle = 0.5 * near + 0.5 * far
        between = (middle != near) & (middle != far)
        if not between.any():
            break
        value = h(np.where(between, middle, start))  # an end may lie outside the domain
        beyond = value * (far - near) >= 0
        far = np.where(between & beyond, middle, far)
        near = np.where(between & ~beyond, middle, near)
    return 0.5 * near + 0.5 * far


def _bracket(
    h: Callable[[Floats], Floats], start: Floats, smoothing: float, domain: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Points on both sides of the root of the increasing h, the first one nearer to start.

    The root lies between start and start - smoothing h(start), because l' does not decrease. This
    may be far away, or overflow: so it is approached by steps of 1, 2, 4, ...
    """
    value = h(start)
    direction = -np.sign(value)
    last = np.clip(start - smoothing * value, *domain)
    near, far = start.copy(), start.copy()
    going = direction != 0
    width = 1.0
    while going.any() and np.isfinite(width):
        step = start + direction * width
        past = direction * (step - last) >= 0
        asked = going & ~past
        crossed = direction * h(np.where(asked, step, start)) >= 0
        far = np.where(going, np.where(past, last, step), far)
        near = np.where(asked & ~crossed, step, near)
        going = asked & ~crossed
        width *= 2
    return near, far


def inside(domain: tuple[float, float]) -> tuple[float, float]:
    """Ends a little inside an open interval."""
    low, high = domain
    if np.isfinite(low) and np.isfinite(high):
        part = 2.0**-10 * (high - low)
        return low + part, high - part
    return low + 2.0**-10, high - 2.0**-10

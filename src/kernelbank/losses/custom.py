"""A user's own loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .. import _core
from ..io.specs import callable_field
from ..utils import validation as check
from ..utils.validation import Floats, UsersFunctions, elementwise, quiet
from .base import Loss

Function = Callable[[Floats, Floats], Any]


@dataclass(frozen=True)
class Custom(UsersFunctions, Loss):
    """A user's own convex loss, from NumPy functions of predictions and targets.

    With `smoothing` = m > 0 the bank works with the loss's Moreau envelope,

        e(f, y) = min over u in `domain` of  l(u, y) + (u - f)^2 / 2 m,

    which is finite for all f, has the minimisers of l and no curvature above 1 / m: for a loss that
    is infinite outside a domain, or has no bounded curvature (see `kb.losses.Poisson`). Then each
    call evaluates the derivative up to 65 times.

    Functions in C are faster: give their addresses, two ints. They are called for one prediction
    and one target as ``double value(double f, double y)``, from several threads, and must stay
    loaded. ``numba.cfunc(...).address`` is such an address, and ctypes makes one. It belongs to
    this process: a bank with it can be saved, but neither pickled nor run on Ray.

    Parameters
    ----------
    value_function : value(f, y) for arrays of equal shape, or the address of a C function.
    derivative_function : its derivative in f, likewise.
    curvature : a bound of the second derivative in f, or None if there is none; with smoothing it
        is 1 / smoothing.
    name : its name in a saved bank; `kb.load(path, components={name: loss})` restores it.
    smoothing : number >= 0; with 0 the loss is used as it is.
    domain : the ends of an interval; the functions are called for predictions inside it only.
        Needs smoothing.
    targets : the least and the largest target for which the loss is defined.

    >>> fourth = Custom(lambda f, y: (f - y) ** 4, lambda f, y: 4 * (f - y) ** 3, name="fourth")
    >>> fourth.value(3.0, 1.0)
    np.float64(16.0)
    >>> barrier = Custom(  # f - log f for f > 0, infinite elsewhere
    ...     lambda f, y: f - np.log(f), lambda f, y: 1 - 1 / f, domain=(0, np.inf), smoothing=0.5
    ... )
    >>> barrier.value([1.0, -10.0], 0.0).round(2).tolist()
    [1.0, 104.05]

    C functions, here two that ctypes makes of Python functions:

    >>> import ctypes as c
    >>> kind = c.CFUNCTYPE(c.c_double, c.c_double, c.c_double)
    >>> functions = kind(lambda f, y: (f - y) ** 4), kind(lambda f, y: 4 * (f - y) ** 3)
    >>> fourth = Custom(*(c.cast(f, c.c_void_p).value for f in functions), name="fourth")
    >>> fourth.value(3.0, 1.0), fourth.derivative(3.0, 1.0)
    (np.float64(16.0), np.float64(32.0))
    """

    value_function: Callable[[object, object], object] | int = field(
        repr=False, metadata=callable_field()
    )
    derivative_function: Callable[[object, object], object] | int = field(
        repr=False, metadata=callable_field()
    )
    curvature: float | None = None
    name: str = ""
    # Like the functions, these are given again when a bank is loaded.
    smoothing: float = field(default=0.0, metadata=callable_field())
    domain: tuple[float, float] = field(default=(-np.inf, np.inf), metadata=callable_field())
    targets: tuple[float, float] = field(default=(-np.inf, np.inf), metadata=callable_field())

    function_fields: ClassVar[tuple[str, ...]] = ("value_function", "derivative_function")

    def __post_init__(self) -> None:
        self.check_functions("Give a NumPy function of predictions and targets.")
        if self.curvature is not None:
            remedy = "Give a bound of the second derivative, or None."
            curvature = check.number("curvature", self.curvature, "Custom", remedy, least=0)
            object.__setattr__(self, "curvature", curvature)
        remedy = "Give a positive number, or 0 to use the loss as it is."
        smoothing = check.number("smoothing", self.smoothing, "Custom", remedy, least=0)
        object.__setattr__(self, "smoothing", smoothing)
        for argument in ("domain", "targets"):
            object.__setattr__(self, argument, _interval(argument, getattr(self, argument)))
        if self.domain != Loss.targets and smoothing == 0:
            remedy = "Give smoothing, such as 0.1: the loss is then finite outside the domain too."
            raise check.refuse("smoothing", "be > 0 with a domain", smoothing, remedy, "Custom")
        if smoothing > 0:
            if self.curvature not in (None, 1 / smoothing):
                remedy = "Leave curvature out: it is 1 / smoothing."
                rule = "be left out with smoothing"
                raise check.refuse("curvature", rule, self.curvature, remedy, "Custom")
            object.__setattr__(self, "curvature", 1 / smoothing)
        name = self.name or getattr(self.value_function, "__name__", "custom")
        if not isinstance(name, str):
            raise check.refuse("name", "be text", name, "Give a short name.", "Custom")
        object.__setattr__(self, "name", name)

    def core_spec(self) -> tuple[object, ...]:
        if not self.in_python:
            return self._in_c
        value, derivative = self._array_functions()
        return ("python", quiet(value), quiet(derivative), self.name, self.curvature or 0.0)

    @property
    def in_python(self) -> bool:
        return not self.in_c or self.smoothing > 0  # the envelope is computed in Python

    @property
    def _in_c(self) -> tuple[object, ...]:
        addresses = (self.value_function, self.derivative_function)
        return ("c_function", *addresses, self.curvature or 0.0)

    def _array_functions(self) -> tuple[Function, Function]:
        """Value and derivative as functions of arrays, of the envelope if there is smoothing."""
        value, derivative = self.value_function, self.derivative_function
        if not (callable(value) and callable(derivative)):
            value = partial(elementwise, _core.loss_values, self._in_c)
            derivative = partial(elementwise, _core.loss_derivatives, self._in_c)
        if self.smoothing > 0:
            return _envelope(value, derivative, self.smoothing, self.domain)
        return value, derivative


def _interval(argument: str, ends: Any) -> tuple[float, float]:
    """Two numbers, the first one smaller; they may be infinite."""
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        low = high = np.nan
    if not low < high:
        remedy = "Give its two ends, such as (0, np.inf)."
        raise check.refuse(argument, "be an interval", ends, remedy, "Custom")
    return low, high


# --- the Moreau envelope --------------------------------------------------------------------------

_HALVINGS = 64


def _envelope(
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

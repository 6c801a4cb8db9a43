"""A user's own loss."""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..io.specs import callable_field
from ..native.callbacks import Callback, callback_loss
from ..utils import validation as check
from .base import Loss
from .envelope import envelope


@dataclass(frozen=True)
class Custom(Loss):
    """A user's own convex loss, from NumPy functions of predictions and targets.

    With `smoothing` = m > 0 the bank works with the loss's Moreau envelope,

        e(f, y) = min over u in `domain` of  l(u, y) + (u - f)^2 / 2 m,

    which is finite for all f, has the minimisers of l and no curvature above 1 / m: for a loss that
    is infinite outside a domain, or has no bounded curvature (see `kb.losses.Poisson`). Then each
    call evaluates the derivative up to 65 times.

    Parameters
    ----------
    value_function : value(f, y) for arrays of equal shape.
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
    """

    value_function: Callable[[Any, Any], Any] = field(repr=False, metadata=callable_field())
    derivative_function: Callable[[Any, Any], Any] = field(repr=False, metadata=callable_field())
    curvature: float | None = None
    name: str = ""
    # Like the functions, these are given again when a bank is loaded.
    smoothing: float = field(default=0.0, metadata=callable_field())
    domain: tuple[float, float] = field(default=(-np.inf, np.inf), metadata=callable_field())
    targets: tuple[float, float] = field(default=(-np.inf, np.inf), metadata=callable_field())

    def __post_init__(self) -> None:
        remedy = "Give a NumPy function of predictions and targets."
        for argument in ("value_function", "derivative_function"):
            function = getattr(self, argument)
            if not callable(function):
                raise check.refuse(argument, "be callable", function, remedy, "Custom")
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

    @cached_property
    def callbacks(self) -> tuple[Callback, ...]:  # type: ignore[override]
        functions = (self.value_function, self.derivative_function)
        if self.smoothing > 0:
            functions = envelope(*functions, self.smoothing, self.domain)
        value, derivative = functions
        return callback_loss(value, self.name), callback_loss(derivative, self.name)

    @property
    def value_address(self) -> int:
        return self.callbacks[0].address

    @property
    def derivative_address(self) -> int:
        return self.callbacks[1].address


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

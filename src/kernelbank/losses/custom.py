"""A user's own loss."""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..io.specs import callable_field
from ..native.callbacks import Callback, callback_loss
from ..utils import validation as check
from .base import Loss


@dataclass(frozen=True)
class Custom(Loss):
    """A user's own convex loss, from NumPy functions of predictions and targets.

    Parameters
    ----------
    value_function : value(f, y) for arrays of equal shape.
    derivative_function : its derivative in f, likewise.
    curvature : a bound of the second derivative in f, or None if there is none.
    name : its name in a saved bank; `kb.load(path, components={name: loss})` restores it.

    >>> fourth = Custom(lambda f, y: (f - y) ** 4, lambda f, y: 4 * (f - y) ** 3, name="fourth")
    >>> fourth.value(3.0, 1.0)
    np.float64(16.0)
    """

    value_function: Callable[[Any, Any], Any] = field(repr=False, metadata=callable_field())
    derivative_function: Callable[[Any, Any], Any] = field(repr=False, metadata=callable_field())
    curvature: float | None = None
    name: str = ""

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
        name = self.name or getattr(self.value_function, "__name__", "custom")
        if not isinstance(name, str):
            raise check.refuse("name", "be text", name, "Give a short name.", "Custom")
        object.__setattr__(self, "name", name)

    @cached_property
    def callbacks(self) -> tuple[Callback, ...]:  # type: ignore[override]
        return (
            callback_loss(self.value_function, self.name),
            callback_loss(self.derivative_function, self.name),
        )

    @property
    def value_address(self) -> int:
        return self.callbacks[0].address

    @property
    def derivative_address(self) -> int:
        return self.callbacks[1].address

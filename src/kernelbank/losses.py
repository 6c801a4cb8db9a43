"""Convex losses of a prediction f and a target y: one value and one derivative each.

At a kink the derivative is the subgradient of smallest absolute value. `curvature` bounds the
second derivative in f, if there is a bound: it is what the largest stable step depends on.
"""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numba.extending import register_jitable

from . import _validate as check
from ._hot.formulas import Callback, callback_loss, compile_loss
from ._hot.lanes import (
    WIDTH,
    absolute,
    exp2_of_product,
    log1p_of_fraction,
    where_less,
)
from ._hot.score import apply_loss
from ._validate import Floats
from .specs import callable_field

_LOG2E = 1 / np.log(2)


@cache
def _compiled(formula: Callable[..., Any]) -> Any:
    return compile_loss(formula)


class Loss:
    """A convex loss. Subclasses state `_value(f, y, p)` and `_derivative(f, y, p)` in lanes."""

    _value: ClassVar[Callable[..., Any]]
    _derivative: ClassVar[Callable[..., Any]]
    labels: ClassVar[bool] = False
    """Whether targets must be -1 or +1."""

    curvature: float | None = None

    def parameter(self) -> float:
        """The number that the formulas take as p, if any."""
        return 0.0

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The user's Python functions inside this loss."""
        return ()

    @property
    def value_address(self) -> int:
        return int(_compiled(type(self)._value).address)

    @property
    def derivative_address(self) -> int:
        return int(_compiled(type(self)._derivative).address)

    @property
    def parameters(self) -> Floats:
        return np.array([self.parameter()])

    def value(self, f: Any, y: Any) -> Any:
        """The loss of predictions f for targets y, element by element."""
        return self._apply(self.value_address, f, y)

    def derivative(self, f: Any, y: Any) -> Any:
        """The derivative of the loss in f, element by element."""
        return self._apply(self.derivative_address, f, y)

    def _apply(self, address: int, f: Any, y: Any) -> Any:
        left, right = np.broadcast_arrays(np.asarray(f, float), np.asarray(y, float))
        rows = -(-left.size // WIDTH)
        padded = np.ones((2, rows, WIDTH))
        padded[0].flat[: left.size] = left.ravel()
        padded[1].flat[: left.size] = right.ravel()
        out = np.empty((rows, WIDTH))
        apply_loss(address, padded[0], padded[1], self.parameters, out)
        for callback in self.callbacks:
            callback.check()
        return out.ravel()[: left.size].reshape(left.shape)[()]

    def check_targets(self, y: Floats) -> None:
        """Refuse targets that the loss is not made for."""
        if self.labels and y.size and not np.isin(y, (-1.0, 1.0)).all():
            wrong = y[~np.isin(y, (-1.0, 1.0))][0]
            raise check.refuse(
                "y",
                f"be -1 or +1 for {self!r}",
                float(wrong),
                "Recode the labels, or use a loss for regression.",
            )


@register_jitable
def _margin_exponential(f, y):
    """exp(-|y f|), which never overflows."""
    return exp2_of_product(absolute(y * f), -_LOG2E)


@dataclass(frozen=True)
class Squared(Loss):
    """(f - y)^2.

    >>> Squared().value(3.0, 1.0), Squared().derivative(3.0, 1.0)
    (np.float64(4.0), np.float64(4.0))
    """

    curvature = 2.0

    @staticmethod
    def _value(f, y, p):
        return (f - y) * (f - y)

    @staticmethod
    def _derivative(f, y, p):
        return 2.0 * (f - y)


@dataclass(frozen=True)
class Absolute(Loss):
    """|f - y|; derivative 0 at f = y.

    >>> Absolute().value(3.0, 1.0), Absolute().derivative(1.0, 1.0)
    (np.float64(2.0), np.float64(0.0))
    """

    @staticmethod
    def _value(f, y, p):
        return absolute(f - y)

    @staticmethod
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

    delta: float = 1.0
    curvature = 1.0

    def __post_init__(self) -> None:
        remedy = "Give a positive delta, in the units of the target."
        object.__setattr__(
            self, "delta", check.number("delta", self.delta, "Huber", remedy, above=0)
        )

    def parameter(self) -> float:
        return self.delta

    @staticmethod
    def _value(f, y, p):
        r = absolute(f - y)
        return where_less(p, r, p * (r - 0.5 * p), 0.5 * r * r)

    @staticmethod
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

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        remedy = "Give 0 or more, in the units of the target."
        epsilon = check.number("epsilon", self.epsilon, "EpsilonInsensitive", remedy, least=0)
        object.__setattr__(self, "epsilon", epsilon)

    def parameter(self) -> float:
        return self.epsilon

    @staticmethod
    def _value(f, y, p):
        beyond = absolute(f - y) - p
        return where_less(beyond, 0.0, 0.0, beyond)

    @staticmethod
    def _derivative(f, y, p):
        r = f - y
        return where_less(p, r, 1.0, where_less(r, -p, -1.0, 0.0))


@dataclass(frozen=True)
class Pinball(Loss):
    """With r = y - f: max(q r, (q - 1) r), q the quantile; derivative 0 at f = y.

    Its minimiser is the q-quantile of the target, so that two of them make a band.

    Parameters
    ----------
    quantile : number between 0 and 1.

    >>> Pinball(quantile=0.75).value([0.0, 2.0], 1.0).tolist()
    [0.75, 0.25]
    """

    quantile: float = 0.5

    def __post_init__(self) -> None:
        remedy = "Give a probability between 0 and 1, such as 0.9."
        quantile = check.number("quantile", self.quantile, "Pinball", remedy, above=0, below=1)
        object.__setattr__(self, "quantile", quantile)

    def parameter(self) -> float:
        return self.quantile

    @staticmethod
    def _value(f, y, p):
        r = y - f
        return where_less(r, 0.0, (p - 1.0) * r, p * r)

    @staticmethod
    def _derivative(f, y, p):
        return where_less(f, y, -p, where_less(y, f, 1.0 - p, 0.0))


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y f)), y = -1 or +1.

    >>> Logistic().value(0.0, 1.0).round(4), Logistic().derivative(0.0, 1.0)
    (np.float64(0.6931), np.float64(-0.5))
    """

    labels = True
    curvature = 0.25

    @staticmethod
    def _value(f, y, p):
        margin = y * f
        return where_less(margin, 0.0, -margin, 0.0 * margin) + log1p_of_fraction(
            _margin_exponential(f, y)
        )

    @staticmethod
    def _derivative(f, y, p):
        small = _margin_exponential(f, y)
        return -y * where_less(y * f, 0.0, 1.0, small) / (1.0 + small)


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y f), y = -1 or +1; derivative 0 at margin 1.

    >>> Hinge().value([0.0, 2.0], 1.0).tolist()
    [1.0, 0.0]
    """

    labels = True

    @staticmethod
    def _value(f, y, p):
        short = 1.0 - y * f
        return where_less(short, 0.0, 0.0, short)

    @staticmethod
    def _derivative(f, y, p):
        return where_less(y * f, 1.0, -y, 0.0)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - y f)^2, y = -1 or +1.

    >>> SquaredHinge().value([-1.0, 2.0], 1.0).tolist()
    [4.0, 0.0]
    """

    labels = True
    curvature = 2.0

    @staticmethod
    def _value(f, y, p):
        short = 1.0 - y * f
        return where_less(short, 0.0, 0.0, short * short)

    @staticmethod
    def _derivative(f, y, p):
        short = 1.0 - y * f
        return where_less(0.0, short, -2.0 * y * short, 0.0)


@dataclass(frozen=True)
class Custom(Loss):
    """A user's own convex loss, from NumPy functions of predictions and targets.

    Parameters
    ----------
    value_function : value(f, y) for arrays of equal shape.
    derivative_function : its derivative in f, likewise.
    curvature : a bound of the second derivative in f, or None if there is none.
    name : what a saved bank calls it; `kb.load(path, components={name: loss})` gives it back.

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
            raise check.refuse("name", "be text", name, "Give a short word.", "Custom")
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


BUILT_IN: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
    "hinge": Hinge,
    "huber": Huber,
    "logistic": Logistic,
    "pinball": Pinball,
    "squared": Squared,
    "squared_hinge": SquaredHinge,
}
"""The losses by the names that `loss=` takes."""


def as_loss(loss: Any) -> Loss:
    """A loss from a loss or from its name."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in BUILT_IN:
        return BUILT_IN[loss]()
    raise check.refuse(
        "loss",
        f"be a loss or one of the names {sorted(BUILT_IN)}",
        loss,
        "Use a name, one of kb.losses, or kb.losses.Custom for your own.",
    )


__all__ = [
    "Absolute",
    "Custom",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "Squared",
    "SquaredHinge",
]

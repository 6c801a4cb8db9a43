"""Convex losses of a prediction f and a target y: one value and one derivative each.

At a kink the derivative is the subgradient of least absolute value. `curvature` is a bound of the
second derivative in f, if there is one: the largest stable step size depends on it. Losses for
counts are replaced by their Moreau envelopes, which are finite and have such a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from . import _core
from .io.specs import callable_field
from .utils import validation as check
from .utils.validation import Floats, UsersFunctions, built_in, elementwise, quiet

__all__ = [
    "Absolute",
    "Custom",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "Poisson",
    "Squared",
    "SquaredHinge",
]


class Loss(check.Settings):
    """A convex loss of a prediction f and a target y; `Custom` is for a user's own."""

    labels: ClassVar[bool] = False
    """Whether targets must be -1 or +1."""
    targets: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest target for which the loss is defined."""
    curvature: float | None = None
    """A bound of the second derivative in f; None if there is none."""

    def core_spec(self) -> tuple[object, ...]:
        """What the core makes the loss of: its name and its parameters."""
        return (self.core_name, tuple(map(float, self._values().values())))

    @property
    def in_python(self) -> bool:
        """Whether it calls functions of a user in Python."""
        return False

    def value(self, f: object, y: object) -> Any:
        """The loss of predictions f for targets y, element by element."""
        return elementwise(_core.loss_values, self.core_spec(), f, y)

    def derivative(self, f: object, y: object) -> Any:
        """The derivative of the loss in f, element by element."""
        return elementwise(_core.loss_derivatives, self.core_spec(), f, y)

    def check_targets(self, y: Floats) -> None:
        """Refuse targets for which the loss is not defined."""
        least, most = self.targets
        if self.labels:
            outside = y[~np.isin(y, (-1.0, 1.0))]
            rule = f"be -1 or +1 for {self!r}"
            remedy = "Recode the labels, or use a loss for regression."
        else:
            outside = y[(y < least) | (y > most)]
            rule = f"lie in [{least:g}, {most:g}] for {self!r}"
            remedy = 'Leave such rows out, or use a loss for all numbers, such as "squared".'
        if outside.size:
            raise check.refuse("y", rule, float(outside[0]), remedy)

    @property
    def any_target(self) -> bool:
        """Whether the loss is defined for all numbers as targets."""
        return not self.labels and self.targets == Loss.targets


@dataclass(frozen=True)
class Squared(Loss):
    """(f - y)^2.

    >>> Squared().value(3.0, 1.0), Squared().derivative(3.0, 1.0)
    (np.float64(4.0), np.float64(4.0))
    """

    core_name = "squared"
    curvature = 2.0


@dataclass(frozen=True)
class Absolute(Loss):
    """|f - y|; derivative 0 at f = y.

    >>> Absolute().value(3.0, 1.0), Absolute().derivative(1.0, 1.0)
    (np.float64(2.0), np.float64(0.0))
    """

    core_name = "absolute"


@dataclass(frozen=True)
class Huber(Loss):
    """With r = f - y: r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) beyond.

    Parameters
    ----------
    delta : positive number, in the units of the target: where the loss turns linear.

    >>> Huber(delta=1.0).value([0.5, 3.0], 0.0).tolist()
    [0.125, 2.5]
    """

    core_name = "huber"
    delta: float = check.number_field(1.0, above=0)
    curvature = 1.0


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, |f - y| - epsilon); derivative 0 inside the tube and on its edge.

    Parameters
    ----------
    epsilon : number >= 0, in the units of the target: half the width of the tube.

    >>> EpsilonInsensitive(epsilon=0.5).value([0.25, 2.0], 0.0).tolist()
    [0.0, 1.5]
    """

    core_name = "epsilon_insensitive"
    epsilon: float = check.number_field(0.1, least=0)


@dataclass(frozen=True)
class Pinball(Loss):
    """With r = y - f: max(q r, (q - 1) r), q the quantile; derivative 0 at f = y.

    Its minimiser is the q-quantile of the target: two of them give an interval.

    Parameters
    ----------
    quantile : number between 0 and 1.

    >>> Pinball(quantile=0.75).value([0.0, 2.0], 1.0).tolist()
    [0.75, 0.25]
    """

    core_name = "pinball"
    quantile: float = check.number_field(
        0.5, "Give a probability between 0 and 1, such as 0.9.", above=0, below=1
    )


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


@dataclass(frozen=True)
class Poisson(Loss):
    """For counts y, with f the logarithm of their rate: e^f - y f, less its least value.

        l(f, y) = e^f - y f - (y - y log y),        half the deviance,

    and what a bank uses is its Moreau envelope, min over u of l(u, y) + (u - f)^2 / 2 smoothing:
    the same minimisers, but no curvature above 1 / smoothing. `np.exp` of a prediction is a rate.

    Parameters
    ----------
    smoothing : number >= 0; with 0 the loss is l itself, which has no bounded curvature.

    >>> Poisson(smoothing=0).value(0.0, [0.0, 1.0]).tolist()
    [1.0, 0.0]
    >>> Poisson().derivative(0.0, [0.0, 1.0, 100.0]).round(3).tolist()
    [0.913, 0.0, -40.808]
    """

    core_name = "poisson"
    smoothing: float = check.number_field(0.1, least=0)
    targets = (0.0, np.inf)

    @property
    def curvature(self) -> float | None:  # type: ignore[override]
        """1 / smoothing; None for 0."""
        return 1 / self.smoothing if self.smoothing > 0 else None


@dataclass(frozen=True)
class Custom(UsersFunctions, Loss):
    """A user's own convex loss, finite for all predictions, from NumPy functions of f and y.

    Functions in C are faster: give their addresses, two ints. They are called for one prediction
    and one target as ``double value(double f, double y)``, with the rules of `kb.kernels.Custom`.

    Parameters
    ----------
    value_function : value(f, y) for arrays of equal shape, or the address of a C function.
    derivative_function : its derivative in f, likewise.
    curvature : a bound of the second derivative in f, or None if there is none.
    name : its name in a saved bank; `kb.load(path, components={name: loss})` restores it.

    >>> fourth = Custom(lambda f, y: (f - y) ** 4, lambda f, y: 4 * (f - y) ** 3, name="fourth")
    >>> fourth.value(3.0, 1.0), fourth.derivative(3.0, 1.0)
    (np.float64(16.0), np.float64(32.0))
    """

    value_function: Callable[[Floats, Floats], Any] | int = field(
        repr=False, metadata=callable_field()
    )
    derivative_function: Callable[[Floats, Floats], Any] | int = field(
        repr=False, metadata=callable_field()
    )
    curvature: float | None = check.number_field(
        None, "Give a bound of the second derivative, or None.", least=0
    )
    name: str = ""

    function_fields: ClassVar[tuple[str, ...]] = ("value_function", "derivative_function")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_functions("Give a NumPy function of predictions and targets.")

    def core_spec(self) -> tuple[object, ...]:
        value, derivative, bound = self.value_function, self.derivative_function, self.curvature
        if callable(value) and callable(derivative):
            return ("python", quiet(value), quiet(derivative), self.name, bound or 0.0)
        return ("c_function", value, derivative, bound or 0.0)


BUILT_IN: dict[str, type[Loss]] = {kind.core_name: kind for kind in built_in(__all__, globals())}
"""The losses by their names, as `loss=` accepts them."""


def as_loss(loss: object) -> Loss:
    """A loss from a loss or from its name."""
    remedy = "Use a name, one of kb.losses, or kb.losses.Custom for your own."
    return check.by_name("loss", loss, Loss, BUILT_IN, remedy)


@dataclass(frozen=True)
class Objective:
    """What the slots of a bank minimise: losses on a window plus regularization / 2 * norm^2."""

    loss: Loss
    window: int
    regularization: float

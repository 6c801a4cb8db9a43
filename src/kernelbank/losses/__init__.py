"""Convex losses of a prediction f and a target y: one value and one derivative each.

At a kink the derivative is the subgradient of least absolute value. `curvature` is a bound of the
second derivative in f, if there is one: the largest stable step size depends on it. A loss that is
infinite outside a domain, or has no bounded curvature, is replaced by its Moreau envelope, which is
finite and has one (`counts`).
"""

from ..utils import validation as check
from .base import Loss
from .custom import Custom
from .elementary import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    Poisson,
    PoissonRate,
    Squared,
    SquaredHinge,
)

BUILT_IN: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
    "hinge": Hinge,
    "huber": Huber,
    "logistic": Logistic,
    "pinball": Pinball,
    "poisson": Poisson,
    "poisson_rate": PoissonRate,
    "squared": Squared,
    "squared_hinge": SquaredHinge,
}
"""The losses by their names, as `loss=` accepts them."""


def as_loss(loss: object) -> Loss:
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
    "Poisson",
    "PoissonRate",
    "Squared",
    "SquaredHinge",
]

"""What a loss is: a value and its derivative in the prediction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .. import _core
from ..utils import validation as check
from ..utils.validation import Floats, elementwise


class Loss:
    """A convex loss of a prediction f and a target y.

    The core has the formulas of value and derivative under the loss's `core_name`; `Custom` is for
    a user's own. At a kink the derivative is the subgradient of least absolute value.
    """

    core_name: ClassVar[str]
    """Its name in the core, and in `loss=`."""

    labels: ClassVar[bool] = False
    """Whether targets must be -1 or +1."""

    targets: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest target for which the loss is defined."""

    curvature: float | None = None
    """A bound of the second derivative in f; None if there is none."""

    def core_spec(self) -> tuple[object, ...]:
        """What the core makes the loss of: its name and its parameters."""
        parameters = tuple(float(getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        return (self.core_name, parameters)

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
        if self.labels and y.size and not np.isin(y, (-1.0, 1.0)).all():
            wrong = y[~np.isin(y, (-1.0, 1.0))][0]
            raise check.refuse(
                "y",
                f"be -1 or +1 for {self!r}",
                float(wrong),
                "Recode the labels, or use a loss for regression.",
            )
        least, most = self.targets
        outside = y[(y < least) | (y > most)]
        if outside.size:
            raise check.refuse(
                "y",
                f"lie in [{least:g}, {most:g}] for {self!r}",
                float(outside[0]),
                'Leave such rows out, or use a loss for all numbers, such as "squared".',
            )

    @property
    def any_target(self) -> bool:
        """Whether the loss is defined for all numbers as targets."""
        return not self.labels and self.targets == Loss.targets


@dataclass(frozen=True)
class Objective:
    """What the slots of a bank minimise: losses on a window plus regularization / 2 * norm^2."""

    loss: Loss
    window: int
    regularization: float

    @property
    def half_regularization(self) -> float:
        return 0.5 * self.regularization

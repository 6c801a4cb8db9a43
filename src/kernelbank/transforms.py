"""Transforms of the target: a slot with one learns T(y), and predicts the inverse of T.

Where effects multiply, or errors grow with the level (counts, concentrations, prices), a function
of the logarithm is simpler than a function of the target itself. The bank still judges the slot by
its predictions of y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _core
from .utils import validation as check
from .utils.validation import elementwise

__all__ = ["ShiftedLog"]

_REMEDY = "Give the distance from 0 to the pole, such as 2.0, or -2.0 for skew to the left."


@dataclass(frozen=True)
class ShiftedLog(check.Settings):
    """T(y) = shift log(1 + y / shift), with slopes between 1/8 and 8.

    T(0) = 0 and T'(0) = 1. With r = 1 + y / shift the slope is 1 / r: beyond r = 1/8 and r = 8, T
    goes on as a straight line, so it is defined for all numbers, and no prediction explodes.

    Parameters
    ----------
    shift : a number other than 0, in the units of the target: how far below 0 the pole of the
        logarithm is. For targets that are skewed to the right, in standard units, about 1 to 4. For
        those skewed to the left, the negative of such a number: then the pole is above 0. The
        larger it is, the straighter is T.

    >>> log = ShiftedLog(2.0)
    >>> log.forward([-1.0, 0.0, 1.0, 6.0]).round(3).tolist()
    [-1.386, 0.0, 0.811, 2.773]
    >>> log.inverse(log.forward([-1.0, 100.0])).round(9).tolist()
    [-1.0, 100.0]
    """

    shift: float = check.number_field(2.0, _REMEDY)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1e-9 <= abs(self.shift) <= 1e9:
            rule = "lie between 1e-9 and 1e9, or between their negatives"
            raise self._refuse("shift", rule, _REMEDY)

    def core_spec(self) -> tuple[object, ...]:
        """What the core makes the transform of: its name and its parameter."""
        return (self.core_name, self.shift)

    def forward(self, y: object) -> Any:
        """T(y), element by element; NaN stays NaN."""
        return elementwise(_core.transform_forward, self.core_spec(), y)

    def inverse(self, u: object) -> Any:
        """The y with T(y) = u, element by element."""
        return elementwise(_core.transform_inverse, self.core_spec(), u)

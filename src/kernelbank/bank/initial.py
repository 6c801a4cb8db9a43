"""An initial function of the user's: f_p = sum_j c_jp k_p(points_j, .) before the first sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..learners.base import Learner, SlotGroup
from ..utils import validation as check
from ..utils.validation import Floats

_REMEDY = "Give (points, coefficients): arrays of shape (m, d), and (m,) or (m, P)."


@dataclass(frozen=True, eq=False)
class InitialFunction:
    """Where the slots of a bank start, if not at 0."""

    points: Floats
    """(m, d)."""
    coefficients: Floats
    """(m, P)."""

    @classmethod
    def checked(cls, given: Any, slots: int) -> InitialFunction | None:
        """From the argument of `KernelBank`; None for none."""
        if given is None:
            return None
        if not (isinstance(given, (tuple, list)) and len(given) == 2):
            raise check.refuse("initial", "be points and coefficients", given, _REMEDY)
        points = check.samples(given[0], None).copy()
        coefficients = check.floats("initial", given[1], _REMEDY)
        if coefficients.shape not in ((len(points),), (len(points), slots)):
            rule = f"have coefficients of shape {(len(points),)} or {(len(points), slots)}"
            raise check.refuse("initial", rule, coefficients.shape, _REMEDY)
        if coefficients.ndim == 1:
            coefficients = np.repeat(coefficients[:, None], slots, axis=1)
        check.within_range("initial", coefficients)
        return cls(points, coefficients.copy())

    def start(self, learner: Learner, group: SlotGroup) -> None:
        """Let the slots of a group, whose arrays are at their start, begin with this function."""
        columns = np.maximum(group.columns, 0)  # (leaves, 4); empty lanes are not read
        coefficients = np.moveaxis(self.coefficients[:, columns], 0, 1)
        used = group.columns >= 0
        learner.start_from(group, self.points, np.where(used[:, None, :], coefficients, 0.0))

    def with_columns(self, dimension: int) -> InitialFunction:
        """The same on inputs with more columns, which are 0."""
        more = dimension - self.points.shape[1]
        return InitialFunction(np.pad(self.points, ((0, 0), (0, more))), self.coefficients)

    def argument(self) -> tuple[Floats, Floats]:
        """What `checked` takes."""
        return self.points, self.coefficients

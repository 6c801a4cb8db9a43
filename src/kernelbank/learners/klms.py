"""KLMS: kernel least mean squares."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..native.arguments import floats
from ..native.dense import dot
from ..native.functions import native
from ..native.jit import inline
from ..utils import validation as check
from .centres import (
    CENTRES,
    CentresBase,
    append_centre,
    copy_centre,
    norm_from_centres,
    remove_centre,
    values_at_centres,
)
from .feature_learner import Shapes
from .feature_steps import DROP_EFFECT, PREDICTION, SELF_KERNEL, SLOPE, SQUARED_NORM, size_of
from .step_size import FIRST_ORDER, FirstOrder, next_rate, step_size_rule

ARGUMENTS = CENTRES.extended(
    "klms",
    **FIRST_ORDER,
    dropped=floats("leaves"),  # norm^2 of all dropped terms
    centre=floats("dimension"),  # scratch: a centre c,
    row=floats("capacity"),  # and k(c, c_j)
)


@inline
def _drop_effect(a, leaf, number, old):
    """How far the oldest term moves the values on the window, relative to the largest of them."""
    moved = 0.0
    largest = 0.0
    for age in range(min(number + 1, a.window)):
        row = a.window_features[leaf, (number - age) % a.window]
        if age == 0:
            row = a.point_features
        moved = max(moved, abs(old * row[0]))
        largest = max(largest, abs(dot(a.coefficients[leaf], row, a.capacity)))
    return moved / largest if moved > 0.0 else 0.0


@dataclass(frozen=True)
class KLMS(FirstOrder, CentresBase):
    """Kernel least mean squares: one gradient step and one term per sample.

        f <- f - learning_rate * l'(f(x), y) k(x, .)

    and beyond `budget` terms the oldest is dropped. With the squared loss (f - y)^2 the slope is
    2 (f - y): the textbook's step size is twice this one. Cost per step: 2 budget kernel values and
    O(budget + window) products; memory O(budget (dimension + window)) numbers. norm^2 follows by
    recursion and is computed again every 256 samples.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Liu, Pokharel and Principe, The kernel least-mean-square algorithm, IEEE Transactions
    on Signal Processing 56 (2008).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KLMS(learning_rate=0.1))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.2
    """

    core_name: ClassVar[str] = "KLMS"
    learning_rate: float = 0.1
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            budget=check.whole("Give how many terms to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "dropped": ()}

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """Append the term -rate l' k(x, .); beyond the budget drop the oldest."""
        sample, c, row = a.sample, a.centre, a.row
        slope = sample[SLOPE]
        new = -next_rate(a, leaf, number + 1, slope * slope * sample[SELF_KERNEL]) * slope
        # |f + new k(x, .)|^2 = |f|^2 + 2 new f(x) + new^2 k(x, x)
        norm = (
            sample[SQUARED_NORM] + 2.0 * new * sample[PREDICTION] + new * new * sample[SELF_KERNEL]
        )
        append_centre(a, leaf, new)
        if size_of(a, leaf) == a.capacity:
            alpha = a.coefficients[leaf]
            old = alpha[0]
            copy_centre(a, leaf, 0, c)
            values_at_centres(a, leaf, c, row)
            # |f - old k(c, .)|^2 = |f|^2 - 2 old f(c) + old^2 k(c, c)
            lost = old * old * row[0]
            norm += lost - 2.0 * old * dot(alpha, row, a.capacity)
            a.dropped[leaf] += lost
            sample[DROP_EFFECT] = _drop_effect(a, leaf, number, old)
            remove_centre(a, leaf, 0)
        if (number + 1) % a.slide_period == 0:
            norm = norm_from_centres(a, leaf, c, row)
        sample[SQUARED_NORM] = max(norm, 0.0)

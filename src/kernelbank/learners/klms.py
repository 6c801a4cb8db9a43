"""KLMS: kernel least mean squares."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

from ..native.dense import dot
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .centres import FIELDS as CENTRES_FIELDS
from .centres import (
    CentresBase,
    append_centre,
    centres_of,
    copy_centre,
    kernel_values,
    norm_from_centres,
    remove_centre,
)
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of, window_features_of

FIELDS = argument_fields(*CENTRES_FIELDS._fields, "learning_rate", "dropped")


@inline
def _drop_effect(args, leaf, number, old):
    """How far the oldest term moves the values on the window, relative to the largest of them."""
    capacity = read_int(args, FIELDS.capacity)
    window = read_int(args, FIELDS.window)
    rows = window_features_of(args, leaf)  # (window, capacity)
    moved = 0.0
    largest = 0.0
    for age in range(min(number + 1, window)):
        row = pointer(rows, (number - age) % window * capacity)
        if age == 0:
            row = float_array(args, FIELDS.point_features)
        moved = max(moved, abs(old * row[0]))
        largest = max(largest, abs(dot(coefficients_of(args, leaf), row, capacity)))
    return moved / largest if moved > 0.0 else 0.0


@dataclass(frozen=True)
class KLMS(CentresBase):
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

    Reference: Liu, Pokharel and Principe, The kernel least-mean-square algorithm, IEEE Transactions
    on Signal Processing 56 (2008).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KLMS(learning_rate=0.1))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.2
    """

    learning_rate: float = 0.1
    budget: int = 100
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            budget=check.whole("Give how many terms to keep, 1 or more."),
        )

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "dropped": ()}

    def work_size(self, capacity: int, dimension: int) -> int:
        return capacity + dimension

    @staticmethod
    def step(args, leaf, number):
        """Append the term -learning_rate l' k(x, .); beyond the budget drop the oldest."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        work = float_array(args, FIELDS.work)
        new = -read_float(args, FIELDS.learning_rate) * sample[SAMPLE.slope]
        # |f + new k(x, .)|^2 = |f|^2 + 2 new f(x) + new^2 k(x, x)
        norm = (
            sample[SAMPLE.squared_norm]
            + 2.0 * new * sample[SAMPLE.prediction]
            + new * new * sample[SAMPLE.self_kernel]
        )
        append_centre(args, leaf, new)
        if size_of(args, leaf) == capacity:
            old = coefficients_of(args, leaf)[0]
            oldest = pointer(work, capacity)
            copy_centre(args, leaf, 0, oldest)
            kernel_values(args, leaf, oldest, centres_of(args, leaf), capacity, capacity, work)
            # |f - old k(c, .)|^2 = |f|^2 - 2 old f(c) + old^2 k(c, c); row of c in `work`
            lost = old * old * work[0]
            norm += lost - 2.0 * old * dot(coefficients_of(args, leaf), work, capacity)
            float_array(args, FIELDS.dropped)[leaf] += lost
            sample[SAMPLE.drop_effect] = _drop_effect(args, leaf, number, old)
            remove_centre(args, leaf, 0)
        if (number + 1) % read_int(args, FIELDS.slide_period) == 0:
            norm = norm_from_centres(args, leaf, work)
        sample[SAMPLE.squared_norm] = max(norm, 0.0)

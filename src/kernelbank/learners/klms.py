"""KLMS: kernel least mean squares."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import float_array, read_float, read_int
from .centres import CentresBase, places
from .centres_steps import append, centre, centres_of, kernel_values, norm_by_definition, remove
from .feature_learner import Shapes
from .feature_steps import (
    EFFECT,
    NORM,
    PREDICTION,
    SELF,
    SINGLE,
    SLOPE,
    coefficients_of,
    dot,
    size_of,
)

KLMS_ARGUMENTS = places("learning_rate", "dropped")


@inline
def _effect(args, leaf, number, old):
    """How far the oldest term moves the values on the window, relative to the largest of them."""
    capacity = read_int(args, SINGLE.capacity)
    window = read_int(args, SINGLE.window)
    shown = pointer(float_array(args, SINGLE.shown), leaf * window * capacity)
    moved = 0.0
    largest = 0.0
    for age in range(min(number + 1, window)):
        row = pointer(shown, (number - age) % window * capacity)
        if age == 0:
            row = float_array(args, SINGLE.now)
        moved = max(moved, abs(old * row[0]))
        largest = max(largest, abs(dot(coefficients_of(args, leaf), row, capacity)))
    return moved / largest if moved > 0.0 else 0.0


def klms(args, leaf, number):
    """f <- f - rate * slope * k(x, .), then drop the oldest term beyond the budget."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    work = float_array(args, SINGLE.work)
    new = -read_float(args, KLMS_ARGUMENTS.learning_rate) * sample[SLOPE]
    norm = sample[NORM] + 2.0 * new * sample[PREDICTION] + new * new * sample[SELF]
    append(args, leaf, new)
    if size_of(args, leaf) == capacity:
        old = coefficients_of(args, leaf)[0]
        point = pointer(work, capacity)
        centre(args, leaf, 0, point)
        kernel_values(args, leaf, point, centres_of(args, leaf), capacity, capacity, work)
        lost = old * old * work[0]
        norm += lost - 2.0 * old * dot(coefficients_of(args, leaf), work, capacity)
        float_array(args, KLMS_ARGUMENTS.dropped)[leaf] += lost
        sample[EFFECT] = _effect(args, leaf, number, old)
        remove(args, leaf, 0)
    if (number + 1) % read_int(args, SINGLE.slide_period) == 0:
        norm = norm_by_definition(args, leaf, work)
    sample[NORM] = max(norm, 0.0)


@dataclass(frozen=True)
class KLMS(CentresBase):
    """Kernel least mean squares: one gradient step a sample, a term for every sample.

        f <- f - learning_rate * l'(f(x), y) k(x, .)

    and beyond `budget` terms the oldest is dropped. With the squared loss (f - y)^2 the slope is
    2 (f - y): the textbook's step size is twice this one. Cost per step: 2 budget kernel values and
    O(budget + window) products; memory O(budget (dimension + window)) numbers. norm^2 follows by
    recursion and is computed anew every 256 samples.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : most terms of the expansion.

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
    places = KLMS_ARGUMENTS
    step = klms
    cost: ClassVar[str] = "O(budget dimension)"

    def __post_init__(self) -> None:
        self._positive("learning_rate", 0.1)
        self._count("budget", "how many terms to keep")

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().own_shapes(capacity, dimension), "dropped": ()}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {"learning_rate": self.learning_rate}

    def work(self, capacity: int, dimension: int) -> int:
        return capacity + dimension

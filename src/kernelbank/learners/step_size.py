"""Step sizes of first-order learners: constant, decaying, or adapted to the gradients.

With g_t the gradient of the loss at sample t = 1, 2, ..., in the space of the functions (for a
gradient on the window, of the window's loss):

    constant        rate_t = learning_rate
    inverse_sqrt    rate_t = learning_rate / sqrt(t)
    adagrad         rate_t = learning_rate / sqrt(|g_1|^2 + ... + |g_t|^2), per slot

The last one needs no knowledge of the scale of the loss: its learning_rate is the length of the
first step, in the norm of the space. There rate * regularization is kept at 1/2 or below, so that
the factor 1 - rate * regularization of f is never below 1/2 whatever the gradients are.

References: Zinkevich, Online convex programming and generalized infinitesimal gradient ascent, ICML
2003; Streeter and McMahan, Less regret via online conditioning, 2010, and Ward, Wu and Bottou,
AdaGrad stepsizes, JMLR 2020 (one rate for all coordinates).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.jit import inline
from ..native.simd import broadcast, lane, sqrt, where_less
from ..utils import validation as check
from .base import SlotGroup, check_decay
from .feature_learner import FeatureLearner, Shapes

STEP_SIZES = ("constant", "inverse_sqrt", "adagrad")
CONSTANT, INVERSE_SQRT, ADAGRAD = range(3)
"""The rules by number, for compiled code."""

FIRST_ORDER: dict[str, Any] = {
    "learning_rate": float,
    "step_rule": int,
    "largest_rate": float,
    "regularization": float,
    "squares": floats("leaves"),  # adagrad: sum of |g|^2
}
"""What the compiled step of a `FirstOrder` learner declares."""

step_size_rule = check.one_of(STEP_SIZES)
"""The check of the setting `step_size`."""


def largest_rate(step_size: str, regularization: float) -> float:
    """The bound of the rate; only adagrad can reach it."""
    adapted = step_size == "adagrad" and regularization > 0
    return 0.5 / regularization if adapted else np.inf


@inline
def step_size(rule, learning_rate, largest, number, squares):
    """rate_t of the sample t = `number` >= 1, in lanes; squares: lanes, |g_1|^2 + ... + |g_t|^2."""
    if rule == CONSTANT:
        return broadcast(learning_rate)
    if rule == INVERSE_SQRT:
        return broadcast(learning_rate) / sqrt(broadcast(float(number)))
    rate = broadcast(learning_rate) / sqrt(squares)
    rate = where_less(rate, largest, rate, broadcast(largest))
    return where_less(0.0, squares, rate, broadcast(0.0))  # no gradient so far: no step


@inline
def next_rate(a, leaf, number, squared_gradient):
    """The rate of the sample t = `number` >= 1 of a slot whose gradient has this |g|^2."""
    if a.step_rule == ADAGRAD:
        a.squares[leaf] += squared_gradient
    squares = broadcast(a.squares[leaf])
    return lane(step_size(a.step_rule, a.learning_rate, a.largest_rate, number, squares), 0)


class FirstOrder(FeatureLearner):
    """A learner whose step has a rate. Subclasses have settings `learning_rate` and `step_size`.

    Their compiled steps declare FIRST_ORDER and take the rate from `next_rate`.
    """

    learning_rate: float
    step_size: str
    decays: ClassVar[bool] = False
    """Whether f is multiplied by 1 - rate * regularization in every step."""

    def check(self, objective: Objective) -> None:
        super().check(objective)
        if self.decays and self.step_size != "adagrad":
            check_decay(self, objective)

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"squares": ()} if self.step_size == "adagrad" else {}
        return {**super().state_shapes(capacity, dimension), **own}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        regularization = group.objective.regularization if self.decays else 0.0
        return {
            **super().step_arguments(group, dimension),
            "step_rule": STEP_SIZES.index(self.step_size),
            "largest_rate": largest_rate(self.step_size, regularization),
            "regularization": regularization,
            "squares": group.state.get("squares", np.zeros(group.leaves)),
        }

"""POLK: functional gradient descent, compressed by kernel orthogonal matching pursuit."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..losses.objective import Objective
from ..native.dense import least
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from .feature_learner import Shapes
from .feature_steps import NORM, SELF, SINGLE, SLOPE, coefficients_of, size_of
from .gram import GramBase
from .gram_steps import (
    INVERSE,
    append_both,
    inverse_of,
    norm_by_gram,
    refresh_inverse,
    remove_both,
    solve_now,
)

POLK_ARGUMENTS = argument_fields(*INVERSE._fields, "learning_rate", "keep", "most_error", "dropped")
_DEPENDENT = 1e-6  # of k(x, x): less is not worth a centre, and would spoil the inverse


def polk(args, leaf, number):
    """A gradient step, then destroy centres while the function stays within the compression."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    solved = float_array(args, SINGLE.work)
    errors = pointer(solved, capacity)
    factor = pointer(errors, capacity)
    coefficients = coefficients_of(args, leaf)
    size = size_of(args, leaf)
    change = -read_float(args, POLK_ARGUMENTS.learning_rate) * sample[SLOPE]
    rest = solve_now(args, leaf, solved)
    for m in range(size):
        coefficients[m] *= read_float(args, POLK_ARGUMENTS.keep)
    if rest > _DEPENDENT * sample[SELF]:
        append_both(args, leaf, change, solved, rest)
    else:
        for m in range(size):
            coefficients[m] += change * solved[m]

    inverse = inverse_of(args, leaf)
    spent = 0.0
    while size_of(args, leaf) > 0:
        size = size_of(args, leaf)
        for m in range(size):
            errors[m] = coefficients[m] * coefficients[m] / inverse[m * capacity + m]
        j = least(errors, size)
        within = spent + errors[j] <= read_float(args, POLK_ARGUMENTS.most_error)
        if size < capacity and not (size > 1 and within):
            break
        spent += errors[j]
        share = coefficients[j] / inverse[j * capacity + j]
        for m in range(size):
            coefficients[m] -= share * inverse[m * capacity + j]
        remove_both(args, leaf, j, errors)
    float_array(args, POLK_ARGUMENTS.dropped)[leaf] += spent
    refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))
    sample[NORM] = norm_by_gram(args, leaf, solved)


@dataclass(frozen=True)
class POLK(GramBase):
    """Parsimonious online learning with kernels: a gradient step, then compression.

        g <- (1 - learning_rate * regularization) f - learning_rate * l'(f(x), y) k(x, .)
        f <- the projection of g on as few of its centres as keep |f - g| <= compression

    by kernel orthogonal matching pursuit: the centre whose removal costs least,
    alpha_j^2 / (K^-1)_jj, goes first. Beyond `budget` centres it goes whatever it costs. Cost per
    step: budget kernel values and O(budget^2) products for each centre that goes, usually one;
    memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    compression : how far, in the norm of the RKHS, a step's result may be moved.
    budget : most centres.

    Reference: Koppel, Warnell, Stump and Ribeiro, Parsimonious online learning with kernels via
    sparse projections in function space, Journal of Machine Learning Research 20 (2019).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.POLK(learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    learning_rate: float = 0.1
    compression: float = 0.01
    budget: int = 100
    places = POLK_ARGUMENTS
    step = polk
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._positive("learning_rate", 0.1)
        self._at_least("compression", 0, 0.01)
        self._count("budget", "how many centres to keep")

    def check(self, objective: Objective) -> None:
        self._check_decay(objective)

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().own_shapes(capacity, dimension), "dropped": ()}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {
            "learning_rate": self.learning_rate,
            "keep": 1.0 - self.learning_rate * objective.regularization,
            "most_error": self.compression * self.compression,
        }

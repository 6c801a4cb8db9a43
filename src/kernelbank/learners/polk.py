"""POLK: functional gradient descent, compressed by kernel orthogonal matching pursuit."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..losses.objective import Objective
from ..native.dense import argmin
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .base import SlotGroup, check_decay
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of
from .gram import (
    DEPENDENT,
    INVERSE_FIELDS,
    InverseBase,
    append_to_both,
    inverse_of,
    norm_from_gram,
    project_point,
    refresh_inverse,
    remove_from_both,
)

FIELDS = argument_fields(*INVERSE_FIELDS._fields, "learning_rate", "decay", "max_error", "dropped")


@dataclass(frozen=True)
class POLK(InverseBase):
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
    budget : largest number of centres.

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
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            compression=check.at_least(0, 0.01),
            budget=check.whole("Give how many centres to keep, 1 or more."),
        )

    def check(self, objective: Objective) -> None:
        check_decay(self, objective)

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "dropped": ()}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "decay": 1.0 - self.learning_rate * group.objective.regularization,
            "max_error": self.compression * self.compression,
        }

    @staticmethod
    def step(args, leaf, number):
        """A gradient step, then remove centres while f stays within the compression."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        solved = float_array(args, FIELDS.work)
        errors = pointer(solved, capacity)
        factor = pointer(errors, capacity)
        coefficients = coefficients_of(args, leaf)
        size = size_of(args, leaf)
        change = -read_float(args, FIELDS.learning_rate) * sample[SAMPLE.slope]
        rest = project_point(args, leaf, solved)
        # g = decay f - learning_rate l' k(x, .), or with k(x, .) projected if it is not new.
        for m in range(size):
            coefficients[m] *= read_float(args, FIELDS.decay)
        if rest > DEPENDENT * sample[SAMPLE.self_kernel]:
            append_to_both(args, leaf, change, solved, rest)
        else:
            for m in range(size):
                coefficients[m] += change * solved[m]

        # Removing centre j and projecting on the others costs alpha_j^2 / (K^-1)_jj of norm^2.
        inverse = inverse_of(args, leaf)
        spent = 0.0
        while size_of(args, leaf) > 0:
            size = size_of(args, leaf)
            for m in range(size):
                errors[m] = coefficients[m] * coefficients[m] / inverse[m * capacity + m]
            j = argmin(errors, size)
            within = spent + errors[j] <= read_float(args, FIELDS.max_error)
            if size < capacity and not (size > 1 and within):
                break
            spent += errors[j]
            share = coefficients[j] / inverse[j * capacity + j]
            for m in range(size):
                coefficients[m] -= share * inverse[m * capacity + j]
            remove_from_both(args, leaf, j, errors)
        float_array(args, FIELDS.dropped)[leaf] += spent
        refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))
        sample[SAMPLE.squared_norm] = norm_from_gram(args, leaf, solved)

"""POLK: functional gradient descent, compressed by kernel orthogonal matching pursuit."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..native.arguments import floats
from ..native.dense import argmin
from ..native.functions import native
from ..utils import validation as check
from .base import SlotGroup
from .feature_learner import Shapes
from .feature_steps import SELF_KERNEL, SLOPE, SQUARED_NORM, size_of
from .gram import (
    DEPENDENT,
    INVERSE,
    InverseBase,
    append_to_both,
    norm_from_gram,
    project_point,
    refresh_inverse,
    remove_from_both,
)
from .step_size import FIRST_ORDER, FirstOrder, next_rate, step_size_rule

ARGUMENTS = INVERSE.extended(
    "polk",
    **FIRST_ORDER,
    max_error=float,  # compression^2
    dropped=floats("leaves"),  # norm^2 that all removals have cost
    errors=floats("capacity"),  # scratch: what removing each centre costs
)


@dataclass(frozen=True)
class POLK(FirstOrder, InverseBase):
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
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Koppel, Warnell, Stump and Ribeiro, Parsimonious online learning with kernels via
    sparse projections in function space, Journal of Machine Learning Research 20 (2019).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.POLK(learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "POLK"
    learning_rate: float = 0.1
    compression: float = 0.01
    budget: int = 100
    step_size: str = "constant"
    decays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            compression=check.at_least(0, 0.01),
            budget=check.whole("Give how many centres to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "dropped": ()}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "max_error": self.compression * self.compression,
        }

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """A gradient step, then remove centres while f stays within the compression."""
        alpha, inverse, errors = a.coefficients[leaf], a.inverse[leaf], a.errors
        size = size_of(a, leaf)
        slope = a.sample[SLOPE]
        rate = next_rate(a, leaf, number + 1, slope * slope * a.sample[SELF_KERNEL])
        decay, change = 1.0 - rate * a.regularization, -rate * slope
        rest = project_point(a, leaf)
        # g = decay f - rate l' k(x, .), or with k(x, .) projected if it is not new.
        for m in range(size):
            alpha[m] *= decay
        if rest > DEPENDENT * a.sample[SELF_KERNEL]:
            append_to_both(a, leaf, change, rest)
        else:
            for m in range(size):
                alpha[m] += change * a.solved[m]

        # Removing centre j and projecting on the others costs alpha_j^2 / (K^-1)_jj of norm^2.
        spent = 0.0
        while size_of(a, leaf) > 0:
            size = size_of(a, leaf)
            for m in range(size):
                errors[m] = alpha[m] * alpha[m] / inverse[m, m]
            j = argmin(errors, size)
            within = spent + errors[j] <= a.max_error
            if size < a.capacity and not (size > 1 and within):
                break
            spent += errors[j]
            share = alpha[j] / inverse[j, j]
            for m in range(size):
                alpha[m] -= share * inverse[m, j]
            remove_from_both(a, leaf, j)
        a.dropped[leaf] += spent
        refresh_inverse(a, leaf, number)
        a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)

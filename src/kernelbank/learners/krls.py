"""KRLS: kernel recursive least squares by approximate linear dependence."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..losses.objective import Objective
from ..native.dense import add_outer, border, dot, matrix_times
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from .feature_learner import Shapes
from .feature_steps import ERROR, NORM, SELF, SINGLE, WEIGHT, coefficients_of, size_of
from .gram import GramBase
from .gram_steps import (
    INVERSE,
    JITTER,
    append_both,
    inverse_of,
    norm_by_gram,
    refresh_inverse,
    solve_now,
)

KRLS_ARGUMENTS = argument_fields(*INVERSE._fields, "covariance", "novelty")


def krls(args, leaf, number):
    """Engel's two cases: x is new, and joins; or it is not, and the least squares move."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    solved = float_array(args, SINGLE.work)
    moved = pointer(solved, capacity)
    gain = pointer(moved, capacity)
    factor = pointer(gain, 2 * capacity)
    covariance = pointer(float_array(args, KRLS_ARGUMENTS.covariance), leaf * capacity * capacity)
    coefficients = coefficients_of(args, leaf)
    size = size_of(args, leaf)
    error = sample[ERROR]
    rest = solve_now(args, leaf, solved)
    if rest > read_float(args, KRLS_ARGUMENTS.novelty) * sample[SELF] and size < capacity - 1:
        change = error / (rest + JITTER * sample[SELF])
        for m in range(size):
            coefficients[m] -= solved[m] * change
            moved[m] = 0.0
        border(covariance, capacity, size, moved, 1.0 / sample[WEIGHT])
        append_both(args, leaf, change, solved, rest)
    else:
        matrix_times(covariance, capacity, solved, size, moved)
        spread = 1.0 / sample[WEIGHT] + dot(solved, moved, size)
        add_outer(covariance, capacity, moved, size, -1.0 / spread)
        matrix_times(inverse_of(args, leaf), capacity, moved, size, gain)
        for m in range(size):
            coefficients[m] += gain[m] * (error / spread)
    refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))
    sample[NORM] = norm_by_gram(args, leaf, moved)


@dataclass(frozen=True)
class KRLS(GramBase):
    """Kernel recursive least squares: the least-squares fit of all samples on a sparse dictionary.

    With a = K^-1 k(x, centres), delta = k(x, x) - k' a and the error e = y - f(x): x joins if
    delta > novelty * k(x, x), and

        alpha <- (alpha - a e / delta, e / delta),    P <- diag(P, 1);

    otherwise, with q = P a / (1 + a' P a),

        alpha <- alpha + K^-1 q e,    P <- P - q a' P.

    For the logistic loss e is the Newton step -l' / c and the 1 is 2 / c, where
    c = tanh(f / 2) / 2 f bounds the curvature of the loss from above. Cost per step: budget kernel
    values and O(budget^2) products; memory O(budget^2).

    It has no ridge: a new centre takes its sample at its word, so with noisy labels and the
    logistic loss `KRLSTracker` does better. The diagonal of K is raised by 1e-8 of itself, so that
    it can be inverted.

    Parameters
    ----------
    novelty : an input joins if more than this share of k(x, x) is new; from 0 to 1.
    budget : most centres; then nothing joins any more.

    Reference: Engel, Mannor and Meir, The kernel recursive least-squares algorithm, IEEE
    Transactions on Signal Processing 52 (2004).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KRLS(novelty=0.001))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 2)
    1.0
    """

    novelty: float = 0.001
    budget: int = 100
    second_order = True
    places = KRLS_ARGUMENTS
    step = krls
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._share("novelty", 0.001)
        self._count("budget", "how many centres to keep")

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().own_shapes(capacity, dimension), "covariance": (capacity, capacity)}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {"novelty": self.novelty}

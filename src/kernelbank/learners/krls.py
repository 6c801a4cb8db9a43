"""KRLS: kernel recursive least squares by approximate linear dependence."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

from ..native.dense import add_outer, append_row_column, dot, symmetric_matvec
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of
from .gram import (
    INVERSE_FIELDS,
    JITTER,
    InverseBase,
    append_to_both,
    inverse_of,
    norm_from_gram,
    project_point,
    refresh_inverse,
)

FIELDS = argument_fields(*INVERSE_FIELDS._fields, "covariance", "novelty")


@dataclass(frozen=True)
class KRLS(InverseBase):
    """Kernel recursive least squares: the least-squares fit of all samples on a sparse dictionary.

    With a = K^-1 k(x, centres), delta = k(x, x) - k' a and the error e = y - f(x): x becomes a
    centre if delta > novelty * k(x, x), and

        alpha <- (alpha - a e / delta, e / delta),    P <- diag(P, 1);

    otherwise, with q = P a / (1 + a' P a),

        alpha <- alpha + K^-1 q e,    P <- P - q a' P.

    For the logistic loss e is the Newton step -l' / c and the 1 is 2 / c, where
    c = tanh(f / 2) / 2 f bounds the curvature of the loss from above. Cost per step: budget kernel
    values and O(budget^2) products; memory O(budget^2).

    It has no ridge: a new centre fits its sample exactly, so with noisy labels and the logistic
    loss `KRLSTracker` does better. The diagonal of K is raised by 1e-8 of itself, so that
    it can be inverted.

    Parameters
    ----------
    novelty : an input becomes a centre if more than this fraction of k(x, x) is new; from 0 to 1.
    budget : largest number of centres; once it is reached, no input becomes a centre.

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
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            novelty=check.fraction(0.001),
            budget=check.whole("Give how many centres to keep, 1 or more."),
        )

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "covariance": (capacity, capacity)}

    @staticmethod
    def step(args, leaf, number):
        """x becomes a centre if it is new; otherwise the least squares move."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        a = float_array(args, FIELDS.work)  # K^-1 k(x, centres)
        pa = pointer(a, capacity)  # P a
        gain = pointer(pa, capacity)
        factor = pointer(gain, 2 * capacity)
        covariance = pointer(float_array(args, FIELDS.covariance), leaf * capacity * capacity)
        coefficients = coefficients_of(args, leaf)
        size = size_of(args, leaf)
        error = sample[SAMPLE.error]
        self_kernel = sample[SAMPLE.self_kernel]
        delta = project_point(args, leaf, a)
        if delta > read_float(args, FIELDS.novelty) * self_kernel and size < capacity - 1:
            # alpha <- (alpha - a e / delta, e / delta), P <- diag(P, 1 / weight)
            change = error / (delta + JITTER * self_kernel)
            for m in range(size):
                coefficients[m] -= a[m] * change
                pa[m] = 0.0
            append_row_column(covariance, capacity, size, pa, 1.0 / sample[SAMPLE.weight])
            append_to_both(args, leaf, change, a, delta)
        else:
            # s = 1 / weight + a' P a, P -= P a a' P / s, alpha += K^-1 P a e / s
            symmetric_matvec(covariance, capacity, a, size, pa)
            s = 1.0 / sample[SAMPLE.weight] + dot(a, pa, size)
            add_outer(covariance, capacity, pa, size, -1.0 / s)
            symmetric_matvec(inverse_of(args, leaf), capacity, pa, size, gain)
            for m in range(size):
                coefficients[m] += gain[m] * (error / s)
        refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))
        sample[SAMPLE.squared_norm] = norm_from_gram(args, leaf, pa)

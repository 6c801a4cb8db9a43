"""KRLS: kernel recursive least squares by approximate linear dependence."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..native.arguments import floats
from ..native.dense import add_outer, append_row_column, dot, symmetric_matvec
from ..native.functions import native
from ..utils import validation as check
from .feature_learner import Shapes
from .feature_steps import ERROR, SELF_KERNEL, SQUARED_NORM, WEIGHT, size_of
from .gram import (
    INVERSE,
    JITTER,
    InverseBase,
    append_to_both,
    norm_from_gram,
    project_point,
    refresh_inverse,
)

ARGUMENTS = INVERSE.extended(
    "krls",
    covariance=floats("leaves", "capacity", "capacity"),  # P
    novelty=float,
    p_d=floats("capacity"),  # scratch: P d,
    gain=floats("capacity"),  # and K^-1 P d
)


@dataclass(frozen=True)
class KRLS(InverseBase):
    """Kernel recursive least squares: the least-squares fit of all samples on a sparse dictionary.

    With d = K^-1 k(x, centres), delta = k(x, x) - k' d and the error e = y - f(x): x becomes a
    centre if delta > novelty * k(x, x), and

        alpha <- (alpha - d e / delta, e / delta),    P <- diag(P, 1);

    otherwise, with q = P d / (1 + d' P d),

        alpha <- alpha + K^-1 q e,    P <- P - q d' P.

    For other losses e is the step -l' / c and the 1 is 2 / c. For the logistic loss
    c = tanh(f / 2) / 2 f, which bounds its curvature from above. Else c is the loss's `curvature`,
    divided by 4, up to eight times, as long as the step leaves at least half of l'. Cost per
    step: budget kernel values and O(budget^2) products; memory O(budget^2).

    It has no ridge: a new centre fits its sample exactly, so with noisy labels and the logistic
    loss `KRLSTracker` does better.

    Parameters
    ----------
    novelty : an input becomes a centre if more than this fraction of k(x, x) is new; from 0 to 1.
    budget : largest number of centres; once it is reached, no input becomes a centre.
    jitter : part of itself by which the diagonal of K is raised, so that K can be inverted; from 0
        to 1. kafbox and the paper have 0.

    Reference: Engel, Mannor and Meir, The kernel recursive least-squares algorithm, IEEE
    Transactions on Signal Processing 52 (2004).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KRLS(novelty=0.001))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 2)
    1.0
    """

    core_name: ClassVar[str] = "KRLS"
    novelty: float = 0.001
    budget: int = 100
    jitter: float = JITTER
    second_order = True

    def __post_init__(self) -> None:
        check.settings(
            self,
            novelty=check.fraction(0.001),
            budget=check.whole("Give how many centres to keep, 1 or more."),
            jitter=check.fraction(1e-8),
        )

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "covariance": (capacity, capacity)}

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """x becomes a centre if it is new; otherwise the least squares move."""
        alpha, covariance = a.coefficients[leaf], a.covariance[leaf]
        d, p_d, gain = a.solved, a.p_d, a.gain
        size = size_of(a, leaf)
        error, self_kernel = a.sample[ERROR], a.sample[SELF_KERNEL]
        delta = project_point(a, leaf)
        if delta > a.novelty * self_kernel and size < a.capacity - 1:
            # alpha <- (alpha - d e / delta, e / delta), P <- diag(P, 1 / weight)
            change = error / (delta + a.jitter * self_kernel)
            for m in range(size):
                alpha[m] -= d[m] * change
                p_d[m] = 0.0
            append_row_column(covariance, size, p_d, 1.0 / a.sample[WEIGHT])
            append_to_both(a, leaf, change, delta)
        else:
            # s = 1 / weight + d' P d, P -= P d d' P / s, alpha += K^-1 P d e / s
            symmetric_matvec(covariance, d, size, p_d)
            s = 1.0 / a.sample[WEIGHT] + dot(d, p_d, size)
            add_outer(covariance, p_d, size, -1.0 / s)
            symmetric_matvec(a.inverse[leaf], p_d, size, gain)
            for m in range(size):
                alpha[m] += gain[m] * (error / s)
        refresh_inverse(a, leaf, number)
        a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)

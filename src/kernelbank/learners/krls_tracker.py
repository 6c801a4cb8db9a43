"""KRLSTracker: a Gaussian process on a budget that forgets back to its prior."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.program import evaluate
from ..native.arguments import floats
from ..native.dense import (
    add_outer,
    append_row_column,
    argmin,
    delete_element,
    delete_row_column,
    dot,
    symmetric_matvec,
)
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import Shapes
from .feature_steps import RESPONSE, SELF_KERNEL, SQUARED_NORM, WEIGHT, size_of
from .gram import (
    DEPENDENT,
    INVERSE,
    JITTER,
    InverseBase,
    append_to_both,
    norm_from_gram,
    project_point,
    refresh_inverse,
    remove_from_both,
)

ARGUMENTS = INVERSE.extended(
    "krls_tracker",
    covariance=floats("leaves", "capacity", "capacity"),  # S
    mean=floats("leaves", "capacity"),  # m
    forgetting=float,
    forget_first=int,
    noise=float,
    p=floats("capacity"),  # scratch: covariance of f(centres) and f(x),
    errors=floats("capacity"),  # and how far removing each centre moves the mean
)


@inline
def _forget(a, leaf, size):
    """Back to the prior: S <- r S + (1 - r) K, m <- sqrt(r) m."""
    r = a.forgetting
    if r < 1.0:
        for i in range(size):
            row, prior = a.covariance[leaf, i], a.gram[leaf, i]
            for m in range(size):
                row[m] = r * row[m] + (1.0 - r) * prior[m]
            row[i] += (1.0 - r) * a.jitter * prior[i]
        for m in range(size):
            a.mean[leaf, m] *= np.sqrt(r)


@dataclass(frozen=True)
class KRLSTracker(InverseBase):
    """The kernel recursive least-squares tracker: a Gaussian process on `budget` centres.

    It keeps the posterior mean m and covariance S of f at the centres. With q = K^-1 k(x, centres),
    gamma = k(x, x) - k' q, h = S q and s = noise + gamma + q' h, a new sample changes them by

        m <- (m, q'm) + p (y - q'm) / s,    p = (h, gamma + q'h),
        S <- (S h; h' gamma + q'h) - p p' / s;

    beyond the budget the centre whose removal moves the mean least is removed. Then it forgets
    towards the prior, with r = forgetting: S <- r S + (1 - r) K, m <- sqrt(r) m. For other
    losses: a step to f - l' / c with noise 2 noise / c, with the curvature
    c of the loss as in `KRLS`. The predictive variance is
    given by `bank.predict_variance_slots`. Cost per step: budget kernel values and O(budget^2)
    products; memory O(budget^2).

    Parameters
    ----------
    budget : largest number of centres.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    noise : variance of the targets' noise.
    forget_when : "after" a sample is learned, so that f, with its sqrt(r), predicts the next one;
        or "before" a sample is learned, when it has been predicted: the order of kafbox, in which
        the last forgetting has no part in a prediction.
    jitter : part of itself by which the diagonal of K is raised, so that K can be inverted; from 0
        to 1. kafbox has 1e-6, for kernels with k(x, x) = 1.

    Reference: Van Vaerenbergh, Lazaro-Gredilla and Santamaria, Kernel recursive least-squares
    tracker for time-varying regression, IEEE Transactions on Neural Networks and Learning Systems
    23 (2012).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KRLSTracker(budget=30))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """

    core_name: ClassVar[str] = "KRLSTracker"
    budget: int = 50
    forgetting: float = 1.0
    noise: float = 0.01
    forget_when: str = "after"
    jitter: float = JITTER
    second_order = True

    def __post_init__(self) -> None:
        check.settings(
            self,
            budget=check.whole("Give how many centres to keep, 1 or more."),
            forgetting=check.fraction(0.999, positive=True),
            noise=check.positive(0.01),
            jitter=check.fraction(1e-8),
        )
        check.choice("forget_when", self.forget_when, "KRLSTracker", ("after", "before"))

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"covariance": (capacity, capacity), "mean": (capacity,)}
        return {**super().state_shapes(capacity, dimension), **own}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        before = int(self.forget_when == "before")
        return {**super().step_arguments(group, dimension), "forget_first": before}

    def variance(self, group: SlotGroup, seen: int, points: Floats) -> Floats:
        """(k(x, x) - k' K^-1 k + k' K^-1 S K^-1 k) / noise: of f, in units of the noise."""
        out = np.full((group.leaves, len(points), WIDTH), np.nan)
        for leaf in range(group.leaves):
            kernel = group.kernels[leaf][0]
            size = int(group.state["size"][leaf])
            centres = np.ascontiguousarray(group.state["centres"][leaf][:, :size].T)
            inverse = group.state["inverse"][leaf][:size, :size]
            covariance = group.state["covariance"][leaf][:size, :size]
            variance = _self_kernels(kernel, points)
            if size > 0:
                rows = evaluate(kernel, points, centres)
                solved = rows @ inverse
                variance = variance - (rows * solved).sum(axis=1)
                variance = variance + ((solved @ covariance) * solved).sum(axis=1)
            out[leaf, :, 0] = np.maximum(variance, 0.0) / self.noise
        return out

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """The posterior of f at the centres after the sample, then forgetting."""
        covariance, mean, inverse = a.covariance[leaf], a.mean[leaf], a.inverse[leaf]
        q, p, errors = a.solved, a.p, a.errors
        self_kernel = a.sample[SELF_KERNEL]
        size = size_of(a, leaf)
        # Prior of f(x): mean q'm, variance gamma + q'h with h = S q.
        gamma = project_point(a, leaf)
        if a.forget_first != 0:
            _forget(a, leaf, size)
        symmetric_matvec(covariance, q, size, p)
        along = dot(q, p, size)
        predicted = dot(q, mean, size)
        variance = gamma + a.jitter * self_kernel + along
        s = variance + a.noise / a.sample[WEIGHT]
        gain = (a.sample[RESPONSE] - predicted) / s
        if gamma > max(DEPENDENT, 2.0 * a.jitter) * self_kernel:
            append_row_column(covariance, size, p, variance)
            p[size] = variance
            mean[size] = predicted
            append_to_both(a, leaf, 0.0, gamma)
            size += 1
        # Condition on the sample: S -= p p' / s, m += p (y - q'm) / s.
        add_outer(covariance, p, size, -1.0 / s)
        for m in range(size):
            mean[m] += gain * p[m]
        if size == a.capacity:  # remove the centre whose removal moves the mean least
            symmetric_matvec(inverse, mean, size, errors)
            for m in range(size):
                errors[m] = abs(errors[m] / inverse[m, m])
            j = argmin(errors, size)
            delete_element(mean, size, j)
            delete_row_column(covariance, size, j)
            remove_from_both(a, leaf, j)
            size -= 1
        if a.forget_first == 0:
            _forget(a, leaf, size)
        refresh_inverse(a, leaf, number)
        symmetric_matvec(inverse, mean, size, a.coefficients[leaf])  # alpha = K^-1 m
        a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)


def _self_kernels(kernel: Kernel, points: Floats) -> Floats:
    """(n,): k(x, x) of every point, a few at a time."""
    parts = [points[start : start + 16] for start in range(0, len(points), 16)]
    return np.concatenate([np.diag(evaluate(kernel, part, part)) for part in parts])

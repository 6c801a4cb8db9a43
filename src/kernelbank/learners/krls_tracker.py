"""KRLSTracker: a Gaussian process on a budget that forgets back to its prior."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.base import Kernel
from ..kernels.program import evaluate
from ..native.dense import (
    add_outer,
    append_row_column,
    argmin,
    delete_element,
    delete_row_column,
    dot,
    symmetric_matvec,
)
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of
from .gram import (
    DEPENDENT,
    INVERSE_FIELDS,
    JITTER,
    InverseBase,
    append_to_both,
    gram_of,
    inverse_of,
    norm_from_gram,
    project_point,
    refresh_inverse,
    remove_from_both,
)

FIELDS = argument_fields(*INVERSE_FIELDS._fields, "covariance", "mean", "forgetting", "noise")


@dataclass(frozen=True)
class KRLSTracker(InverseBase):
    """The kernel recursive least-squares tracker: a Gaussian process on `budget` centres.

    It keeps the posterior mean m and covariance S of f at the centres. With q = K^-1 k(x, centres),
    gamma = k(x, x) - k' q, h = S q and s = noise + gamma + q' h, a new sample changes them by

        m <- (m, q'm) + p (y - q'm) / s,    p = (h, gamma + q'h),
        S <- (S h; h' gamma + q'h) - p p' / s;

    beyond the budget the centre whose removal moves the mean least is removed. Then it forgets
    towards the prior, with r = forgetting: S <- r S + (1 - r) K, m <- sqrt(r) m. For the logistic
    loss: a Newton step, with noise 2 noise / c, c = tanh(f / 2) / 2 f. The predictive variance is
    given by `bank.predict_variance_slots`. Cost per step: budget kernel values and O(budget^2)
    products; memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    budget : largest number of centres.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    noise : variance of the targets' noise.

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

    budget: int = 50
    forgetting: float = 1.0
    noise: float = 0.01
    second_order = True
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            budget=check.whole("Give how many centres to keep, 1 or more."),
            forgetting=check.fraction(0.999, positive=True),
            noise=check.positive(0.01),
        )

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"covariance": (capacity, capacity), "mean": (capacity,)}
        return {**super().state_shapes(capacity, dimension), **own}

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        """k(x, x) - k' K^-1 k + k' K^-1 S K^-1 k: of f, without the noise."""
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
            out[leaf, :, 0] = np.maximum(variance, 0.0)
        return out

    @staticmethod
    def step(args, leaf, number):
        """The posterior of f at the centres after the sample, then forgetting."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        q = float_array(args, FIELDS.work)  # K^-1 k(x, centres)
        p = pointer(q, capacity)  # covariance of f(centres) and f(x)
        errors = pointer(p, capacity)
        factor = pointer(errors, 2 * capacity)
        covariance = pointer(float_array(args, FIELDS.covariance), leaf * capacity * capacity)
        mean = pointer(float_array(args, FIELDS.mean), leaf * capacity)
        coefficients = coefficients_of(args, leaf)
        size = size_of(args, leaf)
        # Prior of f(x): mean q'm, variance gamma + q'h with h = S q.
        gamma = project_point(args, leaf, q)
        predicted = dot(q, mean, size)
        symmetric_matvec(covariance, capacity, q, size, p)
        variance = gamma + JITTER * sample[SAMPLE.self_kernel] + dot(q, p, size)
        s = variance + read_float(args, FIELDS.noise) / sample[SAMPLE.weight]
        gain = (sample[SAMPLE.response] - predicted) / s
        if gamma > DEPENDENT * sample[SAMPLE.self_kernel]:
            append_row_column(covariance, capacity, size, p, variance)
            p[size] = variance
            mean[size] = predicted
            append_to_both(args, leaf, 0.0, q, gamma)
            size += 1
        # Condition on the sample: S -= p p' / s, m += p (y - q'm) / s.
        add_outer(covariance, capacity, p, size, -1.0 / s)
        for m in range(size):
            mean[m] += gain * p[m]
        inverse = inverse_of(args, leaf)
        if size == capacity:  # remove the centre whose removal moves the mean least
            symmetric_matvec(inverse, capacity, mean, size, errors)
            for m in range(size):
                errors[m] = abs(errors[m] / inverse[m * capacity + m])
            j = argmin(errors, size)
            delete_element(mean, size, j)
            delete_row_column(covariance, capacity, size, j)
            remove_from_both(args, leaf, j, errors)
            size -= 1
        # Back to the prior: S <- r S + (1 - r) K, m <- sqrt(r) m.
        r = read_float(args, FIELDS.forgetting)
        if r < 1.0:
            gram = gram_of(args, leaf)
            for i in range(size):
                row = pointer(covariance, i * capacity)
                prior = pointer(gram, i * capacity)
                for m in range(size):
                    row[m] = r * row[m] + (1.0 - r) * prior[m]
                row[i] += (1.0 - r) * JITTER * prior[i]
            for m in range(size):
                mean[m] *= np.sqrt(r)
        refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))
        symmetric_matvec(inverse, capacity, mean, size, coefficients)  # alpha = K^-1 m
        sample[SAMPLE.squared_norm] = norm_from_gram(args, leaf, errors)


def _self_kernels(kernel: Kernel, points: Floats) -> Floats:
    """(n,): k(x, x) of every point, a few at a time."""
    parts = [points[start : start + 16] for start in range(0, len(points), 16)]
    return np.concatenate([np.diag(evaluate(kernel, part, part)) for part in parts])

"""KRLSTracker: a Gaussian process on a budget that forgets back to its prior."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels.base import Kernel, evaluate
from ..losses.objective import Objective
from ..native.dense import add_outer, border, dot, least, matrix_times, strike, strike_member
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import Shapes
from .feature_steps import NORM, RESPONSE, SELF, SINGLE, WEIGHT, coefficients_of, size_of
from .gram import GramBase
from .gram_steps import (
    INVERSE,
    JITTER,
    append_both,
    gram_of,
    inverse_of,
    norm_by_gram,
    refresh_inverse,
    remove_both,
    solve_now,
)

TRACKER_ARGUMENTS = argument_fields(*INVERSE._fields, "covariance", "mean", "forgetting", "noise")
_NEW = 1e-6  # of k(x, x): less is not worth a centre, and would spoil the inverse


def tracker(args, leaf, number):
    """The posterior of f at the centres after the sample; then some of the prior comes back."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    solved = float_array(args, SINGLE.work)
    joint = pointer(solved, capacity)
    errors = pointer(joint, capacity)
    factor = pointer(errors, 2 * capacity)
    covariance = pointer(
        float_array(args, TRACKER_ARGUMENTS.covariance), leaf * capacity * capacity
    )
    mean = pointer(float_array(args, TRACKER_ARGUMENTS.mean), leaf * capacity)
    coefficients = coefficients_of(args, leaf)
    size = size_of(args, leaf)
    rest = solve_now(args, leaf, solved)
    predicted = dot(solved, mean, size)
    matrix_times(covariance, capacity, solved, size, joint)
    variance = rest + JITTER * sample[SELF] + dot(solved, joint, size)
    total = variance + read_float(args, TRACKER_ARGUMENTS.noise) / sample[WEIGHT]
    gain = (sample[RESPONSE] - predicted) / total
    if rest > _NEW * sample[SELF]:
        border(covariance, capacity, size, joint, variance)
        joint[size] = variance
        mean[size] = predicted
        append_both(args, leaf, 0.0, solved, rest)
        size += 1
    add_outer(covariance, capacity, joint, size, -1.0 / total)
    for m in range(size):
        mean[m] += gain * joint[m]
    inverse = inverse_of(args, leaf)
    if size == capacity:  # the centre whose removal moves the mean least leaves
        matrix_times(inverse, capacity, mean, size, errors)
        for m in range(size):
            errors[m] = abs(errors[m] / inverse[m * capacity + m])
        j = least(errors, size)
        strike_member(mean, size, j)
        strike(covariance, capacity, size, j)
        remove_both(args, leaf, j, errors)
        size -= 1
    kept = read_float(args, TRACKER_ARGUMENTS.forgetting)
    if kept < 1.0:
        gram = gram_of(args, leaf)
        for i in range(size):
            own = pointer(covariance, i * capacity)
            prior = pointer(gram, i * capacity)
            for m in range(size):
                own[m] = kept * own[m] + (1.0 - kept) * prior[m]
            own[i] += (1.0 - kept) * JITTER * prior[i]
        for m in range(size):
            mean[m] *= np.sqrt(kept)
    refresh_inverse(args, leaf, number, factor, pointer(factor, capacity * capacity))
    matrix_times(inverse, capacity, mean, size, coefficients)
    sample[NORM] = norm_by_gram(args, leaf, errors)


@dataclass(frozen=True)
class KRLSTracker(GramBase):
    """The kernel recursive least-squares tracker: a Gaussian process on `budget` centres.

    It keeps the posterior mean m and covariance S of f at the centres. With q = K^-1 k(x, centres),
    gamma = k(x, x) - k' q, h = S q and s = noise + gamma + q' h, the new sample joins with

        m <- (m, q'm) + p (y - q'm) / s,    p = (h, gamma + q'h),
        S <- (S h; h' gamma + q'h) - p p' / s;

    beyond the budget the centre whose removal moves the mean least leaves. Then the past fades back
    to the prior: S <- forgetting S + (1 - forgetting) K, m <- sqrt(forgetting) m. For the logistic
    loss: a Newton step, with noise 2 noise / c, c = tanh(f / 2) / 2 f. The predictive variance is
    given by `bank.predict_variance_slots`. Cost per step: budget kernel values and O(budget^2)
    products; memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    budget : most centres.
    forgetting : what a step leaves of the past, above 0 and at most 1 (nothing is forgotten).
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
    places = TRACKER_ARGUMENTS
    step = tracker
    cost: ClassVar[str] = "O(budget dimension + budget^2)"

    def __post_init__(self) -> None:
        self._count("budget", "how many centres to keep")
        self._share("forgetting", 0.999)
        self._positive("forgetting", 0.999)
        self._positive("noise", 0.01)

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"covariance": (capacity, capacity), "mean": (capacity,)}
        return {**super().own_shapes(capacity, dimension), **own}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        return {"forgetting": self.forgetting, "noise": self.noise}

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        """k(x, x) - k' K^-1 k + k' K^-1 S K^-1 k: of f, without the noise."""
        out = np.full((group.leaves, len(points), WIDTH), np.nan)
        for leaf in range(group.leaves):
            kernel = group.kernels[leaf][0]
            size = int(group.state["size"][leaf])
            centres = np.ascontiguousarray(group.state["centres"][leaf][:, :size].T)
            inverse = group.state["inverse"][leaf][:size, :size]
            covariance = group.state["covariance"][leaf][:size, :size]
            own = _with_itself(kernel, points)
            if size > 0:
                rows = evaluate(kernel, points, centres)
                solved = rows @ inverse
                own = own - (rows * solved).sum(axis=1)
                own = own + ((solved @ covariance) * solved).sum(axis=1)
            out[leaf, :, 0] = np.maximum(own, 0.0)
        return out


def _with_itself(kernel: Kernel, points: Floats) -> Floats:
    """k(x, x) of every point, a few at a time."""
    some = [points[start : start + 16] for start in range(0, len(points), 16)]
    return np.concatenate([np.diag(evaluate(kernel, part, part)) for part in some])

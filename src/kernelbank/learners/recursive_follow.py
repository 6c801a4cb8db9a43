"""Recursive least squares of further outputs: P, and so P phi, is that of the first output.

For the squared loss P follows from the inputs alone. The first output keeps of every sample of a
block phi, u = P phi and the divisors; the weights of another output then cost O(features).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..native.dense import add_multiple, dot, multiply_by
from ..native.jit import inline
from .feature_steps import end_following, follow_values, size_of

NEVER, EXPONENTIAL, PRIOR, RANDOM_WALK = range(4)
FORGET_RULES = {"exponential": EXPONENTIAL, "prior": PRIOR, "random_walk": RANDOM_WALK}


@inline
def forget_row(row, scale, constant_scale, size, constant):
    """row = C row. row: (size,)."""
    own = row[constant] if constant < size else 0.0
    multiply_by(row, scale, size)
    if constant < size:
        row[constant] = constant_scale * own


@inline
def _last_change(a, leaf, t, number, error, size):
    """All that `recursive.recursive_step` does with the weights but the last change.

    Returns whether there is one, its factor and its vector: weights += factor * vector.
    """
    weights, divisors, rule = a.coefficients[leaf], a.kept_divisors[leaf, t], a.forget_rule
    gain, s = a.kept_gains[leaf, t], divisors[0]
    change = error / s if s > 0.0 else 0.0
    if rule not in (PRIOR, EXPONENTIAL):
        return True, change, gain
    add_multiple(weights, change, gain, size)
    if rule == PRIOR:
        forget_row(weights, a.powers[1, 0], a.powers[1, 1], size, a.constant)
        return False, 0.0, gain
    return True, -weights[number % size] / divisors[2], a.kept_columns[leaf, t]


@inline
def follow_recursive_block(a, first, count):
    """Samples first .. first + count - 1 of every leaf, as by `feature_steps.learn_block`.

    The weights after a sample give norm^2, the values on the window and the next prediction.
    """
    position = a.history_length + first % a.slide_period
    for leaf in range(a.leaves):
        size = size_of(a, leaf)
        prediction = dot(a.coefficients[leaf], a.kept_features[leaf, 0], size)
        for t in range(count):
            target = a.targets[position + t, 0]
            error = 0.0 if np.isnan(target) else target - prediction
            a.predictions[leaf, t, 0] = prediction
            a.variances[leaf, t, 0] = a.kept_divisors[leaf, t, 1]
            a.effects[leaf, t, 0] = 0.0
            changes, factor, vector = _last_change(a, leaf, t, first + t, error, size)
            norm, prediction = follow_values(a, leaf, first, t, count, changes, factor, vector)
            a.norms[leaf, t + 1, 0] = norm
        end_following(a, leaf, first, count)

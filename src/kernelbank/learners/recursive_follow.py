"""Recursive least squares of further outputs: P, and so P phi, is that of the first output.

For the squared loss P follows from the inputs alone. The first output keeps of every sample of a
block phi, u = P phi and the divisors; the weights of another output then cost O(features).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..native.dense import add_and_dot_two, add_multiple, dot, multiply_by, norm_and_dot_two
from ..native.jit import inline
from .feature_steps import size_of, window_values

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
def follow_recursive_block(a, first, count):
    """Samples first .. first + count - 1 of every leaf, as by `feature_steps.learn_block`.

    The weights after a sample give norm^2, the values on the window and the next prediction. (What
    is read by way of `a` is read anew after every number that is written: so not in the loop.)
    """
    rule, constant, newest = a.forget_rule, a.constant, a.window - 1
    scale, constant_scale = a.powers[1, 0], a.powers[1, 1]
    targets = a.targets[a.history_length + first % a.slide_period :]  # (n, 4)
    for leaf in range(a.leaves):
        weights, size = a.coefficients[leaf], size_of(a, leaf)
        rows, gains, columns = a.kept_features[leaf], a.kept_gains[leaf], a.kept_columns[leaf]
        divisors, values, norms = a.kept_divisors[leaf], a.values[leaf], a.norms[leaf]
        predictions, effects = a.predictions[leaf], a.effects[leaf]
        prediction = dot(weights, rows[newest], size)
        for t in range(count):
            target, s = targets[t, 0], divisors[t, 0]
            error = 0.0 if np.isnan(target) else target - prediction
            change, vector = error / s if s > 0.0 else 0.0, gains[t]
            predictions[t, 0] = prediction
            effects[t, 0] = 0.0
            if rule == EXPONENTIAL:
                add_multiple(weights, change, vector, size)
                change = -weights[(first + t) % size] / divisors[t, 1]
                vector = columns[t]
            row = newest + t
            if rule == PRIOR:
                add_multiple(weights, change, vector, size)
                forget_row(weights, scale, constant_scale, size, constant)
                norm, value, prediction = norm_and_dot_two(weights, rows[row:], size)
            else:
                norm, value, prediction = add_and_dot_two(weights, change, vector, rows[row:], size)
            norms[t + 1, 0] = norm
            values[t + 1, newest, 0] = value
            if newest > 0:
                window_values(weights, rows, row, min(first + t, newest), size, values[t + 1])

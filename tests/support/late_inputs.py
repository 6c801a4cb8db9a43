"""A stream whose fourth column comes late, and how far the results may be from one that had it."""

import numpy as np

from kernelbank.learners import LinearRLS

ROWS, LATE = 400, 220
EPS = np.finfo(float).eps

FADING = {"forgetting": 0.999, "forget": "prior", "constant_forgetting": 0.8}
"""Settings of recursive least squares that forget."""


def stream(missing, seed=0):
    """Three columns, and a fourth that is `missing` at first and then decides half of the target."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(ROWS, 4))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    y[LATE:] += X[LATE:, 3]
    X[:LATE, 3] = missing
    return X, y + 0.1 * draw.normal(size=ROWS)


def rounding(learner):
    """Of a line, whose sums run in another order: eps a row, times the matrix's condition.

    All others do the same in the same order, with zeros more.
    """
    if not isinstance(learner, LinearRLS):
        return 0.0
    return EPS * ROWS * (1 + 16 * ROWS / learner.ridge)

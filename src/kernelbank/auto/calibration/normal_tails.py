"""The tail probabilities whose error quantiles are tracked, and the quantiles at the start."""

from functools import cache

import numpy as np

from ...utils.validation import Floats

TAILS = np.array([0.0005, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
"""Tail probabilities whose error quantiles are tracked; others are interpolated."""


@cache
def normal_quantiles_of_tails() -> Floats:
    """(tails,): those of the normal distribution."""
    from statistics import NormalDist  # slow to import

    return np.array([NormalDist().inv_cdf(1 - tail) for tail in TAILS])

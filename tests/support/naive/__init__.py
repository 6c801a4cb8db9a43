"""Naive definitions of everything that the library computes: slow, plain, and meant to be read.

Every fast path is compared with one of these. Kernels, losses and the bank of the paper are
`naive.gaussian(...)`, `naive.squared()`, `naive.run(...)`; the modules `learners`, `tree`,
`combiners` and `auto` are imported by name.
"""

from .bank import ar1, run
from .combiners import simplex_qp, simplex_qp_floats
from .kernels import (
    active_dims,
    additive,
    gaussian,
    laplacian,
    linear,
    matern,
    periodic,
    polynomial,
    rational_quadratic,
    spline,
    squared_distance,
)
from .losses import (
    absolute,
    envelope,
    epsilon_insensitive,
    hinge,
    huber,
    logistic,
    pinball,
    poisson,
    poisson_rate,
    squared,
    squared_hinge,
)

__all__ = [
    "absolute",
    "active_dims",
    "additive",
    "ar1",
    "envelope",
    "epsilon_insensitive",
    "gaussian",
    "hinge",
    "huber",
    "laplacian",
    "linear",
    "logistic",
    "matern",
    "periodic",
    "pinball",
    "poisson",
    "poisson_rate",
    "polynomial",
    "rational_quadratic",
    "run",
    "simplex_qp",
    "simplex_qp_floats",
    "spline",
    "squared",
    "squared_distance",
    "squared_hinge",
]

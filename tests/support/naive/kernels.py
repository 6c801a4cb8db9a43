"""Kernels by their formulas: each function returns k(x, t) -> float."""

from itertools import combinations
from math import exp, fsum, pi, sqrt

import numpy as np


def squared_distance(x, t):
    """|x - t|^2."""
    return float(np.dot(x - t, x - t))


def gaussian(width):
    """exp(-|x-t|^2 / (2 width^2))."""
    return lambda x, t: exp(-squared_distance(x, t) / (2 * width**2))


def laplacian(width):
    """exp(-|x-t|_1 / width)."""
    return lambda x, t: exp(-float(np.sum(np.abs(x - t))) / width)


def matern(width, nu):
    """The Matern kernel of smoothness nu = 0.5, 1.5 or 2.5, with r = |x-t|_2 / width."""
    shape = {
        0.5: lambda r: exp(-r),
        1.5: lambda r: (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
        2.5: lambda r: (1 + sqrt(5) * r + 5 * r**2 / 3) * exp(-sqrt(5) * r),
    }[nu]
    return lambda x, t: shape(sqrt(squared_distance(x, t)) / width)


def rational_quadratic(width, alpha):
    """(1 + |x-t|^2 / (2 alpha width^2))^-alpha."""
    return lambda x, t: (1 + squared_distance(x, t) / (2 * alpha * width**2)) ** -alpha


def periodic(period, width):
    """exp(-2 sum sin^2(pi (x-t) / period) / width^2)."""
    return lambda x, t: exp(-2 * float(np.sum(np.sin(pi * (x - t) / period) ** 2)) / width**2)


def linear(offset):
    """x.t + offset."""
    return lambda x, t: float(np.dot(x, t)) + offset


def polynomial(degree, offset, scale):
    """(scale x.t + offset)^degree."""
    return lambda x, t: (scale * float(np.dot(x, t)) + offset) ** degree


def active_dims(kernel, coordinates):
    """The kernel of some coordinates."""
    return lambda x, t: kernel(x[list(coordinates)], t[list(coordinates)])


def additive(kernel, order):
    """The mean of the kernel over all subsets of `order` coordinates, or of all if there are fewer."""

    def mean(x, t):
        subsets = list(combinations(range(len(x)), min(order, len(x))))
        return fsum(active_dims(kernel, subset)(x, t) for subset in subsets) / len(subsets)

    return mean

"""Synthetic streams: the same seed and length give the same bits."""

from __future__ import annotations

import math

import numpy as np

from ...utils import validation as check
from ...utils.validation import Floats

FEEDBACK = 0.5488135
NOISE = 0.71519837
SIGMA, RHO, BETA = 10.0, 28.0, 8.0 / 3.0
Point = tuple[float, float, float]


def ar1(seed: int = 0, samples: int = 1000, noise: str = "variance") -> tuple[Floats, Floats]:
    """The signal of the paper's experiment: x_n = n and y_n = 0.5488135 y_{n-1} + u_n.

    Parameters
    ----------
    seed : of the noise u ~ N(0, 0.71519837).
    samples : how many.
    noise : whether 0.71519837 is the "variance" of u, as the notation N(mean, variance) says, or
        its standard deviation, "std".

    >>> x, y = ar1(seed=0, samples=3)
    >>> x.tolist(), y.round(2).tolist()
    ([1.0, 2.0, 3.0], [1.49, 1.16, 1.46])
    """
    _check("ar1", seed, samples)
    check.choice("noise", noise, "ar1", ("variance", "std"))
    deviation = math.sqrt(NOISE) if noise == "variance" else NOISE
    innovations = np.random.RandomState(seed).normal(0, deviation, samples)
    return np.arange(1.0, samples + 1), autoregressive(FEEDBACK, innovations)


def autoregressive(feedback: float, innovations: Floats) -> Floats:
    """y_n = feedback y_{n-1} + u_n from y_0 = 0, for the innovations u."""
    targets = np.empty(len(innovations))
    last = 0.0
    for n, innovation in enumerate(innovations):
        last = feedback * last + innovation
        targets[n] = last
    return targets


def sine(
    seed: int = 0, samples: int = 1000, noise: float = 0.1, periods: float = 1.0
) -> tuple[Floats, Floats]:
    """A sine whose phase drifts: y_n = sin(2 pi (x_n + periods * n / samples)) + noise.

    x is uniform in [0, 1], so that only the drift changes: a learner that never forgets averages
    over all phases, which gives 0 after a full period.

    Parameters
    ----------
    seed : of the inputs and of the noise.
    samples : how many; the drift is spread over all of them.
    noise : standard deviation of the noise, at least 0.
    periods : how far the curve moves over the stream.

    >>> X, y = sine(seed=0, samples=100)
    >>> X.shape, y.shape
    ((100, 1), (100,))
    """
    _check("sine", seed, samples)
    remedy = "Give a standard deviation, such as 0.1."
    deviation = check.number("noise", noise, "sine", remedy, least=0)
    moved = check.number("periods", periods, "sine", "Give a number such as 1.")
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 1, samples)
    shift = moved * np.arange(samples) / samples
    return x[:, None], np.sin(2 * np.pi * (x + shift)) + deviation * draw.normal(size=samples)


def friedman(seed: int = 0, samples: int = 1000) -> tuple[Floats, Floats]:
    """Friedman's function of five inputs among ten, with abrupt changes of the inputs.

    y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + N(0, 1), with x uniform in [0, 1]^10.
    The stream has three parts of equal length, and in each another set of five inputs matters.

    Parameters
    ----------
    seed : of the inputs, the noise and the changes.
    samples : how many.

    Reference: Friedman, Multivariate adaptive regression splines, Annals of Statistics 19 (1991);
    with abrupt drift as in Ikonomovska, Gama and Dzeroski, Learning model trees from evolving data
    streams (2011).

    >>> X, y = friedman(seed=0, samples=100)
    >>> X.shape, y.shape
    ((100, 10), (100,))
    """
    _check("friedman", seed, samples)
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1, (samples, 10))
    errors = draw.normal(size=samples)
    columns = [np.arange(5), draw.permutation(10)[:5], draw.permutation(10)[:5]]
    y = np.empty(samples)
    for n in range(samples):
        a, b, c, d, e = X[n, columns[3 * n // samples]]
        y[n] = 10 * math.sin(math.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, y + errors


def lorenz(seed: int = 0, samples: int = 1000) -> tuple[Floats, Floats]:
    """One step ahead on the Lorenz attractor: the next z from the last six, 0.01 apart in time.

    dx/dt = 10 (y - x), dy/dt = x (28 - z) - y, dz/dt = x y - 8/3 z, by Runge-Kutta of order four.
    Row n is z_n, z_{n-1}, ..., newest first; its target is z_{n+1}.

    Parameters
    ----------
    seed : of the start, which then runs for 20 time units to reach the attractor.
    samples : how many.

    Reference: Lorenz, Deterministic nonperiodic flow, Journal of the Atmospheric Sciences 20 (1963)

    >>> X, y = lorenz(seed=0, samples=100)
    >>> X.shape, bool((X[1:, 0] == y[:-1]).all())
    ((100, 6), True)
    """
    _check("lorenz", seed, samples)
    draw = np.random.default_rng(seed)
    x, y, z = draw.normal(size=3)
    start = lorenz_path((float(x), float(y), 25.0 + float(z)), 2001, 0.01)[-1]
    path = lorenz_path((start[0], start[1], start[2]), samples + 6, 0.01)
    return embedded(path[:, 2], 6, padded=False)


def lorenz_path(start: Point, points: int, step: float, method: str = "runge-kutta") -> Floats:
    """(points, 3): the path from `start`, which is included.

    The sums are written out in plain Python, so that the bits do not depend on a library.
    """
    path = np.empty((points, 3))
    here = start
    for n in range(points):
        path[n] = here
        first = _derivative(here)
        if method == "euler":
            here = _step_along(here, first, step)
            continue
        second = _derivative(_step_along(here, first, step / 2))
        third = _derivative(_step_along(here, second, step / 2))
        fourth = _derivative(_step_along(here, third, step))
        mean = [
            (a + 2 * b + 2 * c + d) / 6
            for a, b, c, d in zip(first, second, third, fourth, strict=True)
        ]
        here = _step_along(here, (mean[0], mean[1], mean[2]), step)
    return path


def embedded(series: Floats, depth: int, padded: bool) -> tuple[Floats, Floats]:
    """Inputs of the last `depth` values, newest first, and the next value as the target.

    `padded` keeps the first rows, with zeros before the start of the series.
    """
    count = len(series) - 1
    X = np.zeros((count, depth))
    for lag in range(depth):
        X[lag:, lag] = series[: count - lag]
    first = 0 if padded else depth - 1
    return np.ascontiguousarray(X[first:]), series[first + 1 :].copy()


def _derivative(point: Point) -> Point:
    x, y, z = point
    # The order of the terms matters: in a chaotic system another rounding soon gives another path.
    # With this one Euler's rule gives the toolbox's file (see research/lorenz.py) to the end.
    return -SIGMA * x + SIGMA * y, RHO * x - x * z - y, x * y - BETA * z


def _step_along(point: Point, derivative: Point, step: float) -> Point:
    return (
        point[0] + step * derivative[0],
        point[1] + step * derivative[1],
        point[2] + step * derivative[2],
    )


def _check(owner: str, seed: int, samples: int) -> None:
    remedy = "Give a seed such as 0, 1, 2, ..."
    check.count("seed", seed, owner, remedy, least=0, most=2**32 - 1)
    check.count("samples", samples, owner, "Give how many samples you want.")

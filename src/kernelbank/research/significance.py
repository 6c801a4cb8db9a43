"""Tests of a comparison: is one competitor better, or is it chance?

Losses of a stream are correlated in time, so a plain t-test on them finds differences that do not
exist. Here the variance of a mean difference is Newey and West's, which counts correlations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..utils.validation import Floats

FEWEST = 30  # with fewer differences than this the normal approximation is not reliable


def diebold_mariano(series: Sequence[Floats]) -> float:
    """The two-sided p-value of Diebold and Mariano's test that loss differences have mean zero.

    z = mean(d) / `standard_error`. NaN where there is too little evidence.

    Parameters
    ----------
    series : arrays of loss differences in the order of time, one per independent run.

    Reference: Diebold and Mariano, Comparing predictive accuracy, Journal of Business and Economic
    Statistics 13 (1995).

    >>> import numpy as np
    >>> d = np.random.default_rng(0).normal(size=500)
    >>> diebold_mariano([d + 0.5]) < 0.001 < diebold_mariano([d])
    True
    """
    error = standard_error(series)
    if math.isnan(error) or sum(map(len, series)) < FEWEST:
        return math.nan
    mean = float(np.mean([run.mean() for run in series]))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return math.erfc(abs(mean) / error / math.sqrt(2))


def standard_error(series: Sequence[Floats]) -> float:
    """The standard error of the mean of numbers that are correlated in time; NaN if one is.

    sqrt(V / n), V = g_0 + 2 sum_{k=1}^{lag} (1 - k / (lag + 1)) g_k, g_k the autocovariances. The
    lag is Andrews' plug-in for an AR(1), and at least 4 (n / 100)^(2/9). Several series
    (independent runs) are pooled: their means are averaged and the variances of these add up.

    References: Newey and West, Econometrica 55 (1987); Andrews, Econometrica 59 (1991).
    """
    if not all(np.isfinite(run).all() for run in series):
        return math.nan
    if all((run == run[0]).all() for run in series):
        return 0.0  # not the rounding in the mean
    variances = [long_run_variance(run, automatic_lag(run)) / len(run) for run in series]
    return math.sqrt(math.fsum(variances)) / len(series)


def long_run_variance(series: Floats, lag: int) -> float:
    """Newey and West's variance: never negative, since Bartlett's weights are a kernel."""
    size = float(np.abs(series).max())
    if not 0 < size < np.inf:
        return 0.0 if size == 0 else np.nan
    series = series / size  # squares of diverged losses would overflow
    centred = series - series.mean()
    total = float((centred * centred).sum())
    for k in range(1, min(lag, len(series) - 1) + 1):
        weight = 1 - k / (lag + 1)
        total += 2 * weight * float((centred[k:] * centred[:-k]).sum())
    return max(total, 0.0) / len(series) * size * size


def automatic_lag(series: Floats) -> int:
    """Andrews' bandwidth for Bartlett's weights, from the correlation of neighbours."""
    count = len(series)
    least = int(4 * (count / 100) ** (2 / 9))
    series = series / (float(np.abs(series).max()) or 1.0)
    centred = series - series.mean()
    power = float((centred * centred).sum())
    if count < 3 or not 0 < power < np.inf:
        return min(least, count - 1)
    # A correlation near 1 would give a lag beyond all data.
    near = min(max(float((centred[1:] * centred[:-1]).sum()) / power, -0.97), 0.97)
    alpha = 4 * near**2 / ((1 - near) ** 2 * (1 + near) ** 2)
    return min(max(least, int(1.1447 * (alpha * count) ** (1 / 3))), (count - 1) // 2)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of several p-values for their number.

    The probability of any false rejection at level a is then at most a. NaN stands for a test that
    was not made, and stays.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    ordered = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    result = [math.nan] * len(p_values)
    largest = 0.0
    for done, (p, index) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - done) * p))
        result[index] = largest
    return result


def mean_rank(values: Floats) -> Floats:
    """The ranks along the first axis, from 1; equal values share the mean of theirs."""
    before = (values[None] < values[:, None]).sum(axis=1)
    equal = (values[None] == values[:, None]).sum(axis=1)
    return np.asarray(before + (equal + 1) / 2)


def signed_rank(values: Sequence[float]) -> float:
    """The exact p-value of Wilcoxon's signed-rank test that values are symmetric around 0.

    Zeros are left out. With r_i the rank of |v_i|, each of the 2^n signs is as likely as any other:
    p = 2 P(W <= min(W+, W-)), W the sum of the ranks of one sign.

    >>> signed_rank([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    0.03125
    """
    numbers = np.array([value for value in values if value])
    twice = (2 * mean_rank(np.abs(numbers))).astype(int)  # ranks may be halves
    chances = np.ones(1)  # of each sum of so many of them
    for rank in twice:
        padded = np.zeros((2, len(chances) + rank))
        padded[0, : len(chances)] = padded[1, rank:] = chances / 2
        chances = padded.sum(axis=0)
    least = min(int(twice[numbers > 0].sum()), int(twice[numbers < 0].sum()))
    return min(1.0, 2 * float(chances[: least + 1].sum()))

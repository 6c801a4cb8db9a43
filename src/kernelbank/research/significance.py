"""Tests on one stream: is one competitor better, or is it chance?

Losses of a stream are correlated in time, so a plain t-test on them finds differences that do not
exist. Here the variance of a mean difference is Newey and West's, which counts correlations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats

FEWEST = 30
"""With fewer differences than this the normal approximation is not reliable."""


@dataclass(frozen=True)
class Difference:
    """A mean difference of losses, its standard error, and how likely it is by chance.

    `lag` is the lag up to which correlations were counted. `p_value` is two-sided; NaN where there
    is too little evidence.
    """

    mean: float
    standard_error: float
    p_value: float
    lag: int


def diebold_mariano(series: Sequence[Floats]) -> Difference:
    """The test of Diebold and Mariano that the mean of loss differences is zero.

    z = mean(d) / sqrt(V / n), V = g_0 + 2 sum_{k=1}^{lag} (1 - k / (lag + 1)) g_k, with g_k the
    autocovariances of d. The lag is Andrews' plug-in for an AR(1), and at least
    4 (n / 100)^(2/9). Several series (independent runs) are pooled: their means are averaged and
    the variances of these add up.

    Parameters
    ----------
    series : arrays of loss differences in the order of time, one per independent run.

    References: Diebold and Mariano, Comparing predictive accuracy, Journal of Business and Economic
    Statistics 13 (1995); Newey and West, Econometrica 55 (1987); Andrews, Econometrica 59 (1991).

    >>> import numpy as np
    >>> d = np.random.default_rng(0).normal(size=500)
    >>> diebold_mariano([d + 0.5]).p_value < 0.001 < diebold_mariano([d]).p_value
    True
    """
    runs = [np.asarray(run, dtype=np.float64) for run in series]
    remedy = "Give at least one array of differences."
    if not runs or any(run.ndim != 1 or not run.size for run in runs):
        raise check.refuse("series", "hold non-empty arrays", series, remedy, "diebold_mariano")
    with np.errstate(invalid="ignore"):
        mean = float(np.mean([run.mean() for run in runs]))
    if not all(np.isfinite(run).all() for run in runs):
        return Difference(mean, math.nan, math.nan, 0)
    lags = [automatic_lag(run) for run in runs]
    variances = [
        long_run_variance(run, lag) / len(run) for run, lag in zip(runs, lags, strict=True)
    ]
    error = math.sqrt(math.fsum(variances)) / len(runs)
    if all((run == run[0]).all() for run in runs):
        error = 0.0  # not the rounding in the mean
    return Difference(mean, error, _p_value(runs, mean, error), max(lags))


def _p_value(runs: list[Floats], mean: float, error: float) -> float:
    if sum(map(len, runs)) < FEWEST:
        return math.nan
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return math.erfc(abs(mean) / error / math.sqrt(2))


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
    made = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    result = [math.nan] * len(p_values)
    largest = 0.0
    for done, (p, index) in enumerate(made):
        largest = max(largest, min(1.0, (len(made) - done) * p))
        result[index] = largest
    return result

"""Tests on one stream: is one competitor better, or is it chance?

Losses of a stream are correlated in time, so a plain t-test on them finds differences that do not
exist. Here the variance of a mean difference is Newey and West's, which counts correlations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats

FEWEST = 30  # with fewer differences than this the normal approximation is not reliable


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
    if not runs or any(run.ndim != 1 or not run.size for run in runs):
        remedy = "Give at least one array of differences."
        raise check.refuse("series", "hold non-empty arrays", series, remedy, "diebold_mariano")
    with np.errstate(invalid="ignore"):
        mean = float(np.mean([run.mean() for run in runs]))
    if not all(np.isfinite(run).all() for run in runs):
        return Difference(mean, math.nan, math.nan, 0)
    lags = [automatic_lag(run) for run in runs]
    variances = [long_run_variance(*pair) / len(pair[0]) for pair in zip(runs, lags, strict=True)]
    error = math.sqrt(math.fsum(variances)) / len(runs)
    if all((run == run[0]).all() for run in runs):
        error = 0.0  # not the rounding in the mean
    if sum(map(len, runs)) < FEWEST:
        p_value = math.nan
    elif error == 0:
        p_value = 1.0 if mean == 0 else 0.0
    else:
        p_value = math.erfc(abs(mean) / error / math.sqrt(2))
    return Difference(mean, error, p_value, max(lags))


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


LEVEL = 0.05


def scipy_stats() -> Any:
    """The module scipy.stats; an error that names the extra if it is not installed."""
    with check.optional("Tests over several streams need", "SciPy", "research"):
        from scipy import stats  # slow to import
    return stats


@dataclass(frozen=True)
class RankTest:
    """Mean ranks of k methods on N streams, and by how much they must differ.

    - mean_ranks: by name, the best first; 1 is best on every stream
    - streams: N
    - statistic: Friedman's chi-squared, corrected for ties
    - p_value: that all methods are equal, by Iman and Davenport's F of this statistic
    - level: of Nemenyi's test
    - difference: the critical difference: mean ranks that differ by more differ at this level
    """

    mean_ranks: dict[str, float]
    streams: int
    statistic: float
    p_value: float
    level: float
    difference: float


def rank_test(losses: Mapping[str, Sequence[float]], level: float = LEVEL) -> RankTest:
    """Friedman's test that all methods are equal, and Nemenyi's critical difference.

    With ranks r_ij of method j on stream i (equal losses share the mean of their ranks) and
    R_j = sum_i r_ij,

        chi2 = (k - 1) sum_j (R_j - N (k+1) / 2)^2 / (sum_ij r_ij^2 - N k (k+1)^2 / 4)
        F = (N - 1) chi2 / (N (k - 1) - chi2),   with k - 1 and (k - 1)(N - 1) degrees of freedom
        difference = q sqrt(k (k+1) / (6 N)),    q: quantile of the studentised range, over sqrt(2)

    The streams must be independent: versions of one stream count its evidence several times.

    Parameters
    ----------
    losses : for each method, its mean loss on every stream, in the same order.
    level : the probability that any pair of equal methods is said to differ.

    References: Friedman, Annals of Mathematical Statistics 11 (1940); Iman and Davenport,
    Communications in Statistics 9 (1980); Nemenyi, PhD thesis, Princeton (1963); Demsar (2006).

    >>> test = rank_test({"a": [1, 1, 2, 1, 1], "b": [2, 2, 1, 2, 2], "c": [3, 3, 3, 3, 3]})
    >>> test.mean_ranks, round(test.difference, 2)
    ({'a': 1.2, 'b': 1.8, 'c': 3.0}, 1.48)
    """
    names, columns = list(losses), list(losses.values())
    count, streams = len(names), min(map(len, columns), default=0)
    if count < 2 or streams < 2 or any(len(column) != streams for column in columns):
        remedy = "Compare at least two methods on the same two or more streams."
        raise check.refuse("losses", "hold two methods on two streams", losses, remedy, "rank_test")
    remedy = "Give a level such as 0.05."
    chance = check.number("level", level, "rank_test", remedy, above=0, below=1)
    stats = scipy_stats()
    ranks = stats.rankdata(np.column_stack(columns), axis=1)  # (N, k)
    between = float(((ranks.sum(axis=0) - streams * (count + 1) / 2) ** 2).sum())
    variation = float((ranks * ranks).sum()) - streams * count * (count + 1) ** 2 / 4
    statistic, p_value = 0.0, 1.0  # if all are equal on every stream
    if variation > 0:
        statistic = (count - 1) * between / variation
        rest = max(streams * (count - 1) - statistic, 0.0)
        with np.errstate(divide="ignore"):  # the same order on every stream
            ratio = np.divide((streams - 1) * statistic, rest if rest > 1e-12 * statistic else 0.0)
        p_value = float(stats.f.sf(ratio, count - 1, (count - 1) * (streams - 1)))
    means = dict(zip(names, ranks.mean(axis=0).tolist(), strict=True))
    ordered = dict(sorted(means.items(), key=lambda item: item[1]))
    difference = critical_difference(count, streams, chance)
    return RankTest(ordered, streams, statistic, p_value, chance, difference)


def critical_difference(methods: int, streams: int, level: float = LEVEL) -> float:
    """Nemenyi's: mean ranks of `methods` on `streams` that differ by more differ at this level.

    >>> round(critical_difference(4, 14), 2)  # the example of Demsar's figure 1 (a)
    1.25
    """
    quantile = float(scipy_stats().studentized_range.ppf(1 - level, methods, np.inf))
    return quantile / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * streams))

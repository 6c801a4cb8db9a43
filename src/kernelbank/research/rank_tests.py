"""Tests over many streams: do methods differ? Distributions and ranks are SciPy's.

Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006), sections
3.2.2 and 3.2.3; the critical-difference diagram is his.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import KernelBankError
from ..utils import validation as check

LEVEL = 0.05


def scipy_stats() -> Any:
    """The module scipy.stats; an error that names the extra if it is not installed."""
    try:
        from scipy import stats  # slow to import
    except ImportError:
        raise KernelBankError(
            "Tests over several streams need SciPy. Install it with: "
            "pip install 'kernelbank[research]'"
        ) from None
    return stats


@dataclass(frozen=True)
class RankTest:
    """Mean ranks of k methods on N streams, and which of them differ.

    - mean_ranks: by name, the best first; 1 is best on every stream
    - streams: N
    - statistic: Friedman's chi-squared, corrected for ties
    - p_value: that all methods are equal, by Iman and Davenport's F of this statistic
    - level: of Nemenyi's test
    - difference: the critical difference: mean ranks that differ by more differ at this level
    - groups: the names in each largest set of methods that do not differ, at least two in each
    """

    mean_ranks: dict[str, float]
    streams: int
    statistic: float
    p_value: float
    level: float
    difference: float
    groups: tuple[tuple[str, ...], ...]


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

    >>> found = rank_test({"a": [1, 1, 2, 1, 1], "b": [2, 2, 1, 2, 2], "c": [3, 3, 3, 3, 3]})
    >>> found.mean_ranks, round(found.difference, 2)
    ({'a': 1.2, 'b': 1.8, 'c': 3.0}, 1.48)
    >>> found.groups
    (('a', 'b'), ('b', 'c'))
    """
    names = list(losses)
    count = len(names)
    remedy = "Compare at least two methods on the same two or more streams."
    lengths = {len(column) for column in losses.values()}
    if count < 2 or len(lengths) != 1 or min(lengths) < 2:
        raise check.refuse("losses", "hold two methods on two streams", losses, remedy, "rank_test")
    streams = lengths.pop()
    chance = check.number("level", level, "rank_test", "Give a level such as 0.05.", above=0)
    if chance >= 1:
        raise check.refuse("level", "be below 1", level, "Give a level such as 0.05.", "rank_test")
    ranks = scipy_stats().rankdata(np.column_stack(list(losses.values())), axis=1)  # (N, k)
    means = ranks.mean(axis=0)
    statistic, p_value = _friedman(ranks)
    order = sorted(range(count), key=lambda j: (means[j], j))
    ordered = {names[j]: float(means[j]) for j in order}
    difference = critical_difference(count, streams, chance)
    return RankTest(
        ordered, streams, statistic, p_value, chance, difference, groups(ordered, difference)
    )


def critical_difference(methods: int, streams: int, level: float = LEVEL) -> float:
    """Nemenyi's: mean ranks of `methods` on `streams` that differ by more differ at this level.

    >>> round(critical_difference(4, 14), 2)  # the example of Demsar's figure 1 (a)
    1.25
    """
    quantile = float(scipy_stats().studentized_range.ppf(1 - level, methods, np.inf))
    return quantile / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * streams))


def groups(ranks: Mapping[str, float], difference: float) -> tuple[tuple[str, ...], ...]:
    """The largest sets of methods whose mean ranks lie within the difference, best first."""
    names = sorted(ranks, key=lambda name: ranks[name])
    found: list[tuple[str, ...]] = []
    last = 0  # the end of the longest set so far: a set that ends there too is part of it
    for first, name in enumerate(names):
        end = first
        while end < len(names) and ranks[names[end]] - ranks[name] <= difference:
            end += 1
        if end - first > 1 and end > last:
            found.append(tuple(names[first:end]))
        last = max(last, end)
    return tuple(found)


def _friedman(ranks: np.ndarray) -> tuple[float, float]:
    """(chi2, p-value) of (N, k) ranks. SciPy's test refuses two methods, and has no F."""
    streams, count = ranks.shape
    variation = float((ranks * ranks).sum()) - streams * count * (count + 1) ** 2 / 4
    between = float(((ranks.sum(axis=0) - streams * (count + 1) / 2) ** 2).sum())
    if variation <= 0:  # all are equal on every stream
        return 0.0, 1.0
    statistic = (count - 1) * between / variation
    rest = streams * (count - 1) - statistic
    if rest <= 1e-12 * statistic:  # the same order on every stream
        return statistic, 0.0
    ratio = (streams - 1) * statistic / rest
    tail = scipy_stats().f.sf(ratio, count - 1, (count - 1) * (streams - 1))
    return statistic, float(tail)


def wilcoxon(differences: Sequence[float]) -> float:
    """Wilcoxon's signed-rank test that differences are symmetric about zero: two-sided.

    Zeros are left out. Exact for up to 50 differences of different sizes, and for up to 13 if some
    sizes are equal; otherwise by the normal approximation.

    >>> wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0])  # all of one sign: 2 / 2^5
    0.0625
    """
    values = [float(value) for value in differences if value != 0]
    return float(scipy_stats().wilcoxon(values).pvalue) if values else 1.0


def sign_test(differences: Sequence[float]) -> float:
    """The sign test that both signs are equally likely: two-sided, exact; zeros are left out.

    >>> round(sign_test([1.0, 1.0, 1.0, -1.0]), 3)  # 2 (1 + 4) / 2^4
    0.625
    """
    if any(math.isnan(value) for value in differences):
        return math.nan
    positive = sum(value > 0 for value in differences)
    count = positive + sum(value < 0 for value in differences)
    return float(scipy_stats().binomtest(positive, count).pvalue) if count else 1.0

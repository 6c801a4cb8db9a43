"""Do methods differ over many streams? Friedman's test on ranks, and Nemenyi's test of all pairs.

Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006), sections
3.2.2 and 3.2.3; the critical-difference diagram is his.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..utils import validation as check
from .significance import mean_ranks

LEVEL = 0.05


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
    rows = [mean_ranks([losses[name][i] for name in names]) for i in range(streams)]
    ranks = np.array(rows)  # (N, k)
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
    quantile = studentised_range_quantile(1 - level, methods) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * streams))


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


# --- distributions --------------------------------------------------------------------------------


def _friedman(ranks: np.ndarray) -> tuple[float, float]:
    """(chi2, p-value) of (N, k) ranks."""
    streams, count = ranks.shape
    spread = float((ranks * ranks).sum()) - streams * count * (count + 1) ** 2 / 4
    between = float(((ranks.sum(axis=0) - streams * (count + 1) / 2) ** 2).sum())
    if spread <= 0:  # all are equal on every stream
        return 0.0, 1.0
    statistic = (count - 1) * between / spread
    rest = streams * (count - 1) - statistic
    if rest <= 1e-12 * statistic:  # the same order on every stream
        return statistic, 0.0
    ratio = (streams - 1) * statistic / rest
    return statistic, f_tail(ratio, count - 1, (count - 1) * (streams - 1))


def f_tail(value: float, above: int, below: int) -> float:
    """P(F > value) for Fisher's F with these degrees of freedom of numerator and denominator.

    >>> round(f_tail(3.69, 3, 39), 3)
    0.02
    """
    return _incomplete_beta(below / (below + above * value), below / 2, above / 2)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction.

    Lentz's method; beyond (a + 1) / (a + b + 2) by I_x(a, b) = 1 - I_{1-x}(b, a), where the
    fraction converges fast (Press and others, Numerical Recipes, section 6.4).
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(1 - x, b, a)
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + a * math.log(x) + b * math.log1p(-x)) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


_STEP = 0.05
_Z = np.arange(-9.0, 9.0 + _STEP / 2, _STEP)
_DENSITY = np.exp(-_Z * _Z / 2) / math.sqrt(2 * math.pi)


def studentised_range_quantile(probability: float, count: int) -> float:
    """The q with P(range of `count` standard normal variables <= q) = probability.

    P = k integral phi(z) (Phi(z) - Phi(z - q))^(k-1) dz, where z is the largest of the k. The
    trapezoidal rule is exact to rounding here: the integrand is smooth and 0 at both ends.

    >>> round(studentised_range_quantile(0.95, 10) / 2**0.5, 3)  # Demsar's table 5 (a)
    3.164
    """
    low, high = 0.0, 40.0
    at = _normal_cdf(_Z)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        inside = (at - _normal_cdf(_Z - middle)) ** (count - 1)
        reached = count * _STEP * float((_DENSITY * inside).sum())
        low, high = (middle, high) if reached < probability else (low, middle)
    return (low + high) / 2


def _normal_cdf(z: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z.tolist()])

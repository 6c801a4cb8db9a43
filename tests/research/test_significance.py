"""Tests on one stream and over several, against articles, SciPy and definitions."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from kernelbank.research import significance
from kernelbank.research.datasets import CLASSIFICATION
from kernelbank.research.results import overall
from support.comparisons import result_row


def autoregressive(seed, samples, feedback):
    noise = np.random.default_rng(seed).normal(size=samples + 100)
    last, out = 0.0, np.empty(samples + 100)
    for n, value in enumerate(noise):
        last = out[n] = feedback * last + value
    return out[100:]


def test_long_run_variance_equals_its_definition():
    d = autoregressive(0, 50, 0.5)
    c = d - d.mean()
    for lag in (0, 1, 4, 49):
        expected = (c * c).sum()
        for k in range(1, lag + 1):
            expected += 2 * (1 - k / (lag + 1)) * sum(c[t] * c[t - k] for t in range(k, 50))
        assert significance.long_run_variance(d, lag) == pytest.approx(max(expected, 0) / 50)


def test_correlated_differences_have_a_larger_p_value():
    """At 5 %, a plain z-test on correlated differences cries wolf on 24 of 100 streams."""
    alarms = plain = 0
    for seed in range(100):
        d = autoregressive(seed, 1000, 0.5)
        alarms += significance.diebold_mariano([d]) < 0.05
        plain += abs(d.mean() / d.std() * math.sqrt(1000)) > 1.96
    assert 1 <= alarms <= 12  # 5 expected
    assert plain > 15


def test_constant_or_few_differences_have_a_defined_p_value():
    assert significance.diebold_mariano([np.zeros(100)]) == 1.0
    assert significance.diebold_mariano([np.full(100, 0.1)]) == 0.0
    assert math.isnan(significance.diebold_mariano([np.arange(10.0)]))
    assert math.isnan(significance.diebold_mariano([np.array([np.inf] * 50)]))


def test_leader_over_streams_has_the_least_mean_rank():
    results = [result_row(f"s{n}", "a", 1.0) for n in range(8)]
    results += [result_row(f"s{n}", "b", 2.0 + n) for n in range(8)]
    results += [result_row(f"s{n}", "c", math.inf if n else 0.5) for n in range(8)]
    a, b, c = overall(results)
    assert (a.name, b.name, c.name) == ("a", "b", "c")
    assert (a.mean_rank, a.first, a.ratio, a.wilcoxon) == (1.125, 7, 1.0, None)
    assert b.ratio == pytest.approx(math.exp(np.mean(np.log(np.arange(2.0, 10)))))
    assert b.wilcoxon == pytest.approx(2 * 2 / 2**8)
    assert (c.ratio, c.wilcoxon) == (math.inf, pytest.approx(2 * 2 / 2**8))
    same = overall([replace(one, name="d") for one in results if one.name == "a"] + results[:8])
    assert same[1].wilcoxon == 1.0
    assert overall([r for r in results if r.stream == "s0"]) == ()


def test_leader_without_an_error_counts_as_half_an_error():
    def labels(stream, name, loss):
        return replace(result_row(stream, name, loss), task=CLASSIFICATION, samples=100)

    results = [labels("s0", "a", 0.0), labels("s1", "a", 0.1)]
    results += [labels("s0", "b", 0.02), labels("s1", "b", 0.1)]
    a, b = overall(results)
    assert (a.name, a.ratio) == ("a", 1.0)
    assert b.ratio == pytest.approx(math.sqrt(0.02 / 0.005))


@pytest.mark.parametrize("values", ["distinct", "ties"])
def test_signed_rank_test_agrees_with_every_sign(values):
    draw = np.random.default_rng(0)
    for count in (1, 2, 5, 9):
        numbers = draw.normal(size=count) + 0.5
        if values == "ties":
            numbers = np.round(2 * numbers)
        found = significance.signed_rank(numbers.tolist())
        rest = numbers[numbers != 0]
        ranks = stats.rankdata(abs(rest))
        sums = [np.dot(signs, ranks) for signs in product((0, 1), repeat=len(rest))]
        least = min(ranks[rest > 0].sum(), ranks[rest < 0].sum())
        assert found == pytest.approx(min(1.0, 2 * np.mean(np.array(sums) <= least)))
    if values == "distinct":
        numbers = draw.normal(size=40)
        assert significance.signed_rank(numbers.tolist()) == pytest.approx(
            stats.wilcoxon(numbers).pvalue
        )
    assert significance.signed_rank([0.0, 0.0]) == 1.0


def test_equal_values_share_the_mean_of_their_ranks():
    values = np.random.default_rng(0).integers(0, 4, (7, 3)) + 0.0
    values[2] = np.inf
    assert np.array_equal(significance.mean_rank(values), stats.rankdata(values, axis=0))

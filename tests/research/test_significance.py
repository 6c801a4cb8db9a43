"""The tests on one stream against their definitions, and the leader over several."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kernelbank.research import significance
from kernelbank.research.datasets.tables import CLASSIFICATION
from kernelbank.research.scores import overall
from support.results import result_row


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
    for seed in range(300):
        d = autoregressive(seed, 1000, 0.5)
        alarms += significance.diebold_mariano([d]).p_value < 0.05
        plain += abs(d.mean() / d.std() * math.sqrt(1000)) > 1.96
    assert 3 <= alarms <= 30  # 15 expected
    assert plain > 50


def test_independent_runs_have_a_pooled_error():
    runs = [autoregressive(seed, 200, 0.0) + 0.1 for seed in range(8)]
    one = significance.diebold_mariano(runs[:1])
    all_of_them = significance.diebold_mariano(runs)
    assert all_of_them.mean == pytest.approx(np.mean(runs))
    assert all_of_them.standard_error == pytest.approx(one.standard_error / math.sqrt(8), rel=0.25)
    assert all_of_them.p_value < 0.001


def test_constant_or_few_differences_have_a_defined_p_value():
    assert significance.diebold_mariano([np.zeros(100)]).p_value == 1.0
    assert significance.diebold_mariano([np.full(100, 0.1)]).p_value == 0.0
    assert math.isnan(significance.diebold_mariano([np.arange(10.0)]).p_value)
    assert math.isnan(significance.diebold_mariano([np.array([np.inf] * 50)]).p_value)
    with pytest.raises(ValueError, match="'series'"):
        significance.diebold_mariano([])


def test_holm_leaves_out_tests_that_were_not_made():
    adjusted = significance.holm([0.01, math.nan, 0.03])
    assert adjusted[0] == 0.02
    assert math.isnan(adjusted[1])


def test_leader_over_streams_has_the_least_mean_rank():
    results = [result_row(f"s{n}", "a", 1.0) for n in range(8)]
    results += [result_row(f"s{n}", "b", 2.0 + n) for n in range(8)]
    results += [result_row(f"s{n}", "c", math.inf if n else 0.5) for n in range(8)]
    a, b, c = overall(results)
    assert (a.name, b.name, c.name) == ("a", "b", "c")
    assert (a.mean_rank, a.first, a.ratio, a.wilcoxon) == (1.125, 7, 1.0, None)
    assert b.ratio == pytest.approx(math.exp(np.mean(np.log(np.arange(2.0, 10)))))
    assert b.wilcoxon == pytest.approx(2 * 2 / 2**8)
    assert c.ratio == math.inf
    assert overall([r for r in results if r.stream == "s0"]) == ()


def test_leader_without_an_error_counts_as_half_an_error():
    def labels(stream, name, loss):
        return replace(result_row(stream, name, loss), task=CLASSIFICATION, samples=100)

    results = [labels("s0", "a", 0.0), labels("s1", "a", 0.1)]
    results += [labels("s0", "b", 0.02), labels("s1", "b", 0.1)]
    a, b = overall(results)
    assert (a.name, a.ratio) == ("a", 1.0)
    assert b.ratio == pytest.approx(math.sqrt(0.02 / 0.005))

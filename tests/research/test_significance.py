"""Tests on one stream and over several, against articles, SciPy and definitions."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import kernelbank as kb
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
        alarms += significance.diebold_mariano([d]).p_value < 0.05
        plain += abs(d.mean() / d.std() * math.sqrt(1000)) > 1.96
    assert 1 <= alarms <= 12  # 5 expected
    assert plain > 15


def test_constant_or_few_differences_have_a_defined_p_value():
    assert significance.diebold_mariano([np.zeros(100)]).p_value == 1.0
    assert significance.diebold_mariano([np.full(100, 0.1)]).p_value == 0.0
    assert math.isnan(significance.diebold_mariano([np.arange(10.0)]).p_value)
    assert math.isnan(significance.diebold_mariano([np.array([np.inf] * 50)]).p_value)


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


def _losses(rows):
    return {str(j): list(column) for j, column in enumerate(np.asarray(rows).T)}


def test_example_of_demsar_has_its_differences():
    """Section 3.2.4: four methods on 14 data sets."""
    assert significance.critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert significance.critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=5e-3)


@pytest.mark.parametrize(("streams", "methods"), [(5, 3), (8, 12)])
def test_friedman_statistic_agrees_with_scipy_with_ties(streams, methods):
    draw = np.random.default_rng(streams)
    losses = draw.integers(0, 5, (streams, methods)) + 0.0
    losses[:, 0] += 2
    found = significance.rank_test(_losses(losses))
    expected = stats.friedmanchisquare(*losses.T).statistic
    assert found.statistic == pytest.approx(expected, rel=1e-12)
    ratio = (streams - 1) * expected / (streams * (methods - 1) - expected)
    tail = stats.f.sf(ratio, methods - 1, (methods - 1) * (streams - 1))
    assert found.p_value == pytest.approx(tail, rel=1e-9)


def test_equal_methods_and_one_order_everywhere_have_defined_p_values():
    same = significance.rank_test({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert (same.statistic, same.p_value) == (0.0, 1.0)
    clear = significance.rank_test({"a": [1.0] * 9, "b": [2.0] * 9, "c": [np.inf] * 9})
    assert (clear.statistic, clear.p_value) == (18.0, 0.0)
    assert clear.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_missing_scipy_is_named_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    banks, done = {"a": kb.KernelBank()}, []
    with pytest.raises(kb.errors.KernelBankError, match=r"pip install 'kernelbank\[research\]'"):
        kb.compare(banks, ["sine", "ar1"], samples=50, progress=lambda *run: done.append(run))
    assert not done
    assert kb.compare(banks, ["sine"], samples=50).overall == ()
    with pytest.raises(kb.errors.KernelBankError, match="SciPy"):
        kb.plots.critical_difference({"a": 1.4, "b": 1.6}, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: significance.rank_test({"a": [1.0, 2.0]}), "'losses' of rank_test must hold two"),
        (lambda: significance.rank_test({"a": [1.0, 2.0], "b": [2.0]}), "'losses'"),
        (lambda: significance.rank_test({"a": [1.0, 2.0], "b": [2.0, 1.0]}, 1), "'level'"),
        (lambda: significance.diebold_mariano([]), "'series'"),
        (lambda: kb.plots.critical_difference({"a": 1.0}, 3), "'ranks'"),
        (lambda: kb.plots.critical_difference({"a": 1.0, "b": 3.0}, 3), "'ranks'"),
        (lambda: kb.plots.critical_difference({"a": 1.0, "b": 2.0}, 1), "'streams'"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_comparison_ranks_those_that_ran_everywhere():
    losses = {"a": (1.0, 1.0, 2.0), "b_2": (2.0, 3.0, 1.0), "c": (3.0, 2.0, float("inf"))}
    rows = [result_row(f"s{n}", name, own[n]) for name, own in losses.items() for n in range(3)]
    rows += [result_row("s0", "only once", 0.1)]
    found = kb.Comparison("squared", 0, 0, (0,), tuple(rows), ()).rank_test()
    assert found.mean_ranks == pytest.approx({"a": 4 / 3, "b_2": 2.0, "c": 8 / 3})


def test_bars_of_the_diagram_overlap_where_methods_do_not_differ():
    ranks = {"a": 1.2, "b $x$": 2.0, "c": 4.9, "_d": 4.1, "e": 2.8}
    axes = kb.plots.critical_difference(ranks, 40).axes[0]
    difference = significance.critical_difference(5, 40)
    assert f"difference {difference:.2f} (level 0.05, 40 streams)" in axes.get_xlabel()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["a  1.20", r"b \$x\$  2.00", "e  2.80", " _d  4.10", "c  4.90"]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    for (low, high), rank in zip(bars, sorted(ranks.values()), strict=True):
        assert (low + high) / 2 == pytest.approx(rank)
        assert high - low == pytest.approx(difference)

"""The style of figures, their files, and fewer points of a long run."""

import hashlib
import os
import subprocess
import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import kernelbank as kb
from kernelbank.errors import InvalidArgument, KernelBankError
from kernelbank.research.plots.style import (
    interval_band,
    interval_means,
    interval_starts,
    line_indices,
)
from support.plotting import run_bank

P = kb.plots


def test_wrong_plot_arguments_are_refused():
    bank, trace, _ = run_bank()
    with pytest.raises(InvalidArgument, match="'ax'"):
        P.weights(trace, ax=Figure())
    with pytest.raises(InvalidArgument, match="'bank'"):
        P.bars(trace)
    with pytest.raises(InvalidArgument, match="'most'"):
        P.bars(bank, most=0)
    with pytest.raises(InvalidArgument, match="weights"):
        P.bars(kb.AutoBank())
    with pytest.raises(InvalidArgument, match="'formats'"):
        P.save(P.bars(bank), "nowhere", "x", ["gif"])
    with pytest.raises(InvalidArgument, match="Learn"):
        kb.AutoBank().input_ranges()


@pytest.mark.parametrize("missing", ["matplotlib", "pandas"])
def test_missing_library_is_refused_with_the_install_command(missing, monkeypatch):
    bank, trace, _ = run_bank()
    monkeypatch.setitem(sys.modules, missing, None)
    calls = [trace.to_frame]
    if missing == "matplotlib":
        calls = [
            lambda: P.trace(trace),
            lambda: P.bars(bank),
            lambda: P.new_figure(1, 1),
            lambda: P.weights(trace),
        ]
    for call in calls:
        with pytest.raises(KernelBankError, match="pip install"):
            call()


def test_given_axes_are_drawn_into_and_nothing_else_changes(regression_run):
    bank, trace, y = regression_run
    before = dict(matplotlib.rcParams)
    figure = Figure()
    axes = figure.subplots(1, 3)
    assert P.predictions(trace, y, ax=axes[0]) is figure
    assert P.bars(bank, ax=axes[1]) is figure
    assert P.function(bank, ax=axes[2]) is figure
    assert figure.axes == list(axes)
    assert axes[0].spines["top"].get_visible()  # the style is not changed
    P.trace(trace, y)
    assert dict(matplotlib.rcParams) == before


def test_odd_names_are_drawn_as_text():
    def own(X, Z):
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    odd = "$\\frac{ $ _x\n\x1b[31m"
    bank = kb.KernelBank([kb.kernels.Custom(own, name=odd), kb.kernels.Gaussian(1.0)])
    y = np.sin(np.arange(30.0))
    trace = bank.run(np.arange(30.0), y)
    for figure in (P.trace(trace, y), P.bars(bank)):
        figure.draw_without_rendering()  # a formula that cannot be read would raise an error
    labels = np.where(y > 0, "_up", "$x$")
    trace = kb.AutoBank("classification", size="small").run(y, labels)
    for figure in (P.trace(trace, labels), P.predictions(trace)):
        texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert {" _up", r"\$x\$"} <= set(texts)
        figure.draw_without_rendering()


DIGEST = """
import hashlib, sys, numpy as np, kernelbank as kb
x = np.arange(60) / 4
bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5), window=5)
trace = bank.run(x, np.sin(x))
paths = kb.plots.save(kb.plots.weights(trace), sys.argv[1], "a", ["png", "svg", "pdf"])
print(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths))
print("matplotlib.pyplot" in sys.modules)
"""


@pytest.mark.slow
def test_figure_in_another_process_has_the_same_bytes_without_pyplot(tmp_path):
    figure = P.weights(run_bank()[1])
    paths = P.save(figure, tmp_path, "a", ["png", "svg", "pdf"])
    found = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    done = subprocess.run(
        [sys.executable, "-c", DIGEST, str(tmp_path / "other")],
        env={**os.environ, "PYTHONHASHSEED": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [*found, "False"]


def naive_line_indices(values, most):
    if len(values) <= most:
        return list(range(len(values)))
    begin = [*interval_starts(len(values), most // 2), len(values)]
    kept = {0, len(values) - 1}
    for low, high in pairwise(begin):
        finite = [i for i in range(low, high) if np.isfinite(values[i])]
        if finite:
            kept |= {min(finite, key=lambda p: values[p]), max(finite, key=lambda p: values[p])}
        else:
            kept |= {low}
    return sorted(kept)


values = st.lists(
    st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf]) | st.floats(-9, 9), min_size=1
)


@given(values, st.integers(2, 12))
def test_line_keeps_the_extremes_of_every_interval(given_values, most):
    array = np.array(given_values)
    assert line_indices(array, most).tolist() == naive_line_indices(array, most)


@given(st.integers(1, 300), st.integers(1, 40))
def test_intervals_are_nearly_equal(length, most):
    begin = interval_starts(length, most)
    sizes = np.diff(begin, append=length)
    assert begin[0] == 0
    assert len(begin) == min(length, most)
    assert sizes.max() - sizes.min() <= 1


def test_interval_means_and_bands_equal_plain_numpy():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    means = interval_means(rows, 10)
    assert means == pytest.approx(rows.reshape(10, 100, 3).mean(axis=1))
    assert interval_means(rows, 501) is not rows
    assert np.array_equal(interval_means(rows, 501), rows)
    x, low, high = interval_band(rows[:, 0], rows[:, 1], 20)
    assert np.array_equal(low, rows[:, 0].reshape(10, 100).min(axis=1))
    assert np.array_equal(high, rows[:, 1].reshape(10, 100).max(axis=1))
    assert x[0] == 49.5

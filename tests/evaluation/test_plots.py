"""Pictures show the figures of a trace, say what they lack, and leave matplotlib as it was."""

import hashlib
import io
import os
import pickle
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
from kernelbank.bank.trace import Trace
from kernelbank.errors import InvalidArgument, KernelBankError
from kernelbank.evaluation.plots import predictions as samples
from kernelbank.evaluation.plots import traces as records
from kernelbank.evaluation.plots.downsample import (
    ends_of_stretches,
    mean_of_stretches,
    starts,
    thinned,
)

P = kb.plots


def played(samples=60, record="all"):
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5), window=5)
    x = np.arange(samples) / 4
    return bank, bank.run(x, np.sin(x), record=record), np.sin(x)


@pytest.fixture(scope="module")
def numbers():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (200, 2))
    y = 10 + 3 * np.sin(X[:, 0]) + 0.1 * draw.normal(size=200)
    bank = kb.AutoBank(size="small")
    return bank, bank.run(X, y, record="all"), y


@pytest.fixture(scope="module")
def labelled():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(150, 2))
    y = np.where(X[:, 0] > 0.5, "hot", np.where(X[:, 0] < -0.5, "cold", "fine"))
    bank = kb.AutoBank("classification", size="small")
    return bank, bank.run(X, y, record="all"), y


def made(fields, samples=50, slots=3):
    """A trace of zeros to write on."""
    trace = Trace(samples, [f"slot {p}" for p in range(slots)], fields)
    for field in fields:
        getattr(trace, field)[:] = 0.0
    return trace


def line(axes, label):
    (found,) = (one for one in axes.lines if one.get_label() == label)
    return found.get_xydata()


# --- what is drawn --------------------------------------------------------------------------------


def test_cumulative_cost_has_the_sums_of_the_bank_and_of_every_slot():
    _, trace, _ = played()
    axes = P.cumulative_cost(trace).axes[0]
    assert np.array_equal(line(axes, "the bank")[:, 1], np.cumsum(trace.cost))
    totals = np.cumsum(trace.slot_cost, axis=0)
    grey = axes.collections[0].get_segments()
    assert np.array_equal(np.array(grey)[:, :, 1], totals.T)
    best = int(np.argmin(totals[-1]))
    assert np.array_equal(line(axes, f"best slot: {trace.names[best]}")[:, 1], totals[:, best])


def test_slots_that_cost_too_much_leave_the_picture_and_are_counted():
    trace = made(("cost", "slot_cost"), slots=6)
    trace.cost[:] = 1.0
    trace.slot_cost[:] = [1, 2, 3, 2, 1e9, np.inf]
    axes = P.cumulative_cost(trace).axes[0]
    assert axes.get_ylim()[1] < 200
    assert any("2 of 6" in text.get_text() for text in axes.get_legend().get_texts())


def test_cumulative_loss_of_each_kind_of_trace(numbers, labelled):
    _, trace, _ = played()
    drawn = line(P.cumulative_loss(trace).axes[0], "the bank")
    assert np.array_equal(drawn[:, 1], np.cumsum(trace.loss))
    _, trace, y = numbers
    axes = P.cumulative_loss(trace, y).axes[0]
    assert np.allclose(line(axes, "the bank")[:, 1], np.cumsum((trace.predictions - y) ** 2))
    assert len(axes.collections[0].get_segments()) == len(trace.names)
    _, trace, y = labelled
    drawn = line(P.cumulative_loss(trace, y).axes[0], "the bank")
    assert drawn[-1, 1] == (trace.predictions != y).sum()


def test_weights_are_an_image_with_names():
    _, trace, _ = played()
    axes, bar = P.weights(trace).axes
    assert np.allclose(axes.images[0].get_array(), trace.weights.T)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(trace.names)
    assert bar.get_ylabel() == "weight"


def test_no_slot_is_lost_among_a_thousand_and_no_sample_among_many():
    trace = made(("weights",), samples=3000, slots=1001)
    trace.weights[1234:1300, 777] = 0.9
    trace.weights[500:600, 3] = -0.5
    axes, bar = P.weights(trace).axes
    image = axes.images[0].get_array()
    assert image.shape == (201, 500)
    assert image.max() == pytest.approx(0.9)
    assert image.min() == pytest.approx(-0.5)
    assert "largest of each 5" in axes.get_ylabel()
    assert "6 samples" in bar.get_ylabel()
    row, column = np.unravel_index(np.argmax(image), image.shape)
    assert row == 777 // 5
    assert 1234 // 6 <= column <= 1300 // 6


def test_a_few_large_weights_do_not_make_all_others_pale():
    trace = made(("weights",), samples=900, slots=40)
    trace.weights[:] = 0.02
    trace.weights[5, 5] = 1.0
    axes, _ = P.weights(trace).axes
    assert axes.images[0].norm.vmax == pytest.approx(0.02)
    assert axes.images[0].colorbar.extend == "max"


@pytest.mark.parametrize("signed", [False, True])
def test_more_weight_is_darker_in_grey(signed):
    trace = made(("weights",))
    trace.weights[0] = [1.0, 0.5, -1.0 if signed else 0.0]
    image = P.weights(trace).axes[0].images[0]
    grid = np.linspace(0, 1, 50)
    for side in (grid, -grid) if signed else (grid,):
        grey = image.cmap(image.norm(side))[:, :3] @ [0.299, 0.587, 0.114]
        assert (np.diff(grey) < 0).all()


def test_predictions_have_targets_and_intervals(numbers):
    _, trace, y = numbers
    axes = P.predictions(trace, y).axes[0]
    assert np.array_equal(line(axes, "target")[:, 1], y)
    assert np.array_equal(line(axes, "prediction")[:, 1], trace.predictions)
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert set(trace.lower) | set(trace.upper) <= set(heights)
    bare = P.predictions(played()[1]).axes[0]
    assert not bare.collections
    assert len(bare.lines) == 1


def test_labels_show_the_probability_of_the_true_one(labelled):
    _, trace, y = labelled
    axes = P.predictions(trace, y).axes[0]
    for place, label in enumerate(trace.classes):
        dots = line(axes, label)
        assert np.array_equal(dots[:, 0], np.flatnonzero(y == label))
        assert np.array_equal(dots[:, 1], trace.probabilities[y == label, place])
    stack = P.predictions(trace).axes[0].patches
    assert len(stack) == 3
    tops = stack[-1].get_data().values
    assert tops[0] == 0.0  # no class was known
    assert tops[1:] == pytest.approx(np.ones(149))


def test_many_classes_share_a_colour():
    y = np.arange(200) % 9
    trace = kb.AutoBank("classification", size="small").run(y.astype(float), y)
    axes = P.predictions(trace).axes[0]
    assert axes.get_legend().get_texts()[-1].get_text() == "3 others"
    assert len(P.predictions(trace, y).axes[0].lines) == 10


def test_bars_are_the_present_weights(numbers, labelled):
    bank, *_ = played()
    drawn = [bar.get_width() for bar in P.bars(bank).axes[0].patches]
    assert drawn == bank.weights[bank.weights != 0].tolist()
    for auto, *_ in (numbers, labelled):
        weights = np.mean([one.weights for one in auto.banks], axis=0)
        axes = auto.plot_weights(most=3).axes[0]
        assert sorted(bar.get_width() for bar in axes.patches) == sorted(weights)[-3:]
        rest = weights.sum() - sum(sorted(weights)[-3:])
        assert f"{rest:.3f} on" in axes.get_xlabel()


def test_the_function_along_an_input(numbers, labelled):
    bank, *_ = numbers
    axes = P.function(bank, along=1, points=50, coverage=0.8).axes[0]
    middle, low, high = bank.typical().T
    rows = np.tile(middle, (50, 1))
    rows[:, 1] = np.linspace(low[1], high[1], 50)
    assert np.array_equal(line(axes, "prediction")[:, 1], bank.survey(rows)[:, 0])
    ends = set(axes.collections[0].get_paths()[0].vertices[:, 1])
    assert set(bank.survey(rows, 0.8)[:, 1:].ravel()) <= ends
    axes = P.function(bank, at=[0.0, 1.5], between=(-1, 1), points=3).axes[0]
    assert np.array_equal(
        line(axes, "prediction")[:, 1], bank.predict([[-1, 1.5], [0, 1.5], [1, 1.5]])
    )
    bank, *_ = labelled
    assert len(P.function(bank).axes[0].lines) == 3


def test_the_function_of_a_kernel_bank():
    draw = np.random.default_rng(0)
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5))
    with pytest.raises(InvalidArgument, match="learned"):
        P.function(bank, between=(0, 1))
    X = draw.normal(size=(50, 2))
    bank.run(X, X[:, 0])
    with pytest.raises(InvalidArgument, match=r"'between'.*KernelBank"):
        P.function(bank)
    with pytest.raises(InvalidArgument, match=r"'at'.*2 inputs"):
        P.function(bank, between=(0, 1))
    for wrong in ((1, 0), (0,), "ab", (0, np.nan)):
        with pytest.raises(InvalidArgument, match="'between'"):
            P.function(bank, at=[0, 0], between=wrong)
    with pytest.raises(InvalidArgument, match="'along'"):
        P.function(bank, along=2, at=[0, 0], between=(0, 1))
    with pytest.raises(InvalidArgument, match="'at'"):
        P.function(bank, at=[0, 0, 0], between=(0, 1))
    axes = P.function(bank, along=1, at=[0.5, 9.0], between=(-1, 1), points=5).axes[0]
    rows = np.column_stack([np.full(5, 0.5), np.linspace(-1, 1, 5)])
    assert np.array_equal(line(axes, "the bank")[:, 1], bank.predict(rows))


def test_a_trace_in_panels_of_what_it_recorded(numbers, labelled):
    _, trace, y = played()
    assert len(trace.plot(y).axes) == 4  # the fourth is the scale of the weights
    for fields, panels in (
        (["predictions"], 1),
        (["loss", "weights"], 3),
        (["cost", "weights"], 2),
    ):
        _, trace, _ = played(record=fields)
        assert len(trace.plot().axes) == panels, fields
    for _, trace, y in (numbers, labelled):
        assert len(trace.plot(y).axes) == 4
        assert len(trace.plot().axes) == 3


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "field"),
    [
        (P.cumulative_cost, "slot_cost"),
        (P.cumulative_loss, "loss"),
        (P.weights, "weights"),
        (P.predictions, "predictions"),
    ],
)
def test_a_field_that_was_not_recorded_is_named(draw, field):
    _, trace, _ = played(record=["cost", "regret"])
    with pytest.raises(InvalidArgument, match=rf"hold '{field}'.*record=\"all\""):
        draw(trace)
    with pytest.raises(InvalidArgument, match="'trace'"):
        draw("no trace")


def test_a_trace_with_nothing_to_draw():
    _, trace, _ = played(record=["regret"])
    with pytest.raises(InvalidArgument, match=r"record=\"all\""):
        trace.plot()


def test_costs_of_an_auto_bank_are_not_recorded(numbers):
    _, trace, _ = numbers
    with pytest.raises(InvalidArgument, match="cumulative_loss"):
        P.cumulative_cost(trace)
    with pytest.raises(InvalidArgument, match=r"'y'.*targets"):
        P.cumulative_loss(trace)


def test_targets_must_fit_the_trace(numbers, labelled):
    for _, trace, y in (played(), numbers, labelled):
        with pytest.raises(InvalidArgument, match="'y'"):
            P.predictions(trace, y[:-1])
    _, trace, y = labelled
    with pytest.raises(InvalidArgument, match="lukewarm"):
        P.predictions(trace, [*y[:-1], "lukewarm"])


def test_other_arguments():
    bank, trace, _ = played()
    with pytest.raises(InvalidArgument, match="'ax'"):
        P.weights(trace, ax=Figure())
    with pytest.raises(InvalidArgument, match="'bank'"):
        P.bars(trace)
    with pytest.raises(InvalidArgument, match="'most'"):
        P.bars(bank, most=0)
    with pytest.raises(InvalidArgument, match="weights"):
        kb.AutoBank().plot_weights()
    with pytest.raises(InvalidArgument, match="'formats'"):
        P.save(bank.plot_weights(), "nowhere", "x", ["gif"])
    with pytest.raises(InvalidArgument, match="Learn"):
        kb.AutoBank().typical()


@pytest.mark.parametrize("missing", ["matplotlib", "pandas"])
def test_without_the_library_it_is_asked_for(missing, monkeypatch):
    bank, trace, _ = played()
    monkeypatch.setitem(sys.modules, missing, None)
    calls = [trace.to_frame]
    if missing == "matplotlib":
        calls = [
            trace.plot,
            bank.plot_weights,
            lambda: P.new_figure(1, 1),
            lambda: P.weights(trace),
        ]
    for call in calls:
        with pytest.raises(KernelBankError, match="pip install"):
            call()


# --- manners --------------------------------------------------------------------------------------


def test_axes_of_ones_own_are_drawn_into_and_nothing_else_changes(numbers):
    bank, trace, y = numbers
    before = dict(matplotlib.rcParams)
    figure = Figure()
    axes = figure.subplots(1, 3)
    assert P.predictions(trace, y, ax=axes[0]) is figure
    assert P.bars(bank, ax=axes[1]) is figure
    assert P.function(bank, ax=axes[2]) is figure
    assert figure.axes == list(axes)
    assert axes[0].spines["top"].get_visible()  # the style is its owner's
    P.trace(trace, y)
    assert dict(matplotlib.rcParams) == before


def test_figures_look_the_same_outside_of_the_style():
    """matplotlib makes ticks when it draws: their size must not be that of then."""
    figures = [P.weights(played()[1]), P.cumulative_cost(played()[1])]
    for figure in figures:
        for _ in range(3):  # until the layout is at rest
            figure.draw_without_rendering()
        plain, other = io.BytesIO(), io.BytesIO()
        figure.savefig(plain)
        with matplotlib.rc_context({"font.size": 30, "xtick.major.width": 5}):
            figure.savefig(other)
        assert plain.getvalue() == other.getvalue()


def test_names_are_text_whatever_is_in_them():
    def own(X, Z):
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    odd = "$\\frac{ $ _x\n\x1b[31m"
    bank = kb.KernelBank([kb.kernels.Custom(own, name=odd), kb.kernels.Gaussian(1.0)])
    y = np.sin(np.arange(30.0))
    trace = bank.run(np.arange(30.0), y)
    for figure in (trace.plot(y), bank.plot_weights()):
        figure.draw_without_rendering()  # a formula that cannot be read would raise an error
    labels = np.where(y > 0, "_up", "$x$")
    trace = kb.AutoBank("classification", size="small").run(y, labels)
    for figure in (trace.plot(labels), P.predictions(trace)):
        texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert {" _up", r"\$x\$"} <= set(texts)
        figure.draw_without_rendering()


def test_axes_in_a_part_of_a_figure():
    figure = Figure()
    part, _ = figure.subfigures(1, 2)
    assert P.bars(played()[0], ax=part.subplots()) is figure


def test_a_notebook_gets_a_png():
    bank, *_ = played()
    assert bank.plot_weights()._repr_png_().startswith(b"\x89PNG")


DIGEST = """
import hashlib, sys, numpy as np, kernelbank as kb
x = np.arange(60) / 4
bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5), window=5)
trace = bank.run(x, np.sin(x))
paths = kb.plots.save(kb.plots.weights(trace), sys.argv[1], "a", ["png", "svg", "pdf"])
print(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths))
print("matplotlib.pyplot" in sys.modules)
"""


def test_the_same_figure_gives_the_same_bytes_again(tmp_path):
    figure = played()[0].plot_weights()
    for ending in ("png", "svg"):
        first, again = (P.save(figure, tmp_path, name, ending)[0].read_bytes() for name in "ab")
        assert first == again


@pytest.mark.slow
def test_the_same_figure_gives_the_same_bytes_in_another_process_without_pyplot(tmp_path):
    figure = P.weights(played()[1])
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


def test_a_palette_makes_a_png_smaller(tmp_path):
    figure = P.cumulative_cost(played()[1])
    (large,) = P.save(figure, tmp_path, "large", "png")
    (small,) = P.save(figure, tmp_path, "small", "png", palette=True)
    assert small.stat().st_size < 0.6 * large.stat().st_size


# --- thinning -------------------------------------------------------------------------------------


def test_a_million_samples(tmp_path):
    trace = made(("predictions", "cost", "slot_cost", "weights"), samples=10**6, slots=2)
    trace.predictions[123_456] = 7.0
    trace.cost[:] = trace.slot_cost[:, 0] = 1.0
    figure = trace.plot(np.zeros(10**6))
    assert line(figure.axes[0], "prediction")[:, 1].max() == 7.0
    assert len(line(figure.axes[0], "prediction")) <= 2002
    (path,) = P.save(figure, tmp_path, "million", ["svg"])
    assert path.stat().st_size < 400_000


def naive_thinned(values, most):
    if len(values) <= most:
        return list(range(len(values)))
    begin = [*starts(len(values), most // 2), len(values)]
    kept = {0, len(values) - 1}
    for low, high in pairwise(begin):
        finite = [place for place in range(low, high) if np.isfinite(values[place])]
        if finite:
            kept |= {min(finite, key=lambda p: values[p]), max(finite, key=lambda p: values[p])}
        else:
            kept |= {low}
    return sorted(kept)


values = st.lists(
    st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf]) | st.floats(-9, 9), min_size=1
)


@given(values, st.integers(2, 12))
def test_thinned_lines_keep_the_ends_of_every_stretch(given_values, most):
    array = np.array(given_values)
    assert thinned(array, most).tolist() == naive_thinned(array, most)


@given(st.integers(1, 300), st.integers(1, 40))
def test_stretches_are_even(length, most):
    begin = starts(length, most)
    sizes = np.diff(begin, append=length)
    assert begin[0] == 0
    assert len(begin) == min(length, most)
    assert sizes.max() - sizes.min() <= 1


def test_means_and_ends_of_stretches():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    means = mean_of_stretches(rows, 10)
    assert means == pytest.approx(rows.reshape(10, 100, 3).mean(axis=1))
    assert mean_of_stretches(rows, 501) is not rows
    assert np.array_equal(mean_of_stretches(rows, 501), rows)
    x, low, high = ends_of_stretches(rows[:, 0], rows[:, 1], 20)
    assert np.array_equal(low, rows[:, 0].reshape(10, 100).min(axis=1))
    assert np.array_equal(high, rows[:, 1].reshape(10, 100).max(axis=1))
    assert x[0] == 49.5


def test_limits_are_those_of_the_docs():
    assert (records.NAMED, records.ROWS, samples.DOTS) == (40, 250, 400)


# --- names ----------------------------------------------------------------------------------------


def test_traces_know_their_slots(numbers):
    bank, trace, _ = played()
    assert trace.names == bank.names
    assert bank.names[0] == "[0] Gaussian(width=0.5)"
    auto, trace, _ = numbers
    assert trace.names == auto.names
    assert len(trace.names) == trace.weights.shape[1]


def test_names_tell_learners_apart_and_survive_a_pickle():
    def own(X, Z):
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    kernel = kb.kernels.Custom(own, name="own")
    slots = [kb.Slot(kernel, kb.learners.KRLS(budget=b)) for b in (10, 20)]
    bank = kb.KernelBank(slots=slots)
    trace = pickle.loads(pickle.dumps(bank.run(np.arange(9.0), np.arange(9.0))))
    assert len(set(trace.names)) == 2
    assert "budget=20" in trace.names[1]
    auto = kb.AutoBank(slots=slots)
    assert auto.run(np.arange(9.0), np.arange(9.0)).names == bank.names

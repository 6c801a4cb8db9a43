"""Plots: what is drawn, what is refused, the style of figures, and fewer points of a long run."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import kernelbank as kb
from kernelbank.bank.trace import Trace
from kernelbank.errors import InvalidArgument

P = kb.plots


def run_bank(samples=60, record="all", outputs=1):
    """A bank, its trace and its targets."""
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5), window=5, outputs=outputs)
    x = np.arange(samples) / 4
    y = np.sin(x) if outputs == 1 else np.column_stack([np.sin(x)] * outputs)
    return bank, bank.run(x, y, record=record), y


def zero_trace(fields, samples=50, slots=3):
    """A trace of zeros to write to."""
    trace = Trace(samples, [f"slot {p}" for p in range(slots)], fields)
    for field in fields:
        getattr(trace, field)[:] = 0.0
    return trace


def drawn_line(axes, label):
    """(n, 2): the points of the line with this label."""
    (found,) = (one for one in axes.lines if one.get_label() == label)
    return found.get_xydata()


@pytest.fixture(scope="module")
def regression_run():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (200, 2))
    y = 10 + 3 * np.sin(X[:, 0]) + 0.1 * draw.normal(size=200)
    bank = kb.AutoBank(size="small")
    return bank, bank.run(X, y, record="all"), y


@pytest.fixture(scope="module")
def classification_run():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(150, 2))
    y = np.where(X[:, 0] > 0.5, "hot", np.where(X[:, 0] < -0.5, "cold", "fine"))
    bank = kb.AutoBank("classification", size="small")
    return bank, bank.run(X, y, record="all"), y


# --- traces ---------------------------------------------------------------------------------------


def test_cumulative_cost_draws_sums_of_bank_and_every_slot():
    _, trace, _ = run_bank()
    axes = P.cumulative_cost(trace).axes[0]
    assert np.array_equal(drawn_line(axes, "the bank")[:, 1], np.cumsum(trace.cost))
    totals = np.cumsum(trace.slot_cost, axis=0)
    grey = [line.get_ydata() for line in axes.lines if line.get_color() == P.GREY]
    assert np.array_equal(grey, totals.T)
    best = int(np.argmin(totals[-1]))
    assert np.array_equal(
        drawn_line(axes, f"best slot: {trace.names[best]}")[:, 1], totals[:, best]
    )


def test_slots_that_cost_too_much_leave_the_axes_and_are_counted():
    trace = zero_trace(("cost", "slot_cost"), slots=6)
    trace.cost[:] = 1.0
    trace.slot_cost[:] = [1, 2, 3, 2, 1e9, np.inf]
    axes = P.cumulative_cost(trace).axes[0]
    assert axes.get_ylim()[1] < 200
    assert any("2 of 6" in text.get_text() for text in axes.get_legend().get_texts())


def test_cumulative_loss_is_the_sum_of_losses():
    _, trace, _ = run_bank()
    drawn = drawn_line(P.cumulative_loss(trace).axes[0], "the bank")
    assert np.array_equal(drawn[:, 1], np.cumsum(trace.loss))


def test_weights_of_a_thousand_slots_keep_every_peak():
    trace = zero_trace(("weights",), samples=3000, slots=1001)
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


@pytest.mark.parametrize("signed", [False, True])
def test_larger_weight_is_darker_in_grey(signed):
    trace = zero_trace(("weights",))
    trace.weights[0] = [1.0, 0.5, -1.0 if signed else 0.0]
    image = P.weights(trace).axes[0].images[0]
    grid = np.linspace(0, 1, 50)
    for side in (grid, -grid) if signed else (grid,):
        grey = image.cmap(image.norm(side))[:, :3] @ [0.299, 0.587, 0.114]
        assert (np.diff(grey) < 0).all()


def test_predictions_are_drawn_with_targets_and_intervals(regression_run):
    _, trace, y = regression_run
    axes = P.predictions(trace, y).axes[0]
    assert np.array_equal(drawn_line(axes, "target")[:, 1], y)
    assert np.array_equal(drawn_line(axes, "prediction")[:, 1], trace.predictions, equal_nan=True)
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert set(trace.lower[1:]) | set(trace.upper[1:]) <= set(heights)
    bare = P.predictions(run_bank()[1]).axes[0]
    assert not bare.collections
    assert len(bare.lines) == 1


def test_predictions_of_labels_show_the_probability_of_the_true_one(classification_run):
    _, trace, y = classification_run
    axes = P.predictions(trace, y).axes[0]
    for index, label in enumerate(trace.classes):
        dots = drawn_line(axes, label)
        assert np.array_equal(dots[:, 0], np.flatnonzero(y == label))
        assert np.array_equal(dots[:, 1], np.nan_to_num(trace.probabilities[y == label, index]))


def test_trace_has_one_panel_per_recorded_kind(classification_run):
    _, trace, y = run_bank()
    assert len(P.trace(trace, y).axes) == 4  # the fourth is the scale of the weights
    assert len(P.trace(run_bank(record=["cost", "weights"])[1]).axes) == 2
    _, trace, y = classification_run
    assert len(P.trace(trace, y).axes) == 3
    assert len(P.trace(trace).axes) == 2


@pytest.mark.slow
def test_file_of_a_trace_of_a_million_samples_is_small(tmp_path):
    fields = ("predictions", "cost", "slot_cost", "weights")
    trace = zero_trace(fields, samples=1_000_000, slots=2)
    (path,) = P.save(P.trace(trace, np.zeros(1_000_000)), tmp_path, "many", ["svg"])
    assert path.stat().st_size < 400_000


# --- banks ----------------------------------------------------------------------------------------


def test_bars_show_the_present_weights(regression_run, classification_run):
    bank, *_ = run_bank()
    drawn = [bar.get_width() for bar in P.bars(bank).axes[0].patches]
    assert drawn == bank.weights[bank.weights != 0].tolist()
    for auto, *_ in (regression_run, classification_run):
        weights = np.mean([np.atleast_2d(one.weights) for one in auto.banks], axis=(0, 1))
        axes = P.bars(auto, most=3).axes[0]
        assert sorted(bar.get_width() for bar in axes.patches) == sorted(weights)[-3:]
        rest = weights.sum() - sum(sorted(weights)[-3:])
        assert (f"{rest:.3f} on" if rest > 1e-9 else "have none") in axes.get_xlabel()


def test_function_of_an_auto_bank_is_its_prediction_along_an_input(
    regression_run, classification_run
):
    bank, *_ = regression_run
    axes = P.function(bank, along=1, coverage=0.8).axes[0]
    middle, low, high = bank.input_ranges().T
    rows = np.tile(middle, (300, 1))
    rows[:, 1] = np.linspace(low[1], high[1], 300)
    assert np.array_equal(drawn_line(axes, "prediction")[:, 1], bank.predict_at(rows)[:, 0])
    ends = set(axes.collections[0].get_paths()[0].vertices[:, 1])
    assert set(bank.predict_at(rows, 0.8)[:, 1:].ravel()) <= ends
    bank, *_ = classification_run
    assert len(P.function(bank).axes[0].lines) == 3


@pytest.fixture(scope="module")
def forecaster():
    draw = np.random.default_rng(0)
    bank = kb.AutoBank(lags=3, horizons=(1, 4, 9), size="small")
    bank.run(np.zeros(120), np.sin(np.arange(120) / 3) + 0.1 * draw.normal(size=120))
    return bank


def test_a_fan_has_the_last_targets_the_forecasts_and_their_quantiles(forecaster):
    forecast = forecaster.forecast()
    axes = P.forecast(forecast).axes[0]
    target, point = drawn_line(axes, "target"), drawn_line(axes, "forecast")
    np.testing.assert_array_equal(target[:, 1], forecast.history)
    assert target[-1, 0] == 0.0
    np.testing.assert_array_equal(point, np.column_stack([forecast.horizons, forecast.point]))
    ends = [set(band.get_paths()[0].vertices[:, 1]) for band in axes.collections]
    for own, levels in zip(ends, [(0.05, 0.95), (0.1, 0.9), (0.25, 0.75)], strict=True):
        wanted = np.concatenate([forecast.quantiles[level] for level in levels])
        assert {*wanted, forecast.history[-1]} == own


def test_one_target_of_several_is_drawn():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (150, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 100 + 30 * X[:, 1]])
    Y[::7, 1] = np.nan
    bank = kb.AutoBank(size="small")
    bank.learn_one(X[0], {"load": Y[0, 0], "$ price": Y[0, 1]})
    trace = bank.run(X, Y, record="all")
    figure = P.trace(trace.of_output("$ price"), Y[:, 1])
    assert len(figure.axes) == 3
    drawn = drawn_line(figure.axes[0], "prediction")[:, 1]
    assert np.array_equal(drawn, trace.predictions[:, 1], equal_nan=True)
    axes = P.function(bank, 1, target="$ price").axes[0]
    grid, values = drawn_line(axes, "prediction").T
    rows = np.column_stack([np.full(300, bank.input_ranges()[0, 0]), grid])
    assert np.array_equal(values, bank.predict_at(rows)[:, 1, 0])
    assert axes.get_ylabel() == r"prediction of \$ price"
    with pytest.raises(InvalidArgument, match=r"'along' of function.*0 to 1, or"):
        P.function(bank, 2)
    with pytest.raises(InvalidArgument, match=r"'target' of function.*'load', '\$ price'"):
        P.function(bank, target="price")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda bank, trace: P.weights(trace, ax=Figure()), "'ax'"),
        (lambda bank, trace: P.bars(trace), "'bank'"),
        (lambda bank, trace: P.bars(bank, most=0), "'most'"),
        (lambda bank, trace: P.bars(kb.AutoBank()), "weights"),
        (lambda bank, trace: P.save(P.bars(bank), "nowhere", "x", ["gif"]), "'formats'"),
        (lambda bank, trace: kb.AutoBank().input_ranges(), "Learn"),
        (lambda bank, trace: P.predictions("no trace"), "'trace'"),
        (lambda bank, trace: P.predictions(trace, [1.0]), "'y'"),
        (lambda bank, trace: P.function(bank), "be an AutoBank"),
        (lambda bank, trace: P.function(kb.AutoBank()), "Learn some rows"),
        (lambda bank, trace: P.forecast(bank), "be a Forecast"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    bank, trace, _ = run_bank(samples=20)
    with pytest.raises(InvalidArgument, match=words):
        call(bank, trace)


def test_traces_that_a_plot_cannot_draw_are_refused(regression_run, classification_run):
    bare, several = run_bank(record=["regret"])[1], run_bank(outputs=2)[1]
    for draw in (P.cumulative_cost, P.cumulative_loss, P.weights, P.predictions, P.trace):
        with pytest.raises(InvalidArgument, match=r"record=\"all\""):
            draw(bare)
        with pytest.raises(InvalidArgument, match=r"must have one output.*of_output\(0\)"):
            draw(several)
    with pytest.raises(InvalidArgument, match="Only a KernelBank records it"):
        P.cumulative_cost(regression_run[1])
    _, trace, y = classification_run
    with pytest.raises(InvalidArgument, match="lukewarm"):
        P.predictions(trace, [*y[:-1], "lukewarm"])
    with pytest.raises(InvalidArgument, match="'y' must be given"):
        P.predictions(trace)


# --- style ----------------------------------------------------------------------------------------


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
    bank.run(np.arange(30.0), y)
    P.bars(bank).draw_without_rendering()  # a formula that cannot be read would raise an error
    labels = np.where(y > 0, "_up", "$x$")
    trace = kb.AutoBank("classification", size="small").run(y, labels)
    texts = [text.get_text() for text in P.trace(trace, labels).axes[0].get_legend().get_texts()]
    assert {" _up", r"\$x\$"} <= set(texts)

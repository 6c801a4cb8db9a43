"""Plots of traces of one target and of several: what is drawn, and what is refused."""

import pickle

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.plotting import drawn_line, run_bank, zero_trace

P = kb.plots


def test_cumulative_cost_draws_sums_of_bank_and_every_slot():
    _, trace, _ = run_bank()
    axes = P.cumulative_cost(trace).axes[0]
    assert np.array_equal(drawn_line(axes, "the bank")[:, 1], np.cumsum(trace.cost))
    totals = np.cumsum(trace.slot_cost, axis=0)
    grey = axes.collections[0].get_segments()
    assert np.array_equal(np.array(grey)[:, :, 1], totals.T)
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


def test_cumulative_loss_of_each_kind_of_trace_is_its_sum(regression_run, classification_run):
    _, trace, _ = run_bank()
    drawn = drawn_line(P.cumulative_loss(trace).axes[0], "the bank")
    assert np.array_equal(drawn[:, 1], np.cumsum(trace.loss))
    _, trace, y = regression_run
    axes = P.cumulative_loss(trace, y).axes[0]
    assert np.allclose(
        drawn_line(axes, "the bank")[:, 1], np.nancumsum((trace.predictions - y) ** 2)
    )
    assert len(axes.collections[0].get_segments()) == len(trace.names)
    _, trace, y = classification_run
    drawn = drawn_line(P.cumulative_loss(trace, y).axes[0], "the bank")
    assert drawn[-1, 1] == (trace.predictions[1:] != y[1:]).sum()  # nothing is known before


def test_weights_are_an_image_with_slot_names():
    _, trace, _ = run_bank()
    axes, bar = P.weights(trace).axes
    assert np.allclose(axes.images[0].get_array(), trace.weights.T)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(trace.names)
    assert bar.get_ylabel() == "weight"


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
    stack = P.predictions(trace).axes[0].patches
    assert len(stack) == 3
    tops = stack[-1].get_data().values
    assert tops[0] == 0.0  # no class was known
    assert tops[1:] == pytest.approx(np.ones(149))


def test_trace_has_one_panel_per_recorded_kind(regression_run, classification_run):
    _, trace, y = run_bank()
    assert len(P.trace(trace, y).axes) == 4  # the fourth is the scale of the weights
    for fields, panels in (
        (["predictions"], 1),
        (["loss", "weights"], 3),
        (["cost", "weights"], 2),
    ):
        _, trace, _ = run_bank(record=fields)
        assert len(P.trace(trace).axes) == panels, fields
    for _, trace, y in (regression_run, classification_run):
        assert len(P.trace(trace, y).axes) == 4
        assert len(P.trace(trace).axes) == 3


@pytest.mark.parametrize(
    ("draw", "field"),
    [
        (P.cumulative_cost, "slot_cost"),
        (P.cumulative_loss, "loss"),
        (P.weights, "weights"),
        (P.predictions, "predictions"),
    ],
)
def test_trace_without_the_field_is_refused_with_its_name(draw, field):
    _, trace, _ = run_bank(record=["cost", "regret"])
    with pytest.raises(InvalidArgument, match=rf"hold '{field}'.*record=\"all\""):
        draw(trace)
    with pytest.raises(InvalidArgument, match="'trace'"):
        draw("no trace")


def test_trace_with_nothing_to_draw_is_refused():
    _, trace, _ = run_bank(record=["regret"])
    with pytest.raises(InvalidArgument, match=r"record=\"all\""):
        P.trace(trace)


def test_costs_of_an_auto_bank_are_refused(regression_run):
    _, trace, _ = regression_run
    with pytest.raises(InvalidArgument, match="cumulative_loss"):
        P.cumulative_cost(trace)
    with pytest.raises(InvalidArgument, match=r"'y'.*targets"):
        P.cumulative_loss(trace)


def test_targets_that_do_not_fit_the_trace_are_refused(regression_run, classification_run):
    for _, trace, y in (run_bank(), regression_run, classification_run):
        with pytest.raises(InvalidArgument, match="'y'"):
            P.predictions(trace, y[:-1])
    _, trace, y = classification_run
    with pytest.raises(InvalidArgument, match="lukewarm"):
        P.predictions(trace, [*y[:-1], "lukewarm"])


def test_trace_of_many_samples_keeps_its_peak_in_a_small_file(tmp_path):
    trace = zero_trace(("predictions", "cost", "slot_cost", "weights"), samples=200_000, slots=2)
    trace.predictions[123_456] = 7.0
    trace.cost[:] = trace.slot_cost[:, 0] = 1.0
    figure = P.trace(trace, np.zeros(200_000))
    assert drawn_line(figure.axes[0], "prediction")[:, 1].max() == 7.0
    assert len(drawn_line(figure.axes[0], "prediction")) <= 2002
    (path,) = P.save(figure, tmp_path, "many", ["svg"])
    assert path.stat().st_size < 400_000


def test_slot_names_tell_learners_apart_and_survive_a_pickle():
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


def test_regret_draws_static_interval_and_comparators():
    _, trace, y = run_bank()
    losses = {"zero": y**2, "_odd $name": np.ones(len(y))}
    axes = P.regret(trace, comparators=losses, length=20).axes[0]
    loss, alone = trace.loss, trace.slot_loss
    drawn = {
        "best slot so far": kb.regret.best_slot(loss, alone),
        "best slot per 20 samples": kb.regret.best_slot_per_interval(loss, alone, 20),
        "zero": np.cumsum(loss - y**2),
    }
    for label, values in drawn.items():
        assert np.array_equal(drawn_line(axes, label)[:, 1], values)
    assert len(axes.get_legend().get_texts()) == 4
    assert axes.get_ylabel() == "regret (loss)"
    axes = P.regret(trace, by="cost").axes[0]
    by_cost = kb.regret.best_slot(trace.cost, trace.slot_cost)
    assert np.array_equal(drawn_line(axes, "best slot so far")[:, 1], by_cost)
    assert "best slot per 6 samples" in axes.get_legend_handles_labels()[1]


def test_regret_of_an_auto_bank_is_of_squared_errors(regression_run, classification_run):
    _, trace, y = regression_run
    axes = P.regret(trace, y).axes[0]
    own = np.nan_to_num((trace.predictions - y) ** 2)
    known = ~np.isnan(trace.predictions)
    alone = np.where(known[:, None], (trace.slot_predictions - y[:, None]) ** 2, 0.0)
    wanted = np.cumsum(own) - np.cumsum(alone, axis=0).min(axis=1)
    assert np.allclose(drawn_line(axes, "best slot so far")[:, 1], wanted)
    _, trace, y = classification_run
    with pytest.raises(InvalidArgument, match="losses of slots"):
        P.regret(trace, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "'length'"),
        ({"by": "money"}, "'by'"),
        ({"comparators": {"short": [1.0]}}, "'comparators' must hold"),
    ],
)
def test_regret_names_wrong_arguments(arguments, message):
    _, trace, _ = run_bank()
    with pytest.raises(InvalidArgument, match=message):
        P.regret(trace, **arguments)


@pytest.fixture(scope="module")
def two_targets():
    """An AutoBank, its trace and targets, of which some are missing."""
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (150, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 100 + 30 * X[:, 1]])
    Y[::7, 1] = np.nan
    bank = kb.AutoBank(size="small")
    bank.learn_one(X[0], {"load": Y[0, 0], "$ price": Y[0, 1]})
    return bank, bank.run(X, Y, record="all"), Y


def kernel_bank():
    x = np.arange(60) / 4
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5), outputs=2)
    Y = np.column_stack([np.sin(x), np.cos(x)])
    return bank, bank.run(x, Y), Y


def test_trace_has_a_panel_for_each_target(two_targets):
    _, trace, Y = two_targets
    figure = P.trace(trace, Y)
    assert [axes.get_ylabel() for axes in figure.axes] == ["load", r"\$ price"]
    for k, axes in enumerate(figure.axes):
        drawn = drawn_line(axes, "prediction")[:, 1]
        assert np.array_equal(drawn, trace.predictions[:, k], equal_nan=True)
        assert np.array_equal(drawn_line(axes, "target")[:, 1], Y[:, k], equal_nan=True)
    assert len(P.trace(trace).axes) == 2
    assert [a.get_ylabel() for a in P.trace(kernel_bank()[1]).axes] == ["output 0", "output 1"]


def test_trace_of_one_target_has_all_panels(two_targets):
    _, trace, Y = two_targets
    figure = P.trace(trace.of_output("$ price"), Y[:, 1])
    assert len(figure.axes) == 4
    errors = (trace.predictions - Y)[:, 1] ** 2
    sums = drawn_line(figure.axes[1], "the bank")[:, 1]
    assert sums[-1] == pytest.approx(np.nansum(errors))  # missing targets have no error


@pytest.mark.parametrize("draw", [P.predictions, P.weights, P.cumulative_loss, P.cumulative_cost])
def test_plots_of_one_output_refuse_several(draw, two_targets):
    for trace in (two_targets[1], kernel_bank()[1]):
        with pytest.raises(InvalidArgument, match=r"'trace' must have one output.*of_output\(0\)"):
            draw(trace)


def test_more_than_four_targets_are_drawn_one_at_a_time():
    x = np.arange(30.0)
    trace = kb.KernelBank(kb.gaussian_grid(0.5, 4, 2), outputs=5).run(x, np.tile(x, (5, 1)).T)
    with pytest.raises(InvalidArgument, match=r"at most 4 outputs; got '5 outputs'.*of_output"):
        P.trace(trace)


def test_targets_of_another_shape_are_refused(two_targets):
    _, trace, Y = two_targets
    with pytest.raises(InvalidArgument, match=r"'y' must have the shape \(150, 2\)"):
        P.trace(trace, Y[:, 0])


def test_function_of_a_target_is_its_prediction(two_targets):
    bank, _, _ = two_targets
    axes = P.function(bank, 1, target="$ price", points=20).axes[0]
    grid, values = drawn_line(axes, "prediction").T
    rows = np.column_stack([np.full(20, bank.input_ranges()[0, 0]), grid])
    assert np.array_equal(values, bank.predict_at(rows)[:, 1, 0])
    assert axes.get_ylabel() == r"prediction of \$ price"
    inner, _, _ = kernel_bank()
    axes = P.function(inner, between=(0, 10), points=20, target=1).axes[0]
    values = drawn_line(axes, "the bank")
    assert np.array_equal(values[:, 1], inner.predict(values[:, 0])[:, 1])
    for wrong in (2, "cost"):
        with pytest.raises(InvalidArgument, match="'target' of function must"):
            P.function(bank, target=wrong)


def test_bars_are_means_over_outputs():
    bank, _, _ = kernel_bank()
    shown = [bar.get_width() for bar in P.bars(bank).axes[0].patches]
    mean = bank.weights.mean(axis=0)
    assert shown == pytest.approx(mean[mean != 0].tolist())

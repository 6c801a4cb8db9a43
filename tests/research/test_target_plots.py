"""Plots of traces and banks with several targets."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.plotting import drawn_line

P = kb.plots


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

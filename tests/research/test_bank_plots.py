"""Plots of a bank: its weights, the function that it has learned, its forecasts."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.plotting import drawn_line, run_bank

P = kb.plots


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
    axes = P.function(bank, along=1, points=50, coverage=0.8).axes[0]
    middle, low, high = bank.input_ranges().T
    rows = np.tile(middle, (50, 1))
    rows[:, 1] = np.linspace(low[1], high[1], 50)
    assert np.array_equal(drawn_line(axes, "prediction")[:, 1], bank.predict_at(rows)[:, 0])
    ends = set(axes.collections[0].get_paths()[0].vertices[:, 1])
    assert set(bank.predict_at(rows, 0.8)[:, 1:].ravel()) <= ends
    axes = P.function(bank, at=[0.0, 1.5], between=(-1, 1), points=3).axes[0]
    assert np.array_equal(
        drawn_line(axes, "prediction")[:, 1], bank.predict([[-1, 1.5], [0, 1.5], [1, 1.5]])
    )
    bank, *_ = classification_run
    assert len(P.function(bank).axes[0].lines) == 3


def test_function_of_a_kernel_bank_needs_range_and_values():
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
    assert np.array_equal(drawn_line(axes, "the bank")[:, 1], bank.predict(rows))


@pytest.fixture(scope="module")
def bank():
    draw = np.random.default_rng(0)
    bank = kb.AutoBank(lags=3, horizons=(1, 4, 9), size="small")
    bank.run(np.zeros(120), np.sin(np.arange(120) / 3) + 0.1 * draw.normal(size=120))
    return bank


def test_a_fan_has_the_last_targets_the_forecasts_and_their_quantiles(bank):
    forecast = bank.forecast()
    axes = P.forecast(forecast).axes[0]
    target, point = drawn_line(axes, "target"), drawn_line(axes, "forecast")
    np.testing.assert_array_equal(target[:, 1], forecast.history)
    assert target[-1, 0] == 0.0
    np.testing.assert_array_equal(point, np.column_stack([forecast.horizons, forecast.point]))
    ends = [set(band.get_paths()[0].vertices[:, 1]) for band in axes.collections]
    for own, levels in zip(ends, [(0.05, 0.95), (0.1, 0.9), (0.25, 0.75)], strict=True):
        wanted = np.concatenate([forecast.quantiles[level] for level in levels])
        assert {*wanted, forecast.history[-1]} == own


def test_horizon_weights_show_the_largest_and_sum_up_the_others(bank):
    weights = bank.forecast_weights
    axes = P.horizon_weights(bank, most=3).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    image = axes.images[0].get_array()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "4", "9"]
    for name, row in zip(names[:3], image, strict=False):
        np.testing.assert_array_equal(row, weights[name])
    assert names[3].endswith("others")
    np.testing.assert_allclose(image.sum(axis=0), sum(weights.values()), rtol=1e-12)
    smallest = min(np.abs(weights[name]).max() for name in names[:3])
    assert sum(np.abs(own).max() > smallest for own in weights.values()) < 3


def test_forecast_plots_refuse_what_has_no_forecasts(bank):
    with pytest.raises(InvalidArgument, match="be a Forecast"):
        P.forecast(bank)
    with pytest.raises(InvalidArgument, match=r"AutoBank with horizons.*horizons=24"):
        P.horizon_weights(kb.AutoBank())
    with pytest.raises(InvalidArgument, match="AutoBank with horizons"):
        P.horizon_weights(kb.KernelBank())
    early = kb.AutoBank(horizons=(1, 9), size="small")
    early.learn_one(0.0, 1.0)
    with pytest.raises(InvalidArgument, match="start after 14"):
        P.horizon_weights(early)
    with pytest.raises(InvalidArgument, match="'most'"):
        P.horizon_weights(bank, most=0)

"""Plots of forecasts: the fan, and the weights by horizon."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.plotting import drawn_line

P = kb.plots


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

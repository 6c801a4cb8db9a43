"""Predictions of AutoBank: intervals, forecasts, delayed targets."""

import numpy as np
import pytest

import kernelbank as kb
from support.auto_streams import SMALL, numbers


@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_intervals_have_their_coverage(coverage):
    draw = np.random.default_rng(1)
    X, y = numbers(1500, noise=0.3)
    y = y + np.where(np.arange(1500) > 700, 3.0, 0.3) * draw.standard_t(3, 1500)
    trace = kb.AutoBank(**SMALL).run(X, y, coverage=coverage)
    inside = ((y >= trace.lower) & (y <= trace.upper))[100:]
    room = max(0.02, 2 * np.sqrt(coverage * (1 - coverage) / len(inside)))
    assert abs(inside.mean() - coverage) < room
    assert (trace.lower <= trace.predictions).mean() > 0.99


def test_forecasts_with_lags_use_their_own_predictions():
    t = np.arange(900.0)
    y = 10 + 3 * np.sin(t / 5) + np.sin(t / 3)
    bank = kb.AutoBank(lags=8, **SMALL)
    X = np.zeros((900, 1))
    bank.run(X[:800], y[:800])
    ahead = bank.predict(X[800:830])
    assert ahead[0] == bank.predict_one(X[800])
    standing = np.mean((y[799] - y[800:830]) ** 2)
    assert np.mean((ahead - y[800:830]) ** 2) < 0.1 * standing
    one_step = bank.predict(X[800:801])
    assert one_step.shape == (1,)
    assert one_step[0] == ahead[0]
    # Without lags, rows are independent of each other and of their order.
    plain = kb.AutoBank(**SMALL)
    rows, targets = numbers(200)
    plain.run(rows, targets)
    np.testing.assert_allclose(plain.predict(rows[:9])[::-1], plain.predict(rows[8::-1]), rtol=0)


def test_delayed_targets_change_nothing_before_they_come():
    delay = 5
    X, y = numbers(150)
    other = y.copy()
    other[100:] = -other[100:]
    one = kb.AutoBank(lags=2, **SMALL).run(X, y, delay=delay).predictions
    two = kb.AutoBank(lags=2, **SMALL).run(X, other, delay=delay).predictions
    different = np.flatnonzero(~((one == two) | np.isnan(one)))
    assert different[0] == 100 + delay + 1


def test_slots_are_judged_by_their_past_predictions_if_targets_are_delayed():
    """A constant that follows the last error is of no use if that error is old."""
    draw = np.random.default_rng(0)
    drift = np.zeros(1200)
    for t in range(1, 1200):
        drift[t] = 0.9 * drift[t - 1] + draw.normal()
    X = draw.normal(size=(1200, 1))
    y = X[:, 0] + drift
    late = kb.AutoBank(**SMALL).run(X, y, delay=20).predictions
    best = X[:, 0]
    rows = slice(300, 1200)
    loss = np.mean((late[rows] - y[rows]) ** 2)
    assert loss < 1.15 * np.mean((best[rows] - y[rows]) ** 2)

"""Forecasts at several horizons: definitions, same bits, legality, coverage, files, errors."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank import _core
from kernelbank.auto.forecaster import IteratedLine, forecast_row
from support.auto_streams import assert_same_state
from support.core_banks import put_entry
from support.marks import refuses
from support.naive import forecasts as naive

HORIZONS = (1, 3, 8)
NO_BOUNDS = {"lower": -np.inf, "upper": np.inf, "in_range": True}
FIELDS = ("forecasts", "forecast_lower", "forecast_upper")


def small(**settings):
    return kb.AutoBank(size="small", **({"lags": 3, "horizons": HORIZONS} | settings))


def waves(count, seed=0, period=24):
    """A series with a season that an input, the phase, announces; another input says nothing."""
    draw = np.random.default_rng(seed)
    t = np.arange(count)
    y = 20 + 5 * np.sin(2 * np.pi * t / period) + 0.3 * draw.normal(size=count)
    return np.column_stack([t % period, draw.normal(size=count)]), y


X, Y = waves(150)


@pytest.fixture(scope="module")
def whole():
    """A bank that learned the series in one run, and its trace."""
    bank = small()
    return bank, bank.run(X, Y)


@pytest.fixture(scope="module")
def with_known():
    """The same with an input that is known in advance."""
    bank = small(known=[0])
    return bank, bank.run(X, Y)


def same_forecasts(one, other, rows=slice(None)):
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field)[rows], getattr(other, field)[rows])


# --- definitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 4, 30])
def test_rows_hold_the_last_targets_and_those_of_the_phase(count):
    y = np.random.default_rng(0).normal(size=count)
    targets = np.concatenate([np.full(20, np.nan), y])
    wanted = naive.forecast_row(y.tolist(), 3, (1, 5, 12), (5, 7), [1.0, 2.0, 3.0], [0.5] * 14)
    made = np.array([1.0, 2.0, 3.0])
    actual = forecast_row(targets, 3, (1, 5, 12), (5, 7), made, np.full(14, 0.5))
    np.testing.assert_array_equal(actual, wanted)


def test_the_iterated_line_goes_on_from_its_own_forecasts():
    line, scale = IteratedLine(2, (6,), 9), (20.0, 4.0)
    series = np.concatenate([np.full(8, np.nan), Y[:60]])
    for n in range(9, len(series)):
        line.learn(series[:n], (series[n] - 20.0) / 4.0, scale)
    back = [1, 2, 5, 6, 7]
    assert line.back.tolist() == back
    predict = lambda inputs: line.bank.predict_one(np.array(inputs))  # noqa: E731
    for known in (1, 4, 60):
        wanted = naive.iterated(predict, Y[:known].tolist(), back, 9, *scale)
        actual = line.forecast(np.concatenate([np.full(8, np.nan), Y[:known]]), scale)
        np.testing.assert_array_equal(actual, wanted)


def test_intervals_follow_their_definition():
    """Forecasts of a walk: each error is compared with the ends of its own interval."""
    draw = np.random.default_rng(0)
    fast = _core.HorizonIntervals(horizons=HORIZONS, **NO_BOUNDS)
    slow = [naive.HorizonCalibration(horizon) for horizon in HORIZONS]
    level = 0.0
    for moment in range(400):
        level += draw.standard_t(3)
        if moment:
            targets = np.full(3, level)
            fast.score(moment, targets, level, min(moment, HORIZONS[-1]), 0.0, 1.0)
            for one in slow:
                one.score(level, 1.0)
        fast.set_range(-1e9, 1e9)  # no range holds them back
        values = np.full(3, level) + draw.normal(size=3)
        output = fast.forecast(values, np.zeros(3), 0.05)
        fast.issue(moment, output, np.zeros((3, 2)))
        for own, one, value in zip(output, slow, values, strict=True):
            np.testing.assert_allclose(own, [value, *one.forecast(value, 0.05)], rtol=1e-12)
    assert fast.sums[:, 5].tolist() == [one.covered for one in slow]


def test_issued_quantiles_are_in_order_where_the_tracked_ones_are_not():
    """Else an interval that is wider than its own quantile says would count as that quantile."""
    intervals = _core.HorizonIntervals(horizons=[1], **NO_BOUNDS)
    put_entry(intervals, "quantiles", (slice(None), 5), 0.0)  # of 0.05; that of 0.1 is 1.28
    intervals.issue(0, np.zeros((1, 3)), np.zeros((1, 2)))
    issued = intervals["ends"][0, 1:].reshape(2, -1)
    np.testing.assert_array_equal(issued[:, 5], intervals["quantiles"][:, 6])


def test_weights_of_horizons_follow_their_definition():
    """The cost of the weights is within 1e-4 of the least one, as their certificate says: by
    Frank-Wolfe the least cost is at least cost - gap. The costs have no other rounding to speak of:
    200 terms of the same size."""
    draw = np.random.default_rng(1)
    prices, known = [0.0, 1.0, 1.0, 0.0], 2
    fast = _core.HorizonStacking(horizons=HORIZONS, prices=prices, known=known)
    assert fast["weights"][0].tolist() == [0.5, 0.0, 0.0, 0.5]
    made, errors = [], {h: [] for h in HORIZONS}
    for moment in range(200):
        target, left = draw.normal(), draw.normal(size=3)
        for k, h in enumerate(HORIZONS):
            if h <= moment:
                wanted = [left[k], left[k], target, target]
                errors[h].append(made[moment - h][k] - wanted)
        fast.learn(moment, min(moment, HORIZONS[-1]), left, target)
        forecasts = draw.normal(size=(3, 4)) * [1.0, 0.8, 0.7, 1.2]
        value, spread = fast.combine(forecasts).T
        np.testing.assert_allclose(value, (fast["weights"] * forecasts).sum(axis=1), rtol=1e-12)
        away = (forecasts - value[:, None]) ** 2
        np.testing.assert_allclose(spread**2, (fast["weights"] * away).sum(axis=1), rtol=1e-12)
        fast.keep(moment, forecasts)
        made.append(forecasts)
        np.testing.assert_allclose(fast.share, fast["weights"][:, :2].sum(axis=1), rtol=1e-12)
    for weights, h in zip(fast["weights"], HORIZONS, strict=True):
        matrix = np.array(naive.stacking_matrix(errors[h], h, prices))
        gradient = 2 * matrix @ weights
        gap = weights @ gradient - gradient.min()
        assert gap < 1.01e-4 * (1 + 1e-4) * (weights @ matrix @ weights)
    assert len({tuple(row) for row in fast["weights"]}) == 3


@pytest.mark.parametrize("settings", [{}, {"known": [0]}, {"combiner": kb.combiners.Hedge()}])
def test_one_horizon_is_enough(settings):
    one, two = small(horizons=4, **settings), small(horizons=(4,), **settings)
    one.run(X[:90], Y[:90])
    assert two.run(X[:90], Y[:90]).forecasts.shape == (90, 1)
    assert two.ledger.horizons[0].scored == one.ledger.horizons[-1].scored
    assert_same_state(kb.from_bytes(two.to_bytes()), two)


def test_scores_are_those_of_the_forecasts_of_the_trace(whole):
    bank, trace = whole
    begun = bank.model.forecaster.first_moment
    for k, score in enumerate(bank.ledger.horizons):
        h, rows = score.horizon, np.arange(begun, len(Y) - score.horizon)
        error = Y[rows + h] - trace.forecasts[rows, k]
        inside = (trace.forecast_lower[rows, k] <= Y[rows + h]) & (
            Y[rows + h] <= trace.forecast_upper[rows, k]
        )
        widths = (trace.forecast_upper - trace.forecast_lower)[rows, k]
        wanted = (
            np.mean(error**2),
            np.mean((Y[rows + h] - Y[rows]) ** 2),
            np.mean((Y[rows + h] - Y[rows]) ** 2),
            np.mean(np.abs(error)),
            inside.mean(),
            widths.mean(),
        )
        assert score.scored == len(rows)
        np.testing.assert_allclose(score[2:], wanted, rtol=1e-10)


def test_baselines_are_of_the_targets_also_with_known_inputs_and_seasons():
    bank = small(known=[0], seasons=(24,))
    bank.run(X[:90], Y[:90])
    begun = bank.model.forecaster.first_moment
    for score in bank.ledger.horizons:
        rows = np.arange(begun, 90 - score.horizon)
        last = Y[rows + score.horizon] - Y[rows]
        season = [
            Y[t + score.horizon]
            - (naive.phase_value(Y[: t + 1].tolist(), score.horizon, 24) or Y[t])
            for t in rows
        ]
        wanted = [np.mean(last**2), np.mean(np.square(season))]
        np.testing.assert_allclose([score.last_value, score.seasonal], wanted, rtol=1e-10)


def test_of_later_rows_only_known_columns_matter(monkeypatch):
    class Always(_core.HorizonStacking):
        share = property(lambda self: np.ones(len(self["weights"])))

    monkeypatch.setattr(_core, "HorizonStacking", Always)
    first = small(known=[0]).run(X[:110], Y[:110])
    other_x, other_y = X[:110].copy(), Y[:110].copy()
    other_x[100:, 1] = 1e3
    other_y[100:] = -50.0
    same_forecasts(small(known=[0]).run(other_x, other_y), first, slice(0, 100))
    other_x[104, 0] += 6
    trace = small(known=[0]).run(other_x, other_y)
    changed = np.argwhere(trace.forecasts[:100] != first.forecasts[:100])
    assert changed.tolist() == [[96, 2]]  # 8 rows before; 3 and 1 rows before are later rows


def test_known_inputs_are_used_where_they_help():
    draw = np.random.default_rng(5)
    price, walk = draw.integers(0, 2, 200).astype(float), np.cumsum(draw.normal(size=200))
    useful, useless = small(known=[0], horizons=(1, 5)), small(known=[0], horizons=(1, 5))
    useful.run(price, 10 + 4 * price + 0.1 * draw.normal(size=200))
    useless.run(price, walk)
    assert useful.model.forecaster.stacking.share.min() > 0.9
    assert useless.model.forecaster.stacking.share.max() < 0.3


def test_found_seasons_restart_the_forecasts():
    """When the period is found, all is as if it had been known from the first row on."""
    x, y = waves(230, period=12)
    actual, told = small(seasons="auto"), small(seasons=12)
    one, other = actual.run(x[:, 1], y), told.run(x[:, 1], y)
    (row,) = (change.row for change in actual.ledger.changes if change.what == "season")
    assert actual.periods == actual.model.forecaster.periods == (12,)
    assert np.any(one.forecasts[: row - 1] != other.forecasts[: row - 1])
    same_forecasts(one, other, slice(row, None))


# --- settings -------------------------------------------------------------------------------------


def test_forecasts_stay_within_the_bounds():
    y = np.clip(Y, 16, 24)
    bank = small(lower=16, upper=24, known=[0])
    trace = bank.run(X[:80], y[:80])
    for array in (trace.forecasts, trace.forecast_lower, trace.forecast_upper):
        known = array[~np.isnan(array)]
        assert known.min() >= 16
        assert known.max() <= 24
    forecast = bank.forecast(X[80:88], coverage=0.999)
    assert forecast.lower.min() >= 16
    assert forecast.upper.max() <= 24
    assert min(values.min() for values in forecast.quantiles.values()) >= 16


def test_new_inputs_are_taken_up_and_saved():
    bank = small(seasons="auto")
    bank.run(X[:60], Y[:60])
    bank.add_inputs(1)
    assert bank.model.forecaster.samples == 60
    wider = np.column_stack([X, X[:, 1]])
    bank.run(wider[60:70], Y[60:70])
    again = kb.from_bytes(bank.to_bytes())
    same_forecasts(bank.run(wider[70:120], Y[70:120]), again.run(wider[70:120], Y[70:120]))
    assert_same_state(bank, again)


def test_tables_have_names_times_and_categories():
    import pandas

    count = 90
    table = pandas.DataFrame(
        {
            "hour": X[:count, 0],
            "noise": X[:count, 1],
            "site": ["ab"[n // 5 % 2] for n in range(count)],
            "time": pandas.date_range("2026-01-01", periods=count, freq="h"),
        }
    )
    bank = small(known=["hour", "time"])
    trace = bank.run(table[:80], Y[:80])
    assert np.isfinite(trace.forecasts).all()
    assert "forecast_upper: +8" in trace.to_frame()
    points = bank.forecast(table[80:88]).point
    only = table[80:88][["time", "hour"]]
    np.testing.assert_array_equal(bank.forecast(only).point, points)
    each = only.iloc[[0, 2, 7]]  # a row for each horizon
    np.testing.assert_array_equal(bank.forecast(each).point, points)
    refuses("'hour'", bank.forecast, table[80:88][["time"]])
    again = kb.from_bytes(bank.to_bytes())
    np.testing.assert_array_equal(again.forecast(only).point, points)


def test_a_forecast_prints_its_horizons(whole):
    text = repr(whole[0].forecast())
    assert "after 150 rows, intervals of 90%" in text
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["+1", "+3", "+8"]
    bank = small(horizons=20)
    bank.run(X[:10], Y[:10])
    assert repr(bank.forecast()).endswith("... and 8 more")
    frame = whole[0].forecast().to_frame()
    assert frame.index.tolist() == list(HORIZONS)
    assert frame.columns[:4].tolist() == ["point", "lower", "upper", "quantile 0.05"]


def test_known_columns_must_be_there():
    refuses(r"'known'.*0, 1", lambda: small(known=[2]).run(X[:5], Y[:5]))
    refuses("'known'", lambda: small(known=["hour"]).run(X[:5], Y[:5]))
    rows = [{"site": "a", "hour": 1.0}]
    refuses(r"'known'.*numbers or times", lambda: small(known=["site"]).learn_one(rows[0], 1.0))


@pytest.mark.parametrize(
    ("future", "message"),
    [
        (np.zeros((8, 3)), "'X_future'.*1 column"),
        (np.zeros(5), "'X_future'.*8 rows"),
        (np.full(8, np.inf), "'X_future'"),
        ("abc", "'X_future'"),
        (np.zeros((2, 2, 2)), "'X_future'"),
    ],
)
def test_wrong_known_rows_are_refused(with_known, future, message):
    refuses(message, with_known[0].forecast, future)


def test_forecast_needs_horizons_rows_and_no_future_without_known_columns(whole):
    bank = kb.AutoBank(size="small")
    bank.run(X[:3], Y[:3])
    refuses(r"needs horizons.*horizons=24", bank.forecast)
    refuses("Learn some rows", lambda: small().forecast())
    refuses(r"'X_future'.*known", whole[0].forecast, X[:8])
    refuses("'coverage'", whole[0].forecast, coverage=1.0)

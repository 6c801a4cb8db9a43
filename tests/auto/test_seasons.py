"""Seasons: what rows know of earlier periods, periods that are found, and the same bits."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank import _core
from kernelbank.auto.seasons import RECALLED, WINDOW, find_periods
from support.naive.seasons import daily_and_weekly, phase, recalled, season_columns


def small(task="regression", **settings):
    return kb.AutoBank(task, size="small", **settings)


def learned(periods, targets, batch, size=None):
    """A history that has learned these targets, in batches."""
    history = _core.SeasonHistory(size=size or RECALLED * max(periods), places=len(periods))
    history.set_periods(periods)
    for start in range(0, len(targets), batch):
        some = targets[start : start + batch]
        history.append(start + len(some), some)
    return history


# --- what rows know -------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [0, 5, 30])
@pytest.mark.parametrize("rows", [0, 5, 300])
def test_a_row_knows_the_targets_of_its_phase(rows, waiting):
    targets = np.random.default_rng(0).normal(size=rows)
    history = learned((5, 24), targets, batch=7)
    out = history.recall(rows, np.array([rows + waiting]), np.array([rows]))
    for own, period in zip(out.reshape(2, -1), (5, 24), strict=True):
        np.testing.assert_array_equal(own[:3], recalled(targets, rows + waiting, period))
        np.testing.assert_allclose(own[3:], phase(rows + waiting, period), atol=1e-15)


def test_targets_that_the_history_has_forgotten_are_unknown():
    history = learned((1000,), np.arange(5000.0), batch=5000, size=WINDOW)
    numbers = np.array([1500, 5000])
    actual = history.recall(5000, numbers, numbers)
    assert math.isnan(actual[0, 0])  # row 500, older than the newest 4,096
    assert actual[1, :3].tolist() == [4000.0, 3000.0, 2000.0]


@pytest.mark.parametrize("lags", [0, 2])
def test_scaled_rows_have_the_columns_of_the_definition(lags):
    X, y = daily_and_weekly(200)
    bank = small(seasons=(7, 90), lags=lags)
    bank.run(X, y)
    model = bank._model
    row = model.scaling.statistics.scale_rows(X[:1], model.core.past_row(waiting=3)[None])[0]
    mean, sd = model.scaling.statistics.target_scale()

    def scaled(target):
        return min(max((target - mean) / sd, -8.0), 8.0)

    wanted = [season_columns(y.tolist(), 203, period, scaled) for period in (7, 90)]
    own = row[list(model.scaling.season_columns)].reshape(2, -1)
    np.testing.assert_array_equal(own[:, :2], [one[:2] for one in wanted])
    np.testing.assert_allclose(own[:, 2:], [one[2:] for one in wanted], atol=1e-15)


@pytest.mark.parametrize("period", [24, 60, 200])
def test_classes_are_labels_of_each_bank(period):
    X, y = daily_and_weekly(160)
    kinds = np.digitize(y, [45, 55])
    bank = small("classification", seasons=period)
    bank.run(X, kinds)
    model = bank._model
    past = model.core.past_row()[None]
    rows = model.scaling.statistics.scale_rows(X[:1], past)
    numbers = [bank.classes.index(kind) for kind in kinds]
    for positive in range(3):
        own = model.core.with_labels(rows, past, positive)[0][list(model.scaling.season_columns)]
        labels = [1.0 if number == positive else -1.0 for number in numbers]
        assert own[:2].tolist() == season_columns(labels, 160, period, float)[:2]


def test_forecasts_use_the_last_known_targets_of_the_phase():
    y = np.tile(np.arange(12.0), 30)
    bank = small(seasons=12)
    bank.run(np.zeros(len(y)), y)
    np.testing.assert_allclose(bank.predict(np.zeros(30)), np.arange(30) % 12, atol=0.3)


# --- periods that are found -----------------------------------------------------------------------


def noise(kind, draw, count):
    values = draw.normal(size=count)
    if kind == "walk":
        return values.cumsum()
    if kind == "trend":
        return 0.01 * np.arange(count) + values
    if kind == "autoregressive":
        for t in range(1, count):
            values[t] += 0.9 * values[t - 1]
    return values


@pytest.mark.parametrize("kind", ["white", "walk", "autoregressive", "trend"])
def test_noise_has_no_season(kind):
    draw = np.random.default_rng(5)
    for _ in range(20):
        values = noise(kind, draw, 2000)
        for rows in (200, 500, 1000, 2000):
            assert find_periods(values[:rows], least=0.0) == ()


@pytest.mark.parametrize("period", [4, 24, 250])
def test_a_season_is_found(period):
    draw = np.random.default_rng(period)
    values = np.tile(draw.normal(size=period), 1 + 2000 // period)[:2000]
    assert find_periods(values + draw.normal(size=2000)) == (period,)
    assert find_periods(np.exp(3 * values)) == (period,)


@pytest.mark.parametrize("used", [(), (48,)])
@pytest.mark.parametrize("kind", ["levels", "amplitudes"])
def test_a_longer_period_is_found_in_what_days_have(used, kind):
    """Weekends are lower, or have less of the daily course."""
    draw = np.random.default_rng(3)
    t = np.arange(3000)
    weekend = t // 48 % 7 >= 5
    day = np.sin(2 * np.pi * t / 48) + 0.5 * np.sin(4 * np.pi * t / 48 + 1)
    noise = 0.1 * draw.normal(size=3000)
    lower = 0.3 * weekend if kind == "levels" else 0.3 * weekend * day
    assert find_periods(day - lower + noise, used) == (48, 336)
    assert find_periods(day + noise, used) == (48,)


def test_a_period_in_use_stays_unless_another_is_better():
    values = daily_and_weekly(2000)[1]
    assert find_periods(values) == (24, 168)
    assert find_periods(values, (168,)) == (168,)
    assert find_periods(values, (100,)) == (24, 168)
    assert find_periods(np.zeros(400), (24,)) == (24,)


def test_a_found_season_is_told():
    X, y = daily_and_weekly(520)
    bank = small(seasons="auto")
    bank.run(X[:200], y[:200] * 0 + np.random.default_rng(0).normal(size=200))
    assert bank.periods == ()
    assert "none found so far" in repr(bank)
    bank = small(seasons="auto")
    bank.run(X, y)
    actual = [change for change in bank.ledger.changes if change.what == "season"]
    assert [(change.row, change.period) for change in actual] == [(200, 24)]
    assert "season of 24 rows" in bank.status().notes["last change"] or len(bank.ledger.changes) > 1
    assert bank.status().notes["seasons"] == "24 rows"


@pytest.mark.parametrize(
    ("given", "kept"), [(24, (24,)), ([168, 24], (24, 168)), ("auto", "auto"), (None, None)]
)
def test_periods_are_kept(given, kept):
    bank = kb.AutoBank(seasons=given)
    assert bank.seasons == kept
    assert kb.from_bytes(bank.to_bytes()).seasons == kept

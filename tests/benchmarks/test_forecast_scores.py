"""Scores and tables of `make forecasts`, against plain loops and by hand."""

import math

import forecast_scores as scores
import forecast_streams as streams
import forecast_tables as tables
import numpy as np
import pytest
from forecasters import Forecasts, Task

ROWS, START = 90, 40


def _stream(rows=ROWS, periods=(6, 12), known=(0,), name="waves"):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(np.arange(rows) * math.tau / 6) + X[:, 0] + 0.1 * random.normal(size=rows)
    return streams.ForecastStream(name, X, y, known, periods)


# --- scores ---------------------------------------------------------------------------------------


def test_scores_equal_plain_loops():
    stream = _stream()
    random = np.random.default_rng(1)
    values = random.normal(size=(ROWS, 2))
    run = Forecasts(values, values - 1.0, values + 0.5)
    found = scores.score("mine", Task(stream, (1, 9), START), run)
    sd = np.std([stream.y[t] for t in range(START, ROWS)])
    for one, column, h in zip(found, (0, 1), (1, 9), strict=True):
        errors, inside = [], []
        for t in range(START, ROWS):
            if t + h < ROWS:
                errors.append(values[t, column] - stream.y[t + h])
                inside.append(-0.5 <= errors[-1] <= 1.0)
        assert one.rows == len(errors)
        assert one.squared == pytest.approx(np.mean(np.square(errors)) / sd**2)
        assert one.absolute == pytest.approx(np.mean(np.abs(errors)) / sd)
        assert one.coverage == pytest.approx(np.mean(inside))
        assert one.width == pytest.approx(1.5 / sd)


def test_forecast_that_is_missing_is_a_failure():
    stream = _stream()
    values = np.zeros((ROWS, 1))
    values[ROWS - 3 :] = math.nan
    run = Forecasts(values)
    assert math.isfinite(scores.score("a", Task(stream, (3,), START), run)[0].squared)
    (failed,) = scores.score("a", Task(stream, (2,), START), run)
    assert (failed.squared, failed.absolute) == (math.inf, math.inf)
    assert failed.coverage is None


def _score(stream, name, horizon, squared, coverage=None):
    width = None if coverage is None else 2.0
    return scores.Score(stream, name, horizon, 10, squared, squared, coverage, width)


SCORES = [
    _score("sea", "autobank", 1, 0.2, 0.91),
    _score("sea", "autobank", 2, 0.6, 0.85),
    _score("sea", "last", 1, 0.4),
    _score("sea", "last", 2, 0.5),
    _score("sea", "ridge", 1, 0.3),
    _score("sea", "ridge", 2, math.inf),
    _score("air", "autobank", 1, 0.1, 0.9),
    _score("air", "last", 1, 0.1),
]


def test_rows_that_are_lost_stand_first():
    found = scores.against_rivals(SCORES, "autobank", (1, 2))
    assert [(one.stream, one.horizon, one.rival) for one in found] == [
        ("sea", 2, "last"),
        ("air", 1, "last"),
        ("sea", 1, "ridge"),
    ]
    assert [one.ratio for one in found] == pytest.approx([1.2, 1.0, 2 / 3])
    assert [one.first for one in found] == [False, True, True]
    total = scores.summary(found)
    assert (total["first"], total["rows"]) == (2, 3)
    assert total["geometric_mean"] == pytest.approx((1.2 * 2 / 3) ** (1 / 3))
    assert total["worst_row"] == "sea, horizon 2"
    assert scores.summary([]) is None
    assert len(scores.against_rivals(SCORES, "autobank", (2,))) == 1


def test_failed_forecaster_is_never_first():
    both = [_score("sea", "autobank", 1, math.inf), _score("sea", "last", 1, math.inf)]
    (one,) = scores.against_rivals(both, "autobank", (1,))
    assert (one.ratio, one.first) == (1.0, False)


# --- tables ---------------------------------------------------------------------------------------


def test_table_of_errors():
    table = tables.errors(SCORES, "autobank", (1, 2))
    assert table.columns[2:5] == ["autobank", "last", "ridge"]
    assert table.rows == [
        ["sea", "2", "0.6", "0.5", "failed", "1.2", "last"],
        ["air", "1", "0.1", "0.1", "", "1", "autobank"],
        ["sea", "1", "0.2", "0.4", "0.3", "0.667", "autobank"],
        ["air", "2", "", "", "", "", ""],
    ]
    alone = [one for one in SCORES if one.name != "autobank"]
    rows = tables.errors(alone, "autobank", (1,)).rows
    assert rows[0] == ["sea", "1", "", "0.4", "0.3", "", "ridge"]
    assert tables.totals(alone, "autobank", (1,)) is None
    assert tables.intervals(alone, "autobank") is None


def test_table_of_totals_has_all_horizons_and_each():
    rows = tables.totals(SCORES, "autobank", (1, 2)).rows
    assert [row[1:4] for row in rows[:3]] == [
        ["all", "2 of 3", "0.928"],
        ["1", "2 of 2", "0.816"],
        ["2", "0 of 1", "1.2"],
    ]
    assert len(rows) == 6


def test_table_of_intervals_has_the_farthest_coverage_first():
    more = [_score("walk", "arima", h, 1.0, 0.5) for h in (1, 24)]
    table = tables.intervals([*more, *SCORES], "autobank")
    assert table.rows == [
        ["sea", "autobank", "0.91", "0.85", "", "", "", "", "0.85", "0.91", "2"],
        ["air", "autobank", "0.9", "", "", "", "", "", "0.9", "0.9", "2"],
        ["walk", "arima", "0.5", "", "", "", "", "0.5", "0.5", "0.5", "2"],
    ]

"""Rivals of `make forecasts`: equal to plain loops, and no forecast from the future."""

import math

import forecast_cache
import forecast_rivals as rivals
import forecast_streams as streams
import numpy as np
import pytest
import statsforecast_rivals
from forecasters import Forecaster, Task

from support.marks import slow, slow_unless

ROWS, START = 90, 40


def _stream(rows=ROWS, periods=(6, 12), known=(0,), name="waves"):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(np.arange(rows) * math.tau / 6) + X[:, 0] + 0.1 * random.normal(size=rows)
    return streams.ForecastStream(name, X, y, known, periods)


def _installed():
    """Every rival whose libraries are here, with a schedule for short streams."""
    every = [
        *rivals.naive_rivals(),
        *rivals.direct_rivals(every=10),
        *statsforecast_rivals.statsforecast_rivals(every=20),
    ]
    return [one for one in every if forecast_cache.installed_versions(one.libraries) is not None]


class MeanOfThePast:
    """Stands in for a model of statsforecast: the mean of its past, plus the number of its rows."""

    def __init__(self):
        self.model_ = {}

    def fit(self, past):
        self.mean = past.mean()
        return self

    def forward(self, past, horizon, level):
        mean = self.mean + 0.01 * len(past) + np.arange(1, horizon + 1) + past[-1]
        return {"mean": mean, f"lo-{level[0]}": mean - 1, f"hi-{level[0]}": mean + 1}


STAND_IN = Forecaster(
    "stand-in",
    lambda task: statsforecast_rivals.run_statsforecast(
        (lambda period: MeanOfThePast(),), 20, 30, task
    ),
    "a model of statsforecast",
)


# --- rivals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 5, 6, 7, 12, 13])
@pytest.mark.parametrize(("which", "period"), [(0, 6), (-1, 12)])
def test_seasonal_last_value_is_the_newest_of_the_phase(horizon, which, period):
    stream = _stream()
    found = rivals.seasonal_last_value(which, Task(stream, (horizon,), START)).values[:, 0]
    for t in range(START, ROWS):
        row = t + horizon
        while row > t:
            row -= period
        assert found[t] == stream.y[row]


def test_last_value_is_the_same_for_all_horizons():
    stream = _stream()
    found = rivals.last_value(Task(stream, (1, 5), START)).values
    assert found.tolist() == [[value, value] for value in stream.y]


def test_direct_inputs_hold_what_is_known_at_the_row():
    stream = _stream()
    found = rivals.direct_inputs(stream, 4)
    t = 50
    lags = [stream.y[t - lag] for lag in range(rivals.LAGS)]
    phases = [stream.y[t + 4 - 6], stream.y[t + 4 - 12]]
    assert found[t].tolist() == [*stream.X[t], *lags, stream.X[t + 4, 0], *phases]
    assert np.isnan(found[ROWS - 4 :, 2 + rivals.LAGS]).all()
    assert np.isnan(found[0, 3 : 2 + rivals.LAGS]).all()


def test_direct_rival_equals_a_plain_loop():
    class Line:
        """Predicts the mean target it was fitted on plus the first input."""

        def fit(self, inputs, targets):
            assert len(inputs) == len(targets)
            self.mean = targets.mean()
            return self

        def predict(self, inputs):
            return self.mean + inputs[:, 0]

    stream = _stream()
    found = rivals.run_direct(Line, 15, Task(stream, (1, 7), START)).values
    assert np.isnan(found[:START]).all()
    for column, h in enumerate((1, 7)):
        for t in range(START, ROWS):
            fitted_at = START + (t - START) // 15 * 15
            past = [stream.y[s + h] for s in range(ROWS - h) if s + h <= fitted_at]
            assert found[t, column] == pytest.approx(np.mean(past) + stream.X[t, 0])


def test_ridge_finds_a_line_and_takes_what_is_missing_as_the_mean():
    random = np.random.default_rng(0)
    X = random.normal(3.0, 2.0, size=(5000, 2))
    y = 1.0 + X @ [2.0, -1.0]
    model = rivals.Ridge().fit(X, y)
    assert model.predict(X[:5]) == pytest.approx(y[:5], rel=0.01)
    other = np.array([[math.nan, 1.0]])
    assert model.predict(other) == pytest.approx(1.0 + 2 * X[:, 0].mean() - 1.0, rel=0.01)
    constant = rivals.Ridge().fit(np.ones((9, 1)), np.arange(9.0))
    assert constant.predict(np.ones((1, 1))) == pytest.approx(4.0)


def test_statsforecast_rival_chooses_on_its_window_and_follows_every_row(monkeypatch):
    monkeypatch.setattr(statsforecast_rivals, "CHOSEN_ON", 25)
    stream = _stream()
    run = STAND_IN.run(Task(stream, (1, 3), START))
    for t in range(START, ROWS):
        chosen_at = START + (t - START) // 20 * 20
        mean = stream.y[chosen_at - 24 : chosen_at + 1].mean()
        expected = mean + 0.3 + stream.y[t] + np.array([1, 3])
        assert run.values[t] == pytest.approx(expected)
    assert (run.upper - run.lower)[START:] == pytest.approx(2.0)
    whole = statsforecast_rivals.run_statsforecast(
        (lambda period: MeanOfThePast(),), 20, None, Task(stream, (1,), START)
    )
    rows_since_fit = {START: 25, START + 19: 44, START + 20: 25}
    for t, rows in rows_since_fit.items():
        first = t + 1 - rows
        mean = stream.y[first : first + 25].mean()
        assert whole.values[t, 0] == pytest.approx(mean + 0.01 * rows + 1 + stream.y[t])


def test_model_that_cannot_be_fitted_leaves_the_one_before():
    made = []

    class Fails(MeanOfThePast):
        """The first one raises, the third one ends with coefficients of 0."""

        def fit(self, past):
            made.append(self)
            if len(made) == 1:
                raise ValueError("constant")
            self.model_ = {"coef": {"ar1": 0.0 if len(made) == 3 else 0.5}}
            return super().fit(past)

    stream = _stream()
    task = Task(stream, (1,), START)
    run = statsforecast_rivals.run_statsforecast((lambda period: Fails(),), 10, 30, task)
    assert (run.values[START : START + 10, 0] == stream.y[START : START + 10]).all()
    second = made[1].mean + 0.3 + 1
    late = slice(START + 10, START + 30)
    assert run.values[late, 0] == pytest.approx(second + stream.y[late])
    assert len(made) == 5
    assert run.note == (
        "2 models could not be fitted: the one before was used; "
        "at 10 rows no model forecast: the last target was used"
    )


def test_model_that_cannot_be_fitted_is_made_by_the_next_maker():
    class Zero(MeanOfThePast):
        """Ends with coefficients of 0, as AutoARIMA does if its optimiser fails."""

        def __init__(self):
            self.model_ = {"coef": {"ar1": 0.0}}

    stream = _stream()
    task = Task(stream, (1, 3), START)
    makers = (lambda period: Zero(), lambda period: MeanOfThePast())
    run = statsforecast_rivals.run_statsforecast(makers, 20, 30, task)
    assert np.array_equal(run.values, STAND_IN.run(task).values, equal_nan=True)
    assert run.note == ""


def test_arima_is_chosen_exactly_after_the_approximation():
    for more in ({}, {"D": 1}):
        makers = statsforecast_rivals._arimas(**more)
        assert [(one.args, one.keywords) for one in makers] == [((True,), more), ((False,), more)]


# --- legality -------------------------------------------------------------------------------------


def _differs_only_after(stream, t):
    """The same stream with other targets after t, and other inputs that are not known."""
    X, y = stream.X.copy(), stream.y.copy()
    y[t + 1 :] = y[t + 1 :] * -3.0 + 50.0
    unknown = [column for column in range(X.shape[1]) if column not in stream.known]
    X[t + 1 :, unknown] += 100.0
    return streams.ForecastStream(stream.name, X, y, stream.known, stream.periods)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "rival",
    slow_unless(lambda one: "arima" not in one.name, [*_installed(), STAND_IN]),
    ids=lambda one: one.name,
)
@pytest.mark.parametrize("t", [slow(60), 67], ids=["at a fit", "between two fits"])
def test_no_forecast_depends_on_later_rows(rival, t):
    stream = _stream()
    runs = [
        rival.run(rival.task(one, (1, 6, 24), START))
        for one in (stream, _differs_only_after(stream, t))
    ]
    for part in ("values", "lower", "upper"):
        one, two = (getattr(run, part) for run in runs)
        if one is not None:
            assert np.array_equal(one[: t + 1], two[: t + 1], equal_nan=True)
            assert not np.array_equal(one[t + 1 :], two[t + 1 :], equal_nan=True)
    assert np.isfinite(runs[0].values[START : ROWS - 24]).all()


def test_known_inputs_of_later_rows_are_used():
    stream = _stream()
    X = stream.X.copy()
    X[68:, 0] += 5.0
    other = streams.ForecastStream("other", X, stream.y, stream.known, stream.periods)
    ridge = rivals.direct_rivals(every=10)[0]
    one, two = (ridge.run(Task(s, (6,), START)).values[:, 0] for s in (stream, other))
    assert (one[START:62] == two[START:62]).all()
    assert (one[62:67] != two[62:67]).all()

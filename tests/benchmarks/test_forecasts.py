"""`make forecasts` and `make classes`: scores equal plain loops; no forecast comes from the future."""

import math

import forecast_rivals as rivals
import forecast_streams as streams
import forecast_tables as tables
import forecasts
import many_classes
import numpy as np
import pytest
from forecast_rivals import Forecasts, Task
from many_classes import LabelledRows

import kernelbank as kb
from support.marks import slow, slow_unless

ROWS, START = 90, 40


def _stream(rows=ROWS, periods=(6, 12), known=(0,), name="waves"):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(np.arange(rows) * math.tau / 6) + X[:, 0] + 0.1 * random.normal(size=rows)
    return streams.ForecastStream(name, X, y, known, periods)


# --- scores and tables ----------------------------------------------------------------------------


def test_scores_equal_plain_loops():
    stream = _stream()
    random = np.random.default_rng(1)
    values = random.normal(size=(ROWS, 2))
    run = Forecasts(values, values - 1.0, values + 0.5)
    found = tables.score("mine", Task(stream, (1, 9), START), run)
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
    assert math.isfinite(tables.score("a", Task(stream, (3,), START), run)[0].squared)
    (failed,) = tables.score("a", Task(stream, (2,), START), run)
    assert (failed.squared, failed.absolute) == (math.inf, math.inf)
    assert failed.coverage is None


# --- rivals ---------------------------------------------------------------------------------------


def _installed():
    """Every rival whose libraries are here, with a schedule for short streams."""
    every = [
        *rivals.naive_rivals(),
        *rivals.direct_rivals(every=10),
        *rivals.statsforecast_rivals(every=20),
    ]
    return [one for one in every if forecasts.installed_versions(one.libraries) is not None]


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
    slow_unless(lambda one: "arima" not in one.name, _installed()),
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


# --- many classes ---------------------------------------------------------------------------------


@pytest.fixture
def all_rows(monkeypatch):
    monkeypatch.setattr(many_classes, "SKIP", 0)


@pytest.mark.usefixtures("all_rows")
def test_scores_of_classes_are_those_computed_by_hand():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.68, 0.22], [0.0, 0.5, 0.5], [0.95, 0.05, 0.0]])
    found = many_classes.score(p, np.array([0, 2, 1, 2]), 8.0)
    assert found.error == 0.5
    # The last row gave its class 0, which counts as a millionth.
    losses = [-math.log(0.7), -math.log(0.22), -math.log(0.5), -math.log(1e-6)]
    assert found.log_loss == pytest.approx(np.mean(losses))
    # 0.7 and 0.68 are in one bin of width 1/15; one of its two predictions is right.
    distances = [abs(0.7 + 0.68 - 1), abs(0.5 - 1), abs(0.95 - 0)]
    assert found.calibration_error == pytest.approx(sum(distances) / 4)
    assert found.seconds == 2.0


def test_first_rows_are_not_scored(monkeypatch):
    monkeypatch.setattr(many_classes, "SKIP", 2)
    p = np.eye(3)[[0, 0, 0, 1]]
    found = many_classes.score(p, np.array([1, 1, 0, 1]), 1.0)
    assert (found.error, found.calibration_error) == (0.0, 0.0)
    assert found.log_loss == 0.0


def small_stream():
    draw = np.random.default_rng(1)
    X = draw.normal(size=(200, 2))
    return LabelledRows("small", X, np.digitize(X[:, 0], [-0.5, 0.5]))


def test_columns_of_a_bank_are_put_in_the_order_of_the_classes(monkeypatch):
    """Classes are found in the order of the stream; the scores need that of their numbers."""
    monkeypatch.setattr(many_classes, "SKIP", 50)
    stream = small_stream()
    bank = kb.AutoBank("classification")
    trace = bank.run(stream.X, stream.labels)
    assert list(trace.classes) != [0, 1, 2]
    found = many_classes.run_auto_bank(stream)
    assert found.error == np.mean(trace.predictions[50:] != stream.labels[50:])

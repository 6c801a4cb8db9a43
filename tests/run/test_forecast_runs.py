"""`kernelbank run --horizon`: forecasts in the predictions, the log, the summary and the page."""

import csv
import json

import numpy as np
import pandas
import pytest

import kernelbank as kb
from kernelbank.run.report.data import report_text
from kernelbank.run.status import RunStatus
from support.run_command import refusal, succeed

COUNT = 90
HORIZONS = (1, 4, 9)


def stream():
    draw = np.random.default_rng(0)
    t = np.arange(COUNT)
    X = np.column_stack([t % 12, draw.normal(size=COUNT)])
    return X, 10 + 3 * np.sin(2 * np.pi * t / 12) + 0.2 * draw.normal(size=COUNT)


X, Y = stream()


def write_csv(path, targets):
    lines = [f"{h},{a!r},{y}" for (h, a), y in zip(X.tolist(), targets, strict=True)]
    path.write_text("\n".join(["hour,a,y", *lines]) + "\n")
    return path


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "rows.csv", [repr(float(y)) for y in Y])


def cells(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def written(rows, horizons):
    """(n, H, 3): the forecasts in a file; NaN where a cell is empty."""
    names = [(f"forecast+{h}", f"lower+{h}", f"upper+{h}") for h in horizons]
    values = [[[row[name] or "nan" for name in three] for three in names] for row in rows]
    return np.array(values, dtype=float)


def as_array(trace):
    return np.stack([trace.forecasts, trace.forecast_lower, trace.forecast_upper], axis=2)


OPTIONS = ("--target", "y", "--lags", 2, "--seasons", 12, "--coverage", 0.8)


def bank(**more):
    return kb.AutoBank(size="small", lags=2, seasons=12, **({"horizons": HORIZONS} | more))


def test_forecasts_of_every_row_are_columns_of_the_predictions(source, tmp_path):
    out, plain = tmp_path / "out.csv", tmp_path / "plain.csv"
    succeed(source, *OPTIONS, "--horizon", "9,1,4", "--predictions", out, "--keep", "hour")
    succeed(source, *OPTIONS, "--predictions", plain, "--keep", "hour")
    trace = bank().run(X, Y, coverage=0.8)
    np.testing.assert_array_equal(written(cells(out), HORIZONS), as_array(trace))
    names = list(cells(out)[0])
    assert names[4:8] == ["target", "forecast+1", "lower+1", "upper+1"]
    assert names[-1] == "hour"
    kept = list(cells(plain)[0])
    assert [[row[name] for name in kept] for row in cells(out)] == [
        list(row.values()) for row in cells(plain)
    ]


def test_delayed_targets_have_forecasts_from_the_last_known_row(source, tmp_path):
    out = tmp_path / "out.csv"
    succeed(source, *OPTIONS, "--horizon", "1,4,9", "--delay", 3, "--predictions", out)
    found = written(cells(out), HORIZONS)
    assert np.isnan(found[:3]).all()
    np.testing.assert_array_equal(found[3:], as_array(bank().run(X, Y, coverage=0.8))[:-3])


@pytest.mark.parametrize("delay", [0, 2])
def test_rows_after_which_nothing_was_learned_have_no_forecasts(delay, tmp_path):
    targets = [repr(float(y)) for y in Y]
    targets[50] = targets[51] = ""
    source, out = write_csv(tmp_path / "rows.csv", targets), tmp_path / "out.csv"
    options = (*OPTIONS, "--horizon", 2, "--predict-missing", "--delay", delay, "--keep", "hour")
    succeed(source, *options, "--predictions", out)
    assert [float(row["hour"]) for row in cells(out)] == X[:, 0].tolist()
    found = written(cells(out), (1, 2))
    empty = np.flatnonzero(np.isnan(found).all(axis=(1, 2)))
    assert empty.tolist() == [*range(delay), 50 + delay, 51 + delay]
    assert not np.isnan(np.delete(found, empty, axis=0)).any()


def test_known_columns_give_no_forecasts_in_the_file_but_scores(source, tmp_path):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    options = (*OPTIONS, "--horizon", "1,4", "--known", "hour", "--state", state)
    done = succeed(source, *options, "--predictions", out)
    assert list(cells(out)[0]) == ["row", "prediction", "lower", "upper", "target"]
    assert "RMSE, 4 rows ahead" in done.err
    saved = kb.load(state / "state.kb")
    same = bank(horizons=(1, 4), known=["hour"])
    same.run(pandas.DataFrame(X, columns=["hour", "a"]), Y, coverage=0.8)
    future = (np.arange(COUNT, COUNT + 4)) % 12
    np.testing.assert_array_equal(saved.forecast(future).point, same.forecast(future).point)
    part = json.loads(report_text(RunStatus.of_state(state)))["forecasts"]
    assert part["fan"] is None
    assert part["known"] == ["hour"]


def test_known_columns_must_be_numeric_inputs_or_the_time(source):
    line = refusal(source, "--target", "y", "--horizon", 2, "--known", "hours")
    assert "--known: 'hours' is not a numeric input or the time. There are: hour, a." in line
    line = refusal(source, "--target", "y", "--horizon", 2, "--known", "y")
    assert "--known: 'y'" in line
    more = ("--categorical", "hour", "--horizon", 2, "--known", "hour")
    assert "There are: a." in refusal(source, "--target", "y", *more)
    line = refusal(source, *OPTIONS, "--horizon", 1, "--keep", "forecast+1")
    assert "there is no column" in line


def test_log_and_summary_have_the_first_the_middle_and_the_last_horizon(source):
    done = succeed(source, *OPTIONS, "--horizon", 8)
    lines = [line for line in done.err.splitlines() if "ahead" in line]
    own = bank(horizons=8)
    own.run(X, Y, coverage=0.8)
    scores = own.ledger.horizons
    for line, score in zip(lines, [scores[0], scores[3], scores[7]], strict=True):
        assert f"{score.error**0.5:.4g} (last value {score.last_value**0.5:.4g}, " in line
        assert f"{100 * score.coverage:.1f} % inside their 80 % intervals" in line
    log = succeed(source, *OPTIONS, "--horizon", 8, "--log-json").err.splitlines()
    found = json.loads(log[-1])["forecasts"]
    assert [one["horizon"] for one in found] == [1, 4, 8]
    assert found[1]["error"] == scores[3].error ** 0.5
    assert found[1]["coverage"] == scores[3].coverage
    few = succeed(source, *OPTIONS, "--horizon", 8, "--max-rows", 6, "--log-json").err
    assert json.loads(few.splitlines()[-1])["forecasts"][0]["error"] is None


def test_page_has_fan_scores_and_weights_of_the_last_row(source, tmp_path):
    state = tmp_path / "state"
    succeed(source, *OPTIONS, "--horizon", "1,4,9", "--state", state)
    status = RunStatus.of_state(state)
    part = json.loads(report_text(status))["forecasts"]
    forecast = kb.load(state / "state.kb").forecast(coverage=0.8)
    assert part["horizons"] == [1, 4, 9]
    np.testing.assert_allclose(part["fan"]["point"], forecast.point, rtol=1e-6)
    np.testing.assert_allclose(part["fan"]["low"], forecast.lower, rtol=1e-6)
    np.testing.assert_allclose(part["fan"]["past"], Y[-len(part["fan"]["past"]) :], rtol=1e-6)
    assert part["fan"]["rows"] == COUNT
    run = json.loads(report_text(status))["run"]
    settings = dict(dict(run["details"])["Settings"])
    assert settings["--horizon"] == "1,4,9"
    succeed(source, *OPTIONS, "--state", tmp_path / "plain")
    assert '"forecasts"' not in report_text(RunStatus.of_state(tmp_path / "plain"))

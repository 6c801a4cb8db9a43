"""Rivals of `make accuracy`: refitted ones against a plain loop, groups, what is not installed."""

import importlib.util

import accuracy_options as options
import capymoa_rivals
import numpy as np
import pytest
import refitted_rivals as refitted
from accuracy import options as parse
from accuracy_competitors import LARGE, ONLINE

import kernelbank as kb
from kernelbank.research.run_cache import RunCache
from support.marks import slow

Stream = kb.datasets.Stream
SHORT = refitted.Schedule(first=3, often=5, until=15, rarely=10)


class LeastSquares:
    """A line through the rows that it is fitted on; it predicts how many they were, too."""

    def fit(self, X, y):
        self.rows = len(y)
        self.coefficients = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
        return self

    def predict(self, X):
        return np.column_stack([X, np.ones(len(X))]) @ self.coefficients + 1e-3 * self.rows


def _line(stream):
    return LeastSquares()


def _stream(task="regression", rows=60, lags=0):
    random = np.random.default_rng(2)
    X = random.normal(size=(rows, 2))
    y = X @ [1.0, -2.0] + 0.3 * random.normal(size=rows)
    return Stream(X, y if task == "regression" else (y > 0) * 1.0, task, lags)


def test_schedules_are_those_of_the_page():
    early = [10, *range(25, 501, 25)]
    assert refitted.USUAL.fits(4000) == [*early, *range(600, 4000, 100)]
    assert refitted.USUAL.fits(60) == [10, 25, 50]
    late = [*range(100, 1001, 100), *range(2000, 40000, 1000)]
    assert refitted.LONG.fits(40000) == [10, *late]
    assert refitted.LONG.fits(5) == []


@pytest.mark.parametrize("lags", [0, 3])
def test_refitted_rival_equals_a_plain_loop(lags):
    stream = _stream(lags=lags)
    found = refitted.run_refitted(_line, SHORT, 0, stream).predictions
    model, expected = None, []
    for row in range(len(stream)):
        if row in (3, 5, 10, 15, 25, 35, 45, 55):
            model = LeastSquares().fit(stream.inputs[:row], stream.y[:row])
        past = stream.y[:row]
        if model is None:
            expected.append(past.mean() if row else 0.0)
        else:
            expected.append(model.predict(stream.inputs[row : row + 1])[0])
    assert found == pytest.approx(expected, rel=1e-9)


def test_no_prediction_depends_on_a_later_row():
    stream = _stream(lags=3)
    y = stream.y.copy()
    y[40:] += 100.0
    other = Stream(stream.X, y, lags=3)
    one, two = (refitted.run_refitted(_line, SHORT, 0, s).predictions for s in (stream, other))
    assert (one[:41] == two[:41]).all()
    assert (one[41:] != two[41:]).all()


def test_before_the_first_fit_the_most_frequent_label_is_predicted():
    labels = np.array([1.0, 2.0, 2.0, 0.0, 1.0, 1.0, 1.0])
    stream = Stream(np.zeros((7, 1)), labels, "classification")
    late = refitted.Schedule(first=20)
    found = refitted.run_refitted(_line, late, 0, stream).predictions
    assert found.tolist() == [0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("task", ["regression", slow("classification")])
@pytest.mark.parametrize("rival", refitted.refitted_rivals(), ids=lambda one: one.name)
def test_refitted_rivals_learn_and_repeat_their_bits(rival, task):
    if "lightgbm" in rival.libraries:
        pytest.importorskip("lightgbm", reason="comes with the extra bench")
    stream = _stream(task, rows=200)
    first, again = (rival.run(0, stream).predictions for _ in range(2))
    assert (first == again).all()
    wrong = ((first - stream.y)[100:] ** 2).mean()
    assert wrong < 0.5 * stream.y[100:].var()


def test_other_schedules_are_other_runs_in_the_cache(tmp_path):
    cache = RunCache(tmp_path)
    usual, long = (
        next(one for one in refitted.refitted_rivals(schedule) if one.name == "extratrees")
        for schedule in (refitted.USUAL, refitted.LONG)
    )
    stream = _stream()
    assert cache.path(usual, 0, stream) != cache.path(long, 0, stream)


# --- choosing -------------------------------------------------------------------------------------


def _chosen(*arguments):
    return [one.name for one in options.chosen_competitors(parse(list(arguments)))]


def test_groups_of_rivals():
    online, large = ([one.name for one in group] for group in (ONLINE, LARGE))
    again = ["lightgbm-100", "lightgbm-500", "extratrees"]
    banks = ["paper", "omkr", "raker"]
    assert _chosen() == ["autobank", *online, *again, *banks]
    assert _chosen("--rivals", "large, refitted") == ["autobank", *again, *large, *banks]
    assert _chosen("--rivals", "all") == ["autobank", *online, *again, *large, *banks]
    assert _chosen("--rivals", "", "--capymoa")[:2] == ["autobank", "soknl"]
    assert _chosen("--competitors", "arf-100,lightgbm-500") == ["lightgbm-500", "arf-100"]


def test_rows_of_long_streams_are_fitted_less_often():
    for rows, schedule in (("10000", refitted.USUAL), ("10001", refitted.LONG)):
        (rival,) = options.chosen_competitors(
            parse(["--rows", rows, "--competitors", "lightgbm-100"])
        )
        assert str(schedule) in rival.description


def test_missing_library_is_named_with_the_command(monkeypatch):
    def version(name):
        if name == "lightgbm":
            raise options.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(options, "version", version)
    usual = options.chosen_competitors(parse([]))
    with pytest.raises(SystemExit, match=r"lightgbm-100 needs lightgbm.*pip install lightgbm"):
        options.check_installed(usual)
    options.check_installed(options.chosen_competitors(parse(["--rivals", "online,large"])))


def test_capymoa_is_refused_politely_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(capymoa_rivals, "find_spec", lambda name: None)
    monkeypatch.setattr(capymoa_rivals.shutil, "which", lambda name: "/usr/bin/java")
    chosen = options.chosen_competitors(parse(["--rivals", "", "--capymoa"]))
    with pytest.raises(SystemExit, match=r"--capymoa needs the package capymoa \(pip install"):
        options.check_installed(chosen)
    monkeypatch.setattr(capymoa_rivals, "find_spec", lambda name: object())
    monkeypatch.setattr(capymoa_rivals.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SystemExit, match=r"needs Java \(apt-get install default-jre-headless\)"):
        options.check_installed(chosen)
    options.check_installed(options.chosen_competitors(parse(["--rivals", "online"])))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("capymoa") is None, reason="needs CapyMOA and Java")
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_rivals_of_capymoa_learn(task):
    stream = _stream(task, rows=400)
    takers = [one for one in capymoa_rivals.CAPYMOA if one.takes(stream)]
    assert len(takers) == (3 if task == "regression" else 2)
    for one in takers:
        predictions = one.run(0, stream).predictions
        assert ((predictions - stream.y)[200:] ** 2).mean() < stream.y[200:].var(), one.name

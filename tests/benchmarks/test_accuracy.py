"""`make accuracy`: its figures against plain loops, its ranking and its goals."""

import gzip
import json
from types import SimpleNamespace

import accuracy
import accuracy_competitors as contenders
import accuracy_tables
import numpy as np
import pytest

import kernelbank as kb
from kernelbank.research.competitors import BANK, RIVAL, Competitor, CompetitorRun

ROWS, SKIP = 260, 100
Stream = kb.datasets.Stream


class StandIn:
    """Predicts the running mean of the targets; its slots are this mean, the last target and 0."""

    def __init__(self, task="regression", lags=0):
        self.task, self.lags = task, lags
        self.classes = (0.0, 1.0)

    def run(self, X, y, record=(), coverage=0.9):
        assert ("lower" in record) == (self.task == "regression")
        means = np.array([y[:t].mean() if t else 0.0 for t in range(len(y))])
        last = np.concatenate([[0.0], y[:-1]])
        if self.task == "classification":
            slots = np.stack([2 * means - 1, 2 * last - 1], axis=1)
            return SimpleNamespace(predictions=(means > 0.5) * 1.0, slot_predictions=slots)
        slots = np.stack([means, last, np.zeros(len(y))], axis=1)
        trace = SimpleNamespace(predictions=means, slot_predictions=slots)
        if "lower" in record:
            trace.lower, trace.upper = means - 1.0, means + 1.0
        return trace


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(kb, "AutoBank", StandIn, raising=False)


@pytest.fixture
def folder(tmp_path):
    """A regression stream that depends on its last target, and one of labels."""
    random = np.random.default_rng(3)
    X = random.normal(size=(ROWS + 40, 2))
    y = np.zeros(len(X))
    for t in range(1, len(y)):
        y[t] = 0.9 * y[t - 1] + X[t, 0] + 0.3 * random.normal()
    data = tmp_path / "data"
    data.mkdir()
    _write(data / "memory.csv.gz", X, y)
    _write(data / "labels.csv.gz", X, (X[:, 0] + 0.2 * random.normal(size=len(X)) > 0) * 1.0)
    return data


def _write(path, X, y):
    lines = [
        "a,b,y",
        *(",".join(repr(float(v)) for v in (*row, t)) for row, t in zip(X, y, strict=True)),
    ]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def _run(folder, out, *more, names="autobank,linear,logistic,knn,paper,raker"):
    options = ["--data", str(folder), "--out", str(out), "--rows", str(ROWS)]
    accuracy.main([*options, "--competitors", names, *more])
    return json.loads((out / "accuracy.json").read_text())


def _by_stream(content):
    rows = {}
    for result in content["results"]:
        rows.setdefault(result["stream"], {})[result["name"]] = result
    return rows


def _stream(task="regression", rows=200, lags=0):
    random = np.random.default_rng(0)
    y = random.normal(size=rows) if task == "regression" else (random.random(rows) > 0.5) * 1.0
    return Stream(random.normal(size=(rows, 2)), y, task, lags)


def _compare(competitors, stream, **more):
    banks = {one.name: one for one in competitors}
    return kb.compare(banks, {"noise": stream}, loss="normalised", skip=100, **more)


def test_accuracy_figures_equal_plain_loops(folder, tmp_path, stand_in, capsys):
    from river import linear_model, preprocessing

    content = _run(folder, tmp_path / "out")
    rows = _by_stream(content)
    assert list(rows) == ["labels", "memory", "memory +3"]
    X, y = kb.datasets.read_csv(folder / "memory.csv.gz")
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    squares = {"linear": [], "persistence": [], "autobank": [], "zero": []}
    for t in range(ROWS):
        row = {"a": X[t, 0], "b": X[t, 1]}
        for lag in (1, 2, 3):
            row[f"lag{lag}"] = y[t - lag] if t >= lag else 0.0
        found = {
            "linear": model.predict_one(row),
            "persistence": y[t - 1] if t else 0.0,
            "autobank": y[:t].mean() if t else 0.0,
            "zero": 0.0,
        }
        model.learn_one(row, y[t])
        for name, predicted in found.items():
            squares[name].append((predicted - y[t]) ** 2)
    naive = {
        name: np.mean(values[SKIP:]) / np.var(y[SKIP:ROWS]) for name, values in squares.items()
    }
    lagged = rows["memory +3"]
    for name in ("linear", "persistence", "autobank"):
        assert lagged[name]["mean_loss"] == pytest.approx(naive[name], rel=1e-12)
    slot = min(naive["persistence"], naive["autobank"], naive["zero"])
    own = lagged["autobank"]
    assert own["best_slot_loss"] == pytest.approx(slot)
    inside = [abs(y[t] - y[:t].mean()) <= 1 for t in range(SKIP, ROWS)]
    assert own["coverage"] == pytest.approx(np.mean(inside))
    assert own["interval_width"] == pytest.approx(2 / np.std(y[SKIP:ROWS]))
    labels = rows["labels"]
    assert labels["autobank"]["task"] == "classification"
    assert "coverage" not in labels["autobank"]
    _, z = kb.datasets.read_csv(folder / "labels.csv.gz")
    wrong = np.mean(z[SKIP - 1 : ROWS - 1] != z[SKIP:ROWS])
    assert labels["persistence"]["mean_loss"] == pytest.approx(wrong)
    shown = capsys.readouterr().out
    assert "geometric mean" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 100


def test_close_is_within_two_per_cent_or_one_standard_error():
    stream = _stream(rows=1100)
    noise = np.random.default_rng(1).normal(size=len(stream))

    def against(share):
        other = Competitor("other", RIVAL, lambda *_: CompetitorRun(stream.y + noise, 1.0))
        ours = Competitor("ours", BANK, lambda *_: CompetitorRun(stream.y + share * noise, 1.0))
        compared = _compare([other, ours], stream)
        (found,) = accuracy_tables.best_rivals(compared, "ours", contenders.competes)
        return found

    assert against(0.9).first
    near = against(1.005)  # 1.0 % more squared error
    assert (near.first, near.close) == (False, True)
    far = against(1.1)  # 21 % more, and the difference is certain
    assert (far.first, far.close) == (False, False)
    assert far.ratio == pytest.approx(1.21)
    difference = 0.21 * noise[100:] ** 2 / stream.y[100:].var()
    assert far.standard_error == pytest.approx(difference.std() / np.sqrt(1000), rel=0.2)


def test_running_scale_uses_earlier_rows_only():
    y = np.random.default_rng(0).normal(1e6, 3.0, size=50)
    mean, deviation = contenders.running_scale(y)
    for t in range(2, 50):
        assert mean[t] == pytest.approx(y[:t].mean(), rel=1e-12)
        assert deviation[t] == pytest.approx(y[:t].std(), rel=1e-6)
    assert (contenders.running_scale(np.ones(5))[1] == 1).all()


# --- refitted rivals ------------------------------------------------------------------------------

SHORT = contenders.Schedule(first=3, often=5, until=15, rarely=10)


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


@pytest.mark.parametrize("lags", [0, 3])
def test_refitted_rival_equals_a_plain_loop(lags):
    stream = _stream(rows=60, lags=lags)
    found = contenders.run_refitted(_line, SHORT, 0, stream).predictions
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
    stream = _stream(rows=60, lags=3)
    y = stream.y.copy()
    y[40:] += 100.0
    other = Stream(stream.X, y, lags=3)
    one, two = (contenders.run_refitted(_line, SHORT, 0, s).predictions for s in (stream, other))
    assert (one[:41] == two[:41]).all()
    assert (one[41:] != two[41:]).all()

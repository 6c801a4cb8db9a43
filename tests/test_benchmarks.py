"""Benchmarks: figures against plain loops, ranking, kept runs, and no forecast from the future."""

import hashlib
import json
import math
from types import SimpleNamespace

import ablation
import accuracy
import accuracy_competitors as contenders
import accuracy_streams
import accuracy_tables
import forecast_rivals as rivals
import forecast_streams as streams
import forecast_tables as tables
import forecasts
import lorenz
import many_classes
import numpy as np
import pytest
from forecast_rivals import Forecasts, Task

import kernelbank as kb
from kernelbank.research.competitors import RIVAL, Competitor, CompetitorRun
from kernelbank.research.results import Comparison
from support.comparisons import result_row, write_text
from support.marks import slow, slow_unless

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
    rows = [",".join(map(repr, [*map(float, row), float(t)])) for row, t in zip(X, y, strict=True)]
    write_text(path, "\n".join(["a,b,y", *rows]) + "\n")


def _stream(task="regression", rows=200, lags=0):
    random = np.random.default_rng(0)
    y = random.normal(size=rows) if task == "regression" else (random.random(rows) > 0.5) * 1.0
    return Stream(random.normal(size=(rows, 2)), y, task, lags)


def test_accuracy_figures_equal_plain_loops(folder, tmp_path, stand_in, capsys):
    from river import linear_model, preprocessing

    options = ["--data", str(folder), "--out", str(tmp_path), "--rows", str(ROWS)]
    accuracy.main([*options, "--competitors", "autobank,linear,logistic,knn,paper,raker"])
    rows = {}
    for result in json.loads((tmp_path / "accuracy.json").read_text())["results"]:
        rows.setdefault(result["stream"], {})[result["name"]] = result
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


def test_best_rival_is_first_close_or_ahead_and_the_worst_ratio_stands_first():
    losses = {"a": (1.0, 1.5), "b": (1.02, 1.0), "c": (1.0, 2.0), "d": (math.inf, 1.0)}
    rows = []
    for stream, (ours, rival) in losses.items():
        rows += [result_row(stream, "autobank", ours), result_row(stream, "arf", rival, RIVAL)]
        rows.append(result_row(stream, "paper", 0.1))  # is only shown
    pairs = accuracy_tables.best_rivals(Comparison("l", 0, (0,), tuple(rows), ()))
    found = [(pair.ours.stream, pair.place, pair.ratio) for pair in pairs]
    assert found == [
        ("d", "no", math.inf),
        ("b", "close", 1.02),
        ("a", "first", pytest.approx(2 / 3)),
        ("c", "first", 0.5),
    ]


# --- named streams and the Lorenz series ----------------------------------------------------------

BENCHMARKS = accuracy_streams.BENCHMARKS


def test_file_is_recognised_by_its_numbers(tmp_path, monkeypatch):
    table = np.array([[1.0, 2.5, -0.0], [3.0, 4.0, 1.0], [0.1, 6.0, 1e-3]])
    sha256 = hashlib.sha256((table + 0.0).tobytes()).hexdigest()
    monkeypatch.setitem(BENCHMARKS, "tiny", accuracy_streams.Benchmark("", "elsewhere", sha256))
    assert accuracy_streams.load("tiny", tmp_path) is None
    (tmp_path / "long").mkdir()
    path = tmp_path / "long" / "tiny.csv.gz"
    _write(path, table[:, :2], table[:, 2])
    stream = accuracy_streams.load("tiny", tmp_path)
    assert (stream.X.tolist(), stream.y.tolist()) == (table[:, :2].tolist(), table[:, 2].tolist())
    table[0, 1] = np.nextafter(2.5, 9)
    _write(path, table[:, :2], table[:, 2])
    with pytest.raises(SystemExit, match="other numbers than 'tiny', from elsewhere"):
        accuracy_streams.load("tiny", tmp_path)


def test_lorenz_series_equals_the_file_of_the_toolbox():
    X, y = lorenz.stream(10_001)
    assert X.shape == (10_000, 6)
    assert X[0].tolist() == [35.0, 0, 0, 0, 0, 0]
    assert y[:4].round(6).tolist() == [34.766667, 34.443866, 34.040837, 33.568386]
    assert y[-3:].round(6).tolist() == [13.304219, 14.489282, 15.888197]
    assert X[9].tolist() == y[8:2:-1].tolist()


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


@pytest.mark.parametrize("lags", [0, 3])
def test_refitted_rival_equals_a_plain_loop(lags):
    stream = _stream(rows=60, lags=lags)
    found = contenders.run_refitted(lambda stream: LeastSquares(), SHORT, 0, stream).predictions
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


# --- kept runs ------------------------------------------------------------------------------------

RUN = CompetitorRun(np.arange(20.0), 1e-3, note="as kept")
RIVAL_OF_NUMPY = Competitor("mean", RIVAL, lambda *_: RUN, description="NumPy: the mean")


def test_run_is_kept_and_a_damaged_file_is_as_if_it_were_not_there(tmp_path):
    cache, stream = contenders.RunCache(tmp_path), _stream(rows=20)
    assert cache.cached(RIVAL_OF_NUMPY).run(0, stream) is RUN
    kept = cache.cached(Competitor("mean", RIVAL, None, description="NumPy: the mean"))
    assert kept.run(0, stream).note == "as kept"
    path = cache.path(RIVAL_OF_NUMPY, stream)
    assert path != cache.path(RIVAL_OF_NUMPY, _stream(rows=21))
    whole = path.read_bytes()
    for length in range(0, len(whole), 100):
        path.write_bytes(whole[:length])
        assert contenders.read_arrays(path) is None
    for place in range(0, len(whole), 20):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 33]) + whole[place + 1 :])
        found = contenders.read_arrays(path)  # a few bytes of a zip file mean nothing
        assert found is None or found["predictions"].tobytes() == RUN.predictions.tobytes()


# --- make ablation --------------------------------------------------------------------------------


def test_summary_of_a_variant_equals_plain_sums():
    table = {"full": [1.0, 1.0], "no trees": [1.2, 0.9], "Hedge": [0.5, 0.7]}
    table |= dict(zip(ablation.OTHER_SEEDS, ([1.1, 1.0], [0.9, 0.8], [1.0, 1.25]), strict=True))
    rows = [
        result_row(f"set {index}", name, value)
        for name, values in table.items()
        for index, value in enumerate(values)
    ]
    comparison = Comparison("normalised error", 0, (0,), tuple(rows), ())
    found = ablation.summarise(comparison, "no trees")
    assert found.geometric_mean == pytest.approx(math.sqrt(1.2 * 0.9))
    assert (found.least, found.most) == (pytest.approx(0.9), pytest.approx(1.2))
    assert found.median == pytest.approx(1.05)
    assert (found.worse, found.better) == (1, 0)
    found = ablation.summarise(comparison, "Hedge")
    assert (found.worse, found.better) == (0, 2)


# --- make forecasts: streams, scores and rivals -----------------------------------------------------

LENGTH, START = 90, 40


def _ahead(rows=LENGTH, periods=(6, 12), known=(0,), name="waves"):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(np.arange(rows) * math.tau / 6) + X[:, 0] + 0.1 * random.normal(size=rows)
    return streams.ForecastStream(name, X, y, known, periods)


def test_scores_equal_plain_loops():
    stream = _ahead()
    random = np.random.default_rng(1)
    values = random.normal(size=(LENGTH, 2))
    run = Forecasts(values, values - 1.0, values + 0.5)
    found = tables.score("mine", Task(stream, (1, 9), START), run)
    sd = np.std([stream.y[t] for t in range(START, LENGTH)])
    for one, column, h in zip(found, (0, 1), (1, 9), strict=True):
        errors, inside = [], []
        for t in range(START, LENGTH):
            if t + h < LENGTH:
                errors.append(values[t, column] - stream.y[t + h])
                inside.append(-0.5 <= errors[-1] <= 1.0)
        assert one.rows == len(errors)
        assert one.squared == pytest.approx(np.mean(np.square(errors)) / sd**2)
        assert one.coverage == pytest.approx(np.mean(inside))
        assert one.width == pytest.approx(1.5 / sd)


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
    stream = _ahead()
    found = rivals.seasonal_last_value(which, Task(stream, (horizon,), START)).values[:, 0]
    for t in range(START, LENGTH):
        row = t + horizon
        while row > t:
            row -= period
        assert found[t] == stream.y[row]


def test_direct_inputs_hold_what_is_known_at_the_row():
    stream = _ahead()
    found = rivals.direct_inputs(stream, 4)
    t = 50
    lags = [stream.y[t - lag] for lag in range(rivals.LAGS)]
    phases = [stream.y[t + 4 - 6], stream.y[t + 4 - 12]]
    assert found[t].tolist() == [*stream.X[t], *lags, stream.X[t + 4, 0], *phases]
    assert np.isnan(found[LENGTH - 4 :, 2 + rivals.LAGS]).all()
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

    stream = _ahead()
    found = rivals.run_direct(Line, 15, Task(stream, (1, 7), START)).values
    assert np.isnan(found[:START]).all()
    for column, h in enumerate((1, 7)):
        for t in range(START, LENGTH):
            fitted_at = START + (t - START) // 15 * 15
            past = [stream.y[s + h] for s in range(LENGTH - h) if s + h <= fitted_at]
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
    stream = _ahead()
    runs = [
        rival.run(rival.task(one, (1, 6, 24), START))
        for one in (stream, _differs_only_after(stream, t))
    ]
    for part in ("values", "lower", "upper"):
        one, two = (getattr(run, part) for run in runs)
        if one is not None:
            assert np.array_equal(one[: t + 1], two[: t + 1], equal_nan=True)
            assert not np.array_equal(one[t + 1 :], two[t + 1 :], equal_nan=True)
    assert np.isfinite(runs[0].values[START : LENGTH - 24]).all()


# --- many classes ---------------------------------------------------------------------------------


def test_scores_of_classes_are_those_computed_by_hand(monkeypatch):
    monkeypatch.setattr(many_classes, "SKIP", 0)
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

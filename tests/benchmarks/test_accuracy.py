"""`make accuracy`: its figures against plain loops, its ranking, what it keeps and writes."""

import gzip
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import accuracy
import accuracy_competitors as contenders
import accuracy_figures as figures
import accuracy_goals as goals
import accuracy_streams as streams
import accuracy_tables as tables
import numpy as np
import pytest

import kernelbank as kb
from kernelbank.research.competitors import BANK, RIVAL, Competitor, CompetitorRun

ROWS, SKIP = 260, 100
Stream = kb.datasets.Stream
ROW_BY_ROW = [*contenders.ONLINE, *contenders.LARGE, *contenders.BANKS]


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
    return kb.compare(
        banks, {"noise": stream}, loss="normalised", skip=100, keep_losses=True, **more
    )


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
    assert labels["autobank"]["coverage"] is None
    _, z = kb.datasets.read_csv(folder / "labels.csv.gz")
    wrong = np.mean(z[SKIP - 1 : ROWS - 1] != z[SKIP:ROWS])
    assert labels["persistence"]["mean_loss"] == pytest.approx(wrong)
    shown = capsys.readouterr().out
    assert "geometric mean" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 100


def test_last_target_competes_in_every_view(folder, tmp_path, stand_in):
    content = _run(folder, tmp_path / "out", "--only", "memory", names="autobank,linear")
    rows = _by_stream(content)
    against = {row["stream"]: row for row in content["best_rivals"]}
    assert rows["memory"]["persistence"]["mean_loss"] < rows["memory"]["linear"]["mean_loss"]
    assert against["memory"]["rival"] == "persistence"
    for stream, row in rows.items():
        best = min(("linear", "persistence"), key=lambda name: row[name]["mean_loss"])
        assert against[stream]["rival"] == best
        own, other = row["autobank"]["mean_loss"], row[best]["mean_loss"]
        assert against[stream]["ratio"] == pytest.approx(own / other)
        assert against[stream]["first"] is False
        assert against[stream]["close"] is False


@pytest.mark.slow
def test_accuracy_writes_tables_and_figures(folder, tmp_path, stand_in):
    out = tmp_path / "out"
    _run(folder, out)
    for name in ("labels", "memory", "memory-lags3"):
        assert (out / f"{name}.png").stat().st_size > 5000
    assert not list(out.glob("ranks_*"))  # one stream of each task
    text = (out / "accuracy.md").read_text()
    assert "| memory +3 |" in text
    assert "intervals meant to hold 90%" in text


@pytest.mark.slow
def test_runs_of_rivals_are_kept_until_data_or_files_change(
    folder, tmp_path, stand_in, monkeypatch
):
    out = tmp_path / "out"
    before = _by_stream(_run(folder, out))
    counted = []
    run = contenders.run_model

    def counting(model, stream):
        if len(stream) > 200:  # not the warm-up
            counted.append(model)
        return run(model, stream)

    monkeypatch.setattr(contenders, "run_model", counting)
    after = _by_stream(_run(folder, out))
    assert not counted
    assert after["memory +3"]["knn"] == before["memory +3"]["knn"]
    _run(folder, out, "--rows", "250", "--only", "memory")  # other data: another key
    assert len(counted) == 4
    _run(folder, out, "--fresh", "--only", "memory")
    assert len(counted) == 8
    for path in (out / "rivals").iterdir():
        path.write_bytes(b"broken")
    _run(folder, out, "--only", "memory")
    assert len(counted) == 12


def _explode(seed, stream):
    predictions = np.zeros(len(stream.y))
    predictions[150:] = np.inf
    return CompetitorRun(predictions, 0.1)


class Breaks:
    def predict_one(self, x):
        raise FloatingPointError("overflow")

    def learn_one(self, x, y):
        pass


def test_rival_that_diverges_or_breaks_loses_and_changes_nothing_else(tmp_path):
    wild = Competitor("wild", RIVAL, _explode)
    broken = Competitor(
        "broken", RIVAL, lambda seed, stream: contenders.run_model(Breaks(), stream)
    )
    ours = Competitor(
        "autobank", BANK, lambda seed, stream: CompetitorRun(np.zeros(len(stream)), 1.0)
    )
    found = _compare([ours, wild, broken], _stream())
    assert found.result("noise", "wild").mean_loss == math.inf
    assert found.result("noise", "broken").mean_loss == math.inf
    (against,) = found.best_rivals("autobank", lambda one: one.kind == RIVAL)
    assert (against.first, against.close, against.ratio) == (True, True, 0.0)
    assert found.best_rivals("autobank", contenders.competes)[0].rival == "persistence"
    assert "FloatingPointError" in found.result("noise", "broken").note
    assert any("wild on noise diverged" in line for line in tables.notes(found))
    alone = replace(found, results=tuple(one for one in found.results if one.kind != "baseline"))
    assert "diverged" in tables.per_stream(alone).markdown()
    content = json.loads(found.to_json(tmp_path / "found.json").read_text())
    assert content["results"][1]["mean_loss"] is None
    assert figures.draw_errors(found, "noise", tmp_path).exists()
    lost = _compare([replace(ours, run=_explode), wild], _stream())
    (against,) = lost.best_rivals("autobank", contenders.competes)
    assert (against.first, against.close, tables.is_close(against)) == (False, False, False)


def test_close_is_within_two_per_cent_or_one_standard_error():
    stream = _stream(rows=1100)
    noise = np.random.default_rng(1).normal(size=len(stream))

    def against(share):
        other = Competitor("other", RIVAL, lambda *_: CompetitorRun(stream.y + noise, 1.0))
        ours = Competitor("ours", BANK, lambda *_: CompetitorRun(stream.y + share * noise, 1.0))
        (found,) = _compare([other, ours], stream).best_rivals("ours", contenders.competes)
        return found

    assert against(0.9).first
    near = against(1.005)  # 1.0 % more squared error
    assert (near.first, near.close) == (False, True)
    far = against(1.1)  # 21 % more, and the difference is certain
    assert (far.first, far.close) == (False, False)
    assert far.ratio == pytest.approx(1.21)
    difference = 0.21 * noise[100:] ** 2 / stream.y[100:].var()
    assert far.standard_error == pytest.approx(difference.std() / np.sqrt(1000), rel=0.2)


def _fixed(name, kind, errors):
    """Predicts every target with the error that is given for its stream, by number of rows."""
    return Competitor(
        name, kind, lambda _, stream: CompetitorRun(stream.y + errors[len(stream)], 1.0)
    )


def _three_streams(ours, **rivals):
    """Ours and rivals with these errors on streams a, b, c of 150, 160, 170 rows."""
    lengths = (150, 160, 170)
    competitors = [_fixed("autobank", BANK, dict(zip(lengths, ours, strict=True)))]
    for name, errors in rivals.items():
        competitors.append(_fixed(name, RIVAL, dict(zip(lengths, errors, strict=True))))
    return kb.compare(
        {one.name: one for one in competitors},
        {name: _stream(rows=rows) for name, rows in zip("abc", lengths, strict=True)},
        loss="normalised",
        skip=100,
        keep_losses=True,
    )


def test_streams_that_ours_loses_stand_first():
    found = _three_streams((0.1, 0.3, 0.2018), arf=(0.2, 0.2, 0.3), other=(0.3, 0.3, 0.2))
    every = accuracy.all_tables(found, long=False)
    for title in ("prequential error", "everybody, regression"):
        (table,) = [one for one in every if one.title.startswith(title)]
        assert [row[0] for row in table.rows][:3] == ["b", "c", "a"]
    ranked = {row[0]: (row[3], row[5]) for row in every[0].rows}
    assert ranked == {"b": ("arf", "no"), "c": ("other", "close"), "a": ("arf", "first")}
    assert found.streams == ("a", "b", "c")


def test_goals_count_all_rivals_and_online_rivals_alone():
    found = _three_streams((0.1, 0.3, 0.2018), arf=(0.2, 0.2, 0.3), other=(0.3, 0.3, 0.2))
    own = goals.summary(found)
    assert own["geometric_mean"] == pytest.approx((0.25 * 2.25 * 1.009**2) ** (1 / 3))
    assert own["online_geometric_mean"] == pytest.approx(
        (0.25 * 2.25 * 1.009**2 * 4 / 9) ** (1 / 3)
    )
    assert (own["first"], own["close"]) == (1, 2)
    lines = {row[0]: row[1:] for row in goals.goals(found).rows}
    figure = f"{own['geometric_mean']:.3f}"
    assert lines["geometric mean of ours / best of all rivals"] == [
        figure,
        "<= 0.60, beyond 0.50",
        "no",
    ]
    assert lines["rows first or within 2%"] == ["2 of 3 (67%)", ">= 25 of 28 (89%)", "no"]
    assert lines["geometric mean of ours / best online rival"][1:] == ["<= 0.43", "no"]
    better = _three_streams((0.1, 0.1, 0.1), arf=(0.2, 0.2, 0.2))
    assert [row[3] for row in goals.goals(better).rows[:4]] == ["beyond", "yes", "", "yes"]


@pytest.mark.parametrize(("inside", "reached"), [(45, "yes"), (46, "no")])
def test_intervals_must_hold_on_every_row(inside, reached):
    def run(seed, stream):
        wide = np.where(np.arange(len(stream)) < 100 + inside, 1.0, -1.0)
        return CompetitorRun(stream.y, 1.0, lower=stream.y - wide, upper=stream.y + wide)

    other = Competitor("other", RIVAL, lambda _, stream: CompetitorRun(stream.y + 1, 1.0))
    found = _compare([Competitor("autobank", BANK, run), other], _stream(rows=150))
    lines = {row[0]: row[1:] for row in goals.goals(found).rows}
    held = "1 of 1" if reached == "yes" else "0 of 1"
    assert lines["rows with intervals of 90% within 1%"] == [held, "every row", reached]
    assert lines["  farthest: noise"][0] == f"{inside / 50:.3f}"


def test_wide_tables_are_cut_for_a_terminal():
    table = tables.TextTable("t", ["name", *"abcd"], [["x", *"1234"]])
    first, second = table.parts(3)
    assert (first.columns, first.rows) == (["name", "a", "b"], [["x", "1", "2"]])
    assert (second.columns, second.rows) == (["name", "c", "d"], [["x", "3", "4"]])
    assert table.parts(4) == [table]


def test_best_rivals_without_kept_losses_are_refused():
    zero = Competitor("a", BANK, lambda _, stream: CompetitorRun(np.zeros(len(stream)), 1.0))
    found = kb.compare({"a": zero}, {"s": _stream()})
    with pytest.raises(ValueError, match="keep_losses=True"):
        found.best_rivals("a")


def test_ratio_counts_no_error_as_half_an_error():
    zero = Competitor("zero", RIVAL, lambda _, stream: CompetitorRun(np.zeros(len(stream)), 1.0))
    result = _compare([zero], _stream("classification")).results[0]
    assert result.ratio(0.0, 0.0) == 1.0
    assert result.ratio(0.0, 0.01) == pytest.approx(0.5)
    assert result.ratio(0.01, 0.0) == pytest.approx(2.0)


def test_rolling_mean_is_a_mean_of_the_last_rows():
    losses = np.random.default_rng(0).random(60)
    losses[20] = 1e30
    found = figures.rolling_mean(losses, 10)
    naive = [losses[max(0, t - 9) : t + 1].mean() for t in range(60)]
    assert found == pytest.approx(naive, rel=1e-12)
    losses[20] = np.inf
    assert np.isnan(figures.rolling_mean(losses, 10)).nonzero()[0].tolist() == list(range(20, 30))


def test_ranks_leave_out_streams_with_lags(tmp_path):
    better = Competitor("better", BANK, lambda _, stream: CompetitorRun(0.9 * stream.y, 1.0))
    zero = Competitor("zero", RIVAL, lambda _, stream: CompetitorRun(0.0 * stream.y, 1.0))
    given = {"a": _stream(), "a +3": _stream(lags=3), "b": _stream(rows=150)}
    found = kb.compare({"better": better, "zero": zero}, given, loss="normalised")
    table = tables.ranks(found, "regression")
    assert table.title.startswith("mean ranks on 2 streams as given, regression: Friedman's p = ")
    assert table.rows[0] == ["better", "1.00", "2", "1", ""]
    assert tables.ranks(found, "classification") is None
    assert len(figures.draw_ranks(found, tmp_path)) == 2
    assert (tmp_path / "ranks_regression.png").exists()


def test_lags_stand_behind_the_inputs():
    stream = _stream(lags=3)
    assert stream.inputs.shape == (200, 5)
    assert (stream.inputs[:, :2] == stream.X).all()
    assert stream.inputs[0, 2:].tolist() == [0.0, 0.0, 0.0]
    assert stream.inputs[7, 2:].tolist() == stream.y[[6, 5, 4]].tolist()


def test_row_range_selects_rows_and_leaves_out_short_streams(folder):
    X, y = kb.datasets.read_csv(folder / "memory.csv.gz")
    used = streams.RowRange(start=50, rows=120, skip=20)
    found = streams.from_folder(folder, used, ["memory"])
    assert (X[50:170] == found["memory"].X).all()
    assert (found["memory +3"].y == y[50:170]).all()
    assert not streams.from_folder(folder, streams.RowRange(start=290, rows=50, skip=20), [])


def test_running_scale_uses_earlier_rows_only():
    y = np.random.default_rng(0).normal(1e6, 3.0, size=50)
    mean, deviation = contenders.running_scale(y)
    for t in range(2, 50):
        assert mean[t] == pytest.approx(y[:t].mean(), rel=1e-12)
        assert deviation[t] == pytest.approx(y[:t].std(), rel=1e-6)
    assert (contenders.running_scale(np.ones(5))[1] == 1).all()


@pytest.mark.slow
def test_bundled_streams_are_finite_numbers():
    found = streams.bundled(streams.RowRange(rows=160), [])
    assert len(found) >= 15
    assert {stream.task for stream in found.values()} == {"regression", "classification"}
    assert found["ImageSegments"].classes == 7
    for stream in found.values():
        assert np.isfinite(stream.inputs).all()
        assert np.isfinite(stream.y).all()


def test_named_benchmarks_come_from_packages_and_folders_that_have_them(tmp_path, capsys):
    used = streams.RowRange(rows=150)
    found = streams.benchmarks(False, None, used, ["iris", "diabetes", "kin40k"])
    assert list(found) == ["diabetes", "diabetes +3", "iris"]
    assert (
        "Left out, neither in a folder (DATA) nor in a package: kin40k" in capsys.readouterr().out
    )
    assert not streams.benchmarks(True, tmp_path, used, ["santafe_laser"])
    with pytest.raises(SystemExit, match="no stream 'iris'"):
        streams.benchmarks(True, None, used, ["iris"])


def test_file_with_the_name_of_a_benchmark_must_have_its_numbers(folder):
    (folder / "memory.csv.gz").rename(folder / "kin40k.csv.gz")
    with pytest.raises(SystemExit, match=r"kin40k\.csv\.gz: these are not the numbers of 'kin40k'"):
        streams.from_folder(folder, streams.RowRange(), [])


@pytest.mark.slow
def test_many_classes_are_run_by_all_that_take_them():
    (stream,) = streams.bundled(streams.RowRange(rows=150), ["iris"]).values()
    names = ("logistic", "knn", "rbf-sgd", "paper")
    found = _compare([c for c in ROW_BY_ROW if c.name in names], stream)
    own = [one for one in found.results if one.kind != "baseline"]
    assert {one.name for one in own} == {"logistic", "knn", "rbf-sgd"}
    assert all(one.mean_loss < 0.4 for one in own)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_every_competitor_predicts_finite_numbers_or_labels(task):
    stream = _stream(task, rows=130)
    takers = [one for one in ROW_BY_ROW if one.takes(stream)]
    assert len(takers) >= 9
    for one in takers:
        predictions = one.run(0, stream).predictions
        assert np.isfinite(predictions).all(), one.name
        if task == "classification":
            assert set(np.unique(predictions)) <= {0.0, 1.0}, one.name


@pytest.mark.slow
def test_runs_side_by_side_give_the_same_figures(folder, tmp_path):
    names = "linear,knn,paper"
    alone, beside = (
        _by_stream(_run(folder, tmp_path / jobs, "--only", "memory", "--jobs", jobs, names=names))
        for jobs in ("1", "2")
    )
    for stream, row in alone.items():
        for name, found in row.items():
            assert beside[stream][name]["mean_loss"] == found["mean_loss"]
    assert beside["memory"]["knn"]["jobs"] == 2
    assert "~" in (tmp_path / "2" / "accuracy.md").read_text()


def test_jobs_with_a_function_that_cannot_be_sent_are_refused():
    local = Competitor("local", RIVAL, lambda seed, stream: None)
    with pytest.raises(ValueError, match="'jobs' of compare must be 1, because 'local'"):
        _compare([local], _stream(), jobs=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "nothing", "--rivals", "online"], "no stream 'nothing'"),
        (["--competitors", "nobody"], "there is no 'nobody'"),
        (["--rivals", "online,slow"], "no group 'slow'. There are online, refitted, large, all"),
        (["--rows", "10001", "--competitors", "knn"], "for long streams, and there is none"),
        (["--start", "900", "--rivals", "online"], "No stream has more than"),
    ],
)
def test_wrong_options_are_refused(folder, tmp_path, options, message):
    with pytest.raises(SystemExit, match=message):
        accuracy.main(["--data", str(folder), "--out", str(tmp_path / "out"), *options])

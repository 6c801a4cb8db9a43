"""`make accuracy`: its figures against plain loops, its ranking, what it keeps and writes."""

import gzip
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import accuracy
import numpy as np
import pytest
from contest import entries, house, pictures, play, players, scores, store, tables
from contest.peers import PEERS

import kernelbank as kb

ROWS, SKIP = 260, 100


class StandIn:
    """Predicts the running mean of the targets; its slots are this mean, the last target and 0."""

    def __init__(self, task="regression", lags=0, size="default"):
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
def auto(monkeypatch):
    monkeypatch.setattr(kb, "AutoBank", StandIn, raising=False)


@pytest.fixture
def folder(tmp_path):
    """A regression stream that remembers its last target, and one of labels."""
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


def _run(folder, out, *more):
    names = "autobank,linear,logistic,knn,persistence,paper,raker"
    wishes = ["--data", str(folder), "--out", str(out), "--rows", str(ROWS), "--players", names]
    accuracy.main([*wishes, *more])
    rows = json.loads((out / "accuracy.json").read_text())["rows"]
    return {f"{row['stream']}/{row['view']}": row for row in rows}


def test_figures_are_those_of_plain_loops(folder, tmp_path, auto, capsys):
    from river import linear_model, preprocessing

    rows = _run(folder, tmp_path / "out")
    assert list(rows) == ["labels/given", "memory/given", "memory/lags3"]
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
    lagged = rows["memory/lags3"]
    for name in ("linear", "persistence", "autobank"):
        assert lagged["figures"][name]["figure"] == pytest.approx(naive[name], rel=1e-12)
    assert lagged["ours"] == pytest.approx(naive["autobank"])
    slot = min(naive["persistence"], naive["autobank"], naive["zero"])
    assert lagged["best_slot"] == pytest.approx(slot)
    assert lagged["slot_ratio"] == pytest.approx(naive["autobank"] / slot)
    inside = [abs(y[t] - y[:t].mean()) <= 1 for t in range(SKIP, ROWS)]
    assert lagged["coverage"] == pytest.approx(np.mean(inside))
    assert lagged["width"] == pytest.approx(2 / np.std(y[SKIP:ROWS]))
    labels = rows["labels/given"]
    assert labels["task"] == "classification"
    assert labels["coverage"] is None
    _, z = kb.datasets.read_csv(folder / "labels.csv.gz")
    wrong = np.mean(z[SKIP - 1 : ROWS - 1] != z[SKIP:ROWS])
    assert labels["figures"]["persistence"]["figure"] == pytest.approx(wrong)
    shown = capsys.readouterr().out
    assert "geometric mean" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 100


def test_persistence_competes_only_where_the_last_targets_are_told(folder, tmp_path, auto):
    rows = _run(
        folder, tmp_path / "out", "--players", "autobank,linear,persistence", "--only", "memory"
    )
    given, lagged = rows["memory/given"], rows["memory/lags3"]
    assert given["figures"]["persistence"]["figure"] < given["figures"]["linear"]["figure"]
    assert given["best_peer"] == "linear"
    figures = {name: lagged["figures"][name]["figure"] for name in ("linear", "persistence")}
    best = min(figures, key=figures.get)
    assert lagged["best_peer"] == best
    assert lagged["ratio"] == pytest.approx(lagged["ours"] / figures[best])
    assert lagged["first"] is False
    assert lagged["close"] is False


@pytest.mark.slow
def test_writes_tables_and_pictures(folder, tmp_path, auto):
    out = tmp_path / "out"
    _run(folder, out)
    for name in ("labels-given", "memory-given", "memory-lags3"):
        assert (out / f"{name}.png").stat().st_size > 5000
    words = (out / "accuracy.md").read_text()
    assert "| memory +3 |" in words
    assert "intervals meant to hold 90%" in words
    figures = json.loads((out / "figures.json").read_text())
    assert figures["memory/given"].keys() >= {"autobank", "linear", "knn", "persistence", "raker"}


@pytest.mark.slow
def test_passes_of_peers_are_kept(folder, tmp_path, auto, monkeypatch):
    out = tmp_path / "out"
    before = _run(folder, out)
    counted = []

    def counting(entry, predict, learn, *rest):
        counted.append(entry.name)
        return players.one_by_one(entry, predict, learn, *rest)

    monkeypatch.setattr("contest.peers.one_by_one", counting)
    after = _run(folder, out)
    assert not counted
    assert after["memory/lags3"]["figures"]["knn"] == before["memory/lags3"]["figures"]["knn"]
    _run(folder, out, "--rows", "250", "--only", "memory")  # other data: another key
    assert len(counted) == 4
    _run(folder, out, "--fresh", "--only", "memory")
    assert len(counted) == 8
    for path in (out / "peers").iterdir():
        path.write_bytes(b"broken")
    _run(folder, out, "--only", "memory")
    assert len(counted) == 12


def _entry(task="regression", rows=200, view="given"):
    random = np.random.default_rng(0)
    y = random.normal(size=rows) if task == "regression" else (random.random(rows) > 0.5) * 1.0
    return entries.Entry("noise", view, task, random.normal(size=(rows, 2)), y, 100)


def test_a_peer_that_diverges_or_breaks_loses_and_nothing_else(tmp_path):
    entry = _entry()

    def breaks(row):
        raise FloatingPointError("overflow")

    def explode(entry):
        predictions = np.zeros(len(entry.y))
        predictions[150:] = np.inf
        return players.Played(predictions, 0.1)

    peer = players.Player("wild", players.PEER, "diverges", explode)
    broken = replace(
        peer,
        name="broken",
        play=lambda e: players.one_by_one(e, list(e.X), breaks, lambda *_: None),
    )
    ours = replace(peer, name="autobank", kind=players.OURS, play=players.last_target)
    everyone = [ours, peer, broken]
    ((_, passes),) = play.play_all([entry], everyone, store.Store(tmp_path), 1, lambda _: None)
    row = scores.score(entry, everyone, passes)
    assert row.figures["wild"].figure == row.figures["broken"].figure == math.inf
    assert row.first
    assert row.close
    assert row.ratio == 0.0
    assert "FloatingPointError" in row.figures["broken"].note
    assert any("wild on noise/given diverged" in line for line in tables.notes([row]))
    assert "diverged" in tables.results([row]).markdown()
    content = json.loads(tables.to_json({}, [row], scores.summary([row])))
    assert content["rows"][0]["figures"]["wild"]["figure"] is None
    assert pictures.draw(row, entry.skip, tmp_path).exists()
    lost = scores.score(
        entry,
        [peer, replace(ours, play=explode)],
        {"wild": explode(entry), "autobank": explode(entry)},
    )
    assert lost.first is False
    assert lost.close is False


def test_close_is_within_two_per_cent_or_one_standard_error():
    entry = _entry(rows=1100)
    noise = np.random.default_rng(1).normal(size=len(entry.y))

    def row(share):
        other = players.Player("other", players.PEER, "", None)
        ours = players.Player("autobank", players.OURS, "", None)
        passes = {
            "other": players.Played(entry.y + noise, 1.0),
            "autobank": players.Played(entry.y + share * noise, 1.0),
        }
        return scores.score(entry, [other, ours], passes)

    assert row(0.9).first
    near = row(1.005)  # 1.0 % more squared error
    assert (near.first, near.close) == (False, True)
    far = row(1.1)  # 21 % more, and the difference is certain
    assert (far.first, far.close) == (False, False)
    assert far.ratio == pytest.approx(1.21)
    difference = 0.21 * noise[100:] ** 2 / entry.y[100:].var()
    assert far.standard_error == pytest.approx(difference.std() / np.sqrt(1000), rel=0.2)


def test_no_error_at_all_counts_as_half_an_error():
    entry = _entry("classification")
    assert scores.ratio(entry, 0.0, 0.0) == 1.0
    assert scores.ratio(entry, 0.0, 0.01) == pytest.approx(0.5)
    assert scores.ratio(entry, 0.01, 0.0) == pytest.approx(2.0)


def test_running_error_is_a_mean_of_the_last_rows():
    losses = np.random.default_rng(0).random(60)
    losses[20] = 1e30
    found = pictures.running(losses, 10)
    naive = [losses[max(0, t - 9) : t + 1].mean() for t in range(60)]
    assert found == pytest.approx(naive, rel=1e-12)
    losses[20] = np.inf
    assert np.isnan(pictures.running(losses, 10)).nonzero()[0].tolist() == list(range(20, 30))


def test_lags_stand_behind_the_inputs():
    entry = _entry(view="lags3")
    assert entry.inputs.shape == (200, 5)
    assert (entry.inputs[:, :2] == entry.X).all()
    assert entry.inputs[0, 2:].tolist() == [0.0, 0.0, 0.0]
    assert entry.inputs[7, 2:].tolist() == entry.y[[6, 5, 4]].tolist()


def test_another_stretch_of_a_stream(folder):
    X, y = kb.datasets.read_csv(folder / "memory.csv.gz")
    stretch = entries.Stretch(start=50, rows=120, skip=20)
    found = entries.from_folder(folder, stretch, ["memory"])
    assert (X[50:170] == found[0].X).all()
    assert (found[1].y == y[50:170]).all()
    assert not entries.from_folder(folder, entries.Stretch(start=290, rows=50, skip=20), [])


def test_running_scale_looks_at_nothing_that_is_to_come():
    y = np.random.default_rng(0).normal(1e6, 3.0, size=50)
    mean, deviation = house.running_scale(y)
    for t in range(2, 50):
        assert mean[t] == pytest.approx(y[:t].mean(), rel=1e-12)
        assert deviation[t] == pytest.approx(y[:t].std(), rel=1e-6)
    assert (house.running_scale(np.ones(5))[1] == 1).all()


def test_bundled_streams_are_numbers():
    found = {entry.name: entry for entry in entries.bundled(entries.Stretch(rows=160), [])}
    assert len(found) >= 15
    assert {entry.task for entry in found.values()} == {"regression", "classification"}
    assert found["ImageSegments/given"].classes == 7
    for entry in found.values():
        assert np.isfinite(entry.inputs).all()
        assert np.isfinite(entry.y).all()


def test_many_classes(tmp_path, auto):
    (entry,) = entries.bundled(entries.Stretch(rows=150), ["iris"])
    some = [p for p in accuracy.everyone() if p.name in ("logistic", "knn", "rbf-sgd", "paper")]
    ((_, passes),) = play.play_all([entry], some, store.Store(tmp_path), 1, lambda _: None)
    assert set(passes) == {"logistic", "knn", "rbf-sgd"}
    row = scores.score(entry, some, passes)
    assert all(figure.figure < 0.4 for figure in row.figures.values())


@pytest.mark.slow
def test_everyone_plays_both_tasks(tmp_path):
    for task in ("regression", "classification"):
        entry = _entry(task, rows=130)
        everyone = [*PEERS, *players.BASELINES, *house.BANKS]
        ((_, passes),) = play.play_all([entry], everyone, store.Store(tmp_path), 1, lambda _: None)
        assert len(passes) >= 10
        for name, played in passes.items():
            assert np.isfinite(played.predictions).all(), name
            if task == "classification":
                assert set(np.unique(played.predictions)) <= {0.0, 1.0}, name


@pytest.mark.slow
def test_side_by_side_gives_the_same(folder, tmp_path, auto):
    alone = _run(folder, tmp_path / "alone", "--only", "memory")
    beside = _run(folder, tmp_path / "beside", "--only", "memory", "--jobs", "2")
    for name, row in alone.items():
        for player, found in row["figures"].items():
            assert beside[name]["figures"][player]["figure"] == found["figure"]
    assert beside["memory/given"]["figures"]["knn"]["jobs"] == 2
    assert "~" in (tmp_path / "beside" / "accuracy.md").read_text()


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (["--only", "nothing"], "no stream 'nothing'"),
        (["--players", "nobody"], "nobody is called 'nobody'"),
        (["--start", "900"], "No stream has more than"),
    ],
)
def test_wrong_wishes_are_told(folder, tmp_path, wishes, words):
    with pytest.raises(SystemExit, match=words):
        accuracy.main(["--data", str(folder), "--out", str(tmp_path / "out"), *wishes])

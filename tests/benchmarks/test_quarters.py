"""Long streams in `make accuracy`: which are used, the error by quarter, the verdicts."""

import gzip
import json

import accuracy
import accuracy_quarters as quarters
import accuracy_streams as streams
import numpy as np
import pytest

import kernelbank as kb
from kernelbank.research.competitors import BANK, RIVAL, Competitor, CompetitorRun


def _write(path, rows):
    random = np.random.default_rng(rows)
    table = random.normal(size=(rows, 2))
    lines = ["x,y", *(f"{x!r},{y!r}" for x, y in table.tolist())]
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Streams of 150, 300 and 400 rows, the last one in the folder `long`; 300 rows are long."""
    monkeypatch.setattr(streams, "LONG_STREAM", 300)
    _write(tmp_path / "data" / "brief.csv.gz", 150)
    _write(tmp_path / "data" / "medium.csv.gz", 300)
    _write(tmp_path / "data" / "long" / "large.csv.gz", 400)
    return tmp_path / "data"


def _growing(stream, factor):
    """Off by `factor` times the number of the quarter."""
    number = 1 + np.arange(len(stream)) * 4 // len(stream)
    return CompetitorRun(stream.y + factor * number, 1.0)


def _compare(given, ours=1.0, rival=2.0, skip=20):
    competitors = {
        "autobank": Competitor("autobank", BANK, lambda _, s: _growing(s, ours)),
        "lightgbm-500": Competitor("lightgbm-500", RIVAL, lambda _, s: _growing(s, rival)),
        "shown": Competitor("shown", BANK, lambda _, s: _growing(s, 1.0)),
    }
    return kb.compare(competitors, given, loss="normalised", skip=skip, keep_losses=True)


def _noise(rows=200):
    random = np.random.default_rng(1)
    return kb.datasets.Stream(random.normal(size=(rows, 1)), random.normal(size=rows))


def test_quarters_are_of_the_stream_and_scored_rows_only():
    stream = _noise(rows=199)
    found = _compare({"noise": stream})
    random = np.random.default_rng(7).normal(size=199)
    one = found.result("noise", "autobank")
    object.__setattr__(one, "losses", random)
    means = quarters.means(one, 20)
    naive = [random[20:49], random[49:99], random[99:149], random[149:], random[99:]]
    assert list(means) == ["q1", "q2", "q3", "q4", "last half"]
    assert list(means.values()) == pytest.approx([part.mean() for part in naive])
    assert np.isnan(quarters.means(one, 60)["q1"])


def test_table_has_ours_first_and_rivals_by_their_last_half():
    stream = _noise()
    found = _compare({"noise": stream}, ours=3.0, rival=0.1)
    variance = stream.y[20:].var()
    rows = quarters.by_quarter(found).rows
    assert [row[1] for row in rows] == ["autobank", "lightgbm-500", "persistence"]
    assert rows[0][2:6] == [f"{(3 * n) ** 2 / variance:.3g}" for n in (1, 2, 3, 4)]
    assert rows[0][6] == f"{9 * (9 + 16) / 2 / variance:.3g}"


def test_goals_depend_on_the_order_of_the_stream():
    names = ("kin40k", "elec2", "kin40k +3", "mine")
    assert [quarters.order(name) for name in names] == ["iid", "time", "iid", "time"]
    given = {"kin40k": _noise(), "elec2": _noise(180)}
    table = quarters.verdicts(_compare(given, ours=1.04, rival=1.0))
    assert [row[0] for row in table.rows] == ["elec2", "kin40k"]
    found = {row[0]: (row[1], *row[4:]) for row in table.rows}
    assert found["kin40k"] == ("iid", "1.082", "<= 1.15", "yes")
    assert found["elec2"] == ("time", "1.082", "<= 1.0", "no")
    worse = quarters.verdicts(_compare(given, ours=1.1, rival=1.0)).rows
    assert [row[6] for row in worse] == ["no", "no"]
    alone = kb.compare({"a": kb.KernelBank()}, {"s": _noise(50)}, keep_losses=True)
    assert quarters.verdicts(alone) is None


def test_long_runs_leave_out_short_streams_and_look_into_the_folder_long(folder, capsys):
    used = streams.RowRange(rows=301, skip=20)
    found = streams.long_ones(streams.from_folder(folder, used, []))
    assert {name: len(one) for name, one in found.items()} == {
        "large": 301,
        "large +3": 301,
        "medium": 300,
        "medium +3": 300,
    }
    assert "Left out, fewer than 300 rows: brief, brief +3" in capsys.readouterr().out
    usual = streams.from_folder(folder, streams.RowRange(rows=300, skip=20), [])
    assert list(usual) == ["brief", "brief +3", "medium", "medium +3"]


def test_long_run_writes_quarters(folder, tmp_path, monkeypatch, capsys):
    rivals = [Competitor("lightgbm-500", RIVAL, _exact)]
    monkeypatch.setattr(accuracy, "chosen_competitors", lambda chosen: [OURS, *rivals])
    options = ["--data", str(folder), "--out", str(tmp_path / "out"), "--skip", "20"]
    accuracy.main([*options, "--rows", "350", "--only", "large"])
    content = json.loads((tmp_path / "out" / "accuracy.json").read_text())
    rows = [row for row in content["quarters"] if row["stream"] == "large"]
    assert [row["method"] for row in rows] == ["autobank", "lightgbm-500", "persistence"]
    assert rows[1]["last half"] == 0.0
    text = (tmp_path / "out" / "accuracy.md").read_text()
    assert "| stream | method | q1 | q2 | q3 | q4 | last half |" in text
    assert "the last half of the stream: ours / lightgbm-500" in text
    assert "error by quarter" in capsys.readouterr().out
    accuracy.main([*options, "--rows", "300", "--only", "medium"])
    assert "quarters" not in json.loads((tmp_path / "out" / "accuracy.json").read_text())


def _exact(seed, stream):
    return CompetitorRun(stream.y.copy(), 1.0)


def _off(seed, stream):
    return CompetitorRun(stream.y + 1.0, 1.0)


OURS = Competitor("autobank", BANK, _off)

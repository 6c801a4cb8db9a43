"""`kernelbank run`: the answers are the bank's own, from every source, with every option and engine."""

import gzip
import json
import os
import sys

import numpy as np
import pyarrow.parquet
import pytest

import kernelbank as kb
from kernelbank.run import runner, session
from kernelbank.run.runner import Runner
from support import run_command
from support.live_viewers import memory
from support.run_command import (
    ROWS,
    X,
    Y,
    check_predictions,
    make_rows,
    one_slot_model,
    open_run,
    options_of,
    read_csv,
    refusal,
    run,
    succeed,
    write_csv,
    write_jsonl,
)

folder, source = run_command.folder, run_command.source


@pytest.fixture(scope="module")
def trace():
    return kb.AutoBank(size="small").run(X, Y)


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl.gz", "parquet", "csv on standard input"])
def test_every_source_gives_the_models_predictions(kind, trace, tmp_path):
    kind, _, is_piped = kind.partition(" on ")
    path, columns = tmp_path / f"rows.{kind}", ["a", "b", "y"]
    rows = np.column_stack([X, Y])
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.table(dict(zip(columns, rows.T, strict=True))), path)
    elif kind == "csv":
        write_csv(path, columns, rows, delimiter=";")
    else:
        path.write_bytes(gzip.compress(write_jsonl(tmp_path / "r", columns, rows).read_bytes()))
    more = ("--delimiter", ";") if kind == "csv" else ()
    options = ("--target", "y", "--predictions", tmp_path / "out.csv", *more)
    succeed("-" if is_piped else path, *options, stdin=path if is_piped else None)
    check_predictions(tmp_path / "out.csv", trace, Y)


def test_standard_input_when_closed_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in refusal("-", "--target", "y")


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "settings", "playing"),
    [
        (("--lags", 3), {"lags": 3}, {}),
        (("--coverage", 0.5), {}, {"coverage": 0.5}),
        (("--delay", 7), {}, {"delay": 7}),
        (("--delay", 7, "--lags", 2), {"lags": 2}, {"delay": 7}),
        (("--delay", 7, "--seasons", "12,3"), {"seasons": (3, 12)}, {"delay": 7}),
        (("--seasons", "auto"), {"seasons": "auto"}, {}),
        (("--lower", 12.4, "--upper", 27), {"lower": 12.4, "upper": 27.0}, {}),
        (("--engine", "threads", "--shards", 2), {}, {}),
        (("--size", "default"), {"size": "default"}, {}),
    ],
)
def test_model_options_give_the_same_predictions_as_autobank(
    options, settings, playing, source, tmp_path
):
    more = ("--target", "y", "--predictions", tmp_path / "out.csv", "--size", "small")
    succeed(source, *more, *options, size=None)
    bank = kb.AutoBank(**{"size": "small", **settings})
    check_predictions(tmp_path / "out.csv", bank.run(X, Y, **playing), Y)


def test_preset_paper_gives_the_predictions_of_the_papers_bank(source, tmp_path):
    succeed(source, "--target", "y", "--preset", "paper", "--predictions", tmp_path / "out.csv")
    kernels = kb.gaussian_grid(0.1, 10, 20)
    bank = kb.AutoBank(
        size="small",
        slots=[kb.Slot(kernel, kb.learners.Norma()) for kernel in kernels],
        combiner=kb.combiners.Simplex(),
        window=10,
        regularization=0.01,
    )
    check_predictions(tmp_path / "out.csv", bank.run(X, Y), Y)


@pytest.mark.parametrize(("delay", "equal"), [(7, True), (1010, False)])
def test_delay_with_equal_or_many_pending_rows_learns_the_right_targets(
    delay, equal, tmp_path, light
):
    """More of them than a bank remembers by itself, or with the same inputs."""
    count = delay + 90
    rows, targets = make_rows(count)
    if equal:
        rows = np.ones((count, 2))
    path = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([rows, targets]))
    out = tmp_path / "out.csv"
    options = ("--target", "y", "--delay", delay, "--state", tmp_path / "state")
    options += ("--predictions", out)
    for most in (delay // 2, count - 50, count):  # also with all of them in a file
        succeed(path, *options, "--max-rows", most)
    check_predictions(out, one_slot_model().run(rows, targets, delay), targets)


def test_baseline_with_delay_uses_only_known_targets(tmp_path):
    targets = np.arange(50.0)
    path = write_csv(tmp_path / "s.csv", ["a", "y"], np.column_stack([X[:50, 0], targets]))
    for delay in (0, 4):
        done = succeed(path, "--target", "y", "--delay", delay, "--log-json")
        assert json.loads(done.err.splitlines()[-1])["baseline_error"] == delay + 1


def test_source_with_only_a_target_needs_lags(tmp_path):
    path = write_csv(tmp_path / "s.csv", ["y"], Y[:, None])
    assert "--lags" in refusal(path, "--target", "y")
    succeed(path, "--target", "y", "--lags", 2, "--predictions", tmp_path / "out.csv")
    trace = kb.AutoBank(size="small", lags=2).run(np.zeros((ROWS, 1)), Y)
    check_predictions(tmp_path / "out.csv", trace, Y)


# --- what is said and kept ------------------------------------------------------------------------


def test_quiet_run_prints_only_errors(source, tmp_path):
    out = tmp_path / "out.csv"
    state = ("--state", tmp_path / "state")
    for _ in range(2):  # and nothing of going on, either
        assert succeed(source, "--target", "y", "--quiet", "--predictions", out, *state).err == ""
    assert len(read_csv(out)[1]) == ROWS
    assert "no column" in refusal(source, "--target", "z", "--quiet")


def test_json_log_prints_only_objects(source, tmp_path):
    options = ("--target", "y", "--log-json", "--state", tmp_path / "s")
    options += ("--predictions", tmp_path / "o.csv")
    first = [
        json.loads(line) for line in succeed(source, *options, "--max-rows", 100).err.splitlines()
    ]
    assert [one["event"] for one in first] == ["progress", "end"]
    assert first[-1]["reason"] == "--max-rows"
    second = [json.loads(line) for line in succeed(source, *options).err.splitlines()]
    assert [one["event"] for one in second] == ["resumed", "progress", "end"]
    assert second[0]["rows"] == 100
    end = second[-1]
    assert (end["reason"], end["rows"], end["bad_rows"]) == ("end", ROWS, 0)
    assert end["predictions"] == str(tmp_path / "o.csv")
    wrong = run(source, "--target", "z", "--log-json")
    assert wrong.code == 2
    assert json.loads(wrong.err)["event"] == "error"


def test_warnings_are_printed_as_notes(source, monkeypatch):
    import warnings

    def warn(settings, engine):
        warnings.warn("a slot\nis out", kb.errors.SlotQuarantined, stacklevel=1)
        return kb.AutoBank(size="small", engine=engine)

    monkeypatch.setattr(session, "make_model", warn)
    assert succeed(source, "--target", "y").err.startswith("note: a slot is out\n")
    assert succeed(source, "--target", "y", "--quiet").err == ""
    first = succeed(source, "--target", "y", "--log-json").err.splitlines()[0]
    assert json.loads(first) == {"event": "note", "message": "a slot is out"}


def test_missing_library_is_refused_with_its_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "kernelbank.io.parquet", raising=False)
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    assert "kernelbank[files]" in refusal(tmp_path / "s.parquet", "--target", "y")


# --- A million rows through the whole loop, in memory that does not grow ---


MANY = 1_000_000
ALLOWANCE = 8 * 2**20
"""Bytes. What is bounded but not yet full after a tenth of the rows: snapshots (32 of some kB), and
what the allocator and pyarrow keep. A leak of 16 bytes a row would be 14 MB."""


@pytest.mark.slow
def test_a_million_rows_take_constant_memory(tmp_path, light, monkeypatch):
    path = tmp_path / "long.csv"
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        file.write("a,b,k,y\n")
        for _ in range(MANY // 10_000):
            rows = draw.normal(size=(10_000, 2))
            y = rows @ [1.0, -2.0] + 0.1 * draw.normal(size=10_000)
            for n, ((a, b), t) in enumerate(zip(rows, y, strict=True)):
                file.write(f"{a:.6f},{b:.6f},k{n % 3},{t:.6f}\n" if n % 9_999 else "1,?,k0,2\n")
    seen = {}
    commit = Runner.commit

    def watched(own, **more):
        commit(own, **more)
        for share in (0.1, 1.0):
            if own.rows + own.rejected.count >= share * MANY:
                seen.setdefault(share, memory(os.getpid()))

    monkeypatch.setattr(Runner, "commit", watched)
    options = ("--target", "y", "--categorical", "k", "--on-bad-row", "skip")
    outputs = ("--predictions", tmp_path / "out.csv", "--state", tmp_path / "state")
    succeed(path, *options, *outputs)
    with (tmp_path / "out.csv").open("rb") as file:
        predictions = sum(1 for _ in file) - 1
    with (tmp_path / "state" / "bad-rows.jsonl").open("rb") as file:
        skipped = sum(1 for _ in file)
    assert skipped == 2 * (MANY // 10_000)
    assert predictions + skipped == MANY
    assert seen.keys() == {0.1, 1.0}
    assert seen[1.0] - seen[0.1] < ALLOWANCE
    # The folder is small too: it does not know how long the run was.
    assert (tmp_path / "state" / "state.kb").stat().st_size < 2**20


# --- Predictions of rows that come slowly can be read soon after their row. ---


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.mark.parametrize(("seconds", "most"), [(0, 0), (1, 3), (1000, 50)])
def test_predictions_are_in_their_file_a_second_after_their_row(
    source, tmp_path, monkeypatch, seconds, most
):
    """One row comes every 0.3 seconds: at most three of them are waiting."""
    clock = Clock()
    monkeypatch.setattr(runner, "time", clock)
    monkeypatch.setattr(runner, "BLOCK_ROWS", 1)
    waiting = []

    def after_row(run):
        waiting.append(run.rows - len(read_csv(tmp_path / "few-predictions.csv")[1]))
        clock.now += 0.3

    with open_run(tmp_path, source, options_of(flush_every=seconds)) as run:
        run.run(lambda: False, after_row)
    assert min(waiting) == 0
    assert max(waiting) >= most if seconds == 1000 else max(waiting) <= most

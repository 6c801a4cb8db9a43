"""What was changed between two processes, and links in place of files, is refused and left alone."""

import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelbank.errors import FileRefused, RunRefused
from kernelbank.io import checkpoint
from kernelbank.io.sinks import ParquetSink
from kernelbank.run.report.data import report_text
from kernelbank.run.status import RunStatus
from support import forged_files
from support.crash_scenarios import SAVED, SCENARIOS, check_one_line, read_files
from support.failing_calls import CallFault
from support.run_command import make_rows, refusal, succeed, write_csv


@pytest.fixture(scope="module")
def halfway(scenarios):
    """Runs that were killed in the middle."""
    found = {}
    for name in ("messy", "parts"):
        found[name] = scenarios.folder()
        ended = scenarios.run(name, found[name], CallFault("rename", SAVED, 4, "after"))
        assert ended.killed
    return found


@pytest.fixture
def interrupted_run(scenarios, halfway):
    """The folder of such a run, to tamper with; it is restored afterwards."""
    kept = []

    def copy(name):
        kept.append((halfway[name], halfway[name].with_name(f"{halfway[name].name}-kept")))
        shutil.copytree(*kept[-1])
        return halfway[name]

    yield copy
    for folder, copied in kept:
        shutil.rmtree(folder)
        copied.rename(folder)


def refuses(scenarios, name, folder, *words, more=""):
    before = read_files(folder)
    check_one_line(scenarios.run(name, folder, more=more), *words)
    assert read_files(folder) == before


def test_resuming_with_other_options_is_refused(scenarios, interrupted_run):
    folder = interrupted_run("messy")
    (folder / "other.csv").write_text("somebody's\n")
    for other, *words in (
        ("--coverage 0.5 --lags 3", "--lags was 2, now 3", "--coverage was 0.9, now 0.5"),
        ("--predictions other.csv", "--predictions was", "predictions.csv, now", "other.csv"),
    ):
        refuses(scenarios, "messy", folder, *words, more=other)


def test_resuming_with_another_source_is_refused(scenarios, interrupted_run):
    folder = interrupted_run("messy")
    args = SCENARIOS["messy"].args(folder, None)
    before = read_files(folder)
    args[1] = "../labels.csv"
    check_one_line(
        scenarios.forks.run(args, folder), "not the source that was read before", "address"
    )
    assert read_files(folder) == before


def test_resuming_after_the_source_was_rewritten_is_refused(scenarios, interrupted_run):
    folder = interrupted_run("messy")
    source = scenarios.root / "messy.csv"
    kept = source.read_bytes()
    try:
        source.write_bytes(kept.replace(b"oh", b"no"))
        refuses(scenarios, "messy", folder, "rows are not those that were read before")
    finally:
        source.write_bytes(kept)


def changed_first_byte(path):
    data = path.read_bytes()
    path.write_bytes(b"R" + data[1:])


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


def foreign(path):
    path.write_bytes(b"all,about,me\n" * 2000)


TAMPERED = {
    "changed": (changed_first_byte, "predictions.csv was changed"),
    "cut": (cut, "predictions.csv was cut: 100 of "),
    "removed": (Path.unlink, "predictions.csv is gone"),
    "foreign": (foreign, "predictions.csv was changed"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_resuming_after_predictions_were_changed_is_refused(scenarios, interrupted_run, how):
    folder = interrupted_run("messy")
    tamper, words = TAMPERED[how]
    tamper(folder / "predictions.csv")
    refuses(scenarios, "messy", folder, words)


def test_resuming_after_bad_rows_were_cut_is_refused(scenarios, interrupted_run):
    """The predictions are valid and have rows after the checkpoint: these must stay, too."""
    folder = interrupted_run("messy")
    with (folder / "predictions.csv").open("ab") as file:
        file.write(b"12")
    cut(folder / "state/bad-rows.jsonl")
    refuses(scenarios, "messy", folder, "bad-rows.jsonl was cut")


def test_resuming_after_a_part_was_changed_is_refused(scenarios, interrupted_run):
    folder = interrupted_run("parts")
    part = folder / "predictions.parquet/part-000000.parquet"
    kept = part.read_bytes()
    changed_first_byte(part)
    refuses(scenarios, "parts", folder, "a part was changed")
    part.unlink()
    refuses(scenarios, "parts", folder, "part-000000.parquet is gone")
    part.write_bytes(kept)
    assert scenarios.run("parts", folder).code == 0


def test_redis_stream_that_was_deleted_is_refused(scenarios):
    scenarios.needs_servers("redis")
    folder = scenarios.folder()
    assert scenarios.run("redis", folder, CallFault("rename", SAVED, 4, "after")).killed
    scenarios.redis.client.delete(f"{folder.parent.name}-{folder.name}")
    refuses(scenarios, "redis", folder, "has lost rows")


# --- the state --------------------------------------------------------------------------------------


def test_saved_bank_in_place_of_a_checkpoint_is_refused(scenarios, interrupted_run):
    folder = interrupted_run("messy")
    (folder / "state/state.kb").unlink()
    checkpoint.write(folder / "state/state.kb", {"kind": "AutoBank"}, {})
    refuses(scenarios, "messy", folder, "is not the state of a run")


class RereadRun(forged_files.SavedRun):
    """A run whose state is read again, in this process."""

    def __init__(self, root):
        super().__init__(root)
        self.files = read_files(root)

    def resumes(self):
        with self.open(self.root) as run:
            return run.resume()

    def refused(self, data):
        path = self.root / "state/state.kb"
        path.write_bytes(data)
        try:
            with pytest.raises((FileRefused, RunRefused)) as error:
                self.resumes()
            assert "\n" not in str(error.value)
            assert read_files(self.root) == {**self.files, "state/state.kb": data}
        finally:
            path.write_bytes(self.state)


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory):
    return RereadRun(tmp_path_factory.mktemp("saved"))


@settings(max_examples=40)
@given(st.data())
def test_checkpoint_with_flipped_or_missing_bytes_is_refused(saved_run, data):
    length = len(saved_run.state)
    if data.draw(st.booleans()):
        saved_run.refused(saved_run.state[: data.draw(st.integers(0, length - 1))])
        return
    damaged = bytearray(saved_run.state)
    for place in data.draw(
        st.lists(st.integers(0, length - 1), min_size=1, max_size=3, unique=True)
    ):
        damaged[place] ^= data.draw(st.integers(1, 255))
    saved_run.refused(bytes(damaged))


TIMES = ("times",)
FORGED_STATES = [  # where in the state, and a value that does not belong there
    (("sinks", 0, "bytes"), "31", 31.5, -1),
    (("last_target",), "7", math.nan),
    (("pending_targets", 0), [1.0]),
    (("rows",), "40", [1]),
    (("rows_without_target",), -7),
    (("source",), 5),
    (("predictions",), None),
    (("features",), 7),
    (("options",), {}),
    (("options", "coverage"), "much", 2.0),
    (("options", "delay"), "1"),
    (("options", "preset"), "other"),
    (("options", "task"), "cooking"),
    (("options", "features"), 5, [1]),
    (("options", "more"), 5),
    (("bank",), [], {}),
    (("bank", "task"), "classification"),
    (("bank", "lags"), 2),
    (("bank", "seasons"), [24]),
    (("bank", "horizons"), [1, 2]),
    (("bank", "known"), ["a"]),
    (("bank", "columns", "tentative"), True),
    (("bank", "columns"), {"columns": [["a", "colour"]]}),
    (("bank", "dimension"), 10**8),
    (("history", "slots"), 2, 10**8),
    ((*TIMES, "starts"), 0, True, 1.5, 2**53),
    ((*TIMES, "started"), "yesterday", "<script>"),
    ((*TIMES, "updated"), 5),
    ((*TIMES, "versions"), 5),
    ((*TIMES, "seconds"), -1.0, math.nan, math.inf, "much"),
    (TIMES, {}),
    (("rejected_rows",), {"count": 3, "first": []}),
]


@pytest.mark.parametrize(
    ("path", "values"),
    [pytest.param(path, values, id=str(path)) for path, *values in FORGED_STATES],
)
def test_forged_state_is_refused(saved_run, path, values):
    """By the run that would resume, and by the report."""
    header, body = forged_files.unpack(saved_run.state)
    for value in values:
        data = forged_files.pack(forged_files.with_value(header, path, value), body)
        if path not in (("features",), ("options", "more")):  # of which a run has its own
            saved_run.refused(data)
        if path[0] == "sinks":  # which a report does not read
            continue
        (saved_run.root / "state/state.kb").write_bytes(data)
        with pytest.raises(FileRefused):
            report_text(RunStatus.of_state(saved_run.root / "state"))
        (saved_run.root / "state/state.kb").write_bytes(saved_run.state)


def test_forged_state_of_several_targets_or_labels_is_refused(tmp_path):
    X, y = make_rows(20)
    kinds = np.where(y > 20, "yes", "no")
    source = write_csv(
        tmp_path / "s.csv", ["a", "y", "z", "k"], zip(X[:, 0], y, y, kinds, strict=True)
    )
    targets = {"last_target": [[1.0], ["a", "b"], 3.0], "histories": [[]]}
    labels = {"named_labels": [["yes", "yes"], ["other"], [1], "yes"]}
    state, options = tmp_path / "state", ("--features", "a")
    for words, forged in (("--target y,z", targets), ("--target k --task classification", labels)):
        succeed(source, *words.split(), *options, "--state", state)
        header, arrays = checkpoint.read(state / "state.kb")
        for name, values in forged.items():
            for value in values:
                checkpoint.write(state / "state.kb", {**header, name: value}, arrays)
                with pytest.raises(FileRefused):
                    RunStatus.of_state(state)
        shutil.rmtree(state)


# --- Links, FIFOs and folders in place of the files of a run are refused, and nothing is changed ---


COUNT = 30
X, Y = make_rows(COUNT)


@pytest.fixture
def limited(light):
    """One cheap slot, and an end to what waits for a FIFO."""
    with forged_files.deadline(60):
        yield


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))


def put(kind, root, name):
    """Something that is no regular file, in place of a file."""
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        path.symlink_to(root / kind)


def contents(folder):
    """Every file below a folder with its content; links and others by their kind."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path] = os.readlink(path)
        elif path.is_file():
            found[path] = None if path.name == "lock" else path.read_bytes()
        else:
            found[path] = oct(path.stat().st_mode)
    return found


CSV = ["state/bad-rows.jsonl", "state/lock", "out/out.csv"]
PARQUET = [
    "state/state.kb",
    "out/p.parquet/part-000000.parquet",
    "out/p.parquet/.part-000001.parquet",
]
KINDS = ["victim", "nothing", "a FIFO", "a folder"]


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "resumed"),
    [*((name, False) for name in (*CSV, PARQUET[0])), *((name, True) for name in (*CSV, *PARQUET))],
)
def test_no_regular_file_in_place_of_a_file_of_a_run_is_refused(
    name, kind, resumed, source, tmp_path, monkeypatch
):
    monkeypatch.setattr("kernelbank.io.sinks.PART_ROWS", 10)
    (tmp_path / "victim").write_bytes(b"")  # an empty file would be taken for one of a new run
    (tmp_path / "out").mkdir()
    options = ("--target", "y", "--state", tmp_path / "state")
    out = "out/p.parquet" if name in PARQUET else "out/out.csv"
    options += ("--predictions", tmp_path / out, "--checkpoint-every", 5)
    if resumed:
        succeed(source, *options, "--max-rows", 20)
    put(kind, tmp_path, name)
    (tmp_path / "state").mkdir(exist_ok=True)
    before = contents(tmp_path)
    message = refusal(source, *options)
    word = kind if kind in ("a FIFO", "a folder") else "a link"
    assert f"{tmp_path / name} is {word}, not a file." in message
    after = contents(tmp_path)
    if not resumed:  # the lock, and what had been begun, are there
        after = {path: after[path] for path in before}
    assert after == before
    assert not (tmp_path / "nothing").exists()


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("name", [".part-000000.parquet", "part-000000.parquet"])
def test_link_that_appears_during_a_run_is_not_followed(name, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelbank.io.sinks.PART_ROWS", 2)
    sink = ParquetSink(tmp_path / "p.parquet", ["row", "prediction"])
    sink.check_vacant()
    sink.start()
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "p.parquet" / name).symlink_to(tmp_path / "victim")
    with pytest.raises(RunRefused, match="is a link, not a file"):
        sink.write([(1, 1.0), (2, 2.0)])
    assert (tmp_path / "victim").read_bytes() == b"mine"


@pytest.mark.usefixtures("limited")
def test_folders_of_a_run_may_be_links(source, tmp_path):
    for name in ("state", "p.parquet"):
        (tmp_path / f"real-{name}").mkdir()
        (tmp_path / name).symlink_to(f"real-{name}")
    options = ("--target", "y", "--state", tmp_path / "state")
    options += ("--predictions", tmp_path / "p.parquet")
    succeed(source, *options, "--max-rows", 10)
    succeed(source, *options)
    assert (tmp_path / "real-state/state.kb").is_file()
    assert (tmp_path / "real-p.parquet/part-000000.parquet").is_file()

"""Links, FIFOs and folders in place of the files of a run are refused, and nothing is changed."""

import os
import signal

import numpy as np
import pytest

from kernelbank.errors import RunRefused
from kernelbank.io.sinks import ParquetSink
from kernelbank.run import session
from support.run_command import make_rows, one_slot_model, refusal, run, succeed, write_csv

COUNT = 30
X, Y = make_rows(COUNT)


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """One cheap slot, and an end to what waits for a FIFO."""
    monkeypatch.setattr(session, "make_model", one_slot_model)

    def stop(*_):
        raise TimeoutError("waited for a FIFO")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


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


FILES = ["state/state.kb", "state/bad-rows.jsonl", "state/lock", "out/out.csv"]
PARTS = [
    "state/state.kb",
    "out/p.parquet/part-000000.parquet",
    "out/p.parquet/.part-000001.parquet",
]
KINDS = ["victim", "nothing", "a FIFO", "a folder"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("resumed", [False, True])
def test_no_regular_file_in_place_of_a_file_of_a_run_is_refused(
    name, kind, resumed, source, tmp_path
):
    (tmp_path / "victim").write_bytes(b"")  # an empty file would be taken for one of a new run
    (tmp_path / "out").mkdir()
    options = ("--target", "y", "--state", tmp_path / "state")
    options += ("--predictions", tmp_path / "out/out.csv")
    if resumed:
        succeed(source, *options, "--max-rows", 10)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PARTS)
def test_no_regular_file_in_place_of_a_part_is_refused(name, kind, source, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelbank.io.sinks.PART_ROWS", 10)
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "out").mkdir()
    options = ("--target", "y", "--state", tmp_path / "state")
    options += ("--predictions", tmp_path / "out/p.parquet", "--checkpoint-every", 5)
    succeed(source, *options, "--max-rows", 20)
    put(kind, tmp_path, name)
    before = contents(tmp_path)
    message = refusal(source, *options)
    word = kind if kind in ("a FIFO", "a folder") else "a link"
    assert f"{tmp_path / name} is {word}, not a file." in message
    assert contents(tmp_path) == before


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


def test_report_of_a_state_that_is_a_fifo_is_refused(tmp_path):
    from kernelbank.run.status import RunStatus

    os.mkfifo(tmp_path / "state.kb")
    with pytest.raises(RunRefused, match="is a FIFO, not a file"):
        RunStatus.of_state(tmp_path)


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


def test_folder_named_as_a_temporary_file_is_left_alone(source, tmp_path):
    (tmp_path / "state/.state.kb.0123456789ab").mkdir(parents=True)
    assert run(source, "--target", "y", "--state", tmp_path / "state").code == 0
    assert (tmp_path / "state/.state.kb.0123456789ab").is_dir()

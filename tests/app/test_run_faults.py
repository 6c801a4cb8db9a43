"""Full disks, Ctrl-C and second processes: one line says it, and nothing is lost."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelbank.errors import RunRefused
from kernelbank.io import checkpoint
from kernelbank.io.sinks.csv import CsvSink
from support.run_cases import CASES, Bench, one_line, opened, slow
from support.run_faults import FULL, Fault


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with opened(tmp_path_factory.mktemp("faults")) as found:
        yield found


# --- full disks -----------------------------------------------------------------------------------

FULL_DISKS = [
    ("messy", "write:predictions", 2),
    slow("messy", "write:state", 100),
    slow("messy", "write:state", 1),
    slow("messy", "fsync:state", 3),
    slow("messy", "fsync:predictions", 3),
    slow("messy", "write:bad-rows", 2),
    slow("parts", "write:part", 2),
    slow("parts", "write:part", 3),
]


@pytest.mark.parametrize(("name", "label", "nth"), FULL_DISKS)
def test_full_disk(bench: Bench, name: str, label: str, nth: int) -> None:
    wanted, folder = bench.undisturbed(name), bench.folder()
    for number, when in ((nth, "half"), (1, "before")):
        ended = bench.run(name, folder, Fault(label, number, when, "refuse", FULL))
        one_line(ended, "No space left on device", "cannot be written to")
    assert bench.run(name, folder).code == 0
    bench.compare(name, folder, wanted, label)


@pytest.mark.slow
def test_a_full_disk_for_a_moment_only(bench: Bench) -> None:
    """A write that failed is never tried again by chance, by closing the file for example."""
    wanted, folder = bench.undisturbed("messy"), bench.folder()
    ended = bench.run("messy", folder, Fault("write:predictions", 3, "half", "refuse", FULL, False))
    one_line(ended, "No space left on device", "give the same command again")
    assert bench.run("messy", folder).code == 0
    bench.compare("messy", folder, wanted, "a full disk")


@pytest.mark.parametrize("limit", [slow(1000), 8000, slow(200_000)])
def test_file_size_limit(bench: Bench, limit: int) -> None:
    wanted, folder = bench.undisturbed("messy"), bench.folder()
    one_line(bench.run("messy", folder, limit=limit), os.strerror(errno.EFBIG))
    assert bench.run("messy", folder).code == 0
    bench.compare("messy", folder, wanted, limit)


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [slow(signal.SIGINT), signal.SIGTERM])
@pytest.mark.parametrize("label", ["fsync:state", slow("write:predictions"), slow("replace:state")])
def test_polite_signals(bench: Bench, number: signal.Signals, label: str) -> None:
    wanted, folder = bench.undisturbed("messy"), bench.folder()
    fault = Fault(label, 3, "after", "signal", int(number))
    args = [word for word in CASES["messy"].args(folder, None) if word != "--quiet"]
    ended = bench.stable.run(args, folder, fault)
    assert ended.code == 128 + number, ended.said
    said = " ".join(ended.said.split())
    assert "give the same command again: kernelbank run ../messy.csv" in said
    header, _ = checkpoint.read(folder / "state/state.kb")
    assert header["sinks"][0]["bytes"] == (folder / "answers.csv").stat().st_size
    assert 0 < header["rows"] < wanted["state"][0]["rows"]
    assert bench.run("messy", folder).code == 0
    bench.compare("messy", folder, wanted, number)


def test_parts_are_complete_after_a_signal(bench: Bench) -> None:
    import pyarrow.parquet as pq

    wanted, folder = bench.undisturbed("parts"), bench.folder()
    fault = Fault("replace:state", 4, "after", "signal", int(signal.SIGTERM))
    assert bench.run("parts", folder, fault).code == 128 + signal.SIGTERM
    header, _ = checkpoint.read(folder / "state/state.kb")
    rows = sum(pq.read_metadata(f).num_rows for f in (folder / "answers.parquet").iterdir())
    assert rows == header["rows"]
    assert bench.run("parts", folder).code == 0
    bench.compare("parts", folder, wanted, fault)


def test_a_stop_at_a_bad_row(bench: Bench) -> None:
    """Later rows of the same block, with a category that is new, have been looked at already."""
    wanted, folder = bench.undisturbed("messy"), bench.folder()
    ended = bench.run("messy", folder, more="--on-bad-row stop")
    one_line(ended, "messy.csv, line 9, column 'a': 'oh'", "give the same command again")
    assert (folder / "answers.csv").read_bytes().count(b"\n") == 8
    assert bench.run("messy", folder).code == 0
    bench.compare("messy", folder, wanted, "a stop")


# --- two at once ----------------------------------------------------------------------------------


def test_a_second_process_is_refused(bench: Bench) -> None:
    wanted, folder = bench.undisturbed("input"), bench.folder()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    args = CASES["input"].args(folder, None)
    first = bench.stable.start(args, folder, stdin=str(pipe))
    with pipe.open("wb") as end:
        rows = (bench.root / "messy.csv").read_bytes()
        end.write(rows[:3000])
        end.flush()
        until(lambda: (folder / "answers.csv").exists() and (folder / "answers.csv").stat().st_size)
        one_line(bench.run("input", folder), "in use by another process", str(first["pid"]))
        other = [word if word != "state" else "other" for word in args]
        messy = str(bench.root / "messy.csv")
        refused = bench.stable.run(other, folder, stdin=messy)
        one_line(refused, "answers.csv")
        end.write(rows[3000:])
    assert bench.stable.wait(first).code == 0
    bench.compare("input", folder, wanted, "a second process")


def until(true: Any) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_two_runs_do_not_share_an_empty_file(tmp_path: Path) -> None:
    one, other = CsvSink(tmp_path / "a.csv", ["row"]), CsvSink(tmp_path / "a.csv", ["row"])
    one.check_vacant()
    other.check_vacant()
    one.start()
    with pytest.raises(RunRefused, match="being written by another run"):
        other.start()
    one.close(complete=True)
    other.close(complete=False)


def test_a_stale_lock_is_no_obstacle(bench: Bench) -> None:
    wanted, folder = bench.undisturbed("messy"), bench.folder()
    (folder / "state").mkdir()
    (folder / "state/lock").write_text(f"{os.getpid()}\n")
    (folder / "state/.state.kb.0123456789ab").write_bytes(b"half")
    assert bench.run("messy", folder).code == 0
    bench.compare("messy", folder, wanted, "a stale lock")

"""Full disks, Ctrl-C and second processes: one line says it, and nothing is lost."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kernelbank.errors import RunRefused
from kernelbank.io import checkpoint
from kernelbank.io.sinks import CsvSink
from support.crash_scenarios import SCENARIOS, ScenarioRunner, check_one_line
from support.fault_injection import FULL, Fault
from support.marks import slow

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
def test_full_disk_is_refused_and_loses_nothing(
    scenarios: ScenarioRunner, name: str, label: str, nth: int
) -> None:
    wanted, folder = scenarios.undisturbed(name), scenarios.folder()
    for number, when in ((nth, "half"), (1, "before")):
        ended = scenarios.run(name, folder, Fault(label, number, when, "refuse", FULL))
        check_one_line(ended, "No space left on device", "cannot be written to")
    assert scenarios.run(name, folder).code == 0
    scenarios.compare(name, folder, wanted, label)


@pytest.mark.slow
def test_disk_full_for_a_moment_loses_nothing(scenarios: ScenarioRunner) -> None:
    """A write that failed is never tried again by chance, by closing the file for example."""
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    ended = scenarios.run(
        "messy", folder, Fault("write:predictions", 3, "half", "refuse", FULL, False)
    )
    check_one_line(ended, "No space left on device", "give the same command again")
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, "a full disk")


@pytest.mark.parametrize("limit", [slow(1000), 8000, slow(200_000)])
def test_file_size_limit_is_refused_and_loses_nothing(
    scenarios: ScenarioRunner, limit: int
) -> None:
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    check_one_line(scenarios.run("messy", folder, limit=limit), os.strerror(errno.EFBIG))
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, limit)


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [slow(signal.SIGINT), signal.SIGTERM])
@pytest.mark.parametrize("label", ["fsync:state", slow("write:predictions"), slow("replace:state")])
def test_signal_commits_and_exits_with_its_code(
    scenarios: ScenarioRunner, number: signal.Signals, label: str
) -> None:
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    fault = Fault(label, 3, "after", "signal", int(number))
    args = [word for word in SCENARIOS["messy"].args(folder, None) if word != "--quiet"]
    ended = scenarios.forks.run(args, folder, fault)
    assert ended.code == 128 + number, ended.stderr
    message = " ".join(ended.stderr.split())
    assert "give the same command again: kernelbank run ../messy.csv" in message
    header, _ = checkpoint.read(folder / "state/state.kb")
    assert header["sinks"][0]["bytes"] == (folder / "predictions.csv").stat().st_size
    assert 0 < header["rows"] < wanted["state"][0]["rows"]
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, number)


def test_parquet_run_after_a_signal_has_all_rows(scenarios: ScenarioRunner) -> None:
    import pyarrow.parquet as pq

    wanted, folder = scenarios.undisturbed("parts"), scenarios.folder()
    fault = Fault("replace:state", 4, "after", "signal", int(signal.SIGTERM))
    assert scenarios.run("parts", folder, fault).code == 128 + signal.SIGTERM
    header, _ = checkpoint.read(folder / "state/state.kb")
    rows = sum(pq.read_metadata(f).num_rows for f in (folder / "predictions.parquet").iterdir())
    assert rows == header["rows"]
    assert scenarios.run("parts", folder).code == 0
    scenarios.compare("parts", folder, wanted, fault)


def test_run_stopped_at_a_bad_row_resumes_with_skip(scenarios: ScenarioRunner) -> None:
    """Later rows of the same block, with a category that is new, have been looked at already."""
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    ended = scenarios.run("messy", folder, more="--on-bad-row stop")
    check_one_line(ended, "messy.csv, line 9, column 'a': 'oh'", "give the same command again")
    assert (folder / "predictions.csv").read_bytes().count(b"\n") == 8
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, "a stop")


# --- two at once ----------------------------------------------------------------------------------


def test_second_process_on_the_folder_is_refused(scenarios: ScenarioRunner) -> None:
    wanted, folder = scenarios.undisturbed("input"), scenarios.folder()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    args = SCENARIOS["input"].args(folder, None)
    first = scenarios.forks.start(args, folder, stdin=str(pipe))
    with pipe.open("wb") as end:
        rows = (scenarios.root / "messy.csv").read_bytes()
        end.write(rows[:3000])
        end.flush()
        until(
            lambda: (
                (folder / "predictions.csv").exists()
                and (folder / "predictions.csv").stat().st_size
            )
        )
        check_one_line(
            scenarios.run("input", folder), "in use by another process", str(first["pid"])
        )
        other = [word if word != "state" else "other" for word in args]
        messy = str(scenarios.root / "messy.csv")
        refused = scenarios.forks.run(other, folder, stdin=messy)
        check_one_line(refused, "predictions.csv")
        end.write(rows[3000:])
    assert scenarios.forks.wait(first).code == 0
    scenarios.compare("input", folder, wanted, "a second process")


def until(true: Any) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_second_run_on_the_same_empty_file_is_refused(tmp_path: Path) -> None:
    one, other = CsvSink(tmp_path / "a.csv", ["row"]), CsvSink(tmp_path / "a.csv", ["row"])
    one.check_vacant()
    other.check_vacant()
    one.start()
    with pytest.raises(RunRefused, match="being written by another run"):
        other.start()
    one.close(complete=True)
    other.close(complete=False)


def test_stale_lock_does_not_block_a_run(scenarios: ScenarioRunner) -> None:
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    (folder / "state").mkdir()
    (folder / "state/lock").write_text(f"{os.getpid()}\n")
    (folder / "state/.state.kb.0123456789ab").write_bytes(b"half")
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, "a stale lock")

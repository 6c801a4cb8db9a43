"""Kills at any moment, full disks, signals and second processes: nothing is lost."""

import os
import random
import signal
import time

import pytest

from kernelbank.errors import RunRefused
from kernelbank.io import checkpoint
from kernelbank.io.sinks import CsvSink
from support.crash_scenarios import (
    BAD_ROWS,
    PART,
    PREDICTIONS,
    SAVED,
    SCENARIOS,
    STATE,
    check_one_line,
    drawn_moment,
    logged_calls,
)
from support.failing_calls import CallFault
from support.marks import slow

HOW_MANY = 32
"""Kills at random for each case, of which there are eight: over 250."""


MOMENTS = {
    "in the middle of predictions": [CallFault("write", PREDICTIONS, 3, "half")],
    "rewinding": [
        CallFault("write", PREDICTIONS, 3, "after"),
        CallFault("ftruncate", PREDICTIONS, 1, "before"),
        CallFault("ftruncate", PREDICTIONS, 1, "after"),
        CallFault("ftruncate", BAD_ROWS, 1, "after"),
    ],
    "many in a row": [CallFault("write", STATE, n, "half") for n in (90, 30, 5, 60, 1)],
}


@pytest.mark.parametrize(
    "moment", [slow("many in a row"), "in the middle of predictions", "rewinding"]
)
def test_run_killed_at_a_chosen_moment_leaves_the_same_bytes(scenarios, moment):
    assert scenarios.kill("messy", MOMENTS[moment]) == len(MOMENTS[moment])


PARTS = [
    CallFault("write", PART, 2, "half"),
    CallFault("rename", "/part-", 1, "before"),
    CallFault("rename", "/part-", 2, "after"),
]


def test_parquet_run_killed_while_writing_leaves_the_same_bytes(scenarios):
    assert scenarios.kill("parts", PARTS) == 3


def test_redis_run_killed_while_sending_leaves_the_same_entries(scenarios):
    scenarios.needs_servers("redis")
    faults = [  # after rows that no commit holds; in the middle of others
        CallFault("send", "socket:", 16, "after"),
        CallFault("send", "socket:", 11, "half"),
        CallFault("fsync", STATE, 1, "before"),
    ]
    assert scenarios.kill("redis", faults) == 3


OTHERS = ["plain", "unended", "classes", "refused", "input", "forecasts", "late forecasts"]
ONCE = [CallFault("rename", SAVED, 3, "after"), CallFault("fsync", STATE, 2, "before")]


@pytest.mark.parametrize("name", ["late", "followed", "targets", *map(slow, OTHERS)])
def test_every_scenario_killed_once_leaves_the_same_bytes(scenarios, name):
    assert scenarios.kill(name, ONCE) == 2


@pytest.mark.parametrize("name", ["messy", slow("parts")])
def test_checkpoint_is_written_after_the_rows_are_durable(scenarios, name):
    """A kill does not show what a power failure would: what was not yet asked to last."""
    folder, logs = scenarios.folder(), [scenarios.root / f"{name}-order{n}.log" for n in (1, 2)]
    fault = CallFault("rename", SAVED, 4, "after")
    assert scenarios.run(name, folder, fault, calls=str(logs[0])).killed
    assert scenarios.run(name, folder, calls=str(logs[1])).code == 0
    first, second = (logged_calls(log, folder) for log in logs)
    before = first[: first.index(("rename", SAVED))]
    assert set(before) & {("fsync", folder) for folder in FOLDERS}  # the outputs' names last
    assert first.count(("rename", SAVED)) == 4
    in_order(first)
    assert in_order(second) <= {"/lock$"}


FOLDERS = ("/{folder}$", "/state$", "/predictions.parquet$")


def in_order(calls):
    """Check that a state is in place only when all that it tells of lasts; what does not at the end."""
    loose: set[str] = set()
    for call, part in calls:
        if call in ("write", "ftruncate"):
            loose.add(part)
        elif call == "fsync":
            loose.discard("names" if part in FOLDERS else part)
        elif call == "rename":
            assert not loose & {STATE, PART}
            if part == SAVED:
                assert not loose & {PREDICTIONS, BAD_ROWS, "names"}
            loose.add("names")
    return loose


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_run_killed_at_random_moments_leaves_the_same_bytes(scenarios, name):
    scenarios.needs_servers(name)
    scenarios.undisturbed(name)
    draw = random.Random(name)
    kills = 0
    while kills < HOW_MANY:
        kills += scenarios.kill(
            name, [drawn_moment(scenarios, name, draw) for _ in range(draw.randint(1, 6))]
        )


# --- Full disks, Ctrl-C and second processes: one line says it, and nothing is lost ---


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [slow(signal.SIGINT), signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("call", "part"), [("fsync", STATE), slow("write", PREDICTIONS), slow("rename", SAVED)]
)
def test_signal_commits_and_exits_with_its_code(scenarios, number, call, part):
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    fault = CallFault(call, part, 3, "signal", int(number))
    args = [word for word in SCENARIOS["messy"].args(folder, None) if word != "--quiet"]
    ended = scenarios.forks.run(args, folder, fault)
    assert ended.code == 128 + number, ended.stderr
    message = " ".join(ended.stderr.split())
    assert "Nothing is lost. To resume, give the same command again." in message
    header, _ = checkpoint.read(folder / "state/state.kb")
    assert header["sinks"][0]["bytes"] == (folder / "predictions.csv").stat().st_size
    assert 0 < header["rows"] < wanted["state"][0]["rows"]
    scenarios.finish("messy", folder, wanted, number)


# --- two at once ----------------------------------------------------------------------------------


def test_second_process_on_the_folder_is_refused(scenarios):
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


def until(true):
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_second_run_on_the_same_empty_file_is_refused(tmp_path):
    one, other = CsvSink(tmp_path / "a.csv", ["row"]), CsvSink(tmp_path / "a.csv", ["row"])
    one.check_vacant()
    other.check_vacant()
    one.start()
    with pytest.raises(RunRefused, match="being written by another run"):
        other.start()
    one.close(complete=True)
    other.close(complete=False)


def test_stale_lock_does_not_block_a_run(scenarios):
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    (folder / "state").mkdir()
    (folder / "state/lock").write_text(f"{os.getpid()}\n")
    (folder / "state/.state.kb.0123456789ab").write_bytes(b"half")
    scenarios.finish("messy", folder, wanted, "a stale lock")

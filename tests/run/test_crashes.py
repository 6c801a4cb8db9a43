"""Kills at any moment, full disks, signals and second processes: nothing is lost."""

import errno
import os
import random
import signal
import time

import pytest

from kernelbank.errors import RunRefused
from kernelbank.io import checkpoint
from kernelbank.io.sinks import CsvSink
from support.crash_scenarios import SCENARIOS, check_one_line, drawn_moment
from support.fault_injection import FULL, Fault
from support.marks import slow

HOW_MANY = 32
"""Kills at random for each case, of which there are eight: over 250."""


def need_server(scenarios, name):
    if name == "redis" and scenarios.redis is None:
        pytest.skip("there is no redis-server")


MOMENTS = {
    "the first state half written": [Fault("write:state", 3, "half")],
    "before the first checkpoint": [Fault("write:predictions", 1, "before")],
    "before the state is durable": [Fault("fsync:state", 3, "before")],
    "the state is durable under another name": [Fault("fsync:state", 3, "after")],
    "renamed, the folder is not durable": [Fault("replace:state", 3, "after")],
    "predictions are durable, the state is not": [Fault("fsync:predictions", 3, "after")],
    "in the middle of predictions": [Fault("write:predictions", 3, "half")],
    "in the middle of a bad row": [Fault("write:bad-rows", 2, "half")],
    "rewinding": [
        Fault("write:predictions", 3, "after"),
        Fault("truncate:predictions", 1, "before"),
        Fault("truncate:predictions", 1, "after"),
        Fault("truncate:bad-rows", 1, "after"),
    ],
    "many in a row": [Fault("write:state", n, "half") for n in (90, 30, 5, 60, 1)],
}
SHORT = ("rewinding",)


@pytest.mark.parametrize("moment", [m if m in SHORT else slow(m) for m in MOMENTS])
def test_run_killed_at_a_chosen_moment_leaves_the_same_bytes(scenarios, moment):
    assert scenarios.kill("messy", MOMENTS[moment]) == len(MOMENTS[moment])


PARTS = [
    Fault("write:part", 2, "half"),
    Fault("replace:part", 1, "before"),
    Fault("replace:part", 2, "after"),
]


def test_parquet_run_killed_while_writing_leaves_the_same_bytes(scenarios):
    assert scenarios.kill("parts", PARTS) == 3


def test_redis_run_killed_while_sending_leaves_the_same_entries(scenarios):
    need_server(scenarios, "redis")
    faults = [Fault("redis", 2, "half"), Fault("redis", 1, "after"), Fault("fsync:state", 1)]
    assert scenarios.kill("redis", faults) == 3


@pytest.mark.parametrize(
    "name",
    [
        *("late", "followed"),
        *(
            slow(name)
            for name in (
                *("plain", "unended", "classes", "refused", "input"),
                *("forecasts", "late forecasts"),
            )
        ),
    ],
)
def test_every_scenario_killed_once_leaves_the_same_bytes(scenarios, name):
    assert scenarios.kill(name, [Fault("replace:state", 3, "after"), Fault("fsync:state", 2)]) == 2


@pytest.mark.parametrize("name", ["messy", slow("parts")])
def test_checkpoint_is_written_after_the_rows_are_durable(scenarios, name):
    """A kill does not show what a power failure would: what was not yet asked to last."""
    folder, logs = scenarios.folder(), [scenarios.root / f"{name}-order{n}.log" for n in (1, 2)]
    assert scenarios.run(name, folder, Fault("replace:state", 4, "after"), log=str(logs[0])).killed
    assert scenarios.run(name, folder, log=str(logs[1])).code == 0
    first, second = (log.read_text().split() for log in logs)
    assert "fsync:folder" in first[: first.index("replace:state")]  # the outputs' names last
    assert first.count("replace:state") == 4
    in_order(first)
    assert in_order(second) <= {"lock"}


def in_order(events):
    """Check that a state is in place only when all that it tells of lasts; what does not at the end."""
    loose: set[str] = set()
    for event in events:
        what, _, where = event.partition(":")
        if what in ("write", "truncate"):
            loose.add(where)
        elif what == "fsync":
            loose.discard("names" if where == "folder" else where)
        elif what == "replace":
            assert where not in loose
            if where == "state":
                assert not loose & {"predictions", "bad-rows", "part", "names"}
            loose.add("names")
    return loose


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_run_killed_at_random_moments_leaves_the_same_bytes(scenarios, name):
    need_server(scenarios, name)
    scenarios.undisturbed(name)
    draw = random.Random(name)
    kills = 0
    while kills < HOW_MANY:
        kills += scenarios.kill(
            name, [drawn_moment(scenarios, name, draw) for _ in range(draw.randint(1, 6))]
        )


# --- Full disks, Ctrl-C and second processes: one line says it, and nothing is lost ---


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
def test_full_disk_is_refused_and_loses_nothing(scenarios, name, label, nth):
    wanted, folder = scenarios.undisturbed(name), scenarios.folder()
    for number, when in ((nth, "half"), (1, "before")):
        ended = scenarios.run(name, folder, Fault(label, number, when, "refuse", FULL))
        check_one_line(ended, "No space left on device", "cannot be written to")
    assert scenarios.run(name, folder).code == 0
    scenarios.compare(name, folder, wanted, label)


@pytest.mark.slow
def test_disk_full_for_a_moment_loses_nothing(scenarios):
    """A write that failed is never tried again by chance, by closing the file for example."""
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    ended = scenarios.run(
        "messy", folder, Fault("write:predictions", 3, "half", "refuse", FULL, False)
    )
    check_one_line(ended, "No space left on device", "give the same command again")
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, "a full disk")


@pytest.mark.parametrize("limit", [slow(1000), 8000, slow(200_000)])
def test_file_size_limit_is_refused_and_loses_nothing(scenarios, limit):
    wanted, folder = scenarios.undisturbed("messy"), scenarios.folder()
    check_one_line(scenarios.run("messy", folder, limit=limit), os.strerror(errno.EFBIG))
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, limit)


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [slow(signal.SIGINT), signal.SIGTERM])
@pytest.mark.parametrize("label", ["fsync:state", slow("write:predictions"), slow("replace:state")])
def test_signal_commits_and_exits_with_its_code(scenarios, number, label):
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


def test_parquet_run_after_a_signal_has_all_rows(scenarios):
    import pyarrow.parquet as pq

    wanted, folder = scenarios.undisturbed("parts"), scenarios.folder()
    fault = Fault("replace:state", 4, "after", "signal", int(signal.SIGTERM))
    assert scenarios.run("parts", folder, fault).code == 128 + signal.SIGTERM
    header, _ = checkpoint.read(folder / "state/state.kb")
    rows = sum(pq.read_metadata(f).num_rows for f in (folder / "predictions.parquet").iterdir())
    assert rows == header["rows"]
    assert scenarios.run("parts", folder).code == 0
    scenarios.compare("parts", folder, wanted, fault)


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
    assert scenarios.run("messy", folder).code == 0
    scenarios.compare("messy", folder, wanted, "a stale lock")

"""`kernelbank run --follow`, killed and resumed while its file grows and is rotated."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from support.crash_scenarios import SCENARIOS, ScenarioRunner, check_one_line
from support.fault_injection import Fault
from support.run_command import read_jsonl, read_state

FOLLOW = "--follow --stop-when-idle 0.1"


class GrowingRun:
    """A run over a log, to which the rows of `messy.csv` are written bit by bit."""

    def __init__(self, scenarios: ScenarioRunner) -> None:
        self.scenarios = scenarios
        self.folder = scenarios.folder()
        self.log = self.folder / "log.csv"
        header, *rows = (scenarios.root / "messy.csv").read_text().splitlines(keepends=True)
        self.header, self.rest = header, "".join(rows)
        self._clock = time.time_ns() - 10**13

    def write(self, size: int) -> None:
        """Write so many bytes, which may end within a line."""
        with self.log.open("a") as file:
            file.write(self.rest[:size] if file.tell() else self.header + self.rest[:size])
        self.rest = self.rest[size:]
        self._clock += 10**9
        os.utime(self.log, ns=(self._clock, self._clock))  # no file has to settle

    def rotate(self) -> None:
        """Rename, at the end of a line."""
        end = self.rest.find("\n") + 1
        self.write(end if self.log.read_bytes()[-1:] != b"\n" else 0)
        for number in range(9, 0, -1):
            older = Path(f"{self.log}.{number}")
            if older.exists():
                older.rename(f"{self.log}.{number + 1}")
        self.log.rename(f"{self.log}.1")

    def args(self, more: str = FOLLOW) -> list[str]:
        args = SCENARIOS["messy"].args(self.folder, None)
        args[1] = "log.csv"
        return [*args, *more.split()]

    def run(self, fault: Fault | None = None, **how: Any) -> Any:
        return self.scenarios.forks.run(self.args(), self.folder, fault, **how)

    def outcome(self) -> Any:
        """All but the places of rows, which depend on the rotation."""
        header, arrays = read_state(self.folder / "state")
        bad = [(one["row"], one["column"], one["value"]) for one in self.bad_rows()]
        model = {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
        return (self.folder / "predictions.csv").read_bytes(), bad, header["rows"], model

    def bad_rows(self) -> list[Any]:
        return read_jsonl(self.folder / "state/bad-rows.jsonl")


@pytest.fixture(scope="module")
def wanted(scenarios: ScenarioRunner) -> Any:
    """What a plain run leaves over all rows in one file."""
    plain = GrowingRun(scenarios)
    plain.write(10**6)
    ended = scenarios.forks.run(plain.args(""), plain.folder)
    assert ended.code == 0, ended.stderr
    return plain.outcome()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_followed_run_killed_and_rotated_at_random_leaves_the_same_bytes(
    scenarios: ScenarioRunner, wanted: Any, seed: int
) -> None:
    draw = random.Random(seed)
    growing, before = GrowingRun(scenarios), scenarios.forks.kills
    growing.write(700)
    assert growing.run(Fault("replace:state", 2)).killed  # no row is saved, but the first file is
    while growing.rest:
        growing.write(draw.randint(0, 2000))
        if not growing.rest:
            break
        if draw.random() < 0.3:
            for _ in range(draw.randint(1, 3)):
                growing.rotate()
                growing.write(draw.randint(1, 500))
        label = draw.choice(["write:predictions", "fsync:state", "replace:state", "write:bad-rows"])
        fault = Fault(label, draw.randint(1, 3), draw.choice(["before", "half", "after"]))
        ended = growing.run(fault if draw.random() < 0.8 else None)
        assert ended.killed or ended.code == 0, ended.stderr
    growing.write(10**6)
    ended = growing.run()
    assert ended.code == 0, ended.stderr
    assert growing.outcome() == wanted
    assert scenarios.forks.kills > before


def test_rotation_under_a_running_process_loses_nothing(
    scenarios: ScenarioRunner, wanted: Any
) -> None:
    growing = GrowingRun(scenarios)
    growing.write(500)
    started = scenarios.forks.start(growing.args("--follow"), growing.folder)
    state = growing.folder / "state/state.kb"
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    written = 0
    while growing.rest:
        growing.write(1500)
        growing.rotate()
        growing.write(400)
        written = sum(path.read_bytes().count(b"\n") for path in growing.folder.glob("log.csv*"))
    while time.monotonic() < deadline:
        if read_state(growing.folder / "state")[0]["position"]["rows"] == 170:
            break
        time.sleep(0.05)
    os.kill(started["pid"], signal.SIGTERM)
    ended = scenarios.forks.wait(started)
    assert ended.code == 143, ended.stderr
    assert written >= 170
    assert growing.outcome() == wanted


def test_removed_log_is_refused_and_passed_over_with_allow_gaps(scenarios: ScenarioRunner) -> None:
    growing = GrowingRun(scenarios)
    growing.write(2000)
    assert growing.run().code == 0
    kept = growing.outcome()
    growing.write(1000)
    growing.rotate()
    Path(f"{growing.log}.1").unlink()
    growing.write(10**6)
    check_one_line(growing.run(), "log.csv", "was removed, compressed or rewritten", "--allow-gaps")
    assert growing.outcome() == kept
    ended = scenarios.forks.run(growing.args(f"{FOLLOW} --allow-gaps"), growing.folder)
    assert ended.code == 0, ended.stderr
    rows = growing.outcome()[0].count(b"\n") - 1 + len(growing.bad_rows())
    assert kept[0].count(b"\n") < rows < 170


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("../messy.csv", "--follow --complete", "--complete is for a source that does not grow"),
        ("-", "--follow", "only a plain .csv or .jsonl file can be followed"),
        ("rows.parquet", "--follow", "only a plain .csv or .jsonl file can be followed"),
    ],
)
def test_follow_is_refused_where_it_has_no_meaning(
    scenarios: ScenarioRunner, source: str, more: str, words: str
) -> None:
    growing = GrowingRun(scenarios)
    args = growing.args(more)
    args[1] = source
    check_one_line(scenarios.forks.run(args, growing.folder), words)

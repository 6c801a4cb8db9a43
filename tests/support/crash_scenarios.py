"""Scenarios of the crash tests: commands, their sources, what can fail, and what must be true then.

Whatever fails, a run ends well, is killed, or ends with an error of one line that names the file. It
leaves files with which the same command, when nothing fails any more, ends with the same bytes as a
run that nothing has happened to.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from kernelbank.io import checkpoint
from support.failing_calls import ERRORS, CallFault, compile_failing_calls
from support.fork_server import CommandEnd, ForkServer
from support.source_fixtures import REDIS_SERVER, RedisServer


class Scenario(NamedTuple):
    """A command; {port} and {own} in its source and output are filled in."""

    source: str
    options: str
    output: str = "predictions.csv"

    def args(self, folder: Path, port: int | None) -> list[str]:
        words = f"run {self.source} --target y --size small --state state --checkpoint-every 37"
        words += f" --predictions {self.output} {self.options}"
        return words.format(port=port, own=f"{folder.parent.name}-{folder.name}").split()


MESSY = "--categorical kind --on-bad-row skip --predict-missing --quiet"
SCENARIOS = {
    "plain": Scenario("../long.csv", "--features a,b --quiet"),
    "messy": Scenario("../messy.csv", f"{MESSY} --lags 2"),
    "late": Scenario("../messy.csv", f"{MESSY} --delay 5"),
    "forecasts": Scenario(
        "../messy.csv", f"{MESSY} --lags 2 --horizon 1,4,9 --seasons 7 --coverage 0.8"
    ),
    "late forecasts": Scenario("../messy.csv", f"{MESSY} --delay 3 --horizon 3"),
    "classes": Scenario("../labels.csv", f"{MESSY} --task classification"),
    "refused": Scenario(
        "../labels.csv", f"{MESSY} --task classification --max-classes 2 --delay 4"
    ),
    "targets": Scenario("../two.csv", f"{MESSY} --target y,z --lags 1 --delay 3"),
    "parts": Scenario("../messy.csv", MESSY, "predictions.parquet"),
    "input": Scenario("-", MESSY),
    "unended": Scenario("../unended.csv", MESSY),
    "followed": Scenario("../messy.csv", f"{MESSY} --follow --stop-when-idle 0.1"),
    "redis": Scenario(
        "redis://127.0.0.1:{port}/rows",
        f"{MESSY} --stop-when-idle 0.1",
        "redis://127.0.0.1:{port}/{own}",
    ),
}


def write_sources(folder: Path) -> None:
    """Streams with late categories, bad rows, missing targets; one long enough for snapshots."""
    draw = np.random.default_rng(5)
    plain, messy, labels = ["a,b,y"], ["a,b,kind,y"], ["a,b,kind,y"]
    two = ["a,b,kind,y,z"]
    for n in range(540):
        a, b = draw.normal(size=2)
        y = 2 * a + np.sin(3 * b) + 0.1 * draw.normal()
        plain.append(f"{a},{b},{y}")
        if n < 170:
            kind = "uvwx"[draw.integers(1 + min(n // 30, 3))]
            shown = "" if n % 29 == 11 else y
            label = "" if n % 29 == 11 else ("low" if y < -1 else "high" if y > 1 else "middle")
            first = "oh" if n % 23 in (7, 8) else a
            messy.append(f"{first},{b},{kind},{shown}")
            labels.append(f"{first},{b},{kind},{label}")
            two.append(f"{messy[-1]},{'' if n % 29 in (3, 11, 12) else 100 - 30 * b}")
    files = (("long", plain), ("messy", messy), ("labels", labels), ("two", two))
    for name, lines in files:
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "unended.csv").write_text("\n".join(messy))
    os.utime(folder / "unended.csv", (0, 0))  # it was written long ago


def start_redis(folder: Path) -> RedisServer:
    """A Redis server with the messy rows in the stream `rows`."""
    server = RedisServer(folder)
    header, *rows = (folder / "messy.csv").read_text().splitlines()
    for number, row in enumerate(rows):
        fields = dict(zip(header.split(","), row.split(","), strict=True))
        server.client.xadd("rows", fields, id=f"{number + 1}-0")
    return server


Calls = Counter[tuple[str, str]]
"""How often a run makes each call, by its name and the part of the path."""

STATE, SAVED, PREDICTIONS = "/.state.kb.", "/state.kb$", "/predictions.csv$"
BAD_ROWS, PART = "/bad-rows.jsonl$", "/.part-"
"""Parts of paths: the state while it is written and afterwards, and what else a run writes."""

HALFWAY = CallFault("rename", SAVED, 3, "after")
"""A kill after the third commit: a run that is resumed makes other calls."""

LASTING = ("write", "send", "fsync", "rename", "ftruncate")
"""Calls that make something last, or that undo it."""


def part_of(path: str, folder: Path) -> str:
    """The part of a path that tells a file of a run from others, whatever the run's folder is."""
    if path.startswith("socket:"):
        return "socket:"
    own = os.path.relpath(os.path.normpath(path), folder)
    if own == ".":
        return "/{folder}/.$" if path.endswith("/.") else "/{folder}$"
    name = Path(own).name
    if ".state.kb." in own:
        return "/.state.kb."
    if "part-" in name:
        return f"/{name.removesuffix('.parquet')[:6].rstrip('0')}"
    return f"/{name}$"


class ScenarioRunner:
    """Runs scenarios, each in a folder of its own, and compares what they leave."""

    def __init__(self, forks: ForkServer, root: Path, redis: RedisServer | None) -> None:
        self.forks, self.root, self.redis = forks, root, redis
        self._folders = 0
        self._undisturbed: dict[str, dict[str, Any]] = {}
        self._calls: dict[tuple[str, bool], Calls] = {}
        self.seconds: dict[str, float] = {}
        self.outcomes: Counter[str] = Counter()
        """How often a run with faults ended in which way."""

    def needs_servers(self, name: str) -> None:
        """Skip the test if the server of a scenario is not installed."""
        if name == "redis" and self.redis is None:
            pytest.skip("there is no redis-server")

    def folder(self) -> Path:
        self._folders += 1
        path = self.root / f"run{self._folders}"
        path.mkdir()
        return path

    def run(
        self, name: str, folder: Path, fault: CallFault | None = None, more: str = "", **how: Any
    ) -> CommandEnd:
        args = SCENARIOS[name].args(folder, self.redis.port if self.redis else None)
        if SCENARIOS[name].source == "-":
            how["stdin"] = str(self.root / "messy.csv")
        return self.forks.run([*args, *more.split()], folder, fault, **how)

    def outcome(self, name: str, folder: Path) -> dict[str, Any]:
        """All that a run has left behind that must not depend on how often it was killed."""
        found: dict[str, Any] = {"bad": (folder / "state/bad-rows.jsonl").read_bytes()}
        output = SCENARIOS[name].output
        if "://" in output:
            assert self.redis is not None
            found["predictions"] = self.redis.client.xrange(f"{folder.parent.name}-{folder.name}")
        elif output.endswith(".csv"):
            found["predictions"] = (folder / output).read_bytes()
        else:
            found["predictions"] = {f.name: f.read_bytes() for f in (folder / output).iterdir()}
        found["files"] = sorted(f.name for f in (folder / "state").iterdir())
        header, arrays = checkpoint.read(folder / "state/state.kb")
        del header["predictions"], header["times"]  # where and when, not what
        found["state"] = header, {k: (a.shape, a.tobytes()) for k, a in arrays.items()}
        return found

    def undisturbed(self, name: str) -> dict[str, Any]:
        """What a scenario leaves if nothing happens; its calls are counted on the way."""
        if name not in self._undisturbed:
            start = time.monotonic()
            folder = self._count_calls(name, resumed=False)
            self.seconds[name] = time.monotonic() - start
            self._undisturbed[name] = self.outcome(name, folder)
            shutil.rmtree(folder)
        return self._undisturbed[name]

    def calls(self, name: str, resumed: bool) -> Calls:
        """The calls of a run, or of one that is resumed halfway."""
        if (name, resumed) not in self._calls:
            shutil.rmtree(self._count_calls(name, resumed))
        return self._calls[name, resumed]

    def _count_calls(self, name: str, resumed: bool) -> Path:
        folder, log = self.folder(), self.root / f"{name}-{resumed}.calls"
        if resumed:
            assert self.run(name, folder, HALFWAY).killed
        ended = self.run(name, folder, calls=str(log))
        assert ended.code == 0, ended.stderr
        self._calls[name, resumed] = Counter(logged_calls(log, folder))
        return folder

    def kill(self, name: str, faults: list[CallFault | float]) -> int:
        """Kill at these moments in turn, resume to the end, compare; returns the number of kills."""
        wanted, folder, before = self.undisturbed(name), self.folder(), self.forks.kills
        for fault in faults:
            how = {"seconds": fault} if isinstance(fault, float) else {"fault": fault}
            ended = self.run(name, folder, **how)  # type: ignore[arg-type]
            assert ended.killed or ended.code == 0, f"{name} {faults}: {ended.stderr}"
        self.finish(name, folder, wanted, faults)
        return self.forks.kills - before

    def draw(self, name: str, resumed: bool, random: random.Random) -> CallFault:
        """Any fault: each kind of call on each file is as likely as another."""
        calls = self.calls(name, resumed)
        call, part = random.choice(sorted(calls))
        nth = random.randint(1, calls[call, part])
        how = random.choice(["fail", "fail", "short", "before", "after"])
        if how == "short" and call not in ("read", "write", "send", "recv"):
            how = "fail"
        number = random.choice(ERRORS[call])
        return CallFault(call, part, nth, how, number, random.random() < 0.5)

    def check(self, name: str, faults: list[CallFault], *, resumed: bool = False) -> None:
        """Let these faults happen in turn, then run to the end; check all that must be true."""
        wanted, folder = self.undisturbed(name), self.folder()
        if resumed:
            assert self.run(name, folder, HALFWAY).killed
        for fault in faults:
            path = fault.path.format(folder=folder.name)
            # A call that was interrupted is made again, for ever if that lasts.
            lasting = fault.lasting and fault.number not in (errno.EINTR, errno.EAGAIN)
            ended = self.run(name, folder, fault._replace(path=path, lasting=lasting))
            outcome = "killed" if ended.killed else "succeeded" if ended.code == 0 else "refused"
            self.outcomes[outcome] += 1
            if outcome == "refused":
                locked = "cannot be locked" if fault.call == "flock" else ""
                check_one_line(ended, file_named(fault), locked)
        self.finish(name, folder, wanted, faults)

    def finish(self, name: str, folder: Path, wanted: dict[str, Any], why: Any) -> None:
        """Run to the end, with nothing in the way, and compare."""
        ended = self.run(name, folder)
        assert ended.code == 0, f"{name} {why}: {ended.stderr}"
        self.compare(name, folder, wanted, why)
        shutil.rmtree(folder)

    def compare(self, name: str, folder: Path, wanted: dict[str, Any], why: Any) -> None:
        found = self.outcome(name, folder)
        for part, value in wanted.items():
            assert found[part] == value, f"{name}: {part} differs after {why}"


def logged_calls(log: Path, folder: Path) -> list[tuple[str, str]]:
    """The calls of a run in this folder, with the parts of their paths."""
    rows = [line.split("\t") for line in log.read_text().splitlines()]
    return [(call, part_of(path, folder)) for call, path in rows]


def drawn_moment(scenarios: ScenarioRunner, name: str, draw: random.Random) -> CallFault | float:
    """Any moment: of the clock, or of the calls, where each kind is as likely as another."""
    if draw.random() < 0.3:
        return draw.uniform(0.01, scenarios.seconds[name])
    calls = scenarios.calls(name, False)
    call, part = draw.choice(sorted(key for key in calls if key[0] in LASTING))
    # Early ones more often: a resumed run has fewer of them.
    most = max(1, round(calls[call, part] * draw.random()))
    halves = ["half"] if call in ("write", "send") else []
    return CallFault(call, part, draw.randint(1, most), draw.choice(["before", "after", *halves]))


@contextmanager
def open_scenarios(root: Path) -> Iterator[ScenarioRunner]:
    """A runner of scenarios in a folder, with Redis if it is installed."""
    write_sources(root)
    redis = start_redis(root) if REDIS_SERVER else None
    forks = ForkServer(compile_failing_calls(root))
    try:
        yield ScenarioRunner(forks, root, redis)
    finally:
        forks.close()
        if redis is not None:
            redis.client.close()
            redis.stop()


def file_named(fault: CallFault) -> str:
    """What the message of a fault must name."""
    if fault.path == "socket:":
        return "redis://"
    name = fault.path.strip("/.$")
    return {"{folder}": "", "{folder}/": "", "lock": "state"}.get(name, name)


def check_one_line(ended: CommandEnd, *words: str) -> None:
    """Check that it ended with an error of one line that has these words."""
    assert ended.code not in (0, 99), ended.stderr
    assert ended.code > 0, ended
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1, ended.stderr
    for word in words:
        assert word in lines[0], ended.stderr


def read_files(folder: Path) -> dict[str, bytes]:
    """The bytes of every file but the lock, which names the last process."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != "lock"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}

"""Runs whose calls of the system fail: what can fail, and what must be true afterwards.

Whatever fails, a run ends well, is killed, or ends with an error of one line that names the file. It
leaves files with which the same command, when nothing fails any more, ends with the same bytes as a
run that nothing has happened to.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections import Counter
from pathlib import Path

from support.crash_scenarios import ScenarioRunner, check_one_line
from support.failing_calls import ERRORS, CallFault

Calls = Counter[tuple[str, str]]
"""How often a run makes each call, by its name and the part of the path."""

HALFWAY = CallFault("rename", "/state/state.kb", 3, "after")
"""A kill after the third commit: a run that is resumed makes other calls."""


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


class CallFaults:
    """Draws and checks faults of the calls of scenarios."""

    def __init__(self, scenarios: ScenarioRunner) -> None:
        self.scenarios = scenarios
        self._calls: dict[tuple[str, bool], Calls] = {}
        self.outcomes: Counter[str] = Counter()

    def calls(self, name: str, resumed: bool) -> Calls:
        """The calls of a run, or of one that is resumed halfway."""
        key = name, resumed
        if key not in self._calls:
            folder = self.scenarios.folder()
            if resumed:
                assert self.scenarios.run(name, folder, HALFWAY).killed
            log = self.scenarios.root / f"{name}-{resumed}.calls"
            assert self.scenarios.run(name, folder, calls=str(log)).code == 0
            rows = [line.split("\t") for line in log.read_text().splitlines()]
            self._calls[key] = Counter((call, part_of(path, folder)) for call, path in rows)
            shutil.rmtree(folder)
        return self._calls[key]

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
        wanted, folder = self.scenarios.undisturbed(name), self.scenarios.folder()
        if resumed:
            assert self.scenarios.run(name, folder, HALFWAY).killed
        for fault in faults:
            path = fault.path.format(folder=folder.name)
            # A call that was interrupted is made again, for ever if that lasts.
            lasting = fault.lasting and fault.number not in (errno.EINTR, errno.EAGAIN)
            told = fault._replace(path=path, lasting=lasting)
            ended = self.scenarios.run(name, folder, told)
            outcome = "killed" if ended.killed else "succeeded" if ended.code == 0 else "refused"
            self.outcomes[outcome] += 1
            if outcome == "refused":
                locked = "cannot be locked" if fault.call == "flock" else ""
                check_one_line(ended, file_named(fault), locked)
        ended = self.scenarios.run(name, folder)
        assert ended.code == 0, f"{name} {faults}: {ended.stderr}"
        self.scenarios.compare(name, folder, wanted, faults)
        shutil.rmtree(folder)


def file_named(fault: CallFault) -> str:
    """What the message of a fault must name."""
    if fault.path == "socket:":
        return "redis://"
    name = fault.path.strip("/.$")
    return {"{folder}": "", "{folder}/": "", "lock": "state"}.get(name, name)

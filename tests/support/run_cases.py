"""Commands for the crash tests, their sources, and what they leave behind."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from kernelbank.io import checkpoint
from support.run_faults import Fault
from support.run_rig import Ended, Stable


class Case(NamedTuple):
    """A command: `source` and `output` are its ends, {port} and {own} are filled in."""

    source: str
    options: str
    output: str = "answers.csv"

    def args(self, folder: Path, port: int | None) -> list[str]:
        words = f"run {self.source} --target y --size small --state state --checkpoint-every 37"
        words += f" --predictions {self.output} {self.options}"
        return words.format(port=port, own=f"{folder.parent.name}-{folder.name}").split()


MESSY = "--categorical kind --on-bad-row skip --predict-missing --quiet"
CASES = {
    "plain": Case("../long.csv", "--features a,b --quiet"),
    "messy": Case("../messy.csv", f"{MESSY} --lags 2"),
    "late": Case("../messy.csv", f"{MESSY} --delay 5"),
    "classes": Case("../labels.csv", f"{MESSY} --task classification"),
    "parts": Case("../messy.csv", MESSY, "answers.parquet"),
    "input": Case("-", MESSY),
    "redis": Case(
        "redis://127.0.0.1:{port}/rows",
        f"{MESSY} --stop-when-idle 0.1",
        "redis://127.0.0.1:{port}/{own}",
    ),
}


def write_sources(folder: Path) -> None:
    """Streams with late categories, bad rows, missing targets; one long enough for snapshots."""
    draw = np.random.default_rng(5)
    plain, messy, labels = ["a,b,y"], ["a,b,kind,y"], ["a,b,kind,y"]
    for n in range(540):
        a, b = draw.normal(size=2)
        y = 2 * a + np.sin(3 * b) + 0.1 * draw.normal()
        plain.append(f"{a},{b},{y}")
        if n < 170:
            kind = "uvwx"[draw.integers(1 + min(n // 30, 3))]
            shown = "" if n % 29 == 11 else y
            said = "" if n % 29 == 11 else ("low" if y < -1 else "high" if y > 1 else "middle")
            first = "oh" if n % 23 in (7, 8) else a
            messy.append(f"{first},{b},{kind},{shown}")
            labels.append(f"{first},{b},{kind},{said}")
    for name, lines in (("long", plain), ("messy", messy), ("labels", labels)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


class Server:
    """A Redis server on a free loopback port, with the messy rows in a stream."""

    def __init__(self, folder: Path) -> None:
        import redis

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        settings = f"--port {self.port} --bind 127.0.0.1 --dir {folder} --appendonly no --save"
        self._process = subprocess.Popen(
            ["redis-server", *settings.split(), ""], stdout=subprocess.DEVNULL
        )
        self.client = redis.Redis(port=self.port)
        for _ in range(200):
            try:
                self.client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.02)
        header, *rows = (folder / "messy.csv").read_text().splitlines()
        for number, row in enumerate(rows):
            fields = dict(zip(header.split(","), row.split(","), strict=True))
            self.client.xadd("rows", fields, id=f"{number + 1}-0")

    def close(self) -> None:
        self.client.close()
        self._process.terminate()
        self._process.wait(20)


class Bench:
    """Plays cases, each in a folder of its own, and compares what they leave."""

    def __init__(self, stable: Stable, root: Path, server: Server | None) -> None:
        self.stable, self.root, self.server = stable, root, server
        self._folders = 0
        self._undisturbed: dict[str, dict[str, Any]] = {}
        self.events: dict[str, Counter[str]] = {}
        self.seconds: dict[str, float] = {}

    def folder(self) -> Path:
        self._folders += 1
        path = self.root / f"run{self._folders}"
        path.mkdir()
        return path

    def run(
        self, name: str, folder: Path, fault: Fault | None = None, more: str = "", **how: Any
    ) -> Ended:
        args = CASES[name].args(folder, self.server.port if self.server else None)
        if CASES[name].source == "-":
            how["stdin"] = str(self.root / "messy.csv")
        return self.stable.run([*args, *more.split()], folder, fault, **how)

    def left(self, name: str, folder: Path) -> dict[str, Any]:
        """All that a run has left behind that must not depend on how often it was killed."""
        found: dict[str, Any] = {"bad": (folder / "state/bad-rows.jsonl").read_bytes()}
        output = CASES[name].output
        if "://" in output:
            assert self.server is not None
            found["answers"] = self.server.client.xrange(f"{folder.parent.name}-{folder.name}")
        elif output.endswith(".csv"):
            found["answers"] = (folder / output).read_bytes()
        else:
            found["answers"] = {f.name: f.read_bytes() for f in (folder / output).iterdir()}
        found["files"] = sorted(f.name for f in (folder / "state").iterdir())
        header, arrays = checkpoint.read(folder / "state/state.kb")
        del header["predictions"], header["timings"]  # where and when, not what
        found["state"] = header, {k: (a.shape, a.tobytes()) for k, a in arrays.items()}
        return found

    def undisturbed(self, name: str) -> dict[str, Any]:
        """What the case leaves if nothing happens; its events are counted on the way."""
        if name not in self._undisturbed:
            folder = self.folder()
            log = self.root / f"{name}.log"
            start = time.monotonic()
            ended = self.run(name, folder, log=str(log))
            assert ended.code == 0, ended.said
            self.seconds[name] = time.monotonic() - start
            self.events[name] = Counter(log.read_text().split())
            self._undisturbed[name] = self.left(name, folder)
            shutil.rmtree(folder)
        return self._undisturbed[name]

    def kill(self, name: str, faults: list[Fault | float]) -> int:
        """Kill at each of these moments in turn, go on to the end and compare; kills counted."""
        wanted, folder, before = self.undisturbed(name), self.folder(), self.stable.kills
        for fault in faults:
            if isinstance(fault, Fault):
                ended = self.run(name, folder, fault)
            else:
                ended = self.run(name, folder, seconds=fault)
            assert ended.killed or ended.code == 0, f"{name} {faults}: {ended.said}"
        ended = self.run(name, folder)
        assert ended.code == 0, f"{name} {faults}: {ended.said}"
        self.compare(name, folder, wanted, faults)
        shutil.rmtree(folder)
        return self.stable.kills - before

    def compare(self, name: str, folder: Path, wanted: dict[str, Any], why: Any) -> None:
        found = self.left(name, folder)
        for part, value in wanted.items():
            assert found[part] == value, f"{name}: {part} differs after {why}"


@contextmanager
def opened(root: Path) -> Iterator[Bench]:
    """A bench in a folder, with Redis if it is installed."""
    write_sources(root)
    server = Server(root) if shutil.which("redis-server") else None
    stable = Stable()
    try:
        yield Bench(stable, root, server)
    finally:
        stable.close()
        if server is not None:
            server.close()


def slow(*values: object) -> Any:
    """Values of a test that takes long with them."""
    return pytest.param(*values, marks=pytest.mark.slow)


def one_line(ended: Ended, *words: str) -> None:
    """It ended with an error of one line that has these words in it."""
    assert ended.code not in (0, 99), ended.said
    assert ended.code > 0, ended
    lines = ended.said.strip().splitlines()
    assert len(lines) == 1, ended.said
    for word in words:
        assert word in lines[0], ended.said


def disk(folder: Path) -> dict[str, bytes]:
    """Every file; but the lock tells who came last."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != "lock"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}

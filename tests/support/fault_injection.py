"""Faults at chosen moments of `kernelbank run`: a kill, a signal or a full disk at the n-th event.

An *event* is a call that makes something last: a write, fsync, truncation or rename of a file, or
a batch for Redis. It has a label such as "fsync:state" or "write:predictions".
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

STATE = re.compile(r"\.?state\.kb(\..*)?")


class Fault(NamedTuple):
    """What happens at the n-th event (from 1) with this label, or of all if it is empty.

    how : kill, signal or refuse (an OSError). when : before, half or after; half of a write is
    half of its bytes. number : of the signal, or of the error. lasting : refuses from then on.
    """

    label: str
    nth: int
    when: str = "before"
    how: str = "kill"
    number: int = int(signal.SIGKILL)
    lasting: bool = True


def role(path: Any) -> str:
    """The role of a file in a run."""
    name = Path(os.fspath(path)).name
    if STATE.fullmatch(name):
        return "state"
    if name == "bad-rows.jsonl":
        return "bad-rows"
    if name.strip(".").startswith("part-"):
        return "part"
    if name == "lock":
        return "lock"
    return "predictions" if name.endswith(".csv") else "folder"


class FaultInjector:
    """Counts events, and makes the fault happen at one of them."""

    def __init__(self, fault: Fault | None, log: str | None) -> None:
        self.fault = fault
        self.counts: Counter[str] = Counter()
        self.log = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def event(self, label: str, whole: Any, half: Any = None) -> Any:
        self.counts[label] += 1
        self.counts[""] += 1
        if self.log is not None:
            os.write(self.log, f"{label}\n".encode())
        fault = self.fault
        if fault is None or fault.label not in (label, ""):
            return whole()
        due = self.counts[fault.label]
        if due < fault.nth or (due > fault.nth and not (fault.how == "refuse" and fault.lasting)):
            return whole()
        if fault.when == "half" and half is not None:
            half()
        if fault.when == "after":
            found = whole()
            self.inject(fault)
            return found
        self.inject(fault)
        return whole()

    def inject(self, fault: Fault) -> None:
        if fault.how == "refuse":
            raise OSError(fault.number, os.strerror(fault.number))
        os.kill(os.getpid(), fault.number)

    def patch(self) -> None:
        """Replace the calls of the system by ones that count events."""
        from kernelbank.io import checkpoint
        from kernelbank.io import sinks as lines
        from kernelbank.io import sinks as parts

        faults = self

        def opened(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            if mode == "rb":
                return open(path, mode, *rest, **more)
            return io.BufferedWriter(Raw(path, mode.replace("b", "")))

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                data = bytes(data)
                own = super().write
                label = f"write:{role(self.name)}"
                return faults.event(label, lambda: own(data), lambda: own(data[: len(data) // 2]))

            def truncate(self, size: int | None = None) -> int:
                own = super().truncate
                return faults.event(f"truncate:{role(self.name)}", lambda: own(size))

        checkpoint.open = lines.open = parts.open = opened  # type: ignore[attr-defined]
        fsync, replace, pwrite = os.fsync, os.replace, os.pwrite

        def named(number: int) -> str:
            return role(os.readlink(f"/proc/self/fd/{number}").removesuffix(" (deleted)"))

        os.fsync = lambda n: faults.event(f"fsync:{named(n)}", lambda: fsync(n))
        os.replace = lambda a, b: faults.event(f"replace:{role(b)}", lambda: replace(a, b))
        os.pwrite = lambda n, *rest: faults.event(f"write:{named(n)}", lambda: pwrite(n, *rest))
        self._patch_redis()

    def _patch_redis(self) -> None:
        try:
            from redis.client import Pipeline
        except ModuleNotFoundError:
            return
        faults, execute = self, Pipeline.execute

        def watched(pipeline: Any, raise_on_error: bool = True) -> Any:
            def half() -> None:
                pipeline.command_stack = pipeline.command_stack[: len(pipeline.command_stack) // 2]
                execute(pipeline, raise_on_error)

            return faults.event("redis", lambda: execute(pipeline, raise_on_error), half)

        Pipeline.execute = watched


FULL = errno.ENOSPC

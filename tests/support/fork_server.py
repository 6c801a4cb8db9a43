"""`kernelbank run` in processes of its own that can be killed: fifty milliseconds each.

The fork server is a process in which everything is imported; it forks a child for each
command, so that a kill hits the child alone. Run as a script, this file is the server.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from support.failing_calls import CallFault, log_calls, set_fault


class CommandEnd(NamedTuple):
    """How a command ended."""

    code: int
    """The exit code; minus the signal's number if one killed it."""
    stderr: str
    """Standard error."""
    killed: bool


class ForkServer:
    """The process that forks; use `run`, or `start` and `wait`.

    library : lets calls of the system fail; see `support.failing_calls`.
    """

    def __init__(self, library: Path) -> None:
        here = Path(__file__)
        source = here.parents[2] / "src"
        self._process = subprocess.Popen(
            [sys.executable, str(here)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": f"{source}:{here.parents[1]}",
                "PYTHONWARNINGS": "ignore",
                "LD_PRELOAD": str(library),
            },
        )
        self._reports = 0
        self.kills = 0
        assert self._ask({}) == "ready"

    def _ask(self, job: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the fork server has died")
        return json.loads(line)

    def start(
        self,
        args: list[str],
        folder: Path,
        fault: CallFault | None = None,
        *,
        stdin: str | None = None,
        seconds: float | None = None,
        calls: str | None = None,
    ) -> dict[str, Any]:
        """Start a command in `folder`, or Python code after "-c"; give what this returns to `wait`.

        seconds : after which it is killed. calls : a file that gets all calls of the system on files beside `folder` and in it, and on sockets.
        """
        self._reports += 1
        stderr = str(folder / f"stderr-{self._reports}.txt")
        Path(stderr).touch()  # a process that is killed at once does not make it
        job = {
            "args": args,
            "folder": str(folder),
            "fault": fault,
            "calls": calls,
            "stdin": stdin,
            "stderr": stderr,
        }
        return {"pid": self._ask(job), "stderr": stderr, "seconds": seconds}

    def wait(self, started: dict[str, Any]) -> CommandEnd:
        status = self._ask({"wait": started["pid"], "seconds": started["seconds"]})
        code = os.waitstatus_to_exitcode(status)
        stderr = Path(started["stderr"]).read_text()
        Path(started["stderr"]).unlink()
        self.kills += code == -signal.SIGKILL
        return CommandEnd(code, stderr, code == -signal.SIGKILL)

    def run(
        self, args: list[str], folder: Path, fault: CallFault | None = None, **how: Any
    ) -> CommandEnd:
        return self.wait(self.start(args, folder, fault, **how))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


# --- in the server ------------------------------------------------------------------------------


def warm() -> None:
    """Import what every child needs. Nothing here may start a thread."""
    import pandas  # noqa: F401  (pyarrow looks for it)
    import pyarrow.parquet  # noqa: F401
    import redis  # noqa: F401

    import kernelbank as kb
    import kernelbank.cli.commands
    import kernelbank.cli.run
    import kernelbank.io.kafka
    import kernelbank.io.parquet
    import kernelbank.io.redis
    import kernelbank.run.report.data

    kb.AutoBank(size="small").learn_one([1.0], 2.0)


def child(job: dict[str, Any]) -> int:
    os.chdir(job["folder"])
    stderr = os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.dup2(os.open(job["stdin"] or os.devnull, os.O_RDONLY), 0)
    if job["calls"] is not None:
        log_calls(job["calls"], str(Path(job["folder"]).parent))
    if job["fault"] is not None:
        set_fault(CallFault(*job["fault"]))
    from kernelbank.cli import commands
    from kernelbank.errors import KernelBankError
    from kernelbank.io import sinks as parquet

    parquet.PART_ROWS = 64
    sys.argv = ["kernelbank", *job["args"]]
    code = 0
    try:
        if job["args"][0] == "-c":
            exec(job["args"][1], {})
        else:
            commands.run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except (OSError, KernelBankError) as error:
        print(error, file=sys.stderr)
        code = 1
    gc.collect()  # what was not closed is closed here, as at the end of any process
    sys.stderr.flush()
    return code


def serve() -> None:
    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        job = json.loads(line)
        if not job:
            warm()
            gc.freeze()  # a child looks for garbage among its own objects only
            found: Any = "ready"
        elif "wait" in job:
            found = waited(job["wait"], job["seconds"])
        else:
            found = os.fork()
            if not found:
                code = 99
                try:
                    code = child(job)
                except BaseException:
                    traceback.print_exc()
                    sys.stderr.flush()
                os._exit(code)
        replies.write(json.dumps(found) + "\n")
        replies.flush()


def waited(pid: int, seconds: float | None) -> int:
    """The child's status; it is killed after `seconds`, or after a minute."""
    end = time.monotonic() + (60.0 if seconds is None else seconds)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            end = float("inf")
        time.sleep(0.001)


if __name__ == "__main__":
    serve()

"""The run's side of its live page: start a server process, write reports for it, end it.

`Publisher` publishes the report of a run: to its live page while it runs, and to a file at its end.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from ...errors import KernelBankWarning, RunRefused
from ...utils import validation as check
from ..report.data import report_text, write_report
from ..runner import Runner
from ..status import RunStatus
from .server import ENDED, HOST, REPORT, Limits, ServerSettings

_START_TIMEOUT = 30.0
"""Seconds within which the server must listen."""
_END_TIMEOUT = 5.0
"""Seconds that the end of a run waits until the server has told its viewers."""

# The settings hold the token, which must be neither among the arguments nor in the environment of a
# process: other users may read these.
_SERVER_PROGRAM = """
import json, sys
settings = json.loads(sys.stdin.readline())
sys.path[:] = settings["path"]
from kernelbank.run.live.server import main
main(settings)
"""


class LivePage:
    """The live page of a run, at `address`.

    The run writes its report to a private folder. A child process reads it there and serves it, to
    this machine only: no viewer can touch the interpreter, the open files or the memory of the run,
    and the run never waits for the server or for a viewer.

    Parameters
    ----------
    port : the port to listen on; 0 finds a free one.
    limits : what viewers are allowed.

    Cost: `publish` writes the report, if it has changed. Memory: the last report.
    Disk: at most three reports, readable by this user only, removed at the end; also when the run
    is killed, by the server.

    >>> from urllib.request import urlopen
    >>> with LivePage() as page:
    ...     page.publish('{"status": {"rows": 7}}')
    ...     page.address.startswith("http://127.0.0.1:"), urlopen(page.address).status
    (True, 200)
    """

    def __init__(self, port: int = 0, *, limits: Limits | None = None) -> None:
        self.port = check.count(
            "port", port, "LivePage", "Give a free port, or 0 to find one.", least=0, most=65_535
        )
        self._token = secrets.token_urlsafe(24)
        self._closed = False
        self._reports = 0
        self._report = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(os.path.abspath(tempfile.mkdtemp(prefix="kernelbank-live-")))
        try:
            self._process = self._start_server(limits or Limits())
            self.port = self._wait_for_port(self._process)
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """The URL of the page. It holds the token: whoever knows it may read the page."""
        return f"http://{HOST}:{self.port}/{self._token}/"

    def publish(self, report: str) -> None:
        """Make `report`, JSON text, what viewers see. Never raises OSError."""
        if report == self._report or not self._is_serving():
            return
        self._report = report
        self._reports += 1
        # Broken data may hold half a surrogate pair, which UTF-8 cannot encode.
        self._write(f"{REPORT}{self._reports}", report.encode("utf-8", "replace"))

    def end(self) -> None:
        """Tell viewers that the run is over, after the report published last; then close."""
        if self._is_serving():
            assert self._process is not None
            self._write(ENDED, b"")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_TIMEOUT)
            self.close()

    def _write(self, name: str, content: bytes) -> None:
        """Write a whole file, and remove the last report but one."""
        try:
            file = self._folder / "next"
            with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as opened:
                opened.write(content)
            file.replace(self._folder / name)
            (self._folder / f"{REPORT}{self._reports - 2}").unlink(missing_ok=True)
        except OSError as error:
            self._give_up(f"its folder {self._folder} cannot be written to ({error})")

    def close(self) -> None:
        """Stop the server now, without telling viewers. Does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        if self._process is not None:
            self._process.kill()  # it has nothing to lose, and may be stopped
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> LivePage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_serving(self) -> bool:
        if self._closed:
            return False
        assert self._process is not None
        if self._process.poll() is not None:
            self._give_up("its server ended")
            return False
        return True

    def _give_up(self, reason: str) -> None:
        """Close the page and warn. Later calls do nothing: there is one warning."""
        self.close()
        warnings.warn(
            f"The live page has gone: {reason}. The run goes on without it.",
            KernelBankWarning,
            stacklevel=4,
        )

    # --- starting the server --------------------------------------------------------------------

    def _start_server(self, limits: Limits) -> subprocess.Popen[bytes]:
        package = Path(__file__).resolve().parents[3]
        entries = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
        settings: ServerSettings = {
            "path": [str(package), *entries],
            "folder": str(self._folder),
            "port": self.port,
            "token": self._token,
            "parent": os.getpid(),
            "limits": asdict(limits),
        }
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", _SERVER_PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the terminal belongs to the run
            start_new_session=True,  # Ctrl-C is for the run, which decides
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(json.dumps(settings).encode())
        return process

    def _wait_for_port(self, process: subprocess.Popen[bytes]) -> int:
        """Return the port that the server found, or raise why it has none."""
        assert process.stdout is not None
        with process.stdout as pipe:
            if not select.select([pipe], [], [], _START_TIMEOUT)[0]:
                raise RunRefused(
                    f"the live page's server did not listen within {_START_TIMEOUT:g} seconds. "
                    "Try again, or run without --live."
                )
            result = json.loads(pipe.readline() or b'{"errno": null, "reason": "it ended"}')
        if "port" in result:
            return int(result["port"])
        reason = result["reason"]
        if result["errno"] == errno.EADDRINUSE:
            reason = f"port {self.port} of {HOST} is taken"
        raise RunRefused(
            f"the live page's server cannot start: {reason}. Give --live another port, or none: "
            "then a free one is found. A page at the end is written by --report."
        )


PERIOD = 0.5
"""Least seconds between two updates."""

MAX_SHARE = 0.01
"""Largest share of the run's time for updates: updates that take long are less frequent."""


class Publisher(AbstractContextManager["Publisher"]):
    """Call `update` after every block, and `end` at the end of the run."""

    def __init__(self, file: Path | None, page: LivePage | None) -> None:
        self._file, self._page = file, page
        self._next_update = 0.0

    def update(self, run: Runner) -> None:
        """Publish the present report to the live page, if it is time to."""
        begin = time.monotonic()
        if self._page is None or begin < self._next_update:
            return
        self._page.publish(report_text(RunStatus.of_run(run)))
        spent = time.monotonic() - begin
        self._next_update = begin + max(PERIOD, spent / MAX_SHARE)

    def end(self, run: Runner, phase: str) -> None:
        """Publish how the run ended, and write the report file."""
        status = RunStatus.of_run(run, phase)
        if self._page is not None:
            self._page.publish(report_text(status))
            self._page.end()
        if self._file is not None:
            write_report(self._file, status)

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.close()

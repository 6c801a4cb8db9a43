"""The run's side of its live page: news go to a server that is a process of its own."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import ipaddress
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import KernelBankWarning, RunRefused
from ...utils import validation as check
from .protocol import Limits, packed

_START = 30.0
"""Seconds within which the server must listen."""
_END = 5.0
"""Seconds that the end of a run waits for the server to tell it to the viewers."""

# The first line from the run says where modules are found, and which kernelbank is this one, by
# whatever hook it came to be imported. It also holds the token, which must be neither among the
# arguments nor in the environment of a process: other users may read these.
_BOOT = """
import importlib.util, json, sys
hello = json.loads(sys.stdin.buffer.readline())
sys.path[:] = hello["path"]
spec = importlib.util.spec_from_file_location("kernelbank", hello["package"])
sys.modules["kernelbank"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["kernelbank"])
from kernelbank.app.live.server import main
main(hello)
"""


class Live:
    """The live page of a run, at `address`.

    The server is a child process: no viewer holds the interpreter, the files or the memory of the
    run. A thread writes to it what has changed, through a single place where the newest wins.

    Parameters
    ----------
    host : the address to listen on. Anybody who can reach it still needs the token.
    port : the port to listen on; 0 finds a free one.
    limits : what viewers are allowed.

    Cost: `publish` compares each text with the last one of that name, and copies nothing.
    Memory: references to the last story, and one story's bytes while they are written, however
    slow or dead the server is.

    >>> from urllib.request import urlopen
    >>> with Live() as live:
    ...     live.publish({"now": '{"rows": 7}'})
    ...     live.address.startswith("http://127.0.0.1:"), urlopen(live.address).status
    (True, 200)
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = 0, *, limits: Limits | None = None
    ) -> None:
        if not (isinstance(host, str) and host):
            raise check.refuse("host", "be an address", host, "Give 127.0.0.1, or none.", "Live")
        self.host = host
        self.limits = limits or Limits()
        self.port = check.count(
            "port", port, "Live", "Give a free port, or 0 to find one.", least=0, most=65_535
        )
        self._token = secrets.token_urlsafe(24)
        self._told: dict[str, str] = {}
        """The story as it was published last."""
        self._waiting: dict[str, str | None] = {}
        """What of it the server has not been sent; None is to be forgotten."""
        self._known: set[str] = set()
        """The names that the server has been sent and has not been told to forget."""
        self._changed = threading.Condition()
        self._ending = self._closed = self._broken = self._warned = False
        self._answer: dict[str, Any] = {}
        self._answered = threading.Event()
        self._process = _started()
        self._writer = threading.Thread(target=self._write, name="kernelbank-live", daemon=True)
        try:
            self._writer.start()
            self._answered.wait(_START)
            self._listening()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Where the page is; whoever knows it may look."""
        return f"http://{_shown(self.host)}:{self.port}/{self._token}/"

    # --- what the run says ----------------------------------------------------------------------

    def publish(self, parts: Mapping[str, str]) -> None:
        """The whole story at this moment, JSON texts by name. Returns at once, whatever happens."""
        if self._closed or self._ending or self._lost():
            return
        with self._changed:
            for name, text in parts.items():
                before = self._told.get(name)
                if before is not text and before != text:
                    self._waiting[name] = text
            for name in self._told.keys() - parts.keys():
                if name in self._known:
                    self._waiting[name] = None
                else:
                    self._waiting.pop(name, None)
            self._told = dict(parts)
            self._changed.notify()

    def end(self) -> None:
        """The run is over: viewers get what was published last and are told so."""
        if self._closed:
            return
        try:
            if not self._lost():
                self._say_farewell()
        finally:
            self.close()

    def _say_farewell(self) -> None:
        until = time.monotonic() + _END
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._writer.join(_END)
        with contextlib.suppress(subprocess.TimeoutExpired):  # `close` makes an end
            self._process.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """Stop the server now, without a word to the viewers. Does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        with self._changed:
            self._told, self._waiting = {}, {}
            self._changed.notify()
        if self._process.poll() is None:
            self._process.kill()  # has nothing to lose, and may be stopped
        self._process.wait()
        if self._writer.ident is not None:
            self._writer.join()  # a write that hung has failed now
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _lost(self) -> bool:
        """Whether the server has gone; the first time, say so."""
        if not self._broken and self._process.poll() is None:
            return False
        if not self._warned:
            self._warned = True
            with self._changed:
                self._told, self._waiting = {}, {}
            warnings.warn(
                "The live page has gone: its server ended. The run goes on without it.",
                KernelBankWarning,
                stacklevel=3,
            )
        return True

    # --- the server -----------------------------------------------------------------------------

    def _listening(self) -> None:
        """Note the port that the server found, or say why it has none."""
        if not self._answered.is_set():
            raise RunRefused(
                f"the live page's server did not listen within {_START:g} seconds. Try again, "
                "or run without --live."
            )
        if "port" in self._answer:
            self.port = int(self._answer["port"])
            return
        number, reason = self._answer.get("errno"), self._answer.get("reason", "it ended")
        where = f"port {self.port} of {self.host}"
        if number == errno.EADDRINUSE:
            raise RunRefused(
                f"{where} is taken. Give --live another port, or none: then a free one is found."
            )
        if number == errno.EACCES:
            raise RunRefused(f"{where} is not allowed to you. Give --live a port above 1023.")
        if number is not None:
            raise RunRefused(
                f"the live page cannot listen on {where}: {reason}. Give an address of this "
                "machine and a free port."
            )
        raise RunRefused(
            f"the live page's server cannot start: {reason}. Install it again with: "
            "pip install 'kernelbank[live]', or run without --live."
        )

    def _write(self) -> None:
        """The writer's thread: greet the server, then hand on what waits, the newest only."""
        try:
            self._greet()
            while (news := self._next()) is not None:
                parts, end = news
                for piece in packed(parts, end=end):
                    self._send(piece)
                if end:
                    return
        except (OSError, ValueError):  # broken, or not what a server of ours says
            self._broken = True
        finally:
            self._answered.set()

    def _greet(self) -> None:
        hello = {
            "path": [os.path.abspath(place) for place in sys.path if isinstance(place, str)],
            "package": str(Path(__file__).resolve().parents[2] / "__init__.py"),
            "host": self.host,
            "port": self.port,
            "token": self._token,
            "parent": os.getpid(),
            "limits": asdict(self.limits),
        }
        self._send(json.dumps(hello).encode() + b"\n")
        assert self._process.stdout is not None
        self._answer = json.loads(self._process.stdout.readline() or b"{}")
        self._answered.set()

    def _next(self) -> tuple[dict[str, str | None], bool] | None:
        """Wait for news, and for the time to tell them; None if there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending or self._closed)
            self._changed.wait_for(lambda: self._ending or self._closed, self.limits.pace)
            if self._closed:
                return None
            news, self._waiting = self._waiting, {}
            for name, text in news.items():
                if text is None:
                    self._known.discard(name)
                else:
                    self._known.add(name)
            return news, self._ending

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[self._process.stdin.write(rest) :]


def _started() -> subprocess.Popen[bytes]:
    """The server's process, which waits for its first line."""
    for name in ("starlette", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(
                f"A live page needs the package {name}, which is not installed. Install it: "
                "pip install 'kernelbank[live]'"
            )
    if not sys.executable:
        raise RunRefused("a live page needs a Python to run its server. Run without --live.")
    return subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-c", _BOOT, "the live page of a kernelbank run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the screen is the run's
        bufsize=0,
        close_fds=True,
        start_new_session=True,  # Ctrl-C is for the run, which decides
    )


def _shown(host: str) -> str:
    """A host as it stands in an address; that of this machine if all of its own are listened on."""
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return host
    if number.is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if number.version == 6 else host

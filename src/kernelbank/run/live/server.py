"""The process that serves a live page: what viewers may ask for, and limits on what they can do.

It ends with the run that started it. Each connection is one request and its response: the page, or
the report, for which the page asks again and again; the response comes when there is a newer one.
Memory, with at most C connections (100): the report once, a page once, and per connection 64 kB of
headers, 80 kB that wait to be sent, and a report or page that is not sent yet. Viewers of the same
report share it; if each is stuck at another one, C reports are in memory. Nothing grows with the
length of the run or with the time for which a viewer is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypedDict

from ..report.page import content_security_policy, render_page


class ServerSettings(TypedDict):
    """What the run tells its server."""

    path: list[str]
    """Where modules are found."""
    folder: str
    """Where the run writes its reports."""
    port: int
    token: str
    parent: int
    """The process of the run."""
    limits: dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What the server allows its viewers. All times are in seconds."""

    connections: int = 100
    """Most open connections. A new one beyond evicts the least recently active one; before those
    with the token those without."""
    stall_timeout: float = 30.0
    """Drop a viewer that does not take 16 kB within this time while more wait for it."""
    request_timeout: float = 10.0
    """Drop a connection that has not sent a complete request within this time."""
    longest_wait: float = 15.0
    """Respond after this time without a newer report, so that dead connections are noticed."""
    poll_interval: float = 0.2
    """Look for a new report once in this time."""
    header_bytes: int = 32_768
    """Most bytes of a request's headers. Browsers send the cookies of all ports of a host."""


HOST = "127.0.0.1"
"""The address that the server listens on: this machine only."""

REPORT = "report-"
"""The start of the name of a file with a report, as JSON text; its number follows.

One that is replaced would be simpler to find, but ext4 flushes a file that replaces another: 2 to
10 ms instead of 0.02 ms. The last but one is removed when a new one is there, so that neither side
ever waits for the other.
"""

ENDED = "ended"
"""The name of a file that the run writes when it has written its last report."""

HEADERS = {
    "content-security-policy": content_security_policy(live=True) + "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",  # the address holds the token
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "connection": "close",
}
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(:[0-9]*)?")
"""A name or an address, and a port, which may have been forwarded from another."""

_SLICE = 16_384
"""Bytes that are handed to the connection at once: little waits for a slow viewer."""
HIGH_WATER = 65_536
"""Bytes that may wait in this process for one viewer before sending pauses."""
END_TIMEOUT = 2.0
"""Seconds within which viewers may take the last report of a run."""
BETWEEN = 0.3
"""Seconds within which a viewer that has had a report asks for the next one."""


class NewestReport:
    """Reads the reports in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.number = 0
        self.text = b"{}"
        self.ended = False
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done at the next report, or when the run ends."""

    @property
    def tag(self) -> str:
        """By which a viewer says that it has this report."""
        return f'"{self.number}"'

    def refresh(self) -> None:
        """Read what the run has written since the last call."""
        names = os.listdir(self._folder)
        numbers = [int(name.removeprefix(REPORT)) for name in names if name.startswith(REPORT)]
        newest, self.ended = max(numbers, default=0), ENDED in names
        if newest != self.number:
            try:
                self.text = (self._folder / f"{REPORT}{newest}").read_bytes()
            except FileNotFoundError:  # removed meanwhile: there is a newer one at the next poll
                return
            self.number = newest
        elif not self.ended:
            return
        self.changed.set_result(None)
        self.changed = asyncio.get_running_loop().create_future()


class Connection:
    """The way to one viewer, who may be slow, stuck or hostile."""

    def __init__(self, writer: asyncio.StreamWriter, limits: Limits) -> None:
        self.active = time.monotonic()
        """When it came, or last had taken everything that was sent."""
        self.admitted = False
        """Whether it knows the token."""
        self._writer = writer
        self._stall_timeout = limits.stall_timeout
        writer.transport.set_write_buffer_limits(high=HIGH_WATER, low=HIGH_WATER - 1)

    async def send(self, pieces: Iterable[bytes]) -> None:
        """Send bytes in slices. OSError, which TimeoutError is, if the viewer takes none."""
        for piece in pieces:
            for start in range(0, len(piece), _SLICE):
                self._writer.write(piece[start : start + _SLICE])
                async with asyncio.timeout(self._stall_timeout):
                    await self._writer.drain()
                if not self._writer.transport.get_write_buffer_size():
                    self.active = time.monotonic()

    async def finish(self) -> None:
        """Close the connection when everything is sent."""
        self._writer.close()
        async with asyncio.timeout(self._stall_timeout):
            await self._writer.wait_closed()

    def drop(self) -> None:
        """Close the connection and discard unsent bytes."""
        self._writer.transport.abort()


class PageServer:
    """Answers requests with the token that only read and name this machine as host.

    The host is checked against pages elsewhere whose name is made to point to this machine (DNS
    rebinding): a browser would let them read the response.

    Parameters
    ----------
    report : the newest one.
    token : the first part of every path.
    """

    def __init__(self, report: NewestReport, token: str, limits: Limits) -> None:
        self.report = report
        self.token = token.encode()
        self.limits = limits
        self.connections: set[Connection] = set()
        self._page = b""
        self._page_number = -1

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        if len(self.connections) >= self.limits.connections:
            min(self.connections, key=lambda other: (other.admitted, other.active)).drop()
        connection = Connection(writer, self.limits)
        self.connections.add(connection)
        try:
            async with asyncio.timeout(self.limits.request_timeout):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._respond(head.decode("latin-1"), connection)
            await connection.finish()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it has gone, takes nothing or asks for nothing
        finally:
            connection.drop()
            self.connections.discard(connection)

    async def _respond(self, head: str, connection: Connection) -> None:
        request, *lines = head.split("\r\n")[:-2]
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = (word.strip() for word in line.partition(":"))
            before = headers.get(name.lower())
            headers[name.lower()] = value if before is None else f"{before}, {value}"
        method, target, *_ = [*request.split(" "), "", ""]
        path = target.partition("?")[0]
        _, token, *rest = [*path.split("/"), ""]

        async def send(status: int, content: bytes, **more: str) -> None:
            named = {"content-type": _TEXT, "content-length": str(len(content)), **HEADERS}
            named |= {name.replace("_", "-"): value for name, value in more.items()}
            start = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
            start += [f"{name}: {value}" for name, value in named.items() if value]
            await connection.send(["\r\n".join([*start, "\r\n"]).encode("latin-1")])
            await connection.send([] if method == "HEAD" else [content])

        host = _HOST.fullmatch(headers.get("host", ""))
        if host is None or host[1].lower() not in _LOOPBACK_NAMES:
            await send(403, _ELSEWHERE)
        elif method not in ("GET", "HEAD"):
            await send(405, b"This page is read-only.\n", allow="GET, HEAD")
        elif headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            await send(400, b"A request must have no body here.\n")  # none has to be read
        elif path == "/favicon.ico":
            await send(204, b"", content_type="")
        elif not secrets.compare_digest(token.encode("latin-1"), self.token):
            await send(403, _ELSEWHERE)
        elif rest == [""]:  # its last slash is lost; relative: behind a tunnel or a proxy too
            await send(308, b"", location=f"{token}/")
        elif rest == ["", ""]:
            connection.admitted = True
            await send(200, self._current_page(), content_type="text/html; charset=utf-8")
        elif rest == ["report", ""]:
            connection.admitted = True
            report, seen = self.report, headers.get("if-none-match", "")
            if seen == report.tag and not report.ended:
                await asyncio.wait([report.changed], timeout=self.limits.longest_wait)
            if seen == report.tag:
                await send(304, b"")
            else:
                await send(200, report.text, content_type="application/json", etag=report.tag)
        else:
            await send(403, _ELSEWHERE)

    def _current_page(self) -> bytes:
        """The page with the newest report; it follows the later ones."""
        if self._page_number != self.report.number:
            self._page = render_page(self.report.text.decode(), "report").encode()
            self._page_number = self.report.number
        return self._page


_TEXT = "text/plain; charset=utf-8"
_ELSEWHERE = b"Not found here. Open the whole address that the run printed.\n"


def main(settings: ServerSettings) -> None:
    """Serve the reports in a folder until the run ends; first print the port, or why there is none.

    Does not return.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # the run comes first
    try:
        listener = open_listener(settings["port"])
        result: Mapping[str, Any] = {"port": listener.getsockname()[1]}
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = getattr(error, "strerror", None) or str(error)
        result = {"errno": number, "reason": reason}
    print(json.dumps(result), flush=True)
    sys.stdout.close()
    try:
        if "port" in result:
            asyncio.run(_serve(settings, listener))
    finally:
        os._exit(1)


def open_listener(port: int) -> socket.socket:
    """A socket that listens, with small send buffers in the system. OSError if it cannot."""
    listener = socket.create_server((HOST, port), backlog=128)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HIGH_WATER)
    return listener


async def _serve(settings: ServerSettings, listener: socket.socket) -> None:
    """Read what the run writes, until the run is over; then exit."""
    folder, limits = Path(settings["folder"]), Limits(**settings["limits"])
    report = NewestReport(folder)
    page = PageServer(report, settings["token"], limits)
    async with await asyncio.start_server(page.serve, sock=listener, limit=limits.header_bytes):
        while os.getppid() == settings["parent"]:
            with contextlib.suppress(OSError):  # out of file handles, perhaps: try again
                report.refresh()
            if report.ended:
                ended = busy = time.monotonic()
                while (now := time.monotonic()) < min(busy + BETWEEN, ended + END_TIMEOUT):
                    busy = now if page.connections else busy
                    await asyncio.sleep(0.05)
                os._exit(0)
            await asyncio.sleep(limits.poll_interval)
        shutil.rmtree(folder, ignore_errors=True)  # the run was killed and cannot do it
        os._exit(0)

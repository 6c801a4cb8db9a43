"""The process that serves a live page: what viewers may ask for, and limits on what they can do.

It ends with the run that started it. Each connection is one request and its response. Memory, with
at most C connections (100): the report once, a page once, and per connection 64 kB of headers, 80
kB that wait to be sent, and the texts of one event or page that are not sent yet. Viewers at the
same version share these texts; if each is stuck at another version, C reports are in memory.
Nothing grows with the length of the run or with the time for which a viewer is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
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
from urllib.parse import parse_qs

from ..report.page import content_security_policy, render_page


class ServerSettings(TypedDict):
    """What the run tells its server."""

    path: list[str]
    """Where modules are found."""
    folder: str
    """Where the run writes the parts of its report."""
    host: str
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
    heartbeat: float = 15.0
    """Send a comment after this time without events, so that dead connections are noticed."""
    page_interval: float = 0.2
    """Render the page at most once in this time, however many viewers ask for it."""
    poll_interval: float = 0.2
    """Look for a new report, and so send events, once in this time."""
    header_bytes: int = 32_768
    """Most bytes of a request's headers. Browsers send the cookies of all ports of a host."""


REPORT = "report-"
"""The start of the name of a file with a whole report; its number follows.

One that is replaced would be simpler to find, but ext4 flushes a file that replaces another: 2 to
10 ms instead of 0.02 ms. The last but one is removed when a new one is there, so that neither side
ever waits for the other.
"""

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
"""Seconds within which viewers may take the last events of a run."""


class VersionedParts:
    """Reads the reports in a folder; tells a viewer what is newer than the version it has.

    Memory: the newest text of each part, once, whatever the number of viewers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = 0
        self._parts: dict[str, tuple[int, bytes | None]] = {}
        """Version and text by name; None for a removed part."""
        self.version = 0
        self.ended = False
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done at the next version, or when the run ends."""

    def refresh(self) -> None:
        """Read what the run has written since the last call."""
        names = [name for name in os.listdir(self._folder) if name.startswith(REPORT)]
        newest = max((int(name.removeprefix(REPORT)) for name in names), default=0)
        if newest == self._file:
            return
        try:
            content = (self._folder / f"{REPORT}{newest}").read_bytes()
        except FileNotFoundError:  # removed meanwhile: there is a newer one at the next poll
            return
        self._file = newest
        state, *lines = content.split(b"\n")
        texts: dict[str, bytes | None] = dict.fromkeys(self._parts)
        texts |= zip(map(json.loads, lines[::2]), lines[1::2], strict=True)
        for name, text in texts.items():
            if self._parts.get(name, (0, None))[1] != text:
                self._parts[name] = self.version + 1, text
        self.version = max((version for version, _ in self._parts.values()), default=0)
        self.ended = state == b"ended"
        self.changed.set_result(None)
        self.changed = asyncio.get_running_loop().create_future()

    def texts(self) -> dict[str, str]:
        """All present parts by name."""
        return {name: text.decode() for name, (_, text) in self._parts.items() if text is not None}

    def since(self, version: int) -> list[bytes]:
        """The pieces of a JSON object of all parts newer than `version`; null for removed parts.

        The texts are shared between viewers, not copied.
        """
        pieces = [b"{"]
        for name, (changed, text) in self._parts.items():
            if changed <= version or (text is None and version == 0):
                continue
            comma = b"," if len(pieces) > 1 else b""
            pieces += [comma + json.dumps(name).encode() + b":", b"null" if text is None else text]
        return [*pieces, b"}"]


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
    parts : the report.
    token : the first part of every path.
    host : the address that the server listens on; None if other machines may ask: this machine then
        has names that are not known here.
    """

    def __init__(self, parts: VersionedParts, token: str, host: str | None, limits: Limits) -> None:
        self.parts = parts
        self.token = token.encode()
        self.hosts = None if host is None else _LOOPBACK_NAMES | {host.lower(), f"[{host.lower()}]"}
        self.limits = limits
        self.connections: set[Connection] = set()
        self._page = b""
        self._page_version = -1
        self._rendered = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        if len(self.connections) >= self.limits.connections:
            min(self.connections, key=lambda other: (other.admitted, other.active)).drop()
        connection = Connection(writer, self.limits)
        self.connections.add(connection)
        try:
            async with asyncio.timeout(self.limits.request_timeout):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._respond(head.decode("latin-1"), reader, connection)
            await connection.finish()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it has gone, takes nothing or asks for nothing
        finally:
            connection.drop()
            self.connections.discard(connection)

    async def _respond(
        self, head: str, reader: asyncio.StreamReader, connection: Connection
    ) -> None:
        request, *lines = head.split("\r\n")[:-2]
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = (word.strip() for word in line.partition(":"))
            before = headers.get(name.lower())
            headers[name.lower()] = value if before is None else f"{before}, {value}"
        method, target, *_ = [*request.split(" "), "", ""]
        path, _, query = target.partition("?")
        _, token, *rest = [*path.split("/"), ""]

        async def send(status: int, content: bytes, **more: str) -> None:
            named = {"content-type": _TEXT, "content-length": str(len(content)), **HEADERS}
            named |= {name.replace("_", "-"): value for name, value in more.items()}
            start = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
            start += [f"{name}: {value}" for name, value in named.items() if value]
            await connection.send(["\r\n".join([*start, "\r\n"]).encode("latin-1")])
            await connection.send([] if method == "HEAD" else [content])

        host = _HOST.fullmatch(headers.get("host", ""))
        if self.hosts is not None and (host is None or host[1].lower() not in self.hosts):
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
        elif rest == ["events", ""]:
            connection.admitted = True
            stream = "text/event-stream; charset=utf-8"
            await send(200, b"retry: 1000\n\n", content_type=stream, content_length="")
            if method == "GET":
                version = self._version_of(query, headers.get("last-event-id", ""))
                await self._send_events(version, reader, connection)
        else:
            await send(403, _ELSEWHERE)

    def _current_page(self) -> bytes:
        """The page, at most `page_interval` old: it names the version from which to follow."""
        now, version = time.monotonic(), self.parts.version
        due = self._page_version < 0 or now - self._rendered >= self.limits.page_interval
        if due and version != self._page_version:
            self._page = render_page(self.parts.texts(), f"events?after={version}").encode()
            self._page_version, self._rendered = version, now
        return self._page

    def _version_of(self, query: str, last_event: str) -> int:
        """The version that a viewer has: of its page, or of the last event before a break."""
        texts = [*parse_qs(query).get("after", []), last_event]
        versions = [int(t) for t in texts if t.isascii() and t.isdigit() and len(t) < 19]
        return max((number for number in versions if number <= self.parts.version), default=0)

    async def _send_events(
        self, version: int, reader: asyncio.StreamReader, connection: Connection
    ) -> None:
        """Whenever the viewer is ready, send all parts newer than what it has; queue nothing."""
        parts = self.parts
        # No browser sends anything after its request: then it has gone, or is none.
        gone = asyncio.ensure_future(reader.read(1))
        try:
            while not gone.done():
                if parts.version > version:
                    news, version = parts.since(version), parts.version
                    await connection.send([b"id: %d\ndata: " % version, *news, b"\n\n"])
                elif parts.ended:
                    await connection.send([b"event: end\ndata: {}\n\n"])
                    return
                else:
                    waiting: set[asyncio.Future[Any]] = {gone, parts.changed}
                    done, _ = await asyncio.wait(
                        waiting, timeout=self.limits.heartbeat, return_when=asyncio.FIRST_COMPLETED
                    )
                    await connection.send([] if done else [b":\n\n"])
        finally:
            gone.cancel()


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
        listener = open_listener(settings["host"], settings["port"])
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


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that listens, with small send buffers in the system. OSError if it cannot."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, address = addresses[0]
    listener = socket.create_server(address[:2], family=family, backlog=128)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HIGH_WATER)
    return listener


async def _serve(settings: ServerSettings, listener: socket.socket) -> None:
    """Read what the run writes, until the run is over; then exit."""
    folder, limits = Path(settings["folder"]), Limits(**settings["limits"])
    bound = listener.getsockname()[0].partition("%")[0]
    host = settings["host"] if ipaddress.ip_address(bound).is_loopback else None
    parts = VersionedParts(folder)
    page = PageServer(parts, settings["token"], host, limits)
    async with await asyncio.start_server(page.serve, sock=listener, limit=limits.header_bytes):
        while os.getppid() == settings["parent"]:
            with contextlib.suppress(OSError):  # out of file handles, perhaps: try again
                parts.refresh()
            if parts.ended:
                deadline = time.monotonic() + END_TIMEOUT
                while page.connections and time.monotonic() < deadline:
                    await asyncio.sleep(0.05)
                os._exit(0)
            await asyncio.sleep(limits.poll_interval)
        shutil.rmtree(folder, ignore_errors=True)  # the run was killed and cannot do it
        os._exit(0)

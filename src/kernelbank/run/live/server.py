"""The process that serves a live page: what viewers may ask for, and limits on what they can do.

It ends with the run that started it. Memory, with at most C connections (100): the report once, a
page once, and per connection at most 64 kB and a slice of 16 kB that wait to be sent, 32 kB of
headers, 256 kB that were read at once, and the texts of one event or page that are not sent yet.
Viewers at the same version share these texts; if each is stuck at another version, C reports are
in memory. Nothing grows with the length of the run or with the time for which a viewer is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import secrets
import shutil
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ..report.page import content_security_policy, render_page
from .parts import Limits, ServerSettings, VersionedParts, write_result

HEADERS = {
    "content-security-policy": content_security_policy(live=True) + "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",  # the address holds the token
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_REFUSALS = {
    400: "A request must have no body here.\n",
    403: "Not found here. Open the whole address that the run printed.\n",
    405: "This page is read-only.\n",
}
_SLICE = 16_384
"""Bytes that are handed to the connection at once: little waits for a slow viewer."""


class AccessControl:
    """Admits requests with the token that only read and name this machine as host.

    The host is checked against pages elsewhere whose name is made to point to this machine (DNS
    rebinding): a browser would let them read the response.
    """

    def __init__(self, parts: VersionedParts, token: str, host: str | None, limits: Limits) -> None:
        self.token = token.encode()
        self.hosts = None if host is None else _LOOPBACK_NAMES | {host.lower(), f"[{host.lower()}]"}
        """None if other machines may ask: this machine then has names that are not known here."""
        routes = [
            Route("/{token}", _add_slash),
            Route("/{token}/", PageRoute(parts, limits.page_interval)),
            Route("/{token}/events", EventsRoute(parts, limits.heartbeat)),
        ]
        self.router = Router(routes, redirect_slashes=False, default=_refusal(403))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._refuse(scope) or self.router)(scope, receive, send)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self.hosts is not None and _host_name(headers.get("host", "")) not in self.hosts:
            return _refusal(403)
        if scope["method"] not in ("GET", "HEAD"):
            return _refusal(405)
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return _refusal(400)  # no body has to be read
        if scope["path"] == "/favicon.ico":
            return Response(status_code=204, headers=HEADERS)
        token = scope["path"].split("/")[1:2] or [""]
        if not secrets.compare_digest(token[0].encode(), self.token):
            return _refusal(403)
        return None


async def _add_slash(request: Request) -> Response:
    """Send a viewer whose address has lost its last slash to the page.

    The new address is relative: it holds behind a tunnel or a proxy too.
    """
    location = f"{request.path_params['token']}/"
    return Response(status_code=308, headers={**HEADERS, "location": location})


def _host_name(host: str) -> str:
    """The name in a Host header without the port, which may have been forwarded from another."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _refusal(status: int) -> Response:
    more = {"connection": "close"} | ({"allow": "GET, HEAD"} if status == 405 else {})
    return PlainTextResponse(_REFUSALS[status], status, {**HEADERS, **more})


class PageRoute:
    """The page, at most `interval` seconds old: it names the version from which to follow."""

    def __init__(self, parts: VersionedParts, interval: float) -> None:
        self.parts = parts
        self.interval = interval
        self._page = b""
        self._version = -1
        self._rendered = 0.0

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        response = Response(self._current(), headers=HEADERS, media_type="text/html")
        status, headers = response.status_code, response.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await _send_slices(send, [bytes(response.body)])
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _current(self) -> bytes:
        now, version = time.monotonic(), self.parts.version
        due = self._version < 0 or now - self._rendered >= self.interval
        if due and version != self._version:
            self._page = render_page(self.parts.texts(), f"events?after={version}").encode()
            self._version, self._rendered = version, now
        return self._page


class EventsRoute:
    """Server-sent events: whenever a viewer is ready, all parts newer than what it has.

    Nothing is queued. A viewer holds the texts of one event, until they are sent.
    """

    def __init__(self, parts: VersionedParts, heartbeat: float) -> None:
        self.parts = parts
        self.heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content_type = (b"content-type", b"text/event-stream; charset=utf-8")
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        start = {"type": "http.response.start", "status": 200, "headers": [content_type, *headers]}
        await send(start)
        if scope["method"] != "HEAD":
            disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
            try:
                await self._send_events(self._version_of(scope), disconnected, send)
            except OSError:  # newer servers raise it when the viewer has gone
                return
            finally:
                disconnected.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_events(
        self, version: int, disconnected: asyncio.Future[None], send: Send
    ) -> None:
        parts = self.parts
        await _send_slices(send, [b"retry: 1000\n\n"])
        while not disconnected.done():
            if parts.version > version:
                news, version = parts.since(version), parts.version
                await _send_slices(send, [b"id: %d\ndata: " % version, *news, b"\n\n"])
                continue
            if parts.ended:
                await _send_slices(send, [b"event: end\ndata: {}\n\n"])
                return
            done, _ = await asyncio.wait(
                {disconnected, parts.changed},
                timeout=self.heartbeat,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                await _send_slices(send, [b":\n\n"])

    def _version_of(self, scope: Scope) -> int:
        """The version that a viewer has: of its page, or of the last event before a break."""
        texts = (
            QueryParams(scope["query_string"]).get("after", ""),
            Headers(scope=scope).get("last-event-id", ""),
        )
        versions = [
            int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19
        ]
        return max((number for number in versions if number <= self.parts.version), default=0)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_slices(send: Send, pieces: list[bytes]) -> None:
    for part in _slices(pieces):
        await send({"type": "http.response.body", "body": part, "more_body": True})


def _slices(pieces: list[bytes]) -> Iterator[bytes]:
    """The same bytes, in slices of about 16 kB."""
    part = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), _SLICE):
            part += piece[start : start + _SLICE]
            if len(part) >= _SLICE:
                yield bytes(part)
                part.clear()
    if part:
        yield bytes(part)


HIGH_WATER = 65_536
"""Bytes that may wait in this process for one viewer before sending pauses."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds."""


class Connection(H11Protocol):
    """uvicorn's connection, with a limit on everything that a viewer can do to it.

    uvicorn itself limits the headers, and what it keeps of a request. It limits neither the number
    of connections without a request, nor the time until a request, nor the time for which a
    response may wait to be taken.
    """

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.idle_since = self.last_progress = time.monotonic()
        self.unsent = 0
        crowded = len(self.connections) >= self.limits.connections
        idle = [
            connection
            for connection in self.connections
            if isinstance(connection, Connection) and connection.idle
        ]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=HIGH_WATER)
        if crowded:
            min(idle, key=lambda connection: connection.idle_since, default=self).drop()

    @property
    def idle(self) -> bool:
        """Whether it has requested nothing, or has the whole response."""
        complete = self.cycle is None or self.cycle.response_complete
        return complete and not self.transport.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        if self.cycle is not None and not (self.cycle.response_complete or self.cycle.more_body):
            self.drop()  # no browser sends a request before it has its response; it would be kept
        else:
            super().data_received(data)

    def check_timeouts(self, now: float) -> None:
        """Drop the connection if its time is over. Called at every poll."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self.unsent:
            self.unsent, self.last_progress = unsent, now
        if not self.idle:
            self.idle_since = now
        stalled = now - self.last_progress > self.limits.stall_timeout
        if stalled or now - self.idle_since > self.limits.request_timeout:
            self.drop()

    def drop(self) -> None:
        """Close the connection and discard unsent bytes, here and in the system."""
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE
            )
        self.connections.discard(self)
        self.transport.abort()


def connection_class(limits: Limits) -> type[Connection]:
    """A class of connections with these limits."""
    fields: dict[str, Any] = {"limits": limits}
    return type("LimitedConnection", (Connection,), fields)


def open_listener(host: str, port: int, limits: Limits) -> socket.socket:
    """A socket that listens, with small send buffers in the system. OSError if it cannot."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, address = addresses[0]
    listener = socket.create_server(address[:2], family=family, backlog=128)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HIGH_WATER)
    with contextlib.suppress(OSError, AttributeError):  # not all systems have it
        milliseconds = int(1000 * limits.stall_timeout)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    listener.setblocking(False)
    return listener


END_TIMEOUT = 2.0
"""Seconds within which viewers may take the last events of a run."""


def main(folder: Path, settings: ServerSettings) -> None:
    """Serve the report parts in `folder` until the run ends. Does not return.

    Raises what keeps the server from listening.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # the run comes first
    limits = Limits(**settings["limits"])
    listener = open_listener(settings["host"], settings["port"], limits)
    write_result(folder, {"port": listener.getsockname()[1]})
    try:
        asyncio.run(_serve(folder, settings, limits, listener))
    finally:
        os._exit(1)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the run decides when to end


async def _serve(
    folder: Path, settings: ServerSettings, limits: Limits, listener: socket.socket
) -> None:
    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    parts = VersionedParts(folder)
    host = _known_host(settings["host"], listener)
    server = _Server(
        uvicorn.Config(
            AccessControl(parts, settings["token"], host, limits),
            http=connection_class(limits),
            ws="none",
            loop="asyncio",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=128,
            h11_max_incomplete_event_size=limits.header_bytes,
        )
    )
    await asyncio.gather(
        server.serve(sockets=[listener]),
        _follow_run(folder, parts, server.server_state, limits, settings["parent"]),
    )


def _known_host(host: str, listener: socket.socket) -> str | None:
    """The host if only this machine can reach the listener; else None."""
    bound = listener.getsockname()[0].partition("%")[0]
    return host if ipaddress.ip_address(bound).is_loopback else None


async def _follow_run(
    folder: Path, parts: VersionedParts, state: ServerState, limits: Limits, parent: int
) -> None:
    """Read what the run writes and drop stalled viewers until the run is over; then exit."""
    while os.getppid() == parent:
        with contextlib.suppress(OSError):  # out of file handles, perhaps: try again
            parts.refresh()
        if parts.ended:
            await _wait_until_sent(state)
            os._exit(0)
        now = time.monotonic()
        for connection in _open_connections(state):
            connection.check_timeouts(now)
        await asyncio.sleep(limits.poll_interval)
    shutil.rmtree(folder, ignore_errors=True)  # the run was killed and cannot do it
    os._exit(0)


async def _wait_until_sent(state: ServerState) -> None:
    deadline = time.monotonic() + END_TIMEOUT
    while time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        if all(connection.idle for connection in _open_connections(state)):
            return


def _open_connections(state: ServerState) -> list[Connection]:
    return [connection for connection in state.connections if isinstance(connection, Connection)]

"""What viewers of a live page may request: the page, and the events that follow it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ..report.page import content_security_policy, render_page
from .limits import Limits
from .parts_folder import VersionedParts

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
        given = scope["path"].split("/")[1:2] or [""]
        if not secrets.compare_digest(given[0].encode(), self.token):
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
        known = [
            int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19
        ]
        return max((number for number in known if number <= self.parts.version), default=0)


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

"""What viewers of a live page may ask for: the page, and the events that follow it."""

from __future__ import annotations

import asyncio
import secrets

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ..report.page import policy
from .versioned_parts import Watched, slices

HEADERS = {
    "content-security-policy": policy(live=True) + "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",  # the address holds the token
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Page(Response):
    """A response that is sent in slices: what waits for a slow viewer stays small."""

    media_type = "text/html"

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        status, headers = self.status_code, self.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for part in slices([bytes(self.body)]):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Events:
    """Server-sent events: whenever a viewer is ready, all that is newer than what it has.

    Nothing is queued. A viewer holds the texts of one message, until they are sent.
    """

    def __init__(self, story: Watched, heartbeat: float) -> None:
        self.story = story
        self.heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = (b"content-type", b"text/event-stream; charset=utf-8")
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        start = {"type": "http.response.start", "status": 200, "headers": [kind, *headers]}
        await send(start)
        if scope["method"] != "HEAD":
            gone = asyncio.ensure_future(_disconnected(receive))
            try:
                await self._follow(self._seen(scope), gone, send)
            except OSError:  # what newer servers raise if nobody is there any more
                return
            finally:
                gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, seen: int, gone: asyncio.Future[None], send: Send) -> None:
        await _say(send, [b"retry: 1000\n\n"])
        while not gone.done():
            story = self.story
            if story.version > seen:
                news, seen = story.since(seen), story.version
                await _say(send, [b"id: %d\ndata: " % seen, *news, b"\n\n"])
                continue
            if story.ended:
                await _say(send, [b"event: end\ndata: {}\n\n"])
                return
            done, _ = await asyncio.wait(
                {gone, story.next}, timeout=self.heartbeat, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                await _say(send, [b":\n\n"])

    def _seen(self, scope: Scope) -> int:
        """The version that a viewer has: of the page, or of the last event before a break."""
        texts = (
            QueryParams(scope["query_string"]).get("after", ""),
            Headers(scope=scope).get("last-event-id", ""),
        )
        known = [
            int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19
        ]
        return max((number for number in known if number <= self.story.version), default=0)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _say(send: Send, pieces: list[bytes]) -> None:
    for part in slices(pieces):
        await send({"type": "http.response.body", "body": part, "more_body": True})


class Door:
    """Lets in who has the token, reads only, and asks for a name of this machine.

    The last is against pages elsewhere whose name is made to mean this machine, by which a browser
    would let them read what they ask for.
    """

    def __init__(self, story: Watched, token: str, host: str | None, heartbeat: float) -> None:
        self.token = token.encode()
        self.names = None if host is None else _LOOPBACK | {host.lower(), f"[{host.lower()}]"}
        """None if more than this machine may ask: then it has names that nobody knows here."""

        async def page(_: Request) -> Response:
            return Page(story.page(), headers=HEADERS)

        async def refused(scope: Scope, receive: Receive, send: Send) -> None:
            await _refusal(403)(scope, receive, send)

        self.inside = Router(
            [Route("/{token}/", page), Route("/{token}/events", Events(story, heartbeat))],
            redirect_slashes=False,
            default=refused,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._refused(scope) or self.inside)(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self.names is not None and _name(headers.get("host", "")) not in self.names:
            return _refusal(403)
        if scope["method"] not in ("GET", "HEAD"):
            return _refusal(405)
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return _refusal(400)  # nothing to read has to be read
        if scope["path"] == "/favicon.ico":
            return Response(status_code=204, headers=HEADERS)
        given = scope["path"].split("/")[1:2] or [""]
        if not secrets.compare_digest(given[0].encode(), self.token):
            return _refusal(403)
        return None


def _name(host: str) -> str:
    """The name in a Host header, without the port: it may have been forwarded from another."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


_WORDS = {
    400: "A request has no body here.\n",
    403: "Not here. Open the whole address that the run printed.\n",
    405: "This can only be looked at.\n",
}


def _refusal(status: int) -> Response:
    more = {"connection": "close"} | ({"allow": "GET, HEAD"} if status == 405 else {})
    return PlainTextResponse(_WORDS[status], status, {**HEADERS, **more})

"""The story that a server shows: the newest text of each part, and when it came."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

from ..report.page import page
from .protocol import Message

_GONE = 10_000
"""So many names of parts that have gone are remembered, for viewers who have been away."""


class Watched:
    """Parts with versions: a viewer who knows the version it has can ask for what is newer.

    There is one text of each part, and one page, however many watch.
    """

    def __init__(self, page_age: float) -> None:
        self.version = 0
        self.ended = False
        self.next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when there is something newer than now, or the end."""
        self._parts: dict[str, tuple[int, bytes | None]] = {}
        self._page_age = page_age
        self._page = b""
        self._page_version = -1
        self._page_time = 0.0

    def take(self, message: Message) -> None:
        """News from the run; all of a message have one version."""
        if message.parts:
            self.version += 1
        for name, text in message.parts.items():
            # The newest stands last. A line of an event must not end inside of a text; JSON has
            # such characters only between its tokens.
            self._parts.pop(name, None)
            line = None if text is None else text.replace(b"\r", b" ").replace(b"\n", b" ")
            self._parts[name] = (self.version, line)
        self._forget()
        self.ended = self.ended or message.end
        self.next.set_result(None)
        self.next = asyncio.get_running_loop().create_future()

    def _forget(self) -> None:
        gone = [name for name, (_, text) in self._parts.items() if text is None]
        for name in gone[: max(0, len(gone) - _GONE)]:
            del self._parts[name]

    def since(self, version: int) -> list[bytes]:
        """What is newer, as the pieces of one JSON object. The texts are shared, not copied."""
        pieces = [b"{"]
        for name, (when, text) in self._parts.items():
            if when <= version or (text is None and version == 0):
                continue
            comma = b"," if len(pieces) > 1 else b""
            pieces += [comma + json.dumps(name).encode() + b":", b"null" if text is None else text]
        return [*pieces, b"}"]

    def page(self) -> bytes:
        """The page, perhaps a moment old: it says from which version on to follow."""
        now = time.monotonic()
        fresh = self._page_version == self.version
        if not fresh and (self._page_version < 0 or now - self._page_time >= self._page_age):
            parts = {
                name: text.decode() for name, (_, text) in self._parts.items() if text is not None
            }
            self._page = page(parts, f"events?after={self.version}").encode()
            self._page_version, self._page_time = self.version, now
        return self._page


def slices(pieces: list[bytes], size: int = 16_384) -> Iterator[bytes]:
    """The same bytes, in slices of about a size."""
    part = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), size):
            part += piece[start : start + size]
            if len(part) >= size:
                yield bytes(part)
                part.clear()
    if part:
        yield bytes(part)

"""What a run and the server of its live page say to each other, through a pipe.

The run's first line is a JSON object with everything that the server needs, and so is the server's
only answer. Every later message is a line of JSON, `{"end": ..., "parts": [[name, size], ...]}`,
and behind it the texts of the parts, as long as stated; the size of a part that has gone is null.
The texts are not wrapped into JSON once more: the server hands them on and never looks inside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class Limits:
    """What a server allows its viewers. Times are seconds."""

    connections: int = 100
    """At most so many at once. Beyond, the one that has asked for nothing longest has to go."""
    patience: float = 30.0
    """A viewer who takes nothing for so long, while something waits for it, is cut off."""
    request: float = 10.0
    """A connection has so long to send a whole request."""
    heartbeat: float = 15.0
    """A viewer hears something at least so often, or the connection is found to be dead."""
    page_age: float = 0.2
    """The page is built at most once in so long, whoever asks."""
    pace: float = 0.2
    """The run hands on what is new at most once in so long."""
    header: int = 32_768
    """Bytes of a request. Browsers send the cookies of all ports of a host: leave some room."""


@dataclass(frozen=True)
class Message:
    """News of a run: parts by name, None for one that has gone, and whether they are the last."""

    parts: dict[str, bytes | None]
    end: bool = False


def packed(parts: Mapping[str, str | None], *, end: bool = False) -> list[bytes]:
    """A message as pieces of bytes."""
    # Half a surrogate pair comes from broken data, and is no reason to fall silent.
    texts = [None if text is None else text.encode("utf-8", "replace") for text in parts.values()]
    sizes = [None if text is None else len(text) for text in texts]
    head = json.dumps({"end": end, "parts": list(zip(parts, sizes, strict=True))})
    return [head.encode() + b"\n", *(text for text in texts if text is not None)]


def read(stream: BinaryIO) -> Message | None:
    """The next message; None if the stream ends, also in the middle of one."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    parts: dict[str, bytes | None] = {}
    for name, size in head["parts"]:
        if size is None:
            parts[name] = None
            continue
        text = stream.read(size)
        if len(text) < size:
            return None
        parts[name] = text
    return Message(parts, bool(head["end"]))

"""What the run and the server of its live page exchange: report parts in a folder, and limits.

The folder holds one file per part, and an index, such as `index-17`:

    {"version": 41, "ended": false, "parts": {"status": 41, "points/0": 5}}

The number of a part is the version at which it last changed and the name of its file. A file is
written once and never changes: a changed part gets a new number, and so does the index, which
appears when all files that it names are there. What the newest index no longer names is removed one
write later, so a reader of the previous index still finds it. Nothing is locked: neither side ever
waits for the other.

(One index that is replaced would be simpler to find, but ext4 flushes a file that replaces another:
2 to 10 ms instead of 0.02 ms.)
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict


class ServerSettings(TypedDict):
    """What the run tells its server."""

    path: list[str]
    """Where modules are found."""
    package: str
    """The file of this package."""
    host: str
    port: int
    token: str
    parent: int
    """The process of the run."""
    limits: dict[str, Any]


class ServerResult(TypedDict, total=False):
    """What the server tells the run: the port that it found, or why there is none."""

    port: int
    errno: int | None
    reason: str


@dataclass(frozen=True)
class Limits:
    """What the server allows its viewers. All times are in seconds."""

    connections: int = 100
    """Most open connections. A new one beyond evicts the idle connection that is idle longest."""
    stall_timeout: float = 30.0
    """Drop a viewer that takes no byte for this long while bytes wait for it."""
    request_timeout: float = 10.0
    """Drop a connection that has not sent a complete request within this time."""
    heartbeat: float = 15.0
    """Send a comment after this time without events, so that dead connections are noticed."""
    page_interval: float = 0.2
    """Render the page at most once in this time, however many viewers ask for it."""
    poll_interval: float = 0.2
    """Look for new report parts, and so send events, once in this time."""
    header_bytes: int = 32_768
    """Most bytes of a request's headers. Browsers send the cookies of all ports of a host."""


INDEX = "index-"
"""The start of the name of an index; its number follows."""
START_SETTINGS = "start.json"
"""What the server needs to start; it removes the file, which holds the token."""
START_RESULT = "server.json"
"""The port that the server found, or why it cannot start."""

_MAX_REMOVED = 10_000
"""Names of removed parts that the reader remembers, for viewers that reconnect."""
_ATTEMPTS = 5
"""Reads of an index whose files vanish before the reader waits for the next poll."""


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; it appears when it is complete."""
    temporary = path.with_name(f".{path.name}")
    _write_in_place(temporary, content)
    temporary.replace(path)


def _write_in_place(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def write_result(folder: Path, result: ServerResult) -> None:
    """Tell the run what has become of the server that it started."""
    write_private(folder / START_RESULT, json.dumps(result).encode())


@contextmanager
def failure_as_result(folder: Path) -> Iterator[None]:
    """Tell the run why its server cannot start, and exit."""
    try:
        yield
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = getattr(error, "strerror", None) or str(error)
        write_result(folder, {"errno": number, "reason": reason})
        os._exit(1)


class PartsWriter:
    """Writes the parts of a report that have changed.

    Memory: references to the texts written last. Disk: at most two versions of each part.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._version = 0
        self._texts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._indices = 0
        self._obsolete: list[str] = []

    def write(self, parts: Mapping[str, str]) -> None:
        """Make `parts`, JSON texts by name, the report. OSError if the folder cannot be written."""
        before = self._texts
        changed = [
            name
            for name, text in parts.items()
            if before.get(name) is not text and before.get(name) != text
        ]
        removed = self._numbers.keys() - parts.keys()
        if not changed and not removed:
            return
        numbers = {name: number for name, number in self._numbers.items() if name in parts}
        for name in changed:
            self._version += 1
            numbers[name] = self._version
            # Broken data may hold half a surrogate pair, which UTF-8 cannot encode.
            content = parts[name].encode("utf-8", "replace")
            _write_in_place(self._folder / str(self._version), content)
        if not changed:
            self._version += 1
        self._write_index(numbers, ended=False)
        for name in self._obsolete:
            (self._folder / name).unlink(missing_ok=True)
        current = set(numbers.values())
        self._obsolete = [str(number) for number in self._numbers.values() if number not in current]
        self._obsolete.append(f"{INDEX}{self._indices - 1}")
        self._texts, self._numbers = dict(parts), numbers

    def end(self) -> None:
        """Mark the report as complete: the run has ended."""
        self._write_index(self._numbers, ended=True)

    def _write_index(self, numbers: dict[str, int], *, ended: bool) -> None:
        index = {"version": self._version, "ended": ended, "parts": numbers}
        self._indices += 1
        write_private(self._folder / f"{INDEX}{self._indices}", json.dumps(index).encode())


class VersionedParts:
    """Reads the parts in a folder; tells a viewer what is newer than the version it has.

    Memory: the newest text of each part, once, whatever the number of viewers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = 0
        self._parts: dict[str, tuple[int, bytes | None]] = {}
        """Version and text by name, in the order of versions; None for a removed part."""
        self.version = 0
        self.ended = False
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done at the next version, or when the run ends."""

    def refresh(self) -> None:
        """Read what the run has written since the last call."""
        for _ in range(_ATTEMPTS):
            newest = self._newest_index()
            if newest == self._index:
                return
            try:
                index = json.loads((self._folder / f"{INDEX}{newest}").read_bytes())
                news = self._read_changed(index["parts"])
            except FileNotFoundError:  # removed meanwhile: there is a newer index
                continue
            self._index = newest
            self._update(index, news)
            return

    def _newest_index(self) -> int:
        names = [name for name in os.listdir(self._folder) if name.startswith(INDEX)]
        return max((int(name.removeprefix(INDEX)) for name in names), default=0)

    def _read_changed(self, numbers: Mapping[str, int]) -> dict[str, bytes]:
        changed = {}
        for name, number in sorted(numbers.items(), key=lambda item: item[1]):
            if number > self.version:
                content = (self._folder / str(number)).read_bytes()
                # A line break would end the line of an event. JSON has them only between tokens.
                changed[name] = content.replace(b"\r", b" ").replace(b"\n", b" ")
        return changed

    def _update(self, index: Mapping[str, Any], news: Mapping[str, bytes]) -> None:
        version, numbers = int(index["version"]), index["parts"]
        present = [name for name, (_, text) in self._parts.items() if text is not None]
        for name in (name for name in present if name not in numbers):
            del self._parts[name]
            self._parts[name] = version, None
        for name, text in news.items():
            self._parts.pop(name, None)
            self._parts[name] = version, text
        removed = [name for name, (_, text) in self._parts.items() if text is None]
        for name in removed[: max(0, len(removed) - _MAX_REMOVED)]:
            del self._parts[name]
        self.version, self.ended = version, bool(index["ended"])
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

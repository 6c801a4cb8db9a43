"""Bytes to physical lines to rows, with the line and the byte at which each row ends.

Bytes come in pieces of any size, and the rows do not depend on where pieces end. A row that is
longer than `LONGEST` is bad: so no file, whatever it is, takes more memory than a few of those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 1 << 18
"""The most bytes of one row, its last line's end not counted."""

BYTE_ORDER_MARK = "\ufeff"
TOO_LONG = f"is the beginning of a row longer than {LONGEST} bytes"


@dataclass
class Parsed:
    """What lines hold: rows, the first and the last line of each, and how many lines are done."""

    rows: list[Any]
    firsts: list[int] | range
    lasts: list[int] | range
    done: int
    broken: dict[int, tuple[str, str]] = field(default_factory=dict)


@dataclass
class Chunk:
    """Some whole rows: the first and last line of each, and the bytes up to its end.

    `raw` are the bytes of the rows and of blank lines between them, from byte `offset` on.

    Bytes of a row too long to be kept come as a chunk without rows. All `raw` together are all
    bytes that have come.
    """

    raw: bytes
    offset: int
    rows: list[Any]
    lines: NDArray[np.int64]
    lasts: NDArray[np.int64]
    ends: NDArray[np.int64]
    broken: dict[int, tuple[str, str]]
    open: bool
    """Whether the last row has no line end: a file that grows may go on in it."""


class Splitter(ABC):
    """Makes rows of bytes that come in pieces, from byte `offset` and line `line` on."""

    def __init__(self, offset: int = 0, line: int = 1) -> None:
        self._offset = offset
        self._line = line
        self._rest = b""
        self._overlong: bytes | None = None
        self._ended = True  # whether the last line at hand has an end

    def feed(self, data: bytes, last: bool) -> Iterator[Chunk]:
        """The rows that are whole now. With `last`, nothing comes after `data`."""
        data = self._rest + data if self._rest else data
        self._rest = b""
        if self._overlong is not None:
            end = data.find(b"\n") + 1
            if not end:
                end = len(data)
                if not last:
                    yield self._chunk(data, Parsed([], [], [], 0), None)
                    return
            broken = {0: (self._overlong.decode("utf-8", "surrogateescape"), TOO_LONG)}
            self._overlong = None
            yield self._chunk(data[:end], Parsed([None], [0], [0], 1, broken), None)
            data = data[end:]
        cut = len(data) if last else data.rfind(b"\n") + 1
        whole, rest = data[:cut], data[cut:]
        overlong = len(rest) > LONGEST
        if whole:
            text, lines, ends = self._lines(whole)
            parsed = self._parse(text, lines, ends, final=last or overlong)
            if parsed.done < len(lines):
                cut = int(ends[parsed.done - 1]) if parsed.done else 0
                rest, whole, ends = whole[cut:] + rest, whole[:cut], ends[: parsed.done]
            if whole:
                yield self._chunk(whole, parsed, ends)
        if overlong:
            self._overlong = rest[:100]
            yield self._chunk(rest, Parsed([], [], [], 0), None)
        else:
            self._rest = rest

    @abstractmethod
    def _parse(self, text: str, lines: list[str], ends: NDArray[np.int64], final: bool) -> Parsed:
        """The rows of a text of lines; with `final`, a row begun in them will not be completed."""

    def _lengths(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bytes of each line, its end not counted."""
        lengths = np.diff(ends, prepend=0) - 1
        lengths[-1] += not self._ended
        return lengths

    def _lines(self, whole: bytes) -> tuple[str, list[str], NDArray[np.int64]]:
        """The text, its lines without their ends, and the bytes up to the end of each.

        Bytes that are not UTF-8 become lone surrogates: they are bad where they are needed only.
        """
        ends = np.flatnonzero(np.frombuffer(whole, np.uint8) == 10) + 1
        text = whole.decode("utf-8", "surrogateescape")
        lines = text.split("\n")
        self._ended = whole.endswith(b"\n")
        if self._ended:
            lines.pop()
        else:
            ends = np.append(ends, len(whole))
        if self._offset == 0:
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        return text, lines, ends

    def _chunk(self, raw: bytes, parsed: Parsed, ends: NDArray[np.int64] | None) -> Chunk:
        if ends is None:
            ends = np.full(parsed.done, len(raw))
        firsts = np.asarray(parsed.firsts, np.int64)
        lasts = np.asarray(parsed.lasts, np.int64)
        chunk = Chunk(
            raw=raw,
            offset=self._offset,
            rows=parsed.rows,
            lines=firsts + self._line,
            lasts=lasts + self._line,
            ends=ends[lasts] + self._offset,
            broken=parsed.broken,
            open=bool(parsed.rows) and not raw.endswith(b"\n"),
        )
        self._offset += len(raw)
        self._line += parsed.done
        return chunk

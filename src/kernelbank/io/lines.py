"""Bytes to lines to rows, with the line and the byte at which each row ends; rows of JSON.

Bytes come in pieces of any size, and the rows do not depend on where pieces end. A row that is
longer than `MAX_ROW_BYTES` is rejected: so no file takes more memory than a few such rows.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_ROW_BYTES = 1 << 18
"""The most bytes of one row, without its last line end."""

BYTE_ORDER_MARK = "\ufeff"
TOO_LONG = f"is the beginning of a row longer than {MAX_ROW_BYTES} bytes"
INVALID_JSON = "is broken JSON"
NOT_AN_OBJECT = "is not a JSON object"

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TextChunk:
    """Complete rows of a text, and where each of them stands.

    `LineSplitter._parse` returns it without its place in the text, which `feed` adds.

    Parameters
    ----------
    rows : (n,) the rows, None for broken ones: lists of cells (CSV) or dictionaries (JSON).
    first_lines, last_lines : (n,) the first and the last line of each row, counted from 0 in the
        chunk.
    line_count : how many lines the chunk has.
    broken : by row, the text of a broken row, and why it is broken.
    raw : the bytes of the rows and of blank lines between them. All `raw` together are all bytes.
    offset, line : the byte and the line (from 1) of the text at which the chunk begins.
    line_ends : (line_count,) the bytes of the chunk up to the end of each line.
    """

    rows: list[Any]
    first_lines: Sequence[int]
    last_lines: Sequence[int]
    line_count: int
    broken: dict[int, tuple[str, str]] = field(default_factory=dict)
    raw: bytes = b""
    offset: int = 0
    line: int = 1
    line_ends: Integers | None = None

    def first_line(self, row: int) -> int:
        """The line of the text, from 1, at which a row begins."""
        return self.line + self.first_lines[row]

    def last_line(self, row: int) -> int:
        """The line of the text, from 1, at which a row ends."""
        return self.line + self.last_lines[row]

    def end(self, row: int) -> int:
        """How many bytes of the text there are up to the end of a row."""
        ends = self.line_ends
        return self.offset + (len(self.raw) if ends is None else int(ends[self.last_lines[row]]))

    def is_unended(self, row: int) -> bool:
        """Whether a row has no line end: a file that grows may continue it.

        After the last row there may be blank lines, of which the last has no end.
        """
        return self.last_lines[row] == self.line_count - 1 and not self.raw.endswith(b"\n")


_NO_ROWS = TextChunk([], (), (), 0)


class LineSplitter(ABC):
    """Makes rows of bytes that come in pieces, from byte `offset` and line `line` on."""

    max_row_bytes = MAX_ROW_BYTES

    def __init__(self, offset: int = 0, line: int = 1) -> None:
        self._offset = offset
        self._line = line
        self._rest = b""
        self._too_long: str | None = None
        """The beginning of a row that is too long and whose end has not come."""
        self._ended = True
        """Whether the last of the present lines has an end."""

    @property
    def has_rest(self) -> bool:
        """Whether bytes have come that are not part of a complete row."""
        return bool(self._rest) or self._too_long is not None

    def feed(self, data: bytes, last: bool) -> Iterator[TextChunk]:
        """The rows that are complete now. With `last`, nothing comes after `data`."""
        data = self._rest + data if self._rest else data
        self._rest = b""
        if self._too_long is not None:
            end = data.find(b"\n") + 1
            if not end:
                end = len(data)
                if not last:
                    yield self._placed(_NO_ROWS, data, None)
                    return
            broken = {0: (self._too_long, TOO_LONG)}
            self._too_long = None
            yield self._placed(TextChunk([None], (0,), (0,), 1, broken), data[:end], None)
            data = data[end:]
        cut = len(data) if last else data.rfind(b"\n") + 1
        complete, rest = data[:cut], data[cut:]
        too_long = len(rest) > self.max_row_bytes
        if complete:
            text, lines, ends = self._lines(complete)
            chunk = self._parse(text, lines, ends, None if last else len(rest))
            if chunk.line_count < len(lines):  # the last row is not complete: its bytes wait
                cut = int(ends[chunk.line_count - 1]) if chunk.line_count else 0
                rest, complete = complete[cut:] + rest, complete[:cut]
            if complete:
                yield self._placed(chunk, complete, ends)
        if too_long:
            text = rest.decode("utf-8", "surrogateescape")
            self._too_long = self._beginning(text.removeprefix(self._mark))
            yield self._placed(_NO_ROWS, rest, None)
        else:
            self._rest = rest

    @abstractmethod
    def _parse(
        self, text: str, lines: list[str], ends: Integers, following: int | None
    ) -> TextChunk:
        """The rows of lines.

        `following` counts the bytes of the line after them, whose end has not come. It is None if
        nothing comes after them: then a row that is not complete will not be completed.
        """

    def _line_lengths(self, ends: Integers) -> Integers:
        """The bytes of each line, without its end."""
        lengths = np.diff(ends, prepend=0) - 1
        lengths[-1] += not self._ended
        return lengths

    def _lines(self, data: bytes) -> tuple[str, list[str], Integers]:
        """The text, its lines without their ends, and the bytes up to the end of each.

        Bytes that are not UTF-8 become lone surrogates: they are rejected only where they are used.
        """
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1
        text = data.decode("utf-8", "surrogateescape")
        lines = text.split("\n")
        self._ended = data.endswith(b"\n")
        if self._ended:
            lines.pop()
        else:
            ends = np.append(ends, len(data))
        lines[0] = lines[0].removeprefix(self._mark)
        return text, lines, ends

    @property
    def _mark(self) -> str:
        """What may stand before the first line and does not belong to it."""
        return "" if self._offset else BYTE_ORDER_MARK

    def _beginning(self, line: str) -> str:
        """What is shown of a line that is too long: the same, whatever pieces it came in.

        The byte order mark, which is not shown, may be among the bytes that have come.
        """
        surely_come = self.max_row_bytes - len(BYTE_ORDER_MARK.encode())
        data = line.encode("utf-8", "surrogateescape")
        return data[: min(surely_come, 100)].decode("utf-8", "surrogateescape")

    def _placed(self, chunk: TextChunk, raw: bytes, ends: Integers | None) -> TextChunk:
        placed = replace(chunk, raw=raw, offset=self._offset, line=self._line, line_ends=ends)
        self._offset += len(raw)
        self._line += chunk.line_count
        return placed


class JsonSplitter(LineSplitter):
    """Bytes of JSON lines to rows."""

    def _parse(
        self, text: str, lines: list[str], ends: Integers, following: int | None
    ) -> TextChunk:
        del text, following  # a row never takes more than a line
        rows: list[dict[str, object] | None] = []
        row_lines: list[int] = []
        broken: dict[int, tuple[str, str]] = {}
        too_long = set(np.flatnonzero(self._line_lengths(ends) > self.max_row_bytes).tolist())
        for index, line in enumerate(lines):
            if not line or line.isspace():
                continue
            row = TOO_LONG if index in too_long else parse_object(line)
            row_lines.append(index)
            if isinstance(row, str):
                shown = self._beginning(line) if index in too_long else line.strip()
                broken[len(rows)] = (shown, row)
                rows.append(None)
            else:
                rows.append(row)
        return TextChunk(rows, row_lines, row_lines, len(lines), broken)


def parse_object(text: str) -> dict[str, object] | str:
    """The JSON object in a text, or why there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError too
        return INVALID_JSON
    return value if isinstance(value, dict) else NOT_AN_OBJECT


def first_object_keys(rows: Sequence[Mapping[str, object] | None]) -> tuple[str, ...] | None:
    """The keys of the first row that is an object."""
    return next((tuple(row) for row in rows if row is not None), None)

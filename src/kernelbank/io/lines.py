"""Bytes to lines to rows, with the line and the byte at which each row ends; rows of JSON.

Bytes come in pieces of any size, and the rows do not depend on where pieces end. A row that is
longer than `MAX_ROW_BYTES` is rejected: so no file takes more memory than a few such rows.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .source import RowBlock, RowData, empty_block

MAX_ROW_BYTES = 1 << 18
"""The most bytes of one row, without its last line end."""

BYTE_ORDER_MARK = "\ufeff"
TOO_LONG = f"is the beginning of a row longer than {MAX_ROW_BYTES} bytes"


@dataclass(frozen=True)
class TextChunk:
    """Some complete rows of a text, and where each of them stands.

    `LineSplitter._parse` returns it without its place in the text, which `feed` adds.

    Parameters
    ----------
    rows : (n,) the rows, None for broken ones.
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
    line_ends: NDArray[np.int64] | None = None

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
            if chunk.line_count < len(lines):  # the last row is not complete: keep its bytes
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

    @property
    def has_rest(self) -> bool:
        """Whether bytes have come that are not part of a complete row."""
        return bool(self._rest) or self._too_long is not None

    @abstractmethod
    def _parse(
        self, text: str, lines: list[str], ends: NDArray[np.int64], following: int | None
    ) -> TextChunk:
        """The rows of some lines.

        `following` counts the bytes of the line after them, whose end has not come. It is None if
        nothing comes after them: then a row that is begun in them will not be completed.
        """

    def _line_lengths(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bytes of each line, without its end."""
        lengths = np.diff(ends, prepend=0) - 1
        lengths[-1] += not self._ended
        return lengths

    def _lines(self, data: bytes) -> tuple[str, list[str], NDArray[np.int64]]:
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
        known = self.max_row_bytes - len(BYTE_ORDER_MARK.encode())
        data = line.encode("utf-8", "surrogateescape")
        return data[: min(known, 100)].decode("utf-8", "surrogateescape")

    def _placed(self, chunk: TextChunk, raw: bytes, ends: NDArray[np.int64] | None) -> TextChunk:
        placed = replace(chunk, raw=raw, offset=self._offset, line=self._line, line_ends=ends)
        self._offset += len(raw)
        self._line += chunk.line_count
        return placed


HashUpTo = Callable[[int], str]
"""The hash of all bytes of a text up to a byte."""

_PIECES_PER_SIGN = 64
"""So many pieces are skipped between two empty blocks, at which a reader can stop."""


class PrefixHash:
    """The SHA-256 of a text from its first byte on."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def copy(self) -> PrefixHash:
        """The same hash, to be continued by itself."""
        copied = PrefixHash()
        copied._hash = self._hash.copy()
        return copied

    @property
    def hexdigest(self) -> str:
        """The hash of the bytes so far."""
        return self._hash.hexdigest()

    def skip(
        self, pieces: Iterator[bytes], count: int, rows: int
    ) -> Generator[RowBlock, None, bytes | None]:
        """Take in the first `count` bytes; yields empty blocks now and then.

        Returns the bytes that came with the last of them, or None if there are fewer than `count`.
        """
        number = 0
        data = b""
        while count > len(data):
            self._hash.update(data)
            count -= len(data)
            piece = next(pieces, None)
            if piece is None:
                return None
            data = piece
            number += 1
            if not data or number % _PIECES_PER_SIGN == 0:
                yield empty_block(rows)
        self._hash.update(data[:count])
        return data[count:]

    def extend(self, chunk: TextChunk) -> HashUpTo:
        """Take in a chunk; returns the hash up to any byte of it."""
        before, raw, offset = self._hash.copy(), chunk.raw, chunk.offset
        self._hash.update(raw)
        reached, done = before.copy(), 0

        def hash_up_to(end: int) -> str:
            nonlocal reached, done
            if end - offset < done:
                reached, done = before.copy(), 0
            reached.update(raw[done : end - offset])  # positions are mostly asked for in order
            done = end - offset
            return reached.hexdigest()

        return hash_up_to


INVALID_JSON = "is broken JSON"
NOT_AN_OBJECT = "is not a JSON object"


def parse_object(text: str) -> dict[str, Any] | str:
    """The JSON object in a text, or why there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError too
        return INVALID_JSON
    return value if isinstance(value, dict) else NOT_AN_OBJECT


class JsonSplitter(LineSplitter):
    """Bytes of JSON lines to rows."""

    def _parse(
        self, text: str, lines: list[str], ends: NDArray[np.int64], following: int | None
    ) -> TextChunk:
        del text, following  # a row never takes more than a line
        rows: list[dict[str, Any] | None] = []
        row_lines: list[int] = []
        broken: dict[int, tuple[str, str]] = {}
        long = set(np.flatnonzero(self._line_lengths(ends) > self.max_row_bytes).tolist())
        for index, line in enumerate(lines):
            if not line or line.isspace():
                continue
            value = TOO_LONG if index in long else parse_object(line)
            row_lines.append(index)
            if isinstance(value, str):
                shown = self._beginning(line) if index in long else line.strip()
                broken[len(rows)] = (shown, value)
                rows.append(None)
            else:
                rows.append(value)
        return TextChunk(rows, row_lines, row_lines, len(lines), broken)


class JsonRows(RowData):
    """Rows that are dictionaries. A key that a row lacks is a missing value."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any] | None], broken: dict[int, tuple[Any, str]]
    ) -> None:
        self.rows = rows
        self.broken = broken
        self._valid = [row for row in rows if row is not None]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Sequence[Any]:
        return [row.get(name) for row in self._valid]

    def first_keys(self) -> tuple[str, ...] | None:
        return next((tuple(row) for row in self._valid if row), None)


def first_object_keys(rows: Sequence[Mapping[str, Any] | None]) -> tuple[str, ...] | None:
    """The keys of the first row that is an object."""
    return next((tuple(row) for row in rows if row is not None), None)

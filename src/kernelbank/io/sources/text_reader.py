"""What CSV and JSON lines share, in files and on standard input: a header, then rows by line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...errors import FileRefused
from ..dialect import CsvDialect
from .base import foreign_position, position_count
from .csv import CsvRows, CsvSplitter, header_names
from .jsonl import JsonRows, JsonSplitter, first_object_keys
from .lines import LineSplitter, TextChunk
from .row_block import Position, RowBlock, RowData, RowLocations

HashUpTo = Callable[[int], str]
"""The hash of all bytes of a text up to a byte."""


@dataclass(frozen=True)
class TextPosition:
    """Where rows begin: the rows, bytes and lines before, a header included.

    `unfinished`: the row before had no line end, so the next byte must be one.
    """

    rows: int = 0
    bytes: int = 0
    lines: int = 0
    unfinished: bool = False

    @classmethod
    def parse(cls, position: Position, name: str) -> TextPosition:
        """The position from its JSON data, checked."""
        rows, size, lines = (
            position_count(position, key, name) for key in ("rows", "bytes", "lines")
        )
        unfinished = position.get("open", False)
        if not isinstance(unfinished, bool):
            raise foreign_position(position, name)
        return cls(rows, size, lines, unfinished)


class TextFormat:
    """CSV or JSON lines: which splitter, and what its rows are."""

    def __init__(self, kind: str, dialect: CsvDialect = CsvDialect()) -> None:  # noqa: B008  (frozen)
        self.kind = kind
        self.dialect = dialect

    def splitter(self, start: TextPosition) -> LineSplitter:
        """A splitter that begins at `start`."""
        line = start.lines if start.unfinished else start.lines + 1
        if self.kind == "csv":
            return CsvSplitter(self.dialect.delimiter, start.bytes, line)
        return JsonSplitter(start.bytes, line)

    def row_data(self, chunk: TextChunk, begin: int, end: int, columns: tuple[str, ...]) -> RowData:
        """Rows `begin` to `end` of a chunk."""
        rows = chunk.rows[begin:end]
        broken = {row - begin: why for row, why in chunk.broken.items() if begin <= row < end}
        if self.kind == "csv":
            return CsvRows(rows, columns, broken, self.dialect)
        return JsonRows(rows, broken)


class HeaderReader:
    """Reads the beginning of a text until the columns are known.

    In CSV the header names them, and rows begin after it; in JSON lines the first object does, and
    is a row itself.
    """

    def __init__(self, form: TextFormat, name: str) -> None:
        self._form = form
        self._name = name
        self._splitter = form.splitter(TextPosition())
        self.columns: tuple[str, ...] | None = None
        self.start = TextPosition()
        """Where rows begin."""

    def feed(self, data: bytes, last: bool) -> bool:
        """Whether the columns are known now, or never will be."""
        for chunk in self._splitter.feed(data, last):
            if not chunk.rows:
                continue
            if self._form.kind == "csv":
                self._read_header(chunk)
            else:
                self.columns = first_object_keys(chunk.rows)
            if self.columns is not None:
                return True
        if last and self._form.kind == "csv":
            raise FileRefused(
                f"{self._name}: there is no header. The first line must name the columns."
            )
        return last

    def _read_header(self, chunk: TextChunk) -> None:
        line = chunk.first_line(0)
        header = chunk.rows[0]
        if header is None:
            value, reason = chunk.broken[0]
            raise FileRefused(
                f"{self._name}, line {line}: the header {value[:60]!r} {reason}. "
                "Repair the first line: it must name the columns."
            )
        self.columns = header_names(header, self._name, line)
        self.start = TextPosition(0, chunk.end(0), chunk.last_line(0), chunk.is_unfinished(0))


class LineLocations(RowLocations):
    """The lines of rows `begin` and on of a chunk."""

    def __init__(
        self, name: str, chunk: TextChunk, begin: int, first: int, hash_up_to: HashUpTo | None
    ) -> None:
        self.first = first
        self._name = name
        self._chunk = chunk
        self._begin = begin
        self._hash_up_to = hash_up_to

    def where(self, row: int) -> str:
        return f"{self._name}, line {self._chunk.first_line(self._begin + row)}"

    def position(self, row: int) -> Position:
        chunk, index = self._chunk, self._begin + row
        end = chunk.end(index)
        position: Position = {
            "rows": self.first + row + 1,
            "bytes": end,
            "lines": chunk.last_line(index),
        }
        if chunk.is_unfinished(index):
            position["open"] = True
        if self._hash_up_to is not None:
            position["sha256"] = self._hash_up_to(end)
        return position


class TextReader:
    """Bytes of a text to blocks of at most `size` rows, from `start` on.

    With `prefix_hash`, positions hold the hash of all bytes up to them.
    """

    def __init__(
        self,
        form: TextFormat,
        name: str,
        columns: tuple[str, ...] | None,
        start: TextPosition,
        size: int,
        prefix_hash: PrefixHash | None = None,
    ) -> None:
        self._form = form
        self._name = name
        self._size = size
        self._splitter = form.splitter(start)
        self._must_end_line = start.unfinished
        self._held = b""
        self._prefix_hash = prefix_hash
        self.columns = columns
        self.rows = start.rows
        """How many rows have come, with those before `start`."""

    def feed(self, data: bytes, last: bool) -> Iterator[RowBlock]:
        """The blocks that are complete now."""
        if self._must_end_line:
            data = self._held = self._held + data
            if data in (b"", b"\r") and not last:
                return
            self._must_end_line = False
            self._check_line_end(data)
        for chunk in self._splitter.feed(data, last):
            hashes = None if self._prefix_hash is None else self._prefix_hash.extend(chunk)
            if self.columns is None:
                self.columns = first_object_keys(chunk.rows)
            for begin in range(0, len(chunk.rows), self._size):
                end = min(begin + self._size, len(chunk.rows))
                rows = self._form.row_data(chunk, begin, end, self.columns or ())
                yield RowBlock(rows, LineLocations(self._name, chunk, begin, self.rows, hashes))
                self.rows += end - begin

    def _check_line_end(self, data: bytes) -> None:
        """The row before had no line end when it was read: it must not be longer now."""
        if data.removeprefix(b"\r")[:1] not in (b"", b"\n"):
            raise FileRefused(
                f"{self._name}: the last row that was read had no line end then, and is longer "
                "now. Start a new run, and write complete lines."
            )


class PrefixHash:
    """The SHA-256 of a text from its first byte on."""

    def __init__(self, begun: hashlib._Hash) -> None:
        self._hash = begun

    def extend(self, chunk: TextChunk) -> HashUpTo:
        """Take in a chunk; returns the hash up to any byte of it."""
        before, raw, offset = self._hash.copy(), chunk.raw, chunk.offset
        self._hash.update(raw)

        def hash_up_to(end: int) -> str:
            reached = before.copy()
            reached.update(raw[: end - offset])
            return reached.hexdigest()

        return hash_up_to

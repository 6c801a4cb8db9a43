"""What CSV and JSON lines share, in files and on standard input: a header, then rows by line."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import FileRefused
from ..dialect import CsvDialect
from .base import foreign_position, position_count
from .csv import CsvRows, CsvSplitter, header_names
from .jsonl import JsonRows, JsonSplitter, first_object_keys
from .lines import LineSplitter, TextChunk
from .prefix_hash import HashUpTo, PrefixHash
from .row_block import Position, RowBlock, RowData, RowLocations


@dataclass(frozen=True)
class TextPosition:
    """Where rows begin: the rows, bytes and lines before, a header included.

    `unended`: the row before had no line end, so the next byte must be one. `sha256`: the hash
    of the bytes before; None if they are not to be compared.
    """

    rows: int = 0
    bytes: int = 0
    lines: int = 0
    unended: bool = False
    sha256: str | None = None

    @classmethod
    def parse(cls, position: Position, name: str) -> TextPosition:
        """The position from its JSON data, checked."""
        rows, size, lines = (
            position_count(position, key, name) for key in ("rows", "bytes", "lines")
        )
        unended, sha256 = position.get("open", False), position.get("sha256")
        if not isinstance(unended, bool) or not isinstance(sha256, str):
            raise foreign_position(position, name)
        return cls(rows, size, lines, unended, sha256)


def skip_read(
    start: TextPosition, pieces: Iterator[bytes], name: str, remedy: str
) -> Generator[RowBlock, None, tuple[PrefixHash, bytes]]:
    """Skip the bytes of a text before a position; refuse them if they have changed.

    Yields empty blocks now and then. Returns the hash of these bytes, and the bytes that came with
    the last of them.
    """
    prefix_hash = PrefixHash()
    rest = yield from prefix_hash.skip(pieces, start.bytes, start.rows)
    if rest is None:
        raise FileRefused(
            f"{name}: there are fewer than the {start.bytes} bytes of the first {start.rows} rows, "
            f"which had been read before. {remedy}"
        )
    if start.sha256 not in (None, prefix_hash.hexdigest):
        raise FileRefused(
            f"{name}: the first {start.rows} rows are not those that were read before. {remedy}"
        )
    return prefix_hash, rest


def check_line_end(data: bytes, name: str) -> None:
    """Refuse bytes that continue a row that had no line end when it was read."""
    if data.removeprefix(b"\r")[:1] not in (b"", b"\n"):
        raise FileRefused(
            f"{name}: the last row that was read had no line end then, and is longer now. It was "
            "read as it was because of --complete. Restore it, or start a new run; give --complete "
            "only when nothing more is written."
        )


class TextFormat:
    """CSV or JSON lines: which splitter, and what its rows are."""

    def __init__(self, kind: str, dialect: CsvDialect = CsvDialect()) -> None:  # noqa: B008  (frozen)
        self.kind = kind
        self.dialect = dialect

    def splitter(self, start: TextPosition) -> LineSplitter:
        """A splitter that begins at `start`."""
        line = start.lines if start.unended else start.lines + 1
        if self.kind == "csv":
            return CsvSplitter(self.dialect.delimiter, start.bytes, line)
        return JsonSplitter(start.bytes, line)

    def row_data(self, chunk: TextChunk, begin: int, end: int, columns: tuple[str, ...]) -> RowData:
        """Rows `begin` to `end` of a chunk."""
        rows = chunk.rows[begin:end]
        found = chunk.broken  # which may be long: it is not searched for every block
        broken = {row - begin: found[row] for row in range(begin, end) if row in found}
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

    def feed(self, data: bytes) -> bool:
        """Whether the columns are known now."""
        return self._take(self._splitter.feed(data, last=False))

    def finish(self, complete: bool) -> None:
        """Nothing comes any more. If the text is not complete, its header must have an end."""
        is_csv = self._form.kind == "csv"
        if is_csv and not complete and self._splitter.has_rest:
            raise FileRefused(
                f"{self._name}: the header has no end yet: a line end or a closing quote may still "
                "come. Start when it is written; if the text is complete, say so with --complete."
            )
        if not self._take(self._splitter.feed(b"", last=True)) and is_csv:
            raise FileRefused(
                f"{self._name}: there is no header. The first line must name the columns."
            )

    def _take(self, chunks: Iterator[TextChunk]) -> bool:
        for chunk in chunks:
            if not chunk.rows:
                continue
            if self._form.kind == "csv":
                self._read_header(chunk)
            else:
                self.columns = first_object_keys(chunk.rows)
            if self.columns is not None:
                return True
        return False

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
        self.start = TextPosition(0, chunk.end(0), chunk.last_line(0), chunk.is_unended(0))


class LineLocations(RowLocations):
    """The lines of rows `begin` and on of a chunk; `more` is added to every position."""

    def __init__(
        self,
        name: str,
        chunk: TextChunk,
        begin: int,
        first: int,
        hash_up_to: HashUpTo,
        more: Mapping[str, Any],
    ) -> None:
        self.first = first
        self._name = name
        self._chunk = chunk
        self._begin = begin
        self._hash_up_to = hash_up_to
        self._more = more

    def where(self, row: int) -> str:
        return f"{self._name}, line {self._chunk.first_line(self._begin + row)}"

    def is_unended(self, row: int) -> bool:
        return self._chunk.is_unended(self._begin + row)

    def position(self, row: int) -> Position:
        chunk, index = self._chunk, self._begin + row
        end = chunk.end(index)
        position: Position = {
            "rows": self.first + row + 1,
            "bytes": end,
            "lines": chunk.last_line(index),
            "sha256": self._hash_up_to(end),
            **self._more,
        }
        if chunk.is_unended(index):
            position["open"] = True
        return position


class TextReader:
    """Bytes of a text to blocks of at most `size` rows, from `start` on.

    Parameters
    ----------
    form : CSV or JSON lines.
    name : what the text is called in messages.
    columns : the names of the columns; None until the first object of JSON lines has come.
    start : where rows begin.
    size : the most rows of a block.
    prefix_hash : the hash of the bytes before `start`.
    more : JSON data for every position.
    """

    def __init__(
        self,
        form: TextFormat,
        name: str,
        columns: tuple[str, ...] | None,
        start: TextPosition,
        size: int,
        prefix_hash: PrefixHash,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self._form = form
        self._name = name
        self._size = size
        self._splitter = form.splitter(start)
        self._must_end_line = start.unended
        self._held = b""
        self._prefix_hash = prefix_hash
        self._more = {} if more is None else more
        self.columns = columns
        self.rows = start.rows
        """How many rows have come, with those before `start`."""

    @property
    def has_rest(self) -> bool:
        """Whether bytes have come that are not part of a complete row."""
        return bool(self._held) or self._splitter.has_rest

    def feed(self, data: bytes) -> Iterator[RowBlock]:
        """The blocks that are complete now."""
        if self._must_end_line:
            data = self._held = self._held + data
            if data in (b"", b"\r"):
                return
            self._must_end_line, self._held = False, b""
            check_line_end(data, self._name)
        yield from self._blocks(data, last=False, provisional=False)

    def finish(self, provisional: bool = False) -> Iterator[RowBlock]:
        """What is left when nothing comes any more: rows of which the last has no end.

        `provisional` marks them: the text may go on one day.
        """
        yield from self._blocks(self._held, last=True, provisional=provisional)

    def _blocks(self, data: bytes, last: bool, provisional: bool) -> Iterator[RowBlock]:
        for chunk in self._splitter.feed(data, last):
            hashes = self._prefix_hash.extend(chunk)
            if self.columns is None:
                self.columns = first_object_keys(chunk.rows)
            for begin in range(0, len(chunk.rows), self._size):
                end = min(begin + self._size, len(chunk.rows))
                rows = self._form.row_data(chunk, begin, end, self.columns or ())
                places = LineLocations(self._name, chunk, begin, self.rows, hashes, self._more)
                yield RowBlock(rows, places, provisional)
                self.rows += end - begin

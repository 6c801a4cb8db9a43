"""What CSV and JSON lines share, in files and on standard input: a start, then rows by line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...errors import FileRefused
from .base import foreign, whole
from .csv import CsvRows, CsvSplitter, names_of
from .jsonl import JsonRows, JsonSplitter, first_keys
from .lines import Chunk, Splitter
from .rows import Position, RowBlock, RowData, RowLocations

Seal = Callable[[int], str]
"""The hash of all bytes up to one."""


@dataclass(frozen=True)
class Start:
    """Where rows begin: how many came before, and the bytes and lines that they and a header take.

    `open`: the row before had no line end, so the next byte must be one.
    """

    rows: int = 0
    bytes: int = 0
    lines: int = 0
    open: bool = False

    @classmethod
    def of(cls, position: Position, name: str) -> Start:
        """The start that a position tells."""
        rows, size, lines = (whole(position, key, name) for key in ("rows", "bytes", "lines"))
        is_open = position.get("open", False)
        if not isinstance(is_open, bool):
            raise foreign(position, name)
        return cls(rows, size, lines, is_open)


class Format:
    """CSV or JSON lines: which splitter, what a row is, what comes before the rows."""

    def __init__(self, kind: str, delimiter: str = ",") -> None:
        self.kind = kind
        self.delimiter = delimiter

    def splitter(self, start: Start) -> Splitter:
        """A splitter that goes on at `start`."""
        line = start.lines if start.open else start.lines + 1
        if self.kind == "csv":
            return CsvSplitter(self.delimiter, start.bytes, line)
        return JsonSplitter(start.bytes, line)

    def content(self, chunk: Chunk, begin: int, end: int, columns: tuple[str, ...]) -> RowData:
        """Rows `begin` to `end` of a chunk."""
        rows = chunk.rows[begin:end]
        broken = {
            index - begin: said for index, said in chunk.broken.items() if begin <= index < end
        }
        if self.kind == "csv":
            return CsvRows(rows, columns, broken, self.delimiter)
        return JsonRows(rows, broken)


class HeaderReader:
    """Reads the beginning of a text until the columns are known.

    For CSV that is the header, after which rows begin; for JSON lines it is the first object,
    with which they have begun. Bytes are kept until then, and no longer.
    """

    def __init__(self, form: Format, name: str) -> None:
        self._form = form
        self._name = name
        self._splitter = form.splitter(Start())
        self.columns: tuple[str, ...] | None = None
        self.start = Start()

    def feed(self, data: bytes, last: bool) -> bool:
        """Whether the columns are known now, or never will be."""
        for chunk in self._splitter.feed(data, last):
            if not chunk.rows:
                continue
            if self._form.kind == "csv":
                self._take_header(chunk)
            else:
                self.columns = first_keys(chunk.rows)
            if self.columns is not None:
                return True
        if last and self._form.kind == "csv":
            raise FileRefused(
                f"{self._name}: there is no header. The first line must name the columns."
            )
        return last

    def _take_header(self, chunk: Chunk) -> None:
        line = int(chunk.lines[0])
        header = chunk.rows[0]
        if header is None:
            value, reason = chunk.broken[0]
            raise FileRefused(
                f"{self._name}, line {line}: the header {value[:60]!r} {reason}. "
                "Repair the first line: it must name the columns."
            )
        self.columns = names_of(header, self._name, line)
        is_open = chunk.open and len(chunk.rows) == 1
        self.start = Start(0, int(chunk.ends[0]), int(chunk.lasts[0]), is_open)


class LineLocations(RowLocations):
    """Rows `begin` and on of a chunk."""

    def __init__(
        self, name: str, chunk: Chunk, begin: int, first: int, seal: Seal | None = None
    ) -> None:
        self.first = first
        self._name = name
        self._chunk = chunk
        self._begin = begin
        self._seal = seal

    def where(self, row: int) -> str:
        return f"{self._name}, line {self._chunk.lines[self._begin + row]}"

    def position(self, row: int) -> Position:
        chunk, index = self._chunk, self._begin + row
        end = int(chunk.ends[index])
        position: Position = {
            "rows": self.first + row + 1,
            "bytes": end,
            "lines": int(chunk.lasts[index]),
        }
        if chunk.open and index == len(chunk.rows) - 1:
            position["open"] = True
        if self._seal is not None:
            position["sha256"] = self._seal(end)
        return position


class Rows:
    """Bytes of a text to blocks, from `start` on."""

    def __init__(
        self, form: Format, name: str, columns: tuple[str, ...] | None, start: Start, size: int
    ) -> None:
        self._form = form
        self._name = name
        self._size = size
        self._splitter = form.splitter(start)
        self._must_end = start.open
        self._held = b""
        self._digest: Digest | None = None
        self.columns = columns
        self.count = start.rows

    def sealed(self, digest: Digest) -> Rows:
        """The same, with positions that hold the hash of all bytes up to them."""
        self._digest = digest
        return self

    def feed(self, data: bytes, last: bool) -> Iterator[RowBlock]:
        """The blocks that are whole now."""
        if self._must_end:
            data = self._held = self._held + data
            if data in (b"", b"\r") and not last:
                return
            self._must_end = False
            self._refuse_growth(data)
        for chunk in self._splitter.feed(data, last):
            seal = None if self._digest is None else self._digest.before(chunk)
            if self.columns is None:
                self.columns = first_keys(chunk.rows)
            for begin in range(0, len(chunk.rows), self._size):
                end = min(begin + self._size, len(chunk.rows))
                content = self._form.content(chunk, begin, end, self.columns or ())
                yield RowBlock(content, LineLocations(self._name, chunk, begin, self.count, seal))
                self.count += end - begin

    def _refuse_growth(self, data: bytes) -> None:
        """The row before had no line end when it was taken: it must not have gone on since."""
        if data.removeprefix(b"\r")[:1] not in (b"", b"\n"):
            raise FileRefused(
                f"{self._name}: the last row that was read had no line end then, and has become "
                "longer since. Begin a new run, and write whole lines."
            )


class Digest:
    """The SHA-256 of a text from its first byte on."""

    def __init__(self, begun: hashlib._Hash) -> None:
        self._hash = begun

    def before(self, chunk: Chunk) -> Seal:
        """The hash up to any byte of a chunk; all of the chunk is taken in."""
        begun, raw, offset = self._hash.copy(), chunk.raw, chunk.offset
        self._hash.update(raw)

        def seal(end: int) -> str:
            reached = begun.copy()
            reached.update(raw[: end - offset])
            return reached.hexdigest()

        return seal

"""CSV and JSON lines: in files, plain or compressed by gzip, and on standard input.

A position in a text holds the hash of all bytes before it. A row that was read and then rewritten
would leave a model that no run over the source can give. So when a text is read again from a
position on, the bytes before it are hashed and compared.

Nothing can be read twice from standard input. To resume, the same rows must be sent again from the
start; those that are done are skipped.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import select
import sys
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

from ..errors import FileRefused
from ..utils import validation as check
from .files import open_file
from .lines import (
    CsvDialect,
    CsvRows,
    LineSplitter,
    TextChunk,
    column_names,
    first_object_keys,
    header_names,
)
from .source import (
    DEFAULT_BLOCK_ROWS,
    POLL_SECONDS,
    DictRows,
    Position,
    RowBlock,
    RowData,
    Source,
    empty_block,
    foreign_position,
    position_count,
)

Result = TypeVar("Result")

CHUNK_BYTES = 1 << 18  # of a file, read at once
READ_BYTES = 1 << 16  # of standard input, at most
SETTLE_SECONDS = 2.0
"""A last line without its end is taken as it is when the file has not changed for this long."""

CHANGED = (
    "They must stay as they were, or the results could not be repeated; later rows may be changed. "
    "Restore them, or start a new run."
)
SEND_AGAIN = "Send the same rows from the start, or start a new run."
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\xef\xbb\xbf"
_PIECES_PER_SIGN = 64  # are skipped between two empty blocks, at which a reader can stop


# --- positions and the bytes before them ----------------------------------------------------------


@dataclass(frozen=True)
class TextPosition:
    """Where rows begin: the rows, bytes and lines before, a header included.

    `unended`: the row before had no line end, so the next byte must be one. `sha256`: the hash of
    the first `hashed` bytes. These are the bytes before, or until a row is done those up to the end
    of the first block: a header alone does not identify a text.
    """

    rows: int = 0
    bytes: int = 0
    lines: int = 0
    unended: bool = False
    hashed: int = 0
    sha256: str = ""

    @property
    def data(self) -> Position:
        """The position as JSON data, but for the rows."""
        unended = {"open": True} if self.unended else {}
        hashed = {} if self.hashed == self.bytes else {"hashed": self.hashed}
        return {
            "bytes": self.bytes,
            "lines": self.lines,
            "sha256": self.sha256,
            **unended,
            **hashed,
        }

    @classmethod
    def parse(cls, position: Position, name: str) -> TextPosition:
        """The position from its JSON data, checked."""
        rows, size, lines = (
            position_count(position, key, name) for key in ("rows", "bytes", "lines")
        )
        hashed = position_count({"hashed": size, **position}, "hashed", name)
        unended, sha256 = position.get("open", False), position.get("sha256")
        if not isinstance(unended, bool) or not isinstance(sha256, str) or hashed < size:
            raise foreign_position(position, name)
        return cls(rows, size, lines, unended, hashed, sha256)


def skip_read(
    start: TextPosition, pieces: Iterator[bytes], name: str, remedy: str
) -> Generator[RowBlock, None, tuple[hashlib._Hash, bytes]]:
    """Skip the bytes of a text before a position; refuse hashed ones that have changed.

    Yields empty blocks now and then. Returns the hash of these bytes, and the bytes that came with
    the last of them.
    """
    compared = f"first {start.rows} rows" if start.hashed == start.bytes else "first rows"
    prefix_hash, left, rest, number = hashlib.sha256(), start.bytes, b"", 0
    while left > 0 or len(rest) < start.hashed - start.bytes:
        piece = next(pieces, None)
        if piece is None:
            raise FileRefused(
                f"{name}: there are fewer than the {start.hashed} bytes of the {compared}, which "
                f"had been read before. {remedy}"
            )
        number += 1
        if not piece or number % _PIECES_PER_SIGN == 0:
            yield empty_block(start.rows)
        prefix_hash.update(piece[:left])
        rest += piece[left:]
        left = max(left - len(piece), 0)
    whole = prefix_hash.copy()
    whole.update(rest[: start.hashed - start.bytes])
    if whole.hexdigest() != start.sha256:
        raise FileRefused(f"{name}: the {compared} are not those that were read before. {remedy}")
    return prefix_hash, rest


def result_of(generator: Generator[RowBlock, None, Result]) -> Result:
    """What a generator returns, without its blocks."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def check_line_end(data: bytes, name: str) -> None:
    """Refuse bytes that continue a row that had no line end when it was read."""
    if data.removeprefix(b"\r")[:1] not in (b"", b"\n"):
        raise FileRefused(
            f"{name}: the last row that was read had no line end then, and is longer now. It was "
            "read as it was because of --complete. Restore it, or start a new run; give --complete "
            "only when nothing more is written."
        )


# --- bytes to blocks ------------------------------------------------------------------------------


def _hashes_in(chunk: TextChunk, prefix_hash: hashlib._Hash) -> Callable[[int], str]:
    """A function: the hash of all bytes up to a byte of a chunk, from the hash of those before it.

    Positions are mostly asked for in order, so the hash of the last one is continued.
    """
    reached, done = prefix_hash.copy(), 0

    def hash_up_to(end: int) -> str:
        nonlocal reached, done
        if end - chunk.offset < done:
            reached, done = prefix_hash.copy(), 0
        reached.update(chunk.raw[done : end - chunk.offset])
        done = end - chunk.offset
        return reached.hexdigest()

    return hash_up_to


def _position_after(chunk: TextChunk, row: int, hash_up_to: Callable[[int], str]) -> TextPosition:
    """The position after a row of a chunk, but for the rows before it."""
    end, unended = chunk.end(row), chunk.is_unended(row)
    return TextPosition(0, end, chunk.line_of(row), unended, end, hash_up_to(end))


class TextReader:
    """Bytes of a text to blocks of at most `size` rows, after the position `start` if there is one.

    In CSV the first row names the columns, unless others are known: then it is a row like any other
    of a file that goes on after another. In JSON lines the first object does. `rows` came before
    the text, `more` is JSON data for every position.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        dialect: CsvDialect | None,
        start: TextPosition | None,
        size: int = DEFAULT_BLOCK_ROWS,
        rows: int = 0,
        more: Mapping[str, object] | None = None,
    ) -> None:
        self._source = source
        self._name = name
        self._size = size
        self._dialect = dialect
        self._start = start
        self._awaits_header = start is None and dialect is not None
        start = start or TextPosition(rows)
        self._splitter = LineSplitter(dialect, start.bytes, start.lines + (not start.unended))
        self._must_end_line = start.unended
        """Whether the next bytes must be the line end of a row that had none."""
        self._prefix_hash = hashlib.sha256()
        self._more = more or {}
        self._rows = start.rows
        self._needs_hash = False
        """Whether the start of the source is known, and its first block has not come."""

    @property
    def has_rest(self) -> bool:
        """Whether bytes have come that are not part of a complete row."""
        return self._splitter.has_rest

    def read(self, pieces: Iterator[bytes], remedy: str) -> Iterator[RowBlock]:
        """The blocks in the pieces of a whole text; what is before `start` is only compared."""
        start, rest = self._start, b""
        if start is not None:
            if self._dialect is not None and self._source.columns is None:
                pieces = self._named_by(pieces)
            self._prefix_hash, rest = yield from skip_read(start, pieces, self._name, remedy)
        if not self._awaits_header and (start is None or start.hashed == start.bytes):
            self._set_start(replace(start or TextPosition(), sha256=self._prefix_hash.hexdigest()))
        for piece in chain([rest] if rest else [], pieces):
            yield from self.feed(piece)

    def finish(self, complete: bool) -> Iterator[RowBlock]:
        """The blocks that are left at the end; `complete` says whether the text cannot grow."""
        if self._awaits_header and self._splitter.has_rest and not complete:
            raise FileRefused(
                f"{self._name}: the header has no line end yet, which may still come. Start when "
                "it is written; if the text is complete, say so with --complete."
            )
        yield from self.feed(b"", last=True, provisional=not complete)
        if self._awaits_header:
            raise FileRefused(
                f"{self._name}: there is no header. The first line must name the columns."
            )

    def _named_by(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces of a whole text, of which the first ones name the columns."""
        header = TextReader(self._source, self._name, self._dialect, None)
        for piece in pieces:
            if self._source.columns is None:
                list(header.feed(piece))
            yield piece

    def _set_start(self, start: TextPosition) -> None:
        """Tell the source where its first row begins, if none has come."""
        if not self._rows:
            self._needs_hash = True
            self._source.start = {"rows": 0, **start.data, **self._more}

    def feed(
        self, data: bytes, last: bool = False, provisional: bool = False
    ) -> Iterator[RowBlock]:
        """The blocks that are complete now; an empty block if nothing has come.

        With `last`, nothing comes after `data`: also a row without end is complete. `provisional`
        marks such rows: the text may go on one day.
        """
        if not data and not last:
            yield empty_block(self._rows)
            return
        if self._must_end_line:
            check_line_end(data, self._name)
            self._must_end_line = data in (b"", b"\r")
        source = self._source
        for chunk in self._splitter.feed(data, last):
            hash_up_to = _hashes_in(chunk, self._prefix_hash.copy())
            self._prefix_hash.update(chunk.raw)
            if source.columns is None and self._dialect is None:
                source.columns = first_object_keys(chunk.rows)
            is_first = self._awaits_header and len(chunk.rows) > 0
            first = self._skip_header(chunk, hash_up_to) if is_first else 0
            for begin in range(first, len(chunk.rows), self._size):
                block = self._block(chunk, begin, hash_up_to, provisional)
                if self._needs_hash and not provisional:  # else its last row may still change
                    reached = block.position(len(block) - 1)
                    hashed = {"hashed": reached["bytes"], "sha256": reached["sha256"]}
                    source.start = {**(source.start or {}), **hashed}
                self._needs_hash = False
                yield block
                self._rows += len(block)

    def _skip_header(self, chunk: TextChunk, hash_up_to: Callable[[int], str]) -> int:
        """How many rows the header has: 1, or 0 if other columns are known."""
        header, line = chunk.rows[0], chunk.line_of(0)
        if self._source.columns is None and isinstance(header, tuple):
            raise FileRefused(
                f"{self._name}, line {line}: the header {header[0][:60]!r} {header[1]}. "
                "Repair the first line: it must name the columns."
            )
        if self._source.columns is None:
            self._source.columns = header_names(header, self._name, line)
        self._awaits_header = False
        if isinstance(header, tuple) or column_names(header) != self._source.columns:
            self._set_start(TextPosition(sha256=hashlib.sha256().hexdigest()))
            return 0
        self._set_start(_position_after(chunk, 0, hash_up_to))
        return 1

    def _block(
        self, chunk: TextChunk, begin: int, hash_up_to: Callable[[int], str], provisional: bool
    ) -> RowBlock:
        """The next rows, which are rows `begin` and on of a chunk."""
        rows = chunk.rows[begin : begin + self._size]
        values: RowData = DictRows(rows)
        if self._dialect is not None:
            values = CsvRows(rows, self._source.columns or (), self._dialect)

        def place(row: int) -> str:
            return f"line {chunk.line_of(begin + row)}"

        def reached(row: int) -> Position:
            return {**_position_after(chunk, begin + row, hash_up_to).data, **self._more}

        return RowBlock(values, self._name, self._rows, provisional, place, reached)


# --- files ----------------------------------------------------------------------------------------


class TextFile(Source):
    """A .csv or .jsonl file, or the same compressed as .gz.

    A plain file may still be being written. If it is not declared `complete`, a last row without
    its end is yielded as a provisional block, when the file has not changed for SETTLE_SECONDS.
    """

    def __init__(self, path: Path, kind: str, dialect: CsvDialect, complete: bool = True) -> None:
        self.kind = kind
        self.is_csv = kind == "csv"
        self.name = path.name
        self.address = str(path.resolve())
        self._path = path
        self._dialect = dialect if self.is_csv else None
        with open_file(path) as file:
            if not os.fstat(file.fileno()).st_size:
                raise FileRefused(f"{path}: the file is empty. Give one with a header or rows.")
            self._is_gzip = check_encoding(path, file.read(2))
            if path.name.endswith(".gz") and not self._is_gzip:
                raise FileRefused(
                    f"{path}: this is not a gzip file. Compress it, or rename it without .gz."
                )
            # A gzip file says itself where it ends.
            self._complete = complete or self._is_gzip
            reader = TextReader(self, self.name, self._dialect, None)
            for _ in chain(reader.read(self._pieces(file), ""), reader.finish(self._complete)):
                if self.columns is not None:
                    break

    def _parsed(self, position: Position | None) -> TextPosition | None:
        return None if position is None else TextPosition.parse(position, self.name)

    def _read(
        self, start: TextPosition | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        reader = TextReader(self, self.name, self._dialect, start, size)
        with open_file(self._path) as file:
            yield from reader.read(self._pieces(file), CHANGED)
            while not self._complete and reader.has_rest:
                for _ in wait_until_settled(file, file.tell()):
                    yield from reader.feed(b"")
                data = file.read(CHUNK_BYTES)
                if not data:
                    break
                yield from reader.feed(data)
            yield from reader.finish(self._complete)

    def _pieces(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes of the text."""
        file.seek(0)
        return read_gzip(file, self.name) if self._is_gzip else read_plain(file)


def check_encoding(path: Path, first: bytes) -> bool:
    """Whether a file that begins with these two bytes is compressed; UTF-16 is refused."""
    if first in UTF16_MARKS:
        raise FileRefused(f"{path}: this is UTF-16 text. Save it as UTF-8.")
    return first == GZIP_MAGIC


def wait_until_settled(file: BinaryIO, done: int) -> Iterator[None]:
    """Wait until a file has not changed for SETTLE_SECONDS, or is longer than `done` bytes.

    By its time of change: a file that was written long ago costs no time. Yields now and then.
    """
    seen, since = None, 0.0
    while True:
        status = os.fstat(file.fileno())
        state = status.st_size, status.st_mtime_ns
        if state != seen:
            seen, since = state, time.monotonic()
        # The second clause is for files whose times come from the clock of another machine.
        quiet = max(time.time() - status.st_mtime, time.monotonic() - since)
        if status.st_size > done or quiet >= SETTLE_SECONDS:
            return
        yield
        time.sleep(POLL_SECONDS)


def read_plain(file: BinaryIO) -> Iterator[bytes]:
    """The bytes of a file, in chunks."""
    while data := file.read(CHUNK_BYTES):
        yield data


def read_gzip(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The decompressed bytes of a gzip file, in chunks.

    A file that is truncated or damaged is refused where that is noticed. Damage may be noticed
    late: gzip has a single checksum, at the end, and what is decompressed between the damage and
    the end can look like rows.
    """
    reason = ""
    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
        try:
            while data := unpacked.read1(CHUNK_BYTES):
                yield data
        except EOFError:
            reason = "ends too early; the rows before its end"
        except (gzip.BadGzipFile, zlib.error):
            reason = "is damaged; the rows before the damage"
    if reason:
        raise FileRefused(
            f"{name}: the gzip file {reason} have been read. Fetch or compress it again."
        )


# --- standard input -------------------------------------------------------------------------------


class StandardInput(Source):
    """CSV or JSON lines on standard input, or another pipe of which `descriptor` is the number."""

    kind = "standard input"
    name = "standard input"
    address = "-"

    def __init__(
        self,
        dialect: CsvDialect = CsvDialect(),  # noqa: B008  (frozen)
        idle: float | None = None,
        descriptor: int | None = None,
        complete: bool = True,
    ) -> None:
        self._dialect = dialect
        self._idle = idle
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._complete = complete
        self._used = False
        self._ended = False

    def _parsed(self, position: Position | None) -> TextPosition | None:
        if self._used:
            remedy = "Use the iterator of the first call."
            raise check.refuse("blocks", "be called once", "a second call", remedy, self.name)
        start = None if position is None else TextPosition.parse(position, self.name)
        self._used = True
        return start

    def _read(
        self, start: TextPosition | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        # The beginning, from which the format and the columns are known, is hashed later.
        pieces, head = self._pieces(), bytearray()
        while not head.strip(_BLANK):
            piece = next(pieces, None)
            if piece is None and not self._ended:
                return
            if piece is None:
                raise FileRefused(f"{self.name}: nothing came. Send rows, or give a file.")
            if not piece:
                yield empty_block(0 if start is None else start.rows)
            head += piece
        if head.startswith(GZIP_MAGIC):
            raise FileRefused(f"{self.name}: these bytes are compressed. Send them uncompressed.")
        self.is_csv = head.strip(_BLANK)[:1] != b"{"
        if start is None and self.is_csv:
            self.columns = None  # the header names them
        dialect = self._dialect if self.is_csv else None
        reader = TextReader(self, self.name, dialect, start, size)
        yield from reader.read(chain([bytes(head)], pieces), SEND_AGAIN)
        if self._ended:  # else the last line may be incomplete
            # A sender that was killed may have stopped in the middle of a line.
            yield from reader.finish(self._complete)

    def _pieces(self) -> Iterator[bytes]:
        """Bytes as soon as they come; no bytes when none has come for a while."""
        last_read = time.monotonic()
        while True:
            ready, _, _ = select.select([self._descriptor], [], [], POLL_SECONDS)
            if ready:
                piece = os.read(self._descriptor, READ_BYTES)
                if not piece:
                    self._ended = True
                    return
                yield piece
                last_read = time.monotonic()  # the time in which the rows were used is not idle
            else:
                if self._idle is not None and time.monotonic() - last_read > self._idle:
                    return
                yield b""

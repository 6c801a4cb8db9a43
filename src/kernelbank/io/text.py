"""CSV and JSON lines: in files, plain or compressed by gzip, and on standard input.

A position in a text holds the hash of all bytes before it. A row that was read and then rewritten
would leave a model that no run over the source can give. So when a text is read again from a
position on, the bytes before it are hashed and compared.

Nothing can be read twice from standard input. To resume, the same rows must be sent again from the
start; those that are done are skipped.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileRefused
from ..utils import validation as check
from .csv import CsvRows, CsvSplitter, header_names
from .dialect import CsvDialect
from .files import open_file
from .lines import JsonSplitter, LineSplitter, TextChunk, first_object_keys
from .source import (
    POLL_SECONDS,
    DictRows,
    Position,
    RowBlock,
    RowData,
    RowLocations,
    Source,
    empty_block,
    foreign_position,
    position_count,
)

CHUNK_BYTES = 1 << 18
"""How many bytes of a file are read at once."""

READ_BYTES = 1 << 16
"""How many bytes of standard input are read at once, at most."""

SETTLE_SECONDS = 2.0
"""A last line without its end is taken as it is when the file has not changed for this long."""

CHANGED = (
    "They must stay as they were, or the results could not be repeated; later rows may be changed. "
    "Restore them, or start a new run."
)
"""What to do about rows that were read before and have changed since."""

SEND_AGAIN = "Send the same rows from the start, or start a new run."
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\xef\xbb\xbf"

_PIECES_PER_SIGN = 64
"""How many pieces are skipped between two empty blocks, at which a reader can stop."""


# --- positions and the bytes before them ----------------------------------------------------------


@dataclass(frozen=True)
class TextPosition:
    """Where rows begin: the rows, bytes and lines before, a header included.

    `unended`: the row before had no line end, so the next byte must be one. `sha256`: the hash
    of the bytes before; None if they are not to be compared. `witness`: the bytes up to the end of
    the first block, and their hash: a header alone does not identify a text.
    """

    rows: int = 0
    bytes: int = 0
    lines: int = 0
    unended: bool = False
    sha256: str | None = None
    witness: tuple[int, str] | None = None

    @property
    def compared(self) -> str:
        """What must be as it was, for messages."""
        return f"first {self.rows} rows" if self.witness is None else "first rows"

    @property
    def end(self) -> int:
        """How many bytes are compared."""
        return self.bytes if self.witness is None else self.witness[0]

    @classmethod
    def parse(cls, position: Position, name: str) -> TextPosition:
        """The position from its JSON data, checked."""
        rows, size, lines = (
            position_count(position, key, name) for key in ("rows", "bytes", "lines")
        )
        unended, sha256 = position.get("open", False), position.get("sha256")
        if not isinstance(unended, bool) or not isinstance(sha256, str):
            raise foreign_position(position, name)
        witness = position.get("witness")
        if witness is not None:
            end = position_count(witness, "bytes", name)
            if end < size or not isinstance(witness.get("sha256"), str):
                raise foreign_position(position, name)
            witness = end, witness["sha256"]
        return cls(rows, size, lines, unended, sha256, witness)


def hash_prefix(
    prefix_hash: hashlib._Hash, pieces: Iterator[bytes], count: int, rows: int
) -> Generator[RowBlock, None, bytes | None]:
    """Update a hash with the first `count` bytes; yields empty blocks now and then.

    Returns the bytes that came with the last of them, or None if there are fewer than `count`.
    """
    number, data = 0, b""
    while count > len(data):
        prefix_hash.update(data)
        count -= len(data)
        piece = next(pieces, None)
        if piece is None:
            return None
        data = piece
        number += 1
        if not data or number % _PIECES_PER_SIGN == 0:
            yield empty_block(rows)
    prefix_hash.update(data[:count])
    return data[count:]


def skip_read(
    start: TextPosition, pieces: Iterator[bytes], name: str, remedy: str
) -> Generator[RowBlock, None, tuple[hashlib._Hash, bytes]]:
    """Skip the bytes of a text before a position; refuse what has changed, with its witness.

    Yields empty blocks now and then. Returns the hash of these bytes, and the bytes that came with
    the last of them.
    """
    prefix_hash = hashlib.sha256()
    rest = yield from hash_prefix(prefix_hash, pieces, start.bytes, start.rows)
    while rest is not None and start.bytes + len(rest) < start.end:
        piece = next(pieces, None)
        rest = None if piece is None else rest + piece
        if piece == b"":
            yield empty_block(start.rows)
    if rest is None:
        raise FileRefused(
            f"{name}: there are fewer than the {start.end} bytes of the {start.compared}, "
            f"which had been read before. {remedy}"
        )
    if not is_same(start, prefix_hash, rest):
        raise FileRefused(
            f"{name}: the {start.compared} are not those that were read before. {remedy}"
        )
    return prefix_hash, rest


def is_same(start: TextPosition, prefix_hash: hashlib._Hash, rest: bytes) -> bool:
    """Whether the bytes before a position have its hash, and those after them its witness."""
    if start.sha256 not in (None, prefix_hash.hexdigest()):
        return False
    if start.witness is None:
        return True
    whole = prefix_hash.copy()
    whole.update(rest[: start.end - start.bytes])
    return whole.hexdigest() == start.witness[1]


def check_line_end(data: bytes, name: str) -> None:
    """Refuse bytes that continue a row that had no line end when it was read."""
    if data.removeprefix(b"\r")[:1] not in (b"", b"\n"):
        raise FileRefused(
            f"{name}: the last row that was read had no line end then, and is longer now. It was "
            "read as it was because of --complete. Restore it, or start a new run; give --complete "
            "only when nothing more is written."
        )


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


@dataclass
class _LineLocations(RowLocations):
    """The lines of rows `begin` and on of a chunk; `more` is added to every position."""

    chunk: TextChunk
    begin: int
    hash_up_to: Callable[[int], str]
    more: Mapping[str, object]

    def where(self, row: int) -> str:
        return f"{self.name}, line {self.chunk.first_line(self.begin + row)}"

    def is_unended(self, row: int) -> bool:
        return self.chunk.is_unended(self.begin + row)

    def position(self, row: int) -> Position:
        chunk, index = self.chunk, self.begin + row
        end = chunk.end(index)
        position: Position = {
            "rows": self.first + row + 1,
            "bytes": end,
            "lines": chunk.last_line(index),
            "sha256": self.hash_up_to(end),
            **self.more,
        }
        if chunk.is_unended(index):
            position["open"] = True
        return position


# --- bytes to blocks ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextFormat:
    """CSV or JSON lines: which splitter, and what its rows are."""

    is_csv: bool
    dialect: CsvDialect

    def splitter(self, start: TextPosition) -> LineSplitter:
        """A splitter that begins at `start`."""
        line = start.lines if start.unended else start.lines + 1
        if self.is_csv:
            return CsvSplitter(self.dialect.delimiter, start.bytes, line)
        return JsonSplitter(start.bytes, line)

    def row_data(self, chunk: TextChunk, begin: int, end: int, columns: tuple[str, ...]) -> RowData:
        """Rows `begin` to `end` of a chunk."""
        rows = chunk.rows[begin:end]
        # `chunk.broken` may be long: it is not searched for every block.
        indices = [row for row in range(begin, end) if row in chunk.broken]
        broken: dict[int, tuple[object, str]] = {row - begin: chunk.broken[row] for row in indices}
        return (
            CsvRows(rows, columns, broken, self.dialect) if self.is_csv else DictRows(rows, broken)
        )


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
        if self._form.is_csv and not complete and self._splitter.has_rest:
            raise FileRefused(
                f"{self._name}: the header has no end yet: a line end or a closing quote may still "
                "come. Start when it is written; if the text is complete, say so with --complete."
            )
        if not self._take(self._splitter.feed(b"", last=True)) and self._form.is_csv:
            raise FileRefused(
                f"{self._name}: there is no header. The first line must name the columns."
            )

    def _take(self, chunks: Iterator[TextChunk]) -> bool:
        for chunk in chunks:
            if not chunk.rows:
                continue
            if self._form.is_csv:
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


class TextReader:
    """Bytes of a text to blocks of at most `size` rows, from `start` on.

    Parameters
    ----------
    source : whose text it is. Its columns are set when the first object of JSON lines has come.
    name : what the text is called in messages.
    form : CSV or JSON lines.
    start : where rows begin.
    size : the most rows of a block.
    prefix_hash : the hash of the bytes before `start`.
    more : JSON data for every position.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        form: TextFormat,
        start: TextPosition,
        size: int,
        prefix_hash: hashlib._Hash,
        more: Mapping[str, object] | None = None,
    ) -> None:
        self._source = source
        self._name = name
        self._form = form
        self._size = size
        self._splitter = form.splitter(start)
        self._must_end_line = start.unended
        self._waiting = b""
        """Bytes after a row without line end, of which it is not clear whether they end it."""
        self._prefix_hash = prefix_hash
        self._more = more or {}
        self._rows = start.rows
        self._start: Position | None = None
        """The position of the first row of the source; None after it, or if rows have come."""
        if not start.rows and start.witness is None:
            counts = {"rows": 0, "bytes": start.bytes, "lines": start.lines}
            self._start = {**counts, "sha256": prefix_hash.hexdigest(), **self._more}
            if start.unended:
                self._start["open"] = True

    @property
    def has_rest(self) -> bool:
        """Whether bytes have come that are not part of a complete row."""
        return bool(self._waiting) or self._splitter.has_rest

    def feed(self, data: bytes) -> Iterator[RowBlock]:
        """The blocks that are complete now; an empty block if nothing has come."""
        if not data:
            yield empty_block(self._rows)
            return
        if self._must_end_line:
            data = self._waiting = self._waiting + data
            if data == b"\r":
                return
            self._must_end_line, self._waiting = False, b""
            check_line_end(data, self._name)
        yield from self._blocks(data, last=False, provisional=False)

    def finish(self, provisional: bool = False) -> Iterator[RowBlock]:
        """What is left when nothing comes any more: rows of which the last has no end.

        `provisional` marks them: the text may go on one day.
        """
        yield from self._blocks(self._waiting, last=True, provisional=provisional)

    def _blocks(self, data: bytes, last: bool, provisional: bool) -> Iterator[RowBlock]:
        source = self._source
        for chunk in self._splitter.feed(data, last):
            hash_up_to = _hashes_in(chunk, self._prefix_hash.copy())
            self._prefix_hash.update(chunk.raw)
            if source.columns is None:
                source.columns = first_object_keys(chunk.rows)
            for begin in range(0, len(chunk.rows), self._size):
                end = min(begin + self._size, len(chunk.rows))
                rows = self._form.row_data(chunk, begin, end, source.columns or ())
                places = _LineLocations(
                    self._name, self._rows, chunk, begin, hash_up_to, self._more
                )
                if self._start is not None:
                    reached = places.position(end - begin - 1)
                    if not provisional:  # else the last row may still become another
                        witness = {key: reached[key] for key in ("bytes", "sha256")}
                        self._start["witness"] = witness
                    source.start, self._start = self._start, None
                yield RowBlock(rows, places, provisional)
                self._rows += end - begin


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
        self._form = TextFormat(self.is_csv, dialect)
        self._bytes_read = 0
        self._verified: tuple[TextPosition, hashlib._Hash] | None = None
        with open_file(path) as file:
            self._size = os.fstat(file.fileno()).st_size
            if not self._size:
                raise FileRefused(f"{path}: the file is empty. Give one with a header or rows.")
            self._is_gzip = check_encoding(path, file.read(2))
            if path.name.endswith(".gz") and not self._is_gzip:
                raise FileRefused(
                    f"{path}: this is not a gzip file. Compress it, or rename it without .gz."
                )
            # A gzip file says itself where it ends.
            self._complete = complete or self._is_gzip
            header = HeaderReader(self._form, self.name)
            if not any(header.feed(data) for data in self._read_from(file, 0)):
                header.finish(self._complete)
        self.columns, self._start = header.columns, header.start

    @property
    def share(self) -> float:
        return min(self._bytes_read / self._size, 1.0)

    def verify(self, fingerprint: dict[str, Any], position: Position | None = None) -> None:
        super().verify(fingerprint)
        if position is not None:
            start = TextPosition.parse(position, self.name)
            with open_file(self._path) as file:
                for _ in self._open_at(file, start):
                    pass
                if start.unended:
                    check_line_end(next(self._read_from(file, start.bytes), b""), self.name)

    def _blocks(
        self, position: Position | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        del columns
        start = self._start if position is None else TextPosition.parse(position, self.name)
        return self._blocks_from(start, size)

    def _blocks_from(self, start: TextPosition, size: int) -> Iterator[RowBlock]:
        with open_file(self._path) as file:
            prefix_hash, chunks = yield from self._open_at(file, start)
            reader = TextReader(self, self.name, self._form, start, size, prefix_hash)
            for data in chunks:
                self._bytes_read = file.tell()
                if data:
                    yield from reader.feed(data)
            while not self._complete and reader.has_rest:
                for _ in wait_until_settled(file, file.tell()):
                    yield from reader.feed(b"")
                data = file.read(CHUNK_BYTES)
                if not data:
                    break
                yield from reader.feed(data)
            yield from reader.finish(provisional=not self._complete)
            self._bytes_read = self._size

    def _open_at(
        self, file: BinaryIO, start: TextPosition
    ) -> Generator[RowBlock, None, tuple[hashlib._Hash, Iterator[bytes]]]:
        """The hash of the bytes before `start`, which are compared, and the chunks after them."""
        if self._verified is not None and self._verified[0] == start:
            return self._verified[1].copy(), self._read_from(file, start.bytes)
        chunks = self._read_from(file, 0)
        prefix_hash, rest = yield from skip_read(start, chunks, self.name, CHANGED)
        self._verified = start, prefix_hash.copy()
        return prefix_hash, chain([rest], chunks)

    def _read_from(self, file: BinaryIO, begin: int) -> Iterator[bytes]:
        """The bytes of the text from byte `begin` on."""
        if not self._is_gzip:
            file.seek(begin)
            return read_plain(file)
        file.seek(0)
        return _without_first(read_gzip(file, self.name), begin)


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
        # The second clause is for files whose times are not those of this machine's clock.
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

    A file that is truncated or damaged is refused where that is noticed: all bytes before are
    yielded. Damage may be noticed late: gzip has a single checksum, at the end, and what is
    decompressed between the damage and the end can look like rows.
    """
    decompressor = zlib.decompressobj(wbits=31)
    in_member = False
    while packed := file.read(CHUNK_BYTES):
        while packed:
            if decompressor.eof:
                packed = packed.lstrip(b"\0")  # padding is allowed between members
                if not packed:
                    break
                decompressor, in_member = zlib.decompressobj(wbits=31), False
            before = decompressor.copy()
            try:
                data = decompressor.decompress(packed, CHUNK_BYTES)
            except zlib.error:
                yield _until_damage(before, packed)
                raise FileRefused(
                    f"{name}: the gzip file is damaged; the rows before the damage have been read. "
                    "Fetch or compress it again."
                ) from None
            in_member = True
            if data:
                yield data
            packed = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
    if in_member and not decompressor.eof:
        raise FileRefused(
            f"{name}: the gzip file ends too early; the rows before its end have been read. "
            "Fetch or compress it again."
        )


def _until_damage(decompressor: zlib._Decompress, packed: bytes) -> bytes:
    """What can be decompressed, byte by byte, before the damage."""
    data = bytearray()
    try:
        for index in range(len(packed)):
            data += decompressor.decompress(packed[index : index + 1])
    except zlib.error:
        pass
    return bytes(data)


def _without_first(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """The chunks without their first `count` bytes; nothing if there are fewer."""
    for data in chunks:
        if count < len(data):
            yield data[count:]
            break
        count -= len(data)
    yield from chunks


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

    def _blocks(
        self, position: Position | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        del columns
        if self._used:
            remedy = "Use the iterator of the first call."
            raise check.refuse("blocks", "be called once", "a second call", remedy, self.name)
        start = TextPosition() if position is None else TextPosition.parse(position, self.name)
        self._used = True
        return self._blocks_from(start, size)

    def _blocks_from(self, start: TextPosition, size: int) -> Iterator[RowBlock]:
        pieces = self._pieces()
        # Read the beginning until the format and the columns are known. It is hashed later.
        head, fed = b"", 0
        header: HeaderReader | None = None
        for piece in pieces:
            if not piece:
                yield empty_block(start.rows)
                continue
            head += piece
            if head.startswith(GZIP_MAGIC):
                raise FileRefused(
                    f"{self.name}: these bytes are compressed. Send them uncompressed."
                )
            if header is None and head.strip(_BLANK):
                self.is_csv = head.strip(_BLANK)[:1] != b"{"
                if not self.is_csv:
                    break
                header = HeaderReader(TextFormat(True, self._dialect), self.name)
            if header is not None:
                if header.feed(head[fed:]):
                    break
                fed = len(head)
        else:
            if not self._ended:
                return
            if not head.strip(_BLANK):
                raise FileRefused(f"{self.name}: nothing came. Send rows, or give a file.")
            if header is not None:
                header.finish(self._complete)
        if header is not None:
            self.columns = header.columns
            start = header.start if start.sha256 is None else start
        pieces = chain([head], pieces)
        prefix_hash, rest = yield from skip_read(start, pieces, self.name, SEND_AGAIN)
        form = TextFormat(self.is_csv, self._dialect)
        reader = TextReader(self, self.name, form, start, size, prefix_hash)
        for piece in chain([rest] if rest else [], pieces):
            yield from reader.feed(piece)
        if self._ended:  # else the last line may be incomplete
            # A sender that was killed may have stopped in the middle of a line.
            yield from reader.finish(provisional=not self._complete)

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

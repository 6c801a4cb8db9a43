"""CSV and JSON lines in files, plain or compressed by gzip, and on standard input."""

from __future__ import annotations

import os
import select
import sys
import time
import zlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileRefused
from ..utils import validation as check
from .csv import CsvRows, CsvSplitter, header_names
from .dialect import CsvDialect
from .files import open_file
from .lines import (
    HashUpTo,
    JsonRows,
    JsonSplitter,
    LineSplitter,
    PrefixHash,
    TextChunk,
    first_object_keys,
)
from .source import (
    POLL_SECONDS,
    Position,
    RowBlock,
    RowData,
    RowLocations,
    Source,
    empty_block,
    foreign_position,
    position_count,
)


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


CHUNK_BYTES = 1 << 18
"""How many bytes are read at once."""

SETTLE_SECONDS = 2.0
"""A last line without its end is taken as it is when the file has not changed for so long."""

CHANGED = (
    "They must stay as they were, or the results could not be repeated; later rows may be changed. "
    "Restore them, or start a new run."
)
"""What to do about rows that were read before and have changed since."""

GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


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
        self._form = TextFormat(kind, dialect)
        self._bytes_read = 0
        self._verified: tuple[TextPosition, PrefixHash] | None = None
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

    def _start_at(self, position: Position | None) -> TextPosition:
        return self._start if position is None else TextPosition.parse(position, self.name)

    def _blocks(self, start: TextPosition, size: int) -> Iterator[RowBlock]:
        with open_file(self._path) as file:
            prefix_hash, chunks = yield from self._open_at(file, start)
            reader = TextReader(self._form, self.name, self.columns, start, size, prefix_hash)
            for data in chunks:
                self._bytes_read = file.tell()
                yield from reader.feed(data)
            while not self._complete and reader.has_rest:
                for _ in wait_until_settled(file, file.tell()):
                    yield empty_block(reader.rows)
                data = file.read(CHUNK_BYTES)
                if not data:
                    break
                yield from reader.feed(data)
            yield from reader.finish(provisional=not self._complete)
            self.columns = reader.columns
            self._bytes_read = self._size

    def _open_at(
        self, file: BinaryIO, start: TextPosition
    ) -> Generator[RowBlock, None, tuple[PrefixHash, Iterator[bytes]]]:
        """The hash of the bytes before `start`, which are compared, and the chunks after them."""
        if self._verified is not None and self._verified[0] == start:
            return self._verified[1].copy(), self._read_from(file, start.bytes)
        chunks = self._read_from(file, 0)
        prefix_hash, rest = yield from skip_read(start, chunks, self.name, CHANGED)
        self._verified = start, prefix_hash.copy()
        return prefix_hash, chain([rest], chunks)

    def _read_from(self, file: BinaryIO, begin: int) -> Iterator[bytes]:
        """The bytes of the text from byte `begin` on."""
        if self._is_gzip:
            file.seek(0)
            return skip_bytes(read_gzip(file, self.name), begin)
        file.seek(begin)
        return read_plain(file)


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


def skip_bytes(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """The chunks without their first `count` bytes; nothing if there are fewer."""
    for data in chunks:
        if count < len(data):
            yield data[count:]
            break
        count -= len(data)
    yield from chunks


def _until_damage(decompressor: zlib._Decompress, packed: bytes) -> bytes:
    """What can be decompressed, byte by byte, before the damage."""
    found = bytearray()
    try:
        for index in range(len(packed)):
            found += decompressor.decompress(packed[index : index + 1])
    except zlib.error:
        pass
    return bytes(found)


READ_BYTES = 1 << 16
SEND_AGAIN = "Send the same rows from the start, or start a new run."
_BLANK = b" \t\r\n\xef\xbb\xbf"


class StandardInput(Source):
    """Standard input, or another pipe of which `descriptor` is the number."""

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

    def _start_at(self, position: Position | None) -> TextPosition:
        if self._used:
            remedy = "Use the iterator of the first call."
            raise check.refuse("blocks", "be called once", "a second call", remedy, self.name)
        start = TextPosition() if position is None else TextPosition.parse(position, self.name)
        self._used = True
        return start

    def _blocks(self, start: TextPosition, size: int) -> Iterator[RowBlock]:
        pieces = self._pieces()
        # Read the beginning until the format and the columns are known. It is kept to be hashed.
        head = b""
        header: HeaderReader | None = None
        form = TextFormat("jsonl")
        fed = 0
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
                if head.strip(_BLANK)[:1] == b"{":
                    break
                form = TextFormat("csv", self._dialect)
                self.is_csv = True
                header = HeaderReader(form, self.name)
            if header is not None:
                known = header.feed(head[fed:])
                fed = len(head)
                if known:
                    break
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
        reader = TextReader(form, self.name, self.columns, start, size, prefix_hash)
        yield from reader.feed(rest)
        self.columns = reader.columns
        for piece in pieces:
            if not piece:
                yield empty_block(reader.rows)
            for block in reader.feed(piece):
                self.columns = reader.columns
                yield block
        if self._ended:  # else the last line may be incomplete
            # A sender that was killed may have stopped in the middle of a line.
            for block in reader.finish(provisional=not self._complete):
                self.columns = reader.columns
                yield block

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

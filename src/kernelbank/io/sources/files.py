"""CSV and JSON lines in files, plain or compressed by gzip."""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import FileRefused
from ..dialect import CsvDialect
from ..reading import open_at_once, open_for_reading
from .base import POLL_SECONDS, Source
from .prefix_hash import PrefixHash
from .row_block import Position, RowBlock, empty_block
from .text_reader import (
    HeaderReader,
    TextFormat,
    TextPosition,
    TextReader,
    check_line_end,
    skip_read,
)

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


# --- bytes ----------------------------------------------------------------------------------------


def open_file(path: Path) -> BinaryIO:
    """The file, opened for reading; the error says why it cannot be."""
    try:
        file = open_for_reading(path, open_at_once)
    except FileNotFoundError:
        raise FileRefused(f"{path}: there is no such file. Check its name and folder.") from None
    except IsADirectoryError:
        raise FileRefused(f"{path}: this is a folder. Give one of the files in it.") from None
    except PermissionError:
        raise FileRefused(f"{path}: this file may not be read. Change its permissions.") from None
    except (OSError, ValueError) as error:
        raise FileRefused(f"{path}: this file cannot be read ({error}).") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileRefused(
            f"{path}: this is not a regular file. Send its rows to standard input, and give '-'."
        )
    return file


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

"""CSV and JSON lines in files, plain or compressed by gzip."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import FileRefused
from ..dialect import CsvDialect
from ..reading import open_for_reading
from .base import DEFAULT_BLOCK_ROWS, Source, check_block_rows, position_count
from .row_block import Position, RowBlock
from .text_reader import HeaderReader, TextFormat, TextPosition, TextReader

CHUNK_BYTES = 1 << 18
"""How many bytes are read at once."""

HEAD_BYTES = 1 << 16
"""How many first bytes are in the fingerprint of a file."""

GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class TextFile(Source):
    """A .csv or .jsonl file, or the same compressed as .gz."""

    def __init__(self, path: Path, kind: str, dialect: CsvDialect) -> None:
        self.kind = kind
        self.is_csv = kind == "csv"
        self.name = path.name
        self.address = str(path.resolve())
        self._path = path
        self._form = TextFormat(kind, dialect)
        self._bytes_read = 0
        with open_file(path) as file:
            self._size = os.fstat(file.fileno()).st_size
            if not self._size:
                raise FileRefused(f"{path}: the file is empty. Give one with a header or rows.")
            self._head = head_fingerprint(file)
            file.seek(0)
            first = file.read(2)
            self._is_gzip = first == GZIP_MAGIC
            if path.name.endswith(".gz") and not self._is_gzip:
                raise FileRefused(
                    f"{path}: this is not a gzip file. Compress it, or rename it without .gz."
                )
            if first in UTF16_MARKS:
                raise FileRefused(f"{path}: this is UTF-16 text. Save it as UTF-8.")
            header = HeaderReader(self._form, self.name)
            for data in self._read_from(file, 0):
                if header.feed(data, last=False):
                    break
            else:
                header.feed(b"", last=True)
        self.columns, self._start = header.columns, header.start

    @property
    def share(self) -> float:
        return min(self._bytes_read / self._size, 1.0)

    @property
    def fingerprint(self) -> dict[str, Any]:
        return {**super().fingerprint, "head": self._head}

    def fingerprint_at(self, position: Position | None) -> dict[str, Any]:
        done = 0 if position is None else position_count(position, "bytes", self.name)
        if self._is_gzip or done >= HEAD_BYTES:
            return self.fingerprint
        with open_file(self._path) as file:
            return {**self.fingerprint, "head": head_fingerprint(file, done)}

    def verify(self, fingerprint: dict[str, Any]) -> None:
        saved = fingerprint.get("head")
        if isinstance(saved, dict) and isinstance(saved.get("bytes"), int):
            # A file that has grown since has the same beginning, as far as it went then.
            with open_file(self._path) as file:
                now = head_fingerprint(file, min(max(saved["bytes"], 0), HEAD_BYTES))
            fingerprint = {**fingerprint, "head": self._head if now == saved else "of other bytes"}
        super().verify(fingerprint)

    def blocks(
        self,
        position: Position | None = None,
        size: int = DEFAULT_BLOCK_ROWS,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns  # a row of text is always read as a whole
        start = self._start if position is None else TextPosition.parse(position, self.name)
        size = check_block_rows(size)
        return self._blocks(TextReader(self._form, self.name, self.columns, start, size), start)

    def _blocks(self, reader: TextReader, start: TextPosition) -> Iterator[RowBlock]:
        with open_file(self._path) as file:
            # One byte more than needed: it shows whether a line ended there.
            back = min(1, start.bytes)
            chunks = self._read_from(file, start.bytes - back)
            before = next(chunks, b"") if back else b""
            if len(before) < back or (back and not start.unfinished and before[:1] != b"\n"):
                raise FileRefused(
                    f"{self.name}: the file is not the one that was read before: no row ends at "
                    f"byte {start.bytes}. Give the earlier file, or start a new run."
                )
            yield from reader.feed(before[back:], last=False)
            for data in chunks:
                self._bytes_read = file.tell()
                yield from reader.feed(data, last=False)
            yield from reader.feed(b"", last=True)
            self.columns = reader.columns
            self._bytes_read = self._size

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
        if not path.is_dir() and path.exists() and not path.is_file():
            raise FileRefused(
                f"{path}: this is not a regular file. Send its rows to standard input, and give "
                "'-'."
            )
        return open_for_reading(path)
    except FileNotFoundError:
        raise FileRefused(f"{path}: there is no such file. Check its name and folder.") from None
    except IsADirectoryError:
        raise FileRefused(f"{path}: this is a folder. Give one of the files in it.") from None
    except PermissionError:
        raise FileRefused(f"{path}: this file may not be read. Change its permissions.") from None
    except (OSError, ValueError) as error:
        raise FileRefused(f"{path}: this file cannot be read ({error}).") from None


def head_fingerprint(file: BinaryIO, most: int = HEAD_BYTES) -> dict[str, Any]:
    """The number of the first bytes, and their hash."""
    file.seek(0)
    head = file.read(most)
    return {"bytes": len(head), "sha256": hashlib.sha256(head).hexdigest()}


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

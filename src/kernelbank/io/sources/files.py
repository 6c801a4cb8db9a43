"""CSV and JSON lines in files, plain or packed by gzip."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import FileRefused
from .base import SIZE, Source, rows_per_block, whole
from .gzip_stream import MAGIC, plain, skipped, unpacked
from .rows import Position, RowBlock
from .text import Format, HeaderReader, Rows, Start

HEAD = 1 << 16
"""By how many first bytes a file is recognised."""

OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")


def open_file(path: Path) -> BinaryIO:
    """The file, opened for reading; refused with a sentence if that cannot be."""
    try:
        if not path.is_dir() and path.exists() and not path.is_file():
            raise FileRefused(
                f"{path}: this is not a regular file. Send its rows to standard input, and give '-'."
            )
        return path.open("rb")
    except FileNotFoundError:
        raise FileRefused(f"{path}: there is no such file. Check its name and folder.") from None
    except IsADirectoryError:
        raise FileRefused(f"{path}: this is a folder. Give one of the files in it.") from None
    except PermissionError:
        raise FileRefused(f"{path}: this file may not be read. Change its permissions.") from None
    except (OSError, ValueError) as error:
        raise FileRefused(f"{path}: this file cannot be read ({error}).") from None


def head_of(file: BinaryIO, most: int = HEAD) -> dict[str, Any]:
    """The first bytes: how many there are, and their hash."""
    file.seek(0)
    first = file.read(most)
    return {"bytes": len(first), "sha256": hashlib.sha256(first).hexdigest()}


class TextFile(Source):
    """A .csv or .jsonl file, or the same packed as .gz."""

    def __init__(self, path: Path, kind: str, delimiter: str = ",") -> None:
        self.kind = kind
        self.name = path.name
        self._path = path
        self._form = Format(kind, delimiter)
        self._read = 0
        with open_file(path) as file:
            self._size = os.fstat(file.fileno()).st_size
            if not self._size:
                raise FileRefused(f"{path}: the file is empty. Give one with a header or rows.")
            self._head = head_of(file)
            file.seek(0)
            first = file.read(2)
            self._packed = first == MAGIC
            if path.name.endswith(".gz") and not self._packed:
                raise FileRefused(f"{path}: this is not a gzip file. Pack it, or take .gz off.")
            if first in OTHER_ENCODINGS:
                raise FileRefused(f"{path}: this is UTF-16 text. Save it as UTF-8.")
            opening = HeaderReader(self._form, self.name)
            for piece in self._pieces(file, 0):
                if opening.feed(piece, last=False):
                    break
            else:
                opening.feed(b"", last=True)
        self.columns, self._start = opening.columns, opening.start

    @property
    def share(self) -> float:
        return min(self._read / self._size, 1.0)

    @property
    def fingerprint(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "address": str(self._path.resolve()),
            "columns": None if self.columns is None else list(self.columns),
            "head": self._head,
        }

    def fingerprint_at(self, position: Position | None) -> dict[str, Any]:
        done = 0 if position is None else whole(position, "bytes", self.name)
        if self._packed or done >= HEAD:
            return self.fingerprint
        with open_file(self._path) as file:
            return {**self.fingerprint, "head": head_of(file, done)}

    def verify(self, fingerprint: dict[str, Any]) -> None:
        then = fingerprint.get("head")
        if isinstance(then, dict) and isinstance(then.get("bytes"), int):
            # A file that has grown since has the same beginning, as far as it went then.
            with open_file(self._path) as file:
                now = head_of(file, min(max(then["bytes"], 0), HEAD))
            fingerprint = {**fingerprint, "head": self._head if now == then else "of other bytes"}
        super().verify(fingerprint)

    def blocks(
        self,
        position: Position | None = None,
        size: int = SIZE,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns  # a row of text is read whole
        start = self._start if position is None else Start.of(position, self.name)
        rows = Rows(self._form, self.name, self.columns, start, rows_per_block(size))
        return self._blocks(rows, start)

    def _blocks(self, rows: Rows, start: Start) -> Iterator[RowBlock]:
        with open_file(self._path) as file:
            # One byte more than needed: it tells whether a line ended there.
            back = min(1, start.bytes)
            pieces = self._pieces(file, start.bytes - back)
            before = next(pieces, b"") if back else b""
            if len(before) < back or (back and not start.open and before[:1] != b"\n"):
                raise FileRefused(
                    f"{self.name}: the file is not the one that was read before: no row ends at "
                    f"byte {start.bytes}. Give the file of then, or begin a new run."
                )
            yield from rows.feed(before[back:], last=False)
            for piece in pieces:
                self._read = file.tell()
                yield from rows.feed(piece, last=False)
            yield from rows.feed(b"", last=True)
            self.columns = rows.columns
            self._read = self._size

    def _pieces(self, file: BinaryIO, begin: int) -> Iterator[bytes]:
        if self._packed:
            file.seek(0)
            return skipped(unpacked(file, self.name), begin)
        file.seek(begin)
        return plain(file)

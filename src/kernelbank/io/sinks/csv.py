"""Answers, or rows that were set aside, to a file of lines."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import RunRefused
from .base import PIECE, PUT_BACK, Output, Row, fsync_folder, occupied, told, worded


class Lines(Output):
    """A file of lines: a table with a header, or one JSON object a line.

    A mark holds the length and the hash of all that is before it.
    """

    def __init__(self, path: Path, header: Sequence[str] | None = None) -> None:
        self.path = path
        self.place = str(path.resolve())
        self._title = b"" if header is None else f"{','.join(header)}\n".encode()
        self._digest = hashlib.sha256()
        self._length = 0
        self._file: BinaryIO | None = None
        self._new = False

    def vacant(self) -> None:
        if os.path.lexists(self.path) and (not self.path.is_file() or self.path.stat().st_size):
            raise occupied(self.path)

    def begin(self) -> None:
        self._open()
        self.vacant()  # again: now nobody else writes to it
        self._new = True

    def _open(self) -> None:
        with told(self.path):
            self._file = open(self.path, "ab")  # noqa: SIM115  (closed by `close`)
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunRefused(
                f"{self.path} is being written by another run. Wait for it, or give another file."
            ) from None

    def write(self, rows: Sequence[Row]) -> None:
        text = io.StringIO()
        if self._title:
            table = csv.writer(text, lineterminator="\n")
            table.writerows(
                [["" if cell is None else worded(cell) for cell in row] for row in rows]
            )
        else:
            text.writelines(f"{row[0]}\n" for row in rows)
        self._append(text.getvalue().encode("utf-8", "surrogateescape"))

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        if not self._length:
            data = self._title + data
        with told(self.path):
            self._file.write(data)
        self._digest.update(data)
        self._length += len(data)

    def mark(self) -> dict[str, Any]:
        assert self._file is not None
        with told(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            if self._new:
                fsync_folder(self.path.parent)
        self._new = False
        return {"bytes": self._length, "sha256": self._digest.hexdigest()}

    def check(self, mark: Mapping[str, Any]) -> None:
        length = int(mark["bytes"])
        if not self.path.is_file():
            raise RunRefused(f"{self.path} is gone. {PUT_BACK}")
        found = self.path.stat().st_size
        if found < length:
            raise RunRefused(f"{self.path} was cut: {found} of {length} bytes. {PUT_BACK}")
        digest = hashlib.sha256()
        with open(self.path, "rb") as file:
            left = length
            while left:
                piece = file.read(min(left, PIECE))
                digest.update(piece)
                left -= len(piece)
            # Nothing was marked yet: a stranger's file must not be taken for what was begun.
            ours = length or self._title.startswith(file.read(len(self._title)))
        if not ours or digest.hexdigest() != mark["sha256"]:
            raise RunRefused(f"{self.path} was changed since. {PUT_BACK}")
        self._digest, self._length = digest, length

    def rewind(self, mark: Mapping[str, Any]) -> None:
        self._open()
        assert self._file is not None
        with told(self.path):
            self._file.truncate(mark["bytes"])
            self._file.seek(mark["bytes"])

    def close(self, *, whole: bool) -> None:
        if self._file is None:
            return
        # After a failure, what has not been written yet is of no use.
        with told(self.path) if whole else suppress(OSError):
            self._file.close()

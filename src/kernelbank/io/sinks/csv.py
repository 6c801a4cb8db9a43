"""Files of lines: predictions as CSV, bad rows as JSON lines."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import RunRefused
from ..reading import open_for_reading
from ..regular_files import check_regular, open_regular
from .base import (
    CHUNK_BYTES,
    RESTORE,
    Row,
    Sink,
    cannot_lock,
    cell_text,
    committed_count,
    fsync_folder,
    named_os_errors,
    occupied,
)


class LineFileSink(Sink):
    """A file of lines. A commit holds its length and the hash of all its bytes."""

    def __init__(self, path: Path, header: str = "") -> None:
        self.path = path
        self.address = str(path.parent.resolve() / path.name)  # the file itself is no link
        self._header = header.encode()
        self._hash = hashlib.sha256()
        self._length = 0
        self._file: BinaryIO | None = None
        self._is_new = False

    @abstractmethod
    def _lines(self, rows: Sequence[Row]) -> str:
        """The rows as lines."""

    def check_vacant(self) -> None:
        if os.path.lexists(self.path) and not self._holds_only_header():
            raise occupied(self.path)

    def _holds_only_header(self) -> bool:
        """Whether the file is empty, or has no more than the header of a run without rows."""
        with named_os_errors(self.path), open(self.path, "rb", opener=open_regular) as file:
            return self._header.startswith(file.read(len(self._header) + 1))

    def start(self) -> None:
        self._open()
        self.check_vacant()  # again: now that the file is locked
        self._is_new = True
        self._truncate(0)
        self._append(self._header)

    def _open(self) -> None:
        with named_os_errors(self.path):
            # Closed by `close`.
            self._file = open(self.path, "ab", opener=open_regular)  # noqa: SIM115
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunRefused(
                f"{self.path} is being written by another run. Wait for it, or give another file."
            ) from None
        except OSError as error:
            raise cannot_lock(self.path, error) from None

    def write(self, rows: Sequence[Row]) -> None:
        self._append(self._lines(rows).encode("utf-8", "surrogateescape"))

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        with named_os_errors(self.path):
            self._file.write(data)
        self._hash.update(data)
        self._length += len(data)

    def commit(self) -> dict[str, Any]:
        assert self._file is not None
        with named_os_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            if self._is_new:
                fsync_folder(self.path.parent)
        self._is_new = False
        return {"bytes": self._length, "sha256": self._hash.hexdigest()}

    def check(self, commit: Mapping[str, Any]) -> None:
        length = committed_count(commit, "bytes")
        if not check_regular(self.path):
            raise RunRefused(f"{self.path} is gone. {RESTORE}")
        prefix_hash = hashlib.sha256()
        with open_for_reading(self.path, open_regular) as file:
            found = os.fstat(file.fileno()).st_size
            if found < length:
                raise RunRefused(f"{self.path} was cut: {found} of {length} bytes. {RESTORE}")
            left = length
            while left:
                chunk = file.read(min(left, CHUNK_BYTES))
                prefix_hash.update(chunk)
                left -= len(chunk)
            # At the first commit the file was empty: another file must not be taken for it.
            is_ours = length or self._header.startswith(file.read(len(self._header)))
        if not is_ours or prefix_hash.hexdigest() != commit["sha256"]:
            raise RunRefused(f"{self.path} was changed since. {RESTORE}")
        self._hash, self._length = prefix_hash, length

    def rewind(self, commit: Mapping[str, Any]) -> None:
        self._open()
        self._truncate(commit["bytes"])

    def _truncate(self, length: int) -> None:
        assert self._file is not None
        with named_os_errors(self.path):
            self._file.truncate(length)
            self._file.seek(length)

    def clear(self) -> None:
        self._open()
        self._truncate(0)
        self.close(complete=True)
        self._hash, self._length = hashlib.sha256(), 0

    def close(self, *, complete: bool) -> None:
        if self._file is None:
            return
        # After a failure, bytes that are still in the buffer do not matter.
        with named_os_errors(self.path) if complete else suppress(OSError):
            self._file.close()


class CsvSink(LineFileSink):
    """A CSV file with a header."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        super().__init__(path, self._lines([tuple(columns)]))

    def _lines(self, rows: Sequence[Row]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([map(cell_text, row) for row in rows])
        return text.getvalue()


class JsonLinesSink(LineFileSink):
    """A file with one JSON object per line; a row is a tuple of one object."""

    def _lines(self, rows: Sequence[Row]) -> str:
        return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for (record,) in rows)

"""Where predictions and bad rows are written: CSV, JSON lines, Parquet (Redis: redis.py).

A sink says how far it is, and can go back there after a crash.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileRefused, RunRefused
from ..utils import validation as check
from .files import (
    check_regular,
    fsync_folder,
    lock,
    named_os_errors,
    open_for_reading,
    open_regular,
)

Row = tuple[Any, ...]  # the plain values of one prediction, None where there is none

Commit = dict[str, Any]  # how far a sink is: JSON data for the checkpoint

CHUNK_BYTES = 1 << 20  # how many bytes are read at once when a file is compared with its hash
_LONGEST_HEADER = 1 << 20

RESTORE = "Restore what was there, or start a new run with another --state and other outputs."


class Sink(ABC):
    """Something to which rows are appended.

    A new run calls `check_vacant`, then `start`; a resumed one calls `check`, then `rewind`.
    Neither `check_vacant` nor `check` changes anything.
    """

    address: str
    """Where it is; a resumed run must have the same address."""

    can_rewind = True
    """Whether `rewind` removes what was written after a commit."""

    def set_columns(self, columns: Sequence[str]) -> None:
        """Before `start` or `check`: the columns, where they follow from the first rows."""
        self._columns = list(columns)

    @abstractmethod
    def check_vacant(self) -> None:
        """Refuse an address at which something is already."""

    @abstractmethod
    def start(self) -> None:
        """Take the address."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Append rows; they need not be durable before `commit`."""

    def flush(self) -> None:  # noqa: B027  (a sink may hold rows back until `commit`)
        """Let readers see the rows so far."""

    @abstractmethod
    def commit(self) -> Commit:
        """Make all rows durable; returns how far the sink is, as JSON data for the checkpoint."""

    @abstractmethod
    def check(self, commit: Commit) -> None:
        """Refuse to resume if what was there at a commit has changed."""

    @abstractmethod
    def rewind(self, commit: Commit) -> None:
        """Go back to a commit that was checked: what was written after it is removed."""

    @abstractmethod
    def clear(self) -> None:
        """After a `check`: remove everything, so that a new run may start here."""

    def discard(self) -> None:  # noqa: B027  (not every sink is something without rows)
        """Remove what was made by `start`, if no row was written."""

    @abstractmethod
    def close(self, *, complete: bool) -> None:
        """Close; with `complete`, rows that are held back are written."""


def committed_count(commit: Commit, key: str) -> int:
    """A number of a commit, checked: it comes from a file that someone may have edited."""
    count = commit[key]
    if type(count) is not int or count < 0:
        raise FileRefused(f"The state of the run claims {count!r} for {key} of an output.")
    return count


def occupied(address: object) -> RunRefused:
    """The error for a sink that exists before its run."""
    return RunRefused(
        f"{address} exists, and belongs to no run with this --state: it is not overwritten. Move "
        "it away, or give another name; to resume the run that wrote it, give its --state."
    )


def cell_text(value: object) -> str:
    """A value as text: floats with all their digits, nothing for None."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


class LineFileSink(Sink):
    """A file of lines. A commit holds its length and the hash of all its bytes."""

    def __init__(self, path: Path, header: str = "") -> None:
        self.path = path
        self.address = str(path.parent.resolve() / path.name)  # the file itself is not a link
        self._header = header.encode()
        self._hash = hashlib.sha256()
        self._length = 0
        self._file: BinaryIO = io.BytesIO()  # until it is opened
        self._is_new = self._was_absent = False
        """Whether the folder does not know its name yet; whether there was none before."""

    @abstractmethod
    def _lines(self, rows: Sequence[Row]) -> str:
        """The rows as lines."""

    def check_vacant(self) -> None:
        if os.path.lexists(self.path) and not self._holds_only_header():
            raise occupied(self.path)

    def _holds_only_header(self) -> bool:
        """Whether there is no more than the header of a run without rows, also of other options."""
        with named_os_errors(self.path), open(self.path, "rb", opener=open_regular) as file:
            first, more = file.readline(_LONGEST_HEADER), file.read(1)
        name = self._header[: self._header.find(b",") + 1]
        return not more and (
            self._header.startswith(first) or bool(name and first.startswith(name))
        )

    def start(self) -> None:
        self._was_absent = not os.path.lexists(self.path)
        self._open()
        self.check_vacant()  # again: now that the file is locked
        self._is_new = True
        self._truncate(0)
        self._append(self._header)

    def _open(self) -> None:
        with named_os_errors(self.path):
            # Closed by `close`.
            self._file = open(self.path, "ab", opener=open_regular)  # noqa: SIM115
        taken = f"{self.path} is being written by another run. Wait for it, or give another file."
        lock(self._file.fileno(), self.path, lambda: taken)

    def write(self, rows: Sequence[Row]) -> None:
        self._append(self._lines(rows).encode("utf-8", "surrogateescape"))

    def _append(self, data: bytes) -> None:
        with named_os_errors(self.path):
            self._file.write(data)
        self._hash.update(data)
        self._length += len(data)

    def flush(self) -> None:
        with named_os_errors(self.path):
            self._file.flush()

    def commit(self) -> Commit:
        self.flush()
        with named_os_errors(self.path):
            os.fsync(self._file.fileno())
            if self._is_new:
                fsync_folder(self.path.parent)
        self._is_new = False
        return {"bytes": self._length, "sha256": self._hash.hexdigest()}

    def check(self, commit: Commit) -> None:
        length = committed_count(commit, "bytes")
        if not check_regular(self.path):
            raise RunRefused(f"{self.path} is gone. {RESTORE}")
        prefix_hash = hashlib.sha256()
        with open_for_reading(self.path, open_regular) as file:
            size = os.fstat(file.fileno()).st_size
            if size < length:
                raise RunRefused(f"{self.path} was cut: {size} of {length} bytes. {RESTORE}")
            for begin in range(0, length, CHUNK_BYTES):
                prefix_hash.update(file.read(min(length - begin, CHUNK_BYTES)))
            # At the first commit the file was empty: another file must not be taken for it.
            is_ours = length or self._header.startswith(file.read(len(self._header)))
        if not is_ours or prefix_hash.hexdigest() != commit["sha256"]:
            raise RunRefused(f"{self.path} was changed since. {RESTORE}")
        self._hash, self._length = prefix_hash, length

    def rewind(self, commit: Commit) -> None:
        self._open()
        self._truncate(commit["bytes"])

    def _truncate(self, length: int) -> None:
        with named_os_errors(self.path):
            self._file.truncate(length)
            self._file.seek(length)

    def clear(self) -> None:
        self._open()
        self._truncate(0)
        self.close(complete=True)
        self._hash, self._length = hashlib.sha256(), 0

    def discard(self) -> None:
        if self._was_absent and self._length <= len(self._header):
            with suppress(OSError):
                self.path.unlink()

    def close(self, *, complete: bool) -> None:
        # After a failure, bytes that are still in the buffer do not matter.
        with named_os_errors(self.path) if complete else suppress(OSError):
            self._file.close()


class CsvSink(LineFileSink):
    """A CSV file with a header."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        super().__init__(path)
        self.set_columns(columns)

    def set_columns(self, columns: Sequence[str]) -> None:
        self._header = self._lines([tuple(columns)]).encode()

    def _lines(self, rows: Sequence[Row]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([map(cell_text, row) for row in rows])
        return text.getvalue()


class JsonLinesSink(LineFileSink):
    """A file with one JSON object per line; a row is a tuple of one object."""

    def _lines(self, rows: Sequence[Row]) -> str:
        return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for (record,) in rows)


PART_ROWS = 50_000  # rows of one file
_PART = re.compile(r"\.?part-\d{6,}\.parquet")


class ParquetSink(Sink):
    """A folder of Parquet files of PART_ROWS rows each.

    Rows that do not fill a file are held back, and are part of a commit. `close` writes them as a
    shorter file, which is removed when the run is resumed. Without any row, that file is empty.

    Parameters
    ----------
    folder : the folder.
    columns : the names of all columns.
    copied : those that are text, copied from the source.
    """

    def __init__(self, folder: Path, columns: Sequence[str], copied: Sequence[str] = ()) -> None:
        with check.optional("Predictions as .parquet need", "pyarrow", "files"):
            import pyarrow  # noqa: F401
        self.path = folder
        self.address = str(folder.resolve())
        self.set_columns(columns)
        self._copied = list(copied)
        self._parts = 0
        self._hash = hashlib.sha256()
        self._waiting: list[Row] = []
        self._is_new = False

    def check_vacant(self) -> None:
        if os.path.lexists(self.path) and (not self.path.is_dir() or any(self.path.iterdir())):
            raise occupied(self.path)

    def start(self) -> None:
        with named_os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self._is_new = True

    def write(self, rows: Sequence[Row]) -> None:
        self._waiting += rows
        while len(self._waiting) >= PART_ROWS:
            self._write_part(self._waiting[:PART_ROWS])
            self._waiting = self._waiting[PART_ROWS:]

    @property
    def _has_labels(self) -> bool:
        return "probability" in self._columns

    def _part_path(self, number: int) -> Path:
        return self.path / f"part-{number:06d}.parquet"

    def _write_part(self, rows: list[Row]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Types by column name, not by the values: a part may have no target at all.
        label = pa.string() if self._has_labels else pa.float64()
        types = {"row": pa.int64(), "prediction": label, "target": label}
        types |= dict.fromkeys(self._copied, pa.string())
        schema = pa.schema([(name, types.get(name, pa.float64())) for name in self._columns])
        columns = [[row[i] for row in rows] for i in range(len(self._columns))]
        memory = io.BytesIO()
        pq.write_table(pa.table(columns, schema=schema), memory)
        final = self._part_path(self._parts)
        temporary = self.path / f".{final.name}"
        with named_os_errors(final):
            with open(temporary, "wb", opener=open_regular) as file:
                file.write(memory.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            check_regular(final)
            os.replace(temporary, final)
        self._hash.update(memory.getbuffer())
        self._parts += 1

    def commit(self) -> Commit:
        with named_os_errors(self.path):
            fsync_folder(self.path)
            if self._is_new:
                fsync_folder(self.path.parent)
        self._is_new = False
        return {
            "parts": self._parts,
            "sha256": self._hash.hexdigest(),
            "held_back": [list(row) for row in self._waiting],
        }

    def check(self, commit: Commit) -> None:
        if not self.path.is_dir():
            raise RunRefused(f"{self.path} is gone. {RESTORE}")
        if not all(self._is_row(row) for row in commit["held_back"]):
            raise FileRefused("The state of the run holds rows that are no predictions.")
        parts_hash = hashlib.sha256()
        for number in range(committed_count(commit, "parts")):
            part = self._part_path(number)
            if not check_regular(part):
                raise RunRefused(f"{part} is gone. {RESTORE}")
            with open_for_reading(part, open_regular) as file:
                parts_hash.update(file.read())
        for file_path in self._later_parts(commit):
            check_regular(file_path)
        if parts_hash.hexdigest() != commit["sha256"]:
            raise RunRefused(f"{self.path}: a part was changed since. {RESTORE}")
        self._hash = parts_hash

    def _is_row(self, row: object) -> bool:
        """Whether a row from a commit has the values of a prediction."""
        if not isinstance(row, list) or len(row) != len(self._columns) or type(row[0]) is not int:
            return False
        texts = {*self._copied, *(["prediction", "target"] if self._has_labels else [])}
        return all(
            value is None or isinstance(value, str if name in texts else (int, float))
            for name, value in zip(self._columns, row, strict=True)
        )

    def rewind(self, commit: Commit) -> None:
        with named_os_errors(self.path):
            for file in self._later_parts(commit):
                file.unlink()
        self._parts = commit["parts"]
        self._waiting = [tuple(row) for row in commit["held_back"]]

    def _later_parts(self, commit: Commit) -> list[Path]:
        """Parts that were written after a commit, also half-written ones."""
        committed = {self._part_path(number).name for number in range(int(commit["parts"]))}
        names = [name for name in os.listdir(self.path) if _PART.fullmatch(name)]
        return [self.path / name for name in names if name not in committed]

    def clear(self) -> None:
        self.rewind({"parts": 0, "held_back": []})

    def close(self, *, complete: bool) -> None:
        if complete and (self._waiting or not self._parts):
            self._write_part(self._waiting)
            self._waiting = []
            with named_os_errors(self.path):
                fsync_folder(self.path)

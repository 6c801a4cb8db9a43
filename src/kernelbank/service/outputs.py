"""Where answers go. Each output can say how far it is, and go back there after a crash."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import RunRefused

Row = tuple[Any, ...]
"""The plain values of one answer, None where there is none."""

_PIECE = 1 << 20
"""Bytes that are read at once when a file is compared with what was written."""


class Output:
    """Something to which rows are appended.

    A new run calls `vacant`, then `begin`; one that goes on calls `check`, then `rewind`. Neither
    `vacant` nor `check` changes anything.
    """

    place: str
    """Where it is, in words that a later process compares."""

    def vacant(self) -> None:
        """Refuse a place where something is already."""
        raise NotImplementedError

    def begin(self) -> None:
        """Take the place."""
        raise NotImplementedError

    def write(self, rows: Sequence[Row]) -> None:
        """Append; the rows need not last before `mark`."""
        raise NotImplementedError

    def mark(self) -> dict[str, Any]:
        """Make everything so far last, and say how far it is, as plain data."""
        raise NotImplementedError

    def check(self, mark: Mapping[str, Any]) -> None:
        """Refuse to go on if what was there at a mark is not there now."""
        raise NotImplementedError

    def rewind(self, mark: Mapping[str, Any]) -> None:
        """Go back to a mark that was checked: what was written after it is taken away."""
        raise NotImplementedError

    def close(self, *, whole: bool) -> None:
        """Let go; `whole` if all is well and what waits should be seen."""


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
            table.writerows([["" if cell is None else _cell(cell) for cell in row] for row in rows])
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
            raise RunRefused(f"{self.path} is gone. {_PUT_BACK}")
        found = self.path.stat().st_size
        if found < length:
            raise RunRefused(f"{self.path} was cut: {found} of {length} bytes. {_PUT_BACK}")
        digest = hashlib.sha256()
        with open(self.path, "rb") as file:
            left = length
            while left:
                piece = file.read(min(left, _PIECE))
                digest.update(piece)
                left -= len(piece)
            # Nothing was marked yet: a stranger's file must not be taken for what was begun.
            ours = length or self._title.startswith(file.read(len(self._title)))
        if not ours or digest.hexdigest() != mark["sha256"]:
            raise RunRefused(f"{self.path} was changed since. {_PUT_BACK}")
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


def _cell(value: Any) -> str:
    """A float with all its digits: what is read again is the same number."""
    return repr(value) if isinstance(value, float) else str(value)


class Parts(Output):
    """A folder of Parquet files of `size` rows each; rows of the next one wait in the mark.

    At an orderly end they are written too, as a shorter part that is taken away when the run goes
    on.
    """

    def __init__(self, folder: Path, header: Sequence[str], size: int) -> None:
        try:
            import pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise RunRefused(
                "Predictions as .parquet need pyarrow. Install it: pip install 'kernelbank[files]'"
            ) from error
        self.path = folder
        self.place = str(folder.resolve())
        self._header = list(header)
        self._size = size
        self._parts = 0
        self._digest = hashlib.sha256()
        self._waiting: list[Row] = []
        self._new = False

    def vacant(self) -> None:
        if os.path.lexists(self.path) and (not self.path.is_dir() or any(self.path.iterdir())):
            raise occupied(self.path)

    def begin(self) -> None:
        with told(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self._new = True

    def write(self, rows: Sequence[Row]) -> None:
        self._waiting += rows
        while len(self._waiting) >= self._size:
            self._part(self._waiting[: self._size])
            self._waiting = self._waiting[self._size :]

    def _name(self, number: int) -> Path:
        return self.path / f"part-{number:06d}.parquet"

    def _part(self, rows: list[Row]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Types by name, not by what is there: a part may have no target at all.
        label = pa.string() if "probability" in self._header else pa.float64()
        types = {"row": pa.int64(), "prediction": label, "target": label}
        schema = pa.schema([(name, types.get(name, pa.float64())) for name in self._header])
        columns = [[row[i] for row in rows] for i in range(len(self._header))]
        memory = io.BytesIO()
        pq.write_table(pa.table(columns, schema=schema), memory)
        final = self._name(self._parts)
        temporary = self.path / f".{final.name}"
        with told(final):
            with open(temporary, "wb") as file:
                file.write(memory.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, final)
        self._digest.update(memory.getbuffer())
        self._parts += 1

    def mark(self) -> dict[str, Any]:
        with told(self.path):
            fsync_folder(self.path)
            if self._new:
                fsync_folder(self.path.parent)
        self._new = False
        return {
            "parts": self._parts,
            "sha256": self._digest.hexdigest(),
            "waiting": [list(row) for row in self._waiting],
        }

    def check(self, mark: Mapping[str, Any]) -> None:
        if not self.path.is_dir():
            raise RunRefused(f"{self.path} is gone. {_PUT_BACK}")
        digest = hashlib.sha256()
        for number in range(int(mark["parts"])):
            if not self._name(number).is_file():
                raise RunRefused(f"{self._name(number)} is gone. {_PUT_BACK}")
            with open(self._name(number), "rb") as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
        if digest.hexdigest() != mark["sha256"]:
            raise RunRefused(f"{self.path}: a part was changed since. {_PUT_BACK}")
        self._digest = digest

    def rewind(self, mark: Mapping[str, Any]) -> None:
        kept = {self._name(number).name for number in range(mark["parts"])}
        with told(self.path):
            for file in list(self.path.iterdir()):
                if _PART.fullmatch(file.name) and file.name not in kept:
                    file.unlink()
        self._parts = mark["parts"]
        self._waiting = [tuple(row) for row in mark["waiting"]]

    def close(self, *, whole: bool) -> None:
        if whole and self._waiting:
            self._part(self._waiting)
            self._waiting = []
            with told(self.path):
                fsync_folder(self.path)


class Stream(Output):
    """A Redis stream. A row has an id made of its number, so writing it again changes nothing."""

    def __init__(self, address: str, header: Sequence[str]) -> None:
        from ..sources import RedisOutput

        self._output = RedisOutput(address)
        self._header = header
        self._last = 0
        self.place = self._output._address.shown

    def vacant(self) -> None:
        if self._top() != (0, 0):
            raise occupied(self.place)

    def begin(self) -> None:
        """Nothing to do: the first row makes the stream."""

    def _top(self) -> tuple[int, int]:
        """The highest id that ever was in the stream: readers may have taken entries away."""
        name = self._output._address.stream

        def ask(client: Any) -> str:
            if not client.exists(name):
                return "0-0"
            return str(client.xinfo_stream(name)["last-generated-id"].decode())

        number, _, rest = self._output._link.insist(ask).partition("-")
        return int(number), int(rest)

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            cells = zip(self._header, row, strict=True)
            self._output.add(row[0], {k: "" if v is None else _cell(v) for k, v in cells})
            self._last = row[0]

    def mark(self) -> dict[str, Any]:
        self._output.flush()
        return {"last": self._last}

    def check(self, mark: Mapping[str, Any]) -> None:
        top, _ = self._top()
        if top < int(mark["last"]):
            raise RunRefused(
                f"{self.place} has lost rows: {mark['last']} were written, and it ends at {top}. "
                f"{_PUT_BACK}"
            )

    def rewind(self, mark: Mapping[str, Any]) -> None:
        """Rows that are there already stay; they are compared when they come again."""
        self._last = mark["last"]

    def close(self, *, whole: bool) -> None:  # noqa: ARG002  (a mark has sent all rows)
        self._output._link.close()


# --- what they share ----------------------------------------------------------------------------

_PART = re.compile(r"\.?part-\d{6,}\.parquet")
_PUT_BACK = "Put back what was there, or start anew with another --state and other outputs."


def occupied(place: object) -> RunRefused:
    """The error for an output that is there before its run."""
    return RunRefused(
        f"{place} exists, and belongs to no run with this --state. Remove it, or give another."
    )


@contextmanager
def told(path: object) -> Iterator[None]:
    """What the system refuses is said with the name of the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RunRefused(f"{path} cannot be written to: {reason}.") from None


def fsync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

"""Where answers go. Each output can say how far it is, and go back there after a crash."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RunRefused

Row = tuple[Any, ...]
"""The plain values of one answer, None where there is none."""

_TAIL = 4096
"""Bytes before the end that are compared when a file is gone on with."""


class Output:
    """Something to which rows are appended."""

    def write(self, rows: Sequence[Row]) -> None:
        """Append; the rows need not last before `mark`."""
        raise NotImplementedError

    def mark(self) -> dict[str, Any]:
        """Make everything so far last, and say how far it is, as plain data."""
        raise NotImplementedError

    def rewind(self, mark: Mapping[str, Any]) -> None:
        """Go back to a mark: what was written after it is taken away."""
        raise NotImplementedError

    def close(self, *, whole: bool) -> None:
        """Let go; `whole` if nothing more will come."""


class Lines(Output):
    """A file of lines: a table with a header, or one JSON object a line."""

    def __init__(self, path: Path, header: Sequence[str] | None = None) -> None:
        self.path = path
        self._header = header
        try:
            self._file = open(path, "ab")  # noqa: SIM115  (closed by `close`)
        except OSError as error:
            raise RunRefused(f"{path} cannot be written to: {error.strerror}.") from None

    def write(self, rows: Sequence[Row]) -> None:
        text = io.StringIO()
        if self._header is None:
            text.writelines(f"{row[0]}\n" for row in rows)
        else:
            table = csv.writer(text, lineterminator="\n")
            if not self._file.tell():
                table.writerow(self._header)
            table.writerows([["" if cell is None else _cell(cell) for cell in row] for row in rows])
        self._file.write(text.getvalue().encode())

    def mark(self) -> dict[str, Any]:
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"bytes": self._file.tell(), "tail": self._tail(self._file.tell())}

    def rewind(self, mark: Mapping[str, Any]) -> None:
        length = os.fstat(self._file.fileno()).st_size
        if length < mark["bytes"] or self._tail(mark["bytes"]) != mark["tail"]:
            raise RunRefused(
                f"{self.path} is not as it was left: it was changed or cut since. Put it back, or "
                "start anew with another --state and another file."
            )
        self._file.truncate(mark["bytes"])
        self._file.seek(mark["bytes"])

    def _tail(self, end: int) -> str:
        with open(self.path, "rb") as file:
            file.seek(max(end - _TAIL, 0))
            return hashlib.sha256(file.read(min(end, _TAIL))).hexdigest()

    def close(self, *, whole: bool) -> None:  # noqa: ARG002
        self._file.close()


def _cell(value: Any) -> str:
    """A float with all its digits: what is read again is the same number."""
    return repr(value) if isinstance(value, float) else str(value)


class Parts(Output):
    """A folder of Parquet files of `size` rows each; rows of the next one wait in the mark."""

    def __init__(self, folder: Path, header: Sequence[str], size: int) -> None:
        try:
            import pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise RunRefused(
                "Predictions as .parquet need pyarrow. Install it: pip install 'kernelbank[files]'"
            ) from error
        self.path = folder
        self._header = list(header)
        self._size = size
        self._parts = 0
        self._waiting: list[Row] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunRefused(f"{folder} cannot be written to: {error.strerror}.") from None

    def write(self, rows: Sequence[Row]) -> None:
        self._waiting += rows
        while len(self._waiting) >= self._size:
            self._part(self._waiting[: self._size])
            self._waiting = self._waiting[self._size :]

    def _part(self, rows: list[Row]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = self._header
        table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
        final = self.path / f"part-{self._parts:06d}.parquet"
        temporary = self.path / f".{final.name}"
        with open(temporary, "wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, final)
        self._parts += 1

    def mark(self) -> dict[str, Any]:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return {"parts": self._parts, "waiting": [list(row) for row in self._waiting]}

    def rewind(self, mark: Mapping[str, Any]) -> None:
        kept = {f"part-{number:06d}.parquet" for number in range(mark["parts"])}
        found = {file.name for file in self.path.iterdir()}
        if not kept <= found:
            raise RunRefused(
                f"{self.path} has lost {min(kept - found)}. Put it back, or start anew with "
                "another --state and another folder."
            )
        for name in found - kept:
            if name.strip(".").startswith("part-"):
                (self.path / name).unlink()
        self._parts = mark["parts"]
        self._waiting = [tuple(row) for row in mark["waiting"]]

    def close(self, *, whole: bool) -> None:
        if whole and self._waiting:
            self._part(self._waiting)
            self._waiting = []


class Stream(Output):
    """A Redis stream. A row has an id made of its number, so writing it again changes nothing."""

    def __init__(self, address: str, header: Sequence[str]) -> None:
        from ..sources import RedisOutput

        self._output = RedisOutput(address)
        self._header = header

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            cells = zip(self._header, row, strict=True)
            self._output.add(row[0], {k: "" if v is None else _cell(v) for k, v in cells})

    def mark(self) -> dict[str, Any]:
        self._output.flush()
        return {"stream": self._output.name}

    def rewind(self, mark: Mapping[str, Any]) -> None:
        """Nothing to do: rows that are there already are compared and left."""

"""Predictions as a folder of Parquet files."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import FileRefused, RunRefused
from ..reading import open_for_reading
from ..regular_files import check_regular, open_regular
from .base import (
    CHUNK_BYTES,
    RESTORE,
    Row,
    Sink,
    committed_count,
    fsync_folder,
    named_os_errors,
    occupied,
)

PART_ROWS = 50_000
"""Rows of one file."""

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
        try:
            import pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise RunRefused(
                "Predictions as .parquet need pyarrow. Install it: pip install 'kernelbank[files]'"
            ) from error
        self.path = folder
        self.address = str(folder.resolve())
        self._columns = list(columns)
        self._copied = list(copied)
        self._parts = 0
        self._hash = hashlib.sha256()
        self._held_back: list[Row] = []
        self._is_new = False

    def check_vacant(self) -> None:
        if os.path.lexists(self.path) and (not self.path.is_dir() or any(self.path.iterdir())):
            raise occupied(self.path)

    def start(self) -> None:
        with named_os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self._is_new = True

    def write(self, rows: Sequence[Row]) -> None:
        self._held_back += rows
        while len(self._held_back) >= PART_ROWS:
            self._write_part(self._held_back[:PART_ROWS])
            self._held_back = self._held_back[PART_ROWS:]

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

    def commit(self) -> dict[str, Any]:
        with named_os_errors(self.path):
            fsync_folder(self.path)
            if self._is_new:
                fsync_folder(self.path.parent)
        self._is_new = False
        return {
            "parts": self._parts,
            "sha256": self._hash.hexdigest(),
            "held_back": [list(row) for row in self._held_back],
        }

    def check(self, commit: Mapping[str, Any]) -> None:
        if not self.path.is_dir():
            raise RunRefused(f"{self.path} is gone. {RESTORE}")
        if not all(self._is_row(row) for row in commit["held_back"]):
            raise FileRefused("The state of the run holds rows that are no predictions.")
        found = hashlib.sha256()
        for number in range(committed_count(commit, "parts")):
            part = self._part_path(number)
            if not check_regular(part):
                raise RunRefused(f"{part} is gone. {RESTORE}")
            with open_for_reading(part, open_regular) as file:
                while chunk := file.read(CHUNK_BYTES):
                    found.update(chunk)
        for file_path in self._later_parts(commit):
            check_regular(file_path)
        if found.hexdigest() != commit["sha256"]:
            raise RunRefused(f"{self.path}: a part was changed since. {RESTORE}")
        self._hash = found

    def _is_row(self, row: Any) -> bool:
        """Whether a row from a commit has the values of a prediction."""
        if not isinstance(row, list) or len(row) != len(self._columns) or type(row[0]) is not int:
            return False
        texts = {*self._copied, *(["prediction", "target"] if self._has_labels else [])}
        return all(
            value is None or isinstance(value, str if name in texts else (int, float))
            for name, value in zip(self._columns, row, strict=True)
        )

    def rewind(self, commit: Mapping[str, Any]) -> None:
        with named_os_errors(self.path):
            for file in self._later_parts(commit):
                file.unlink()
        self._parts = commit["parts"]
        self._held_back = [tuple(row) for row in commit["held_back"]]

    def _later_parts(self, commit: Mapping[str, Any]) -> list[Path]:
        """Parts that were written after a commit, also half-written ones."""
        kept = {self._part_path(number).name for number in range(int(commit["parts"]))}
        names = [name for name in os.listdir(self.path) if _PART.fullmatch(name)]
        return [self.path / name for name in names if name not in kept]

    def clear(self) -> None:
        self.rewind({"parts": 0, "held_back": []})

    def close(self, *, complete: bool) -> None:
        if complete and (self._held_back or not self._parts):
            self._write_part(self._held_back)
            self._held_back = []
            with named_os_errors(self.path):
                fsync_folder(self.path)

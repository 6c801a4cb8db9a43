"""Answers to a folder of Parquet files."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RunRefused
from .base import PIECE, PUT_BACK, Output, Row, fsync_folder, occupied, told

_PART = re.compile(r"\.?part-\d{6,}\.parquet")


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
            raise RunRefused(f"{self.path} is gone. {PUT_BACK}")
        digest = hashlib.sha256()
        for number in range(int(mark["parts"])):
            if not self._name(number).is_file():
                raise RunRefused(f"{self._name(number)} is gone. {PUT_BACK}")
            with open(self._name(number), "rb") as file:
                while piece := file.read(PIECE):
                    digest.update(piece)
        if digest.hexdigest() != mark["sha256"]:
            raise RunRefused(f"{self.path}: a part was changed since. {PUT_BACK}")
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

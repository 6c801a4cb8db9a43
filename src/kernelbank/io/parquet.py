"""Parquet files, read by pyarrow: some row groups at a time, and only the needed columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import FileRefused
from ..utils import validation as check
from ..utils.validation import Floats
from .cells import Fault, Values, range_faults
from .files import open_file
from .source import (
    Position,
    RowBlock,
    RowData,
    Source,
    column_index,
    position_count,
)

with check.optional("Parquet files need", "pyarrow", "files"):
    import pyarrow
    import pyarrow.parquet


class ParquetFile(Source):
    """A .parquet file. Values of nested columns are rejected where they are parsed."""

    kind = "parquet"

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.address = str(path.resolve())
        self._path = path
        self._sha256: str | None = None
        """The hash of the file, once it is asked for: a Parquet file is written as a whole."""
        with open_file(path) as file:
            if not os.fstat(file.fileno()).st_size:
                raise FileRefused(f"{path}: the file is empty. Give a Parquet file.")
            try:
                opened = pyarrow.parquet.ParquetFile(file)
                names = [str(name) for name in opened.schema_arrow.names]
                metadata = opened.metadata
                self._groups = [
                    metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)
                ]
            except (pyarrow.ArrowException, OSError) as error:
                raise FileRefused(
                    f"{path}: this is not a complete Parquet file ({_first_line(error)}). "
                    "Write it again."
                ) from None
        for index, name in enumerate(names):
            if not name or names.index(name) != index:
                raise FileRefused(
                    f"{path}: column {index + 1} has no name of its own ({name!r}). "
                    "Give every column another name."
                )
        if not names:
            raise FileRefused(f"{path}: there are no columns. Give a table with some.")
        self.columns: tuple[str, ...] = tuple(names)
        self._length = sum(self._groups)

    @property
    def fingerprint(self) -> dict[str, object]:
        if self._sha256 is None:
            with open_file(self._path) as file:
                self._sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return {**super().fingerprint, "rows": self._length, "sha256": self._sha256}

    def _parsed(self, position: Position | None) -> int:
        done = 0 if position is None else position_count(position, "rows", self.name)
        if done > self._length:
            raise FileRefused(
                f"{self.name}: the file has {self._length} rows, but {done} had been read. "
                "Give the earlier file, or start a new run."
            )
        return done

    def _read(self, done: int, size: int, columns: Sequence[str] | None) -> Iterator[RowBlock]:
        for name in columns or ():
            column_index(name, self.columns)
        group, before = 0, 0
        while group < len(self._groups) and before + self._groups[group] <= done:
            before += self._groups[group]
            group += 1
        with open_file(self._path) as file:
            try:
                # Without buffers ahead, a row group larger than memory is read page by page.
                opened = pyarrow.parquet.ParquetFile(
                    file, pre_buffer=False, buffer_size=1 << 16, page_checksum_verification=True
                )
                batches = opened.iter_batches(
                    batch_size=size,
                    row_groups=list(range(group, len(self._groups))),
                    columns=None if columns is None else list(columns),
                    use_threads=False,
                )
                for batch in batches:
                    after = before + batch.num_rows
                    if after > done:
                        part = batch.slice(max(done - before, 0))
                        first = after - part.num_rows
                        yield RowBlock(ArrowRows(part), self.name, first)
                    before = after
            except (pyarrow.ArrowException, OSError) as error:
                raise FileRefused(
                    f"{self.name}: the file is damaged after row {before} ({_first_line(error)}); "
                    "the rows before that have been read. Write it again."
                ) from None


class ArrowRows(RowData):
    """A record batch of arrow. Null is missing."""

    def __init__(self, batch: pyarrow.RecordBatch) -> None:
        super().__init__(())
        self._batch = batch
        self._names = tuple(batch.schema.names)

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def column(self, name: str) -> Values:
        return _values(self._array(name))

    def numbers(self, name: str) -> tuple[Floats, list[Fault]]:
        array, types = self._array(name), pyarrow.types
        if types.is_boolean(array.type):
            array = array.cast(pyarrow.uint8())
        if not (types.is_integer(array.type) or types.is_floating(array.type)):
            return super().numbers(name)
        # Beyond 2^53 whole numbers are rounded, as float() does.
        values = array.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        result = np.array(values, dtype=np.float64)
        return result, range_faults(result)

    def _array(self, name: str) -> pyarrow.Array:
        array = self._batch.column(column_index(name, self._names))
        return array.dictionary_decode() if pyarrow.types.is_dictionary(array.type) else array


def _values(array: pyarrow.Array) -> Values:
    """The values as Python's; times to the microsecond, which is all that Python can hold."""
    kind, types = array.type, pyarrow.types
    if getattr(kind, "unit", "") == "ns":
        if types.is_timestamp(kind):
            kind = pyarrow.timestamp("us", kind.tz)
        else:
            kind = pyarrow.duration("us") if types.is_duration(kind) else pyarrow.time64("us")
        array = array.cast(kind, safe=False)
    return [_value(item) for item in array]


def _value(item: pyarrow.Scalar) -> object:
    try:
        return item.as_py()
    except (ValueError, OverflowError):  # a year beyond Python's range, or text that is not UTF-8
        return item.type  # which is neither a number nor a text


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["?"])[0][:120]

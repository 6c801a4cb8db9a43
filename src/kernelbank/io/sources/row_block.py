"""Blocks: some rows of a source, where each stands, and their columns as numbers or texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...utils import validation as check
from ...utils.validation import Floats
from . import parsing
from .parsing import Fault

Position = dict[str, Any]
"""Where to continue after a row: JSON data, made and understood by one kind of source.

`rows` is in all of them: how many rows of the source, valid or not, have come so far.
"""


@dataclass(frozen=True)
class RejectedRow:
    """A row that cannot be used, described so that its owner finds it.

    Parameters
    ----------
    row : its index in the block.
    where : where it is in the source: 'sensors.csv, line 17'.
    column : the column that is wrong; None if the whole row is.
    value : the wrong value, shortened.
    reason : what is wrong with it, as the end of a sentence.

    >>> str(RejectedRow(0, "sensors.csv, line 17", "load", "?", "is not a number"))
    "sensors.csv, line 17, column 'load': '?' is not a number."
    """

    row: int
    where: str
    column: str | None
    value: str
    reason: str

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column!r}"
        return f"{self.where}{column}: {self.value!r} {self.reason}."


@dataclass(frozen=True)
class ParsedRows:
    """The columns asked for, of the rows in which all of them are valid, and the other rows.

    Parameters
    ----------
    rows : (n,) the indices of the valid rows in the block, in order.
    numbers : (n, d) float64, the numeric columns in the order asked; missing is NaN.
    texts : by name, the n values of each text column; missing is None.
    rejected : the other rows of the block, in order.

    >>> ParsedRows(np.arange(2), np.zeros((2, 1)), {}, [])
    ParsedRows(2 rows, 1 numeric and 0 text columns, 0 rejected)
    """

    rows: NDArray[np.int64]
    numbers: Floats
    texts: dict[str, list[str | None]]
    rejected: list[RejectedRow]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return (
            f"ParsedRows({len(self)} rows, {self.numbers.shape[1]} numeric and {len(self.texts)} "
            f"text columns, {len(self.rejected)} rejected)"
        )


class RowData(ABC):
    """The values of a block's rows, as they came."""

    broken: dict[int, tuple[Any, str]]
    """Rows without values: by row, what came instead, and why it is not a row."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows, with broken ones."""

    @abstractmethod
    def column(self, name: str) -> Sequence[Any]:
        """The values of one column in the rows that are not broken."""

    def numbers(self, name: str, allow_missing: bool) -> tuple[Floats, list[Fault]]:
        """A column as numbers, and the faults of its values."""
        return parsing.parse_numbers(self.column(name), allow_missing)

    def texts(self, name: str, allow_missing: bool) -> tuple[list[str | None], list[Fault]]:
        """A column as texts, and the faults of its values."""
        return parsing.parse_texts(self.column(name), allow_missing)

    def first_keys(self) -> tuple[str, ...] | None:
        """The keys of the first row that has any, where rows have keys (JSON)."""
        return None


class RowLocations(ABC):
    """Where the rows of a block stand in their source."""

    first: int
    """How many rows of the source came before the block."""

    @abstractmethod
    def where(self, row: int) -> str:
        """Where a row is, for messages."""

    @abstractmethod
    def position(self, row: int) -> Position:
        """Where to continue after a row."""

    def is_unended(self, row: int) -> bool:
        """Whether the text ended before the line end of a row."""
        del row
        return False

    def identifier(self, row: int) -> str:
        """The id that a broker has given a row; "" without one."""
        del row
        return ""


class RowBlock:
    """Some rows of a source, in order. An empty one says that no row has come for a while.

    `len(block)` counts all rows, with those that will be rejected.

    >>> import pathlib, tempfile
    >>> from kernelbank.io.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("hour,load,day\\n0,1.5,mon\\n1,?,tue\\n2,3.5,wed\\n")
    ...     [block] = open_source(path).blocks()
    >>> parsed = block.parse(numeric=["hour", "load"], text=["day"])
    >>> parsed.numbers.tolist(), parsed.texts
    ([[0.0, 1.5], [2.0, 3.5]], {'day': ['mon', 'wed']})
    >>> print(parsed.rejected[0])
    small.csv, line 3, column 'load': '?' is not a number.
    >>> {key: block.position(1)[key] for key in ("rows", "bytes", "lines")}
    {'rows': 2, 'bytes': 32, 'lines': 3}
    """

    def __init__(self, data: RowData, locations: RowLocations, provisional: bool = False) -> None:
        self._data = data
        self._locations = locations
        self.provisional = provisional
        """Whether the source ended before the end of the last row: it may still become longer.

        Then nothing comes after this block, and nobody should continue after its rows: at the next
        reading they may be others.
        """

    def __len__(self) -> int:
        return len(self._data)

    @property
    def first(self) -> int:
        """How many rows of the source came before this block."""
        return self._locations.first

    def where(self, row: int) -> str:
        """Where row `row` of the block is in the source: 'sensors.csv, line 17'."""
        return self._locations.where(self._checked(row))

    def position(self, row: int) -> Position:
        """Where to continue after row `row` of the block: JSON data for `Source.blocks`."""
        return self._locations.position(self._checked(row))

    def is_unended(self, row: int) -> bool:
        """Whether the text ended before the line end of row `row` of the block."""
        return self._locations.is_unended(self._checked(row))

    def first_keys(self) -> tuple[str, ...] | None:
        """The keys of the first row that has any; None without one, or if rows have no keys."""
        return self._data.first_keys()

    def parse(
        self,
        numeric: Sequence[str] = (),
        text: Sequence[str] = (),
        allow_missing: bool | Collection[str] = False,
    ) -> ParsedRows:
        """Columns as numbers and texts, and the rows in which one of them is not valid.

        Parameters
        ----------
        numeric : the columns to return as float64.
        text : the columns to return as text.
        allow_missing : whether values may be missing, or the columns in which they may.

        A rejected row names the first of its invalid values, in the order asked.
        """
        data, broken = self._data, self._data.broken
        valid = np.arange(len(self))
        if broken:
            valid = np.delete(valid, list(broken))
        rejected = {
            row: RejectedRow(row, self.where(row), None, parsing.shown_cell(value), reason)
            for row, (value, reason) in broken.items()
        }

        def reject(name: str, faults: list[Fault]) -> None:
            if not faults:
                return
            values = data.column(name)
            for index, reason in faults:
                row = int(valid[index])
                if row not in rejected:
                    value = parsing.shown_cell(values[index])
                    rejected[row] = RejectedRow(row, self.where(row), name, value, reason)

        numbers = np.empty((len(valid), len(numeric)))
        texts: dict[str, list[str | None]] = {}
        for number, name in enumerate(numeric):
            numbers[:, number], faults = data.numbers(name, _may_miss(name, allow_missing))
            reject(name, faults)
        for name in text:
            texts[name], faults = data.texts(name, _may_miss(name, allow_missing))
            reject(name, faults)
        if len(rejected) > len(broken):
            good = np.array([int(row) not in rejected for row in valid])
            valid, numbers = valid[good], numbers[good]
            keep = np.flatnonzero(good).tolist()
            texts = {name: [values[i] for i in keep] for name, values in texts.items()}
        return ParsedRows(valid, numbers, texts, [rejected[row] for row in sorted(rejected)])

    def copied(self, names: Sequence[str]) -> list[tuple[str | None, ...]]:
        """For every row, the values of some columns as text, whatever they are; None if missing.

        A broken row has no values: all are None.
        """
        columns = [map(parsing.copied_text, self._data.column(name)) for name in names]
        found = iter(list(zip(*columns, strict=True)))
        nothing = (None,) * len(names)
        return [
            nothing if row in self._data.broken else next(found, nothing)
            for row in range(len(self))
        ]

    def identifier(self, row: int) -> str:
        """The id that a broker has given row `row` of the block; "" for other sources."""
        return self._locations.identifier(self._checked(row))

    def _checked(self, row: int) -> int:
        if not 0 <= row < len(self):
            remedy = "Count the rows of a block from 0."
            raise check.refuse("row", f"be below {len(self)}", row, remedy, "RowBlock")
        return row


def _may_miss(name: str, allow_missing: bool | Collection[str]) -> bool:
    return allow_missing if isinstance(allow_missing, bool) else name in allow_missing


def column_index(name: str, columns: Sequence[str]) -> int:
    """The index of a column; refused if there is none of that name."""
    if name not in columns:
        listed = ", ".join(repr(column) for column in columns[:12])
        more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
        remedy = f"The columns are {listed}{more}."
        raise check.refuse("column", "be a column of the source", name, remedy)
    return columns.index(name)


class _NoRows(RowData, RowLocations):
    def __init__(self, first: int) -> None:
        self.first = first
        self.broken = {}

    def __len__(self) -> int:
        return 0

    def column(self, name: str) -> Sequence[Any]:
        del name
        return ()

    def where(self, row: int) -> str:
        raise NotImplementedError  # RowBlock has refused the row

    def position(self, row: int) -> Position:
        raise NotImplementedError


def empty_block(first: int) -> RowBlock:
    """A block without rows, after `first` rows of the source."""
    nothing = _NoRows(first)
    return RowBlock(nothing, nothing)

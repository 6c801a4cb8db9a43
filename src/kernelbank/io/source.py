"""What every source offers: its columns, its fingerprint, and its rows in blocks.

A block is a few rows, where each of them stands, and their columns as numbers or texts.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileRefused, KernelBankWarning
from ..utils import validation as check
from ..utils.validation import Floats
from .cells import (
    MISSING,
    Fault,
    MissingValues,
    Values,
    copied_text,
    parse_numbers,
    parse_texts,
    shown_cell,
)

DEFAULT_BLOCK_ROWS = 1024  # the most rows of a block, by default
POLL_SECONDS = 0.2  # seconds after which a source without new rows yields an empty block

Position = dict[str, Any]
"""Where to continue after a row: JSON data, made and understood by one kind of source.

`rows` is in all of them: how many rows of the source, valid or not, have come so far.
"""

BrokenRow = tuple[object, str]  # what came instead of a row, and why it is not one


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

    >>> import kernelbank as kb, numpy as np
    >>> rows = kb.sources.ParsedRows(np.array([0, 2]), np.array([[1.5], [2.5]]), {}, [])
    >>> len(rows), rows.numbers[:, 0]
    (2, array([1.5, 2.5]))
    """

    rows: NDArray[np.int64]
    numbers: Floats
    texts: dict[str, list[str | None]]
    rejected: list[RejectedRow]

    def __len__(self) -> int:
        return len(self.rows)


class RowData(ABC):
    """The values of a block's rows, as they came; a `BrokenRow` has none."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.broken = {index: row for index, row in enumerate(rows) if type(row) is tuple}
        self.valid = [row for row in rows if type(row) is not tuple]

    def __len__(self) -> int:
        return len(self.valid) + len(self.broken)

    @abstractmethod
    def column(self, name: str) -> Values:
        """The values of one column in the rows that are not broken."""

    def numbers(self, name: str) -> tuple[Floats, list[Fault]]:
        """A column as numbers, missing ones as NaN, and the faults of its other values."""
        return parse_numbers(self.column(name))


class DictRows(RowData):
    """Rows that are dictionaries. A key that a row lacks is missing."""

    def column(self, name: str) -> Values:
        return [row.get(name) for row in self.valid]


class RowBlock:
    """Consecutive rows of a source. An empty block says that no row has come for a while.

    `len(block)` counts all rows, with those that will be rejected. A block is `provisional` if the
    source ended before the end of its last row, which may still become longer: then nothing comes
    after this block, and nobody should continue after its rows.

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

    def __init__(
        self,
        data: RowData,
        name: str,
        first: int,
        provisional: bool = False,
        place: Callable[[int], str] | None = None,
        reached: Callable[[int], Position] | None = None,
        ids: Sequence[str] = (),
    ) -> None:
        self._data = data
        self._name = name
        self.first = first
        """How many rows of the source came before this block."""
        self.provisional = provisional
        self._place = place  # where in the source a row is; by default its number
        self._reached = reached
        """Up to where the source is read after a row, if its number does not say that."""
        self._ids = ids

    def __len__(self) -> int:
        return len(self._data)

    def where(self, row: int) -> str:
        """Where row `row` of the block is in the source: 'sensors.csv, line 17'."""
        place = f"row {self.first + row + 1}" if self._place is None else self._place(row)
        return f"{self._name}, {place}"

    def position(self, row: int) -> Position:
        """Where to continue after row `row` of the block: JSON data for `Source.blocks`."""
        reached = {} if self._reached is None else self._reached(row)
        return {"rows": self.first + row + 1, **reached}

    def is_unended(self, row: int) -> bool:
        """Whether the text ended before the line end of row `row` of the block."""
        return bool(self.position(row).get("open", False))

    def identifier(self, row: int) -> str:
        """The id that a broker has given row `row` of the block; "" for other sources."""
        return self._ids[row] if self._ids else ""

    def parse(
        self,
        numeric: Sequence[str] = (),
        text: Sequence[str] = (),
        allow_missing: bool | Collection[str] = False,
        missing: MissingValues | None = None,
    ) -> ParsedRows:
        """Columns as numbers and texts, and the rows in which one of them is not valid.

        Parameters
        ----------
        numeric : the columns to return as float64.
        text : the columns to return as text.
        allow_missing : whether values may be missing, or the columns in which they may.
        missing : values that mean that there is none, beside empty ones, NA, NaN and null.

        A rejected row names the first of its invalid values, in the order asked.
        """
        data, broken = self._data, self._data.broken
        valid = np.arange(len(self))
        if broken:
            valid = np.delete(valid, list(broken))
        rejected = {
            row: RejectedRow(row, self.where(row), None, shown_cell(value), reason)
            for row, (value, reason) in broken.items()
        }

        def reject(name: str, faults: list[Fault], is_missing: Sequence[bool]) -> None:
            allowed = allow_missing if isinstance(allow_missing, bool) else name in allow_missing
            if not allowed:
                faults = faults + [(int(index), MISSING) for index in np.flatnonzero(is_missing)]
            values = data.column(name) if faults else ()
            for index, reason in faults:
                row = int(valid[index])
                if row not in rejected:
                    value = shown_cell(values[index])
                    rejected[row] = RejectedRow(row, self.where(row), name, value, reason)

        numbers = np.empty((len(valid), len(numeric)))
        texts: dict[str, list[str | None]] = {}
        for number, name in enumerate(numeric):
            array, faults = data.numbers(name)
            if missing is not None:
                faults = missing.in_numbers(array, faults, data.column(name))
            numbers[:, number] = array
            reject(name, faults, np.isnan(array).tolist())
        for name in text:
            texts[name], faults = parse_texts(data.column(name))
            if missing is not None:
                texts[name] = missing.in_texts(texts[name])
            reject(name, faults, [value is None for value in texts[name]])
        if len(rejected) > len(broken):
            good = np.array([int(row) not in rejected for row in valid])
            valid, numbers = valid[good], numbers[good]
            keep = np.flatnonzero(good).tolist()
            texts = {name: [values[i] for i in keep] for name, values in texts.items()}
        return ParsedRows(valid, numbers, texts, [rejected[row] for row in sorted(rejected)])

    def copied(self, names: Sequence[str]) -> list[tuple[str | None, ...]]:
        """For every row, the values of the named columns as text, whatever they are.

        A missing value is None. A broken row has no values: all are None.
        """
        columns = [map(copied_text, self._data.column(name)) for name in names]
        valid_rows = iter(list(zip(*columns, strict=True)))
        nothing = (None,) * len(names)
        return [
            nothing if row in self._data.broken else next(valid_rows, nothing)
            for row in range(len(self))
        ]


def empty_block(first: int) -> RowBlock:
    """A block without rows, after `first` rows of the source."""
    return RowBlock(DictRows([]), "", first)


class Source(ABC):
    """Rows in order, in blocks, from any row on.

    Memory: a few blocks, whatever the length of the source. `open_source` makes one.

    >>> import pathlib, tempfile
    >>> from kernelbank.io.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.jsonl")
    ...     _ = path.write_text('{"a": 1}\\n{"a": 2}\\n{"a": 3}\\n')
    ...     source = open_source(path)
    ...     first = next(source.blocks(size=2))
    ...     [second] = source.blocks(first.position(1))
    >>> source.columns, first.where(1), second.parse(numeric=["a"]).numbers.tolist()
    (('a',), 'small.jsonl, line 2', [[3.0]])
    """

    kind: str
    """csv, jsonl, parquet, standard input, redis or kafka."""

    name: str
    """What the source is called in messages; never with a password."""

    address: str
    """Where it is; never with a password."""

    columns: tuple[str, ...] | None = None
    """The names in order; None until the first row has come from a stream."""

    start: Position | None = None
    """Where the first row begins, once that is known, and later what identifies its first block.

    So a run that is killed before it commits any row begins there again, or is refused.
    """

    is_csv = False
    """Whether the rows are CSV, as far as that is known."""

    allow_gaps = False
    """Whether to go on where rows are lost before they were read."""

    missing_rows = 0
    """Rows that were deleted before they were read; with `allow_gaps` they may be."""

    @property
    def fingerprint(self) -> dict[str, object]:
        """JSON data by which a later process knows that the source is the same: see `verify`."""
        columns = None if self.columns is None else list(self.columns)
        return {"kind": self.kind, "address": self.address, "columns": columns}

    def verify(self, fingerprint: dict[str, Any]) -> None:
        """Refuse the fingerprint of another source; take over its columns if they are unknown.

        `blocks` refuses a text whose rows before the position have changed.
        """
        mine = self.fingerprint
        for key, saved in fingerprint.items():
            if key == "columns" and self.columns is None:
                self.columns = None if saved is None else tuple(saved)
            elif key in mine and mine[key] != saved and not (key == "columns" and saved is None):
                change = "its rows have changed"
                if key != "sha256":
                    change = f"its {key}: {_shown(saved)} before, {_shown(mine[key])} now"
                raise FileRefused(
                    f"{self.name}: this is not the source that was read before: {change}. Give "
                    "the earlier source, or start a new run."
                )

    def blocks(
        self,
        position: Position | None = None,
        size: int = DEFAULT_BLOCK_ROWS,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        """The rows after `position`, in blocks of at most `size`.

        Parameters
        ----------
        position : `RowBlock.position` of the last row that is done; None for the start.
        size : the most rows of a block.
        columns : the columns that will be parsed; a Parquet file reads no others.

        Sources that wait for rows yield an empty block when none has come for a while.
        """
        count = check.count("size", size, "blocks", "Give a number of rows such as 1024.")
        return self._read(self._parsed(position), count, columns)

    @abstractmethod
    def _parsed(self, position: Position | None) -> Any:
        """Where to start, for `_read`. A position of another source is refused."""

    @abstractmethod
    def _read(self, start: Any, size: int, columns: Sequence[str] | None) -> Iterator[RowBlock]:
        """As `blocks`, from what `_parsed` returned."""

    def report_gap(self, text: str, missing: int = 0) -> None:
        """Refuse rows that were lost before they were read, or warn of them and count them."""
        if not self.allow_gaps:
            raise FileRefused(f"{text} Restore them, or go on without them with --allow-gaps.")
        warnings.warn(f"{text} Going on without them.", KernelBankWarning, stacklevel=3)
        self.missing_rows += missing

    def close(self) -> None:  # noqa: B027  (files are closed where their iterators end)
        """Close connections."""

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def position_count(position: Position, key: str, name: str) -> int:
    """A number of a position, checked: it may come from a file that someone has edited."""
    value = position.get(key) if isinstance(position, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise foreign_position(position, name)
    return value


def foreign_position(position: object, name: str) -> Exception:
    """The error for a position that no source of this kind has made."""
    remedy = f"Give the result of RowBlock.position for a row of {name}, or None."
    return check.refuse("position", "be a position in this source", position, remedy, "blocks")


def column_index(name: str, columns: Sequence[str]) -> int:
    """The index of a column; refused if there is none of that name."""
    if name not in columns:
        listed = ", ".join(repr(column) for column in columns[:12])
        more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
        remedy = f"The columns are {listed}{more}."
        raise check.refuse("column", "be a column of the source", name, remedy)
    return columns.index(name)


def _shown(value: object) -> str:
    text = f"({', '.join(map(str, value))})" if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."

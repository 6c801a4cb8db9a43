"""Blocks: some rows of a source, where each stands, and the columns that are asked of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...utils import validation as check
from ...utils.validation import Floats
from . import parsing as cells
from .parsing import Fault

Position = dict[str, Any]
"""Where to go on after a row: plain JSON data, made and understood by one kind of source.

`rows` is in all of them: how many rows of the source, good or bad, have come so far.
"""


@dataclass(frozen=True)
class RejectedRow:
    """A row that cannot be used, told so that its owner finds it.

    Parameters
    ----------
    row : its index in the block.
    where : its place in the source, in words.
    column : the column that is wrong; None if it is the whole row.
    value : what stands there, shortened.
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
    """The columns asked for, of the rows that have them all, and the rows that do not.

    Parameters
    ----------
    rows : (n,) the indices, in the block, of the rows that are here, in order.
    numbers : (n, d) float64, a column for each numeric one in the order asked; missing is NaN.
    texts : by name, the n values of each text column; missing is None.
    rejected : the other rows of the block, in order, one entry each.

    >>> ParsedRows(np.arange(2), np.zeros((2, 1)), {}, [])
    ParsedRows of 2 rows: 1 number and 0 texts each; 0 bad rows
    """

    rows: NDArray[np.int64]
    numbers: Floats
    texts: dict[str, list[str | None]]
    rejected: list[RejectedRow]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        width = self.numbers.shape[1]
        return (
            f"ParsedRows of {len(self)} rows: {width} number{'s' * (width != 1)} and "
            f"{len(self.texts)} texts each; {len(self.rejected)} bad rows"
        )


class RowData(ABC):
    """The values of a block's rows. `broken` rows have none: they map to a value and a reason."""

    broken: dict[int, tuple[Any, str]]

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows, broken ones too."""

    @abstractmethod
    def column(self, name: str) -> Sequence[Any]:
        """The values of one column in the rows that are not broken."""

    def numbers(self, name: str, allow_missing: bool) -> tuple[Floats, list[Fault]]:
        """A column as numbers, and what is wrong with some of them."""
        return cells.numbers(self.column(name), allow_missing)

    def texts(self, name: str, allow_missing: bool) -> tuple[list[str | None], list[Fault]]:
        """A column as texts, and what is wrong with some of them."""
        return cells.texts(self.column(name), allow_missing)

    def first_keys(self) -> tuple[str, ...] | None:
        """The keys of the first row that has any, where rows have keys (JSON)."""
        return None


class RowLocations(ABC):
    """Where the rows of a block stand in their source."""

    first: int
    """How many rows of the source came before the block."""

    @abstractmethod
    def where(self, row: int) -> str:
        """The place of a row, in words."""

    @abstractmethod
    def position(self, row: int) -> Position:
        """Where to go on after a row."""


class RowBlock:
    """Some rows of a source, in their order. It may be empty: then nothing has come for a while.

    `len(block)` counts all rows, bad ones too, and `block.first` those of the source before it.

    >>> import pathlib, tempfile
    >>> from kernelbank.io.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("hour,load,day\\n0,1.5,mon\\n1,?,tue\\n2,3.5,wed\\n")
    ...     [block] = open_source(path).blocks()
    >>> table = block.parse(numeric=["hour", "load"], text=["day"])
    >>> table.numbers.tolist(), table.texts
    ([[0.0, 1.5], [2.0, 3.5]], {'day': ['mon', 'wed']})
    >>> print(table.rejected[0])
    small.csv, line 3, column 'load': '?' is not a number.
    >>> block.position(1)
    {'rows': 2, 'bytes': 32, 'lines': 3}
    """

    def __init__(self, content: RowData, places: RowLocations) -> None:
        self._content = content
        self._places = places

    def __len__(self) -> int:
        return len(self._content)

    @property
    def first(self) -> int:
        """How many rows of the source came before this block."""
        return self._places.first

    def where(self, row: int) -> str:
        """The place of row `row` of the block, in words: 'sensors.csv, line 17'."""
        return self._places.where(self._index(row))

    def position(self, row: int) -> Position:
        """Where to go on after row `row` of the block: plain JSON data for `Source.blocks`."""
        return self._places.position(self._index(row))

    def first_keys(self) -> tuple[str, ...] | None:
        """The keys of the first row that has any; None without one, or if rows have no keys."""
        return self._content.first_keys()

    def parse(
        self,
        numeric: Sequence[str] = (),
        text: Sequence[str] = (),
        allow_missing: bool | Collection[str] = False,
    ) -> ParsedRows:
        """The columns asked for, and the rows that do not have them as they should.

        Parameters
        ----------
        numeric : columns to give as float64.
        text : columns to give as they are.
        allow_missing : whether values may be missing, or in which columns they may.

        A row is bad if any of its values is; the first in the order asked is told.
        """
        content = self._content
        broken = content.broken
        sound = np.arange(len(self))
        if broken:
            sound = np.delete(sound, list(broken))
        bad = {
            row: RejectedRow(row, self.where(row), None, cells.shown(value), reason)
            for row, (value, reason) in broken.items()
        }

        def note(name: str, faults: list[Fault]) -> None:
            if not faults:
                return
            values = content.column(name)
            for index, reason in faults:
                row = int(sound[index])
                if row not in bad:
                    value = cells.shown(values[index])
                    bad[row] = RejectedRow(row, self.where(row), name, value, reason)

        numbers = np.empty((len(sound), len(numeric)))
        texts: dict[str, list[str | None]] = {}
        for place, name in enumerate(numeric):
            numbers[:, place], faults = content.numbers(name, _may(name, allow_missing))
            note(name, faults)
        for name in text:
            texts[name], faults = content.texts(name, _may(name, allow_missing))
            note(name, faults)
        if len(bad) > len(broken):
            good = np.array([int(row) not in bad for row in sound])
            sound, numbers = sound[good], numbers[good]
            keep = np.flatnonzero(good).tolist()
            texts = {name: [values[i] for i in keep] for name, values in texts.items()}
        return ParsedRows(sound, numbers, texts, [bad[row] for row in sorted(bad)])

    def _index(self, row: int) -> int:
        if not 0 <= row < len(self):
            remedy = "Count the rows of a block from 0."
            raise check.refuse("row", f"be below {len(self)}", row, remedy, "RowBlock")
        return row


def _may(name: str, allow_missing: bool | Collection[str]) -> bool:
    return allow_missing if isinstance(allow_missing, bool) else name in allow_missing


class Nothing(RowData, RowLocations):
    """No rows: what a source yields when nothing has come for a while."""

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


def nothing(first: int) -> RowBlock:
    """An empty block after `first` rows."""
    content = Nothing(first)
    return RowBlock(content, content)

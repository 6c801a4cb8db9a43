"""CSV: cells between delimiters, in quotes where they hold delimiters, quotes or line breaks.

Rows are read by the strict form of Python's `csv`. Where that fails (a quote that is never
closed, text after a closing quote), the line at which the row began is a bad row by itself, and
reading goes on at the next line: one wrong quote does not swallow the rows after it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileRefused
from ...utils import validation as check
from ...utils.validation import Floats
from . import parsing as cells
from .lines import LONGEST, TOO_LONG, Parsed, Splitter
from .parsing import Fault
from .rows import RowData

UNCLOSED = "has a quote that is not closed"

_WORDS = {
    "expected after": "has text after a closing quote",
    "new-line character": "has a carriage return inside a cell",
    "larger than field limit": "has a cell that is too long",
}


class CsvSplitter(Splitter):
    """Bytes of a CSV file to rows of cells."""

    def __init__(self, delimiter: str, offset: int = 0, line: int = 1) -> None:
        super().__init__(offset, line)
        self._delimiter = delimiter

    def _parse(self, text: str, lines: list[str], ends: NDArray[np.int64], final: bool) -> Parsed:
        parsed = self._plain(text, lines, ends)
        return self._careful(lines, ends, final) if parsed is None else parsed

    def _plain(self, text: str, lines: list[str], ends: NDArray[np.int64]) -> Parsed | None:
        """The quick way, for lines that are a row each; None if they may not be."""
        if '"' in text:
            return None
        if self._lengths(ends).max() > min(LONGEST, csv.field_size_limit()):
            return None
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
            if any("\r" in line for line in lines):
                return None
        delimiter = self._delimiter
        if all(lines):
            rows = [line.split(delimiter) for line in lines]
            return Parsed(rows, range(len(rows)), range(len(rows)), len(lines))
        filled = [index for index, line in enumerate(lines) if line]
        rows = [lines[index].split(delimiter) for index in filled]
        return Parsed(rows, filled, filled, len(lines))

    def _careful(self, lines: list[str], ends: NDArray[np.int64], final: bool) -> Parsed:
        rows: list[list[str] | None] = []
        firsts: list[int] = []
        lasts: list[int] = []
        broken: dict[int, tuple[str, str]] = {}
        bounds = [0, *ends.tolist()]
        bounds[-1] += not self._ended  # as if the last line had an end
        at = 0

        def give_up(reason: str) -> None:
            nonlocal at
            broken[len(rows)] = (lines[at].removesuffix("\r"), reason)
            rows.append(None)
            firsts.append(at)
            lasts.append(at)
            at += 1

        while at < len(lines):
            ran_out = False

            def rest(start: int) -> Iterator[str]:
                nonlocal ran_out
                for index in range(start, len(lines)):
                    yield lines[index] + "\n"
                ran_out = True

            reader = csv.reader(rest(at), delimiter=self._delimiter, strict=True)
            begin = at
            try:
                for row in reader:
                    after = begin + reader.line_num
                    if bounds[after] - bounds[at] - 1 > LONGEST:
                        give_up(TOO_LONG)
                        break
                    if row:
                        rows.append(row)
                        firsts.append(at)
                        lasts.append(after - 1)
                    at = after
            except csv.Error as error:
                if ran_out:
                    if not final and bounds[-1] - bounds[at] <= LONGEST:
                        break
                    give_up(UNCLOSED)
                else:
                    give_up(_in_words(error))
        return Parsed(rows, firsts, lasts, at, broken)


class CsvRows(RowData):
    """Rows of a CSV file: as many cells as there are columns, or broken."""

    def __init__(
        self,
        rows: Sequence[list[str] | None],
        columns: tuple[str, ...],
        broken: dict[int, tuple[Any, str]],
        delimiter: str,
    ) -> None:
        self._length = len(rows)
        self._columns = columns
        self.broken = dict(broken)
        width = len(columns)
        sound = rows if not broken else [row for row in rows if row is not None]
        if set(map(len, sound)) - {width}:  # type: ignore[arg-type]
            for index, row in enumerate(rows):
                if row is not None and len(row) != width:
                    count = f"{len(row)} cell{'s' * (len(row) != 1)} under {width} columns"
                    self.broken[index] = (delimiter.join(row), f"has {count}")
            sound = [row for index, row in enumerate(rows) if index not in self.broken]
        self._values: list[Sequence[str]] = list(zip(*sound)) if sound else [()] * width  # type: ignore[arg-type]  # noqa: B905

    def __len__(self) -> int:
        return self._length

    def column(self, name: str) -> Sequence[str]:
        return self._values[place(name, self._columns)]

    def numbers(self, name: str, allow_missing: bool) -> tuple[Floats, list[Fault]]:
        return cells.numbers(self.column(name), allow_missing, kinds=frozenset((str,)))


def place(name: str, columns: Sequence[str]) -> int:
    """The index of a column; refused if there is none of that name."""
    if name not in columns:
        listed = ", ".join(repr(column) for column in columns[:12])
        more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
        remedy = f"The columns are {listed}{more}."
        raise check.refuse("column", "be a column of the source", name, remedy)
    return columns.index(name)


def names_of(header: Sequence[str], source: str, line: int) -> tuple[str, ...]:
    """The names in a header; empty or repeated ones are refused."""
    names = tuple(cell.strip() for cell in header)
    for index, name in enumerate(names):
        if not name:
            raise FileRefused(
                f"{source}, line {line}: column {index + 1} has no name. "
                "Write a name for every column into the first line."
            )
        if names.index(name) != index:
            raise FileRefused(
                f"{source}, line {line}: more than one column is called {name!r}. "
                "Give every column a name of its own."
            )
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise FileRefused(
                f"{source}, line {line}: the name of column {index + 1} is not UTF-8 text. "
                "Save the table as UTF-8."
            ) from None
    return names


def _in_words(error: csv.Error) -> str:
    said = str(error)
    return next((words for part, words in _WORDS.items() if part in said), f"is not a row ({said})")

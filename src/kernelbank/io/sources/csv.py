"""CSV: cells between delimiters, in quotes where they hold delimiters, quotes or line breaks.

Rows are read by the strict mode of Python's `csv`. Where that fails (a quote that is never closed,
text after a closing quote), the line at which the row began is a rejected row of its own, and
reading continues at the next line: one wrong quote does not swallow the rows after it.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileRefused, KernelBankWarning
from ...utils.validation import Floats
from ..dialect import CsvDialect
from . import parsing
from .lines import TOO_LONG, LineSplitter, TextChunk
from .parsing import Fault
from .row_block import RowData, column_index

UNCLOSED = "has a quote that is not closed"

_REASONS = {
    "expected after": "has text after a closing quote",
    "new-line character": "has a carriage return inside a cell",
    "larger than field limit": "has a cell that is too long",
}


class CsvSplitter(LineSplitter):
    """Bytes of a CSV file to rows of cells."""

    def __init__(self, delimiter: str, offset: int = 0, line: int = 1) -> None:
        super().__init__(offset, line)
        self._delimiter = delimiter

    def _parse(
        self, text: str, lines: list[str], ends: NDArray[np.int64], final: bool
    ) -> TextChunk:
        fast = self._parse_unquoted(text, lines, ends)
        return self._parse_quoted(lines, ends, final) if fast is None else fast

    def _parse_unquoted(
        self, text: str, lines: list[str], ends: NDArray[np.int64]
    ) -> TextChunk | None:
        """The fast path: every line is a row; None if that may not be so."""
        if '"' in text:
            return None
        if self._line_lengths(ends).max() > min(self.max_row_bytes, csv.field_size_limit()):
            return None
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
            if any("\r" in line for line in lines):
                return None
        filled: Sequence[int] = range(len(lines))
        if not all(lines):
            filled = [index for index, line in enumerate(lines) if line]
        rows = [lines[index].split(self._delimiter) for index in filled]
        return TextChunk(rows, filled, filled, len(lines))

    def _parse_quoted(self, lines: list[str], ends: NDArray[np.int64], final: bool) -> TextChunk:
        rows: list[list[str] | None] = []
        first_lines: list[int] = []
        last_lines: list[int] = []
        broken: dict[int, tuple[str, str]] = {}
        bounds = [0, *ends.tolist()]
        bounds[-1] += not self._ended  # as if the last line had an end
        at = 0

        def reject_line(reason: str) -> None:
            nonlocal at
            broken[len(rows)] = (lines[at].removesuffix("\r"), reason)
            rows.append(None)
            first_lines.append(at)
            last_lines.append(at)
            at += 1

        while at < len(lines):
            ran_out = False

            def lines_from(start: int) -> Iterator[str]:
                nonlocal ran_out
                for index in range(start, len(lines)):
                    yield lines[index] + "\n"
                ran_out = True

            reader = csv.reader(lines_from(at), delimiter=self._delimiter, strict=True)
            begin = at
            try:
                for row in reader:
                    after = begin + reader.line_num
                    if bounds[after] - bounds[at] - 1 > self.max_row_bytes:
                        reject_line(TOO_LONG)
                        break
                    if row:
                        rows.append(row)
                        first_lines.append(at)
                        last_lines.append(after - 1)
                    at = after
            except csv.Error as error:
                if ran_out:
                    if not final and bounds[-1] - bounds[at] <= self.max_row_bytes:
                        break
                    reject_line(UNCLOSED)
                else:
                    reject_line(_reason(error))
        return TextChunk(rows, first_lines, last_lines, at, broken)


class CsvRows(RowData):
    """Rows of a CSV file. A row with more or fewer cells than columns is broken."""

    def __init__(
        self,
        rows: Sequence[list[str] | None],
        columns: tuple[str, ...],
        broken: dict[int, tuple[Any, str]],
        dialect: CsvDialect,
    ) -> None:
        self._length = len(rows)
        self._decimal = dialect.decimal
        self._columns = columns
        self.broken = dict(broken)
        width = len(columns)
        valid = rows if not broken else [row for row in rows if row is not None]
        if set(map(len, valid)) - {width}:  # type: ignore[arg-type]
            for index, row in enumerate(rows):
                if row is not None and len(row) != width:
                    count = f"{len(row)} cell{'s' * (len(row) != 1)} under {width} columns"
                    self.broken[index] = (dialect.delimiter.join(row), f"has {count}")
            valid = [row for index, row in enumerate(rows) if index not in self.broken]
        self._values: list[Sequence[str]] = list(zip(*valid)) if valid else [()] * width  # type: ignore[arg-type]  # noqa: B905

    def __len__(self) -> int:
        return self._length

    def column(self, name: str) -> Sequence[str]:
        return self._values[column_index(name, self._columns)]

    def numbers(self, name: str, allow_missing: bool) -> tuple[Floats, list[Fault]]:
        cells = self.column(name)
        if self._decimal != ".":
            cells = parsing.with_points(cells, self._decimal)
        return parsing.parse_numbers(cells, allow_missing, kinds=frozenset((str,)))


def header_names(header: Sequence[str], source: str, line: int) -> tuple[str, ...]:
    """The names in a header; repeated ones are refused.

    A column without a name, such as the index that pandas writes, is called by its number.
    """
    names = tuple(cell.strip() or f"column {n}" for n, cell in enumerate(header, start=1))
    for index, name in enumerate(names):
        if not header[index].strip():
            warnings.warn(
                f"{source}, line {line}: column {index + 1} has no name; here it is {name!r}. If "
                "it only numbers the rows, leave it out of the inputs: name those in --features.",
                KernelBankWarning,
                stacklevel=2,
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


def _reason(error: csv.Error) -> str:
    text = str(error)
    return next(
        (words for part, words in _REASONS.items() if part in text), f"is not a row ({text})"
    )

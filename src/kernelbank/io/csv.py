"""CSV: cells between delimiters, in quotes where they hold delimiters, quotes or line breaks.

Rows are read by the strict mode of Python's `csv`. Where that fails (a quote that is never closed,
text after a closing quote), the line at which the row began is a rejected row of its own, and
reading continues at the next line: one wrong quote does not swallow the rows after it. A row that
has not ended within `MAX_ROW_BYTES` is rejected likewise. The time is linear in the bytes, whatever
the quotes are.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence

from ..errors import FileRefused, KernelBankWarning
from ..utils.validation import Floats, reads_as_number
from .cells import Fault, parse_numbers, with_points
from .dialect import CsvDialect
from .lines import MAX_ROW_BYTES, TOO_LONG, Integers, LineSplitter, TextChunk
from .source import Broken, RowData, column_index

UNCLOSED = "has a quote that is not closed"
CLOSED_TOO_LATE = f"{UNCLOSED} within {MAX_ROW_BYTES} bytes"

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
        self._open_lines = 0
        """How many first lines of the next text are sure to end inside a quoted cell."""

    def _parse(
        self, text: str, lines: list[str], ends: Integers, following: int | None
    ) -> TextChunk:
        chunk = None
        if not self._open_lines:
            chunk = self._parse_unquoted(text, lines, ends) or self._parse_quoted(lines, ends)
        return chunk or self._parse_by_line(lines, ends, following)

    def _parse_unquoted(self, text: str, lines: list[str], ends: Integers) -> TextChunk | None:
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

    def _parse_quoted(self, lines: list[str], ends: Integers) -> TextChunk | None:
        """All rows by one reader; None if one of them is broken, too long or not complete."""
        ended_lines = (line + "\n" for line in lines)
        reader = csv.reader(ended_lines, delimiter=self._delimiter, strict=True)
        rows: list[list[str]] = []
        first_lines: list[int] = []
        last_lines: list[int] = []
        bounds = self._bounds(ends)
        at = 0
        try:
            for row in reader:
                after = reader.line_num
                if bounds[after] - bounds[at] - 1 > self.max_row_bytes:
                    return None
                if row:
                    rows.append(row)
                    first_lines.append(at)
                    last_lines.append(after - 1)
                at = after
        except csv.Error:
            return None
        return TextChunk(rows, first_lines, last_lines, len(lines))

    def _parse_by_line(self, lines: list[str], ends: Integers, following: int | None) -> TextChunk:
        """The same rows, with the broken ones between them, in linear time.

        Between two lines of a row, the reader is always inside a quoted cell. So what a line does
        to a row that is open depends on the line alone, wherever the row began: each line is parsed
        at most three times, as a first line, as a later one, and for its cells.
        """
        parser = _LineParser(self._delimiter)
        rows: list[list[str] | None] = []
        first_lines: list[int] = []
        last_lines: list[int] = []
        broken: dict[int, tuple[str, str]] = {}
        bounds, count = self._bounds(ends), len(lines)
        at = 0
        # The first line after `at` at which an open quoted cell does not just go on (`count` if
        # there is none), and what `parse` says of it. Both hold for every `at` before it.
        stop, stop_cells = self._open_lines, None
        row: list[str] | str | None
        while at < count:
            too_long = bounds[at + 1] - bounds[at] - 1 > self.max_row_bytes
            if self._open_lines:
                row, self._open_lines = None, 0
            else:
                row = TOO_LONG if too_long else parser.parse(lines[at])
            after = at + 1
            if row is None:
                if stop <= at:
                    stop, stop_cells = at + 1, None
                while stop_cells is None and stop < count:
                    stop_cells = parser.parse('"' + lines[stop])
                    stop += stop_cells is None
                if stop_cells is None:
                    size = int(ends[-1]) - bounds[at] + (following or 0)
                else:
                    size = bounds[stop + 1] - bounds[at] - 1
                if size > self.max_row_bytes:
                    row = CLOSED_TOO_LATE
                elif stop_cells is None and following is not None:
                    self._open_lines = count - at
                    break  # the end of the row may still come
                elif stop_cells is None:
                    row = UNCLOSED
                elif isinstance(stop_cells, str):
                    row = stop_cells
                else:
                    row = parser.join(lines[at:stop], stop_cells)
                    after = stop + 1
            if isinstance(row, str):
                line = self._beginning(lines[at]) if too_long else lines[at].removesuffix("\r")
                broken[len(rows)] = (line, row)
                row = None
            if row is None or row:  # a blank line is not a row
                rows.append(row)
                first_lines.append(at)
                last_lines.append(after - 1)
            at = after
        return TextChunk(rows, first_lines, last_lines, at, broken)

    def _bounds(self, ends: Integers) -> list[int]:
        """(lines + 1,) the byte at which each line begins, as if the last one had an end."""
        bounds = [0, *ends.tolist()]
        bounds[-1] += not self._ended
        return bounds


class _LineParser:
    """Parses single lines, as the first line of a row or inside a quoted cell."""

    def __init__(self, delimiter: str) -> None:
        self._line: list[str] = []
        self._reader = csv.reader(self, delimiter=delimiter, strict=True)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """The line that waits to be parsed; an iterator that goes on after it was empty."""
        if not self._line:
            raise StopIteration
        return self._line.pop()

    def parse(self, line: str) -> list[str] | str | None:
        """The cells, if a row ends with the line; None if it ends inside a quoted cell.

        Otherwise the reason why it is not a row. A line that begins inside a quoted cell is passed
        with a quote before it.
        """
        self._line.append(line + "\n")
        try:
            return next(self._reader)
        except csv.Error as error:
            self._line.clear()
            text = str(error)
            if "unexpected end" in text:
                return None
            words = (words for part, words in _REASONS.items() if part in text)
            return next(words, f"is not a row ({text})")

    def join(self, lines: Sequence[str], last: list[str]) -> list[str]:
        """The cells of a row: lines that end inside a quoted cell, and a parsed last one."""
        parsed = [self.parse(('"' if n else "") + line + '"') for n, line in enumerate(lines)]
        cells: list[str] = []
        parts: list[str] = []  # of the quoted cell that is open
        for line_cells in (*parsed, last):
            assert isinstance(line_cells, list)
            if parts:
                parts.append(line_cells.pop(0))
            if line_cells:
                cells += ["\n".join(parts)] * bool(parts) + line_cells[:-1]
                parts = line_cells[-1:]
        return [*cells, "\n".join(parts)]


class CsvRows(RowData):
    """Rows of a CSV file. A row with more or fewer cells than columns is broken."""

    def __init__(
        self,
        rows: Sequence[list[str] | None],
        columns: tuple[str, ...],
        broken: Broken,
        dialect: CsvDialect,
    ) -> None:
        self._length = len(rows)
        self._decimal = dialect.decimal
        self._columns = columns
        self.broken = dict(broken)
        width = len(columns)
        valid = [row for row in rows if row is not None]
        if set(map(len, valid)) - {width}:
            for index, row in enumerate(rows):
                if row is not None and len(row) != width:
                    count = f"{len(row)} cell{'s' * (len(row) != 1)} under {width} columns"
                    self.broken[index] = (dialect.delimiter.join(row), f"has {count}")
            valid = [row for row in valid if len(row) == width]
        self._values: list[Sequence[str]] = list(zip(*valid, strict=True)) or [()] * width

    def __len__(self) -> int:
        return self._length

    def column(self, name: str) -> Sequence[str]:
        return self._values[column_index(name, self._columns)]

    def numbers(self, name: str, allow_missing: bool) -> tuple[Floats, list[Fault]]:
        cells = self.column(name)
        if self._decimal != ".":
            cells = with_points(cells, self._decimal)
        return parse_numbers(cells, allow_missing, kinds=frozenset((str,)))


def header_names(header: Sequence[str], source: str, line: int) -> tuple[str, ...]:
    """The names in a header; repeated ones are refused.

    A column without a name, such as the index that pandas writes, is called by its number.
    """
    names = tuple(cell.strip() or f"column {n}" for n, cell in enumerate(header, start=1))
    if all(reads_as_number(cell) for cell in header):
        warnings.warn(
            f"{source}, line {line}: the first line looks like a row, not like the names of the "
            "columns. If it is one, add a line with their names before it.",
            KernelBankWarning,
            stacklevel=2,
        )
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

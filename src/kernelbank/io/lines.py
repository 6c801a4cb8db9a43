"""Bytes to lines to rows of CSV or JSON, with the line and the byte at which each row ends.

Bytes come in pieces of any size, and the rows do not depend on where pieces end. A row that is
longer than `MAX_ROW_BYTES` is rejected: so no file takes more memory than a few such rows.

Rows of CSV are read by the strict mode of Python's `csv`. Where that fails (a quote that is never
closed, text after a closing quote), the line at which the row began is a rejected row of its own,
and reading continues at the next line: one wrong quote does not swallow the rows after it. The time
is linear in the bytes, whatever the quotes are.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FileRefused, KernelBankWarning
from ..utils import validation as check
from ..utils.validation import Floats, reads_as_number
from .cells import Fault, copied_text, parse_numbers, with_points
from .source import BrokenRow, RowData, column_index

MAX_ROW_BYTES = 1 << 18  # the most bytes of one row, without its last line end
BYTE_ORDER_MARK = "\ufeff"
TOO_LONG = f"is the beginning of a row longer than {MAX_ROW_BYTES} bytes"
INVALID_JSON = "is broken JSON"
NOT_AN_OBJECT = "is not a JSON object"
UNCLOSED = "has a quote that is not closed"
CLOSED_TOO_LATE = f"{UNCLOSED} within {MAX_ROW_BYTES} bytes"

_REASONS = {
    "expected after": "has text after a closing quote",
    "new-line character": "has a carriage return inside a cell",
    "larger than field limit": "has a cell that is too long",
}

Integers = NDArray[np.int64]

Rows = tuple[list[Any], list[int], list[int], int]
"""Rows, their first and their last lines, and how many lines they have, as in `TextChunk`."""

DELIMITER_RULE = "be one character, or the word tab"
DECIMAL_RULE = "be '.' or ','"

_WORDS = {"tab": "\t", "\\t": "\t"}


def delimiter_character(delimiter: object) -> str | None:
    """The character that a delimiter is given as; None if it cannot be one."""
    character = _WORDS.get(delimiter, delimiter) if isinstance(delimiter, str) else None
    valid = isinstance(character, str) and len(character) == 1 and character not in '"\r\n {'
    return character if valid else None


@dataclass(frozen=True)
class CsvDialect:
    """The delimiter and the decimal point.

    >>> CsvDialect.of("tab", ",")
    CsvDialect(delimiter='\\t', decimal=',')
    """

    delimiter: str = ","
    decimal: str = "."

    @classmethod
    def of(cls, delimiter: object, decimal: object) -> CsvDialect:
        """The checked dialect."""
        character = delimiter_character(delimiter)
        if character is None:
            remedy = "Give what stands between the cells, such as ',' or ';'."
            raise check.refuse("delimiter", DELIMITER_RULE, delimiter, remedy)
        if decimal not in (".", ","):
            remedy = "Give what stands before the fraction of a number."
            raise check.refuse("decimal", DECIMAL_RULE, decimal, remedy)
        return cls(character, decimal)


class TextChunk(NamedTuple):
    """Complete rows of a text, and where each of them stands."""

    raw: bytes
    """The bytes of the rows and of blank lines between them. All `raw` together are all bytes."""
    offset: int
    line: int
    """The byte and the line (from 1) of the text at which the chunk begins."""
    rows: Sequence[Any] = ()
    """(n,): lists of cells (CSV) or dictionaries (JSON); a `BrokenRow` is a tuple."""
    first_lines: Sequence[int] = ()
    last_lines: Sequence[int] = ()
    """(n,): the first and the last line of each row, counted from 0 in the chunk."""
    line_count: int = 0
    line_ends: Integers | None = None
    """(line_count,): the bytes of the chunk up to the end of each line; None for one line."""

    def first_line(self, row: int) -> int:
        """The line of the text, from 1, at which a row begins."""
        return self.line + self.first_lines[row]

    def last_line(self, row: int) -> int:
        """The line of the text, from 1, at which a row ends."""
        return self.line + self.last_lines[row]

    def end(self, row: int) -> int:
        """How many bytes of the text there are up to the end of a row."""
        ends = self.line_ends
        return self.offset + (len(self.raw) if ends is None else int(ends[self.last_lines[row]]))

    def is_unended(self, row: int) -> bool:
        """Whether a row has no line end: a file that grows may continue it.

        After the last row there may be blank lines, of which the last has no end.
        """
        return self.last_lines[row] == self.line_count - 1 and not self.raw.endswith(b"\n")


class LineSplitter:
    """Makes rows of bytes that come in pieces, from byte `offset` and line `line` on.

    Of CSV, or without a dialect of JSON lines.
    """

    max_row_bytes = MAX_ROW_BYTES

    def __init__(self, dialect: CsvDialect | None, offset: int = 0, line: int = 1) -> None:
        self._dialect = dialect
        self._offset = offset
        self._line = line
        self._rest = b""
        self._too_long: str | None = None
        """The beginning of a row that is too long and whose end has not come."""
        self._open_lines = 0
        """How many first lines of the next text are sure to end inside a quoted cell."""

    @property
    def has_rest(self) -> bool:
        """Whether bytes have come that are not part of a complete row."""
        return bool(self._rest) or self._too_long is not None

    def feed(self, data: bytes, last: bool) -> Iterator[TextChunk]:
        """The rows that are complete now. With `last`, nothing comes after `data`."""
        data = self._rest + data if self._rest else data
        self._rest = b""
        if self._too_long is not None:
            end = data.find(b"\n") + 1
            if not end and not last:
                yield self._chunk(data)
                return
            end = end or len(data)
            broken, self._too_long = (self._too_long, TOO_LONG), None
            yield self._chunk(data[:end], [broken], [0], [0], 1)
            data = data[end:]
        cut = len(data) if last else data.rfind(b"\n") + 1
        complete, rest = data[:cut], data[cut:]
        too_long = len(rest) > self.max_row_bytes
        if complete:
            lines, ends = self._lines(complete)
            rows = self._rows(lines, ends, None if last else len(rest))
            line_count = rows[-1]
            if line_count < len(lines):  # the last row is not complete: its bytes wait
                cut = int(ends[line_count - 1]) if line_count else 0
                rest, complete = complete[cut:] + rest, complete[:cut]
            if complete:
                yield self._chunk(complete, *rows, ends)
        if too_long:
            text = rest.decode("utf-8", "surrogateescape")
            self._too_long = self._beginning(text.removeprefix(self._mark))
            yield self._chunk(rest)
        else:
            self._rest = rest

    def _chunk(self, raw: bytes, *rows: Any) -> TextChunk:
        """The next bytes of the text with their rows, as in `TextChunk`."""
        chunk = TextChunk(raw, self._offset, self._line, *rows)
        self._offset += len(raw)
        self._line += chunk.line_count
        return chunk

    def _rows(self, lines: list[str], ends: Integers, following: int | None) -> Rows:
        """The rows of lines, with the broken ones between them, in linear time.

        `following` counts the bytes of the line after them, whose end has not come. It is None if
        nothing comes after them: then a row that is not complete will not be completed.

        Between two lines of a row, the reader is always inside a quoted cell. So what a line does
        to a row that is open depends on the line alone, wherever the row began: each line is parsed
        at most three times, as a first line, as a later one, and for its cells.
        """
        rows: list[Any] = []
        first_lines: list[int] = []
        last_lines: list[int] = []
        # (lines + 1,) the byte at which each line begins. If the last one has no end, it was
        # compared with `max_row_bytes` before, with all that is not a row yet.
        bounds, count, at = [0, *ends.tolist()], len(lines), 0
        # The first line after `at` at which an open quoted cell does not just go on (`count` if
        # there is none), and what `_row` says of it. Both hold for every `at` before it.
        stop, stop_cells = self._open_lines, None
        row: Any
        while at < count:
            too_long = bounds[at + 1] - bounds[at] - 1 > self.max_row_bytes
            if self._open_lines:
                row, self._open_lines = None, 0
            else:
                row = TOO_LONG if too_long else self._row(lines[at])
            after = at + 1
            if row is None:
                if stop <= at:
                    stop, stop_cells = at + 1, None
                while stop_cells is None and stop < count:
                    stop_cells = self._row('"' + lines[stop])
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
                    row = self._row(*lines[at : stop + 1])
                    after = stop + 1
            if isinstance(row, str):
                line = self._beginning(lines[at]) if too_long else lines[at].strip()
                row, after = (line, row), at + 1
            if row != []:  # a blank line is not a row
                rows.append(row)
                first_lines.append(at)
                last_lines.append(after - 1)
            at = after
        return rows, first_lines, last_lines, at

    def _row(self, *lines: str) -> Any:
        """The row of these lines, [] if they are blank, or the reason why they are not a row.

        None if they end inside a quoted cell. Of a line that begins inside a quoted cell, only this
        is asked, with a quote before it.
        """
        if self._dialect is None:
            return parse_object(lines[0]) if lines[0].strip() else []
        delimiter, plain = self._dialect.delimiter, lines[0].removesuffix("\r")
        if '"' not in plain and "\r" not in plain and len(plain) < csv.field_size_limit():
            return plain.split(delimiter) if plain else []  # quicker
        ended_lines = [line + "\n" for line in lines]
        try:
            return next(csv.reader(ended_lines, delimiter=delimiter, strict=True))
        except csv.Error as error:
            text = str(error)
        if "unexpected end" in text:
            return None
        reasons = (reason for part, reason in _REASONS.items() if part in text)
        return next(reasons, f"is not a row ({text})")

    def _lines(self, data: bytes) -> tuple[list[str], Integers]:
        """The lines of a text without their ends, and the bytes up to the end of each.

        Bytes that are not UTF-8 become lone surrogates: they are rejected only where they are used.
        """
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        if data.endswith(b"\n"):
            lines.pop()
        else:
            ends = np.append(ends, len(data))
        lines[0] = lines[0].removeprefix(self._mark)
        return lines, ends

    @property
    def _mark(self) -> str:
        """What may stand before the first line and does not belong to it."""
        return "" if self._offset else BYTE_ORDER_MARK

    def _beginning(self, line: str) -> str:
        """What is shown of a line that is too long: the same, whatever pieces it came in.

        The byte order mark, which is not shown, may be among the bytes that have come.
        """
        surely_come = self.max_row_bytes - len(BYTE_ORDER_MARK.encode())
        data = line.encode("utf-8", "surrogateescape")
        return data[: min(surely_come, 100)].decode("utf-8", "surrogateescape")


def parse_object(text: str) -> dict[str, object] | str:
    """The JSON object in a text, or why there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError too
        return INVALID_JSON
    return value if isinstance(value, dict) else NOT_AN_OBJECT


def first_object_keys(rows: Sequence[object]) -> tuple[str, ...] | None:
    """The keys of the first row that is an object."""
    return next((tuple(row) for row in rows if isinstance(row, dict)), None)


class CsvRows(RowData):
    """Rows of a CSV file. A row with more or fewer cells than columns is broken."""

    def __init__(self, rows: Sequence[Any], columns: tuple[str, ...], dialect: CsvDialect) -> None:
        self._columns = columns
        self._dialect = dialect
        width = len(columns)
        super().__init__(
            [row if len(row) == width or type(row) is tuple else self._misfit(row) for row in rows]
        )
        self._values: list[Sequence[str]] = list(zip(*self.valid, strict=True)) or [()] * width

    def _misfit(self, row: list[str]) -> BrokenRow:
        count = f"{len(row)} cell{'s' * (len(row) != 1)} under {len(self._columns)} columns"
        return self._dialect.delimiter.join(row), f"has {count}"

    def column(self, name: str) -> Sequence[str]:
        return self._values[column_index(name, self._columns)]

    def numbers(self, name: str) -> tuple[Floats, list[Fault]]:
        cells = self.column(name)
        if self._dialect.decimal != ".":
            cells = with_points(cells, self._dialect.decimal)
        return parse_numbers(cells, kinds=frozenset((str,)))


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    """The names in a header; a column without one is called by its number."""
    return tuple(cell.strip() or f"column {n}" for n, cell in enumerate(header, start=1))


def header_names(header: Sequence[str], source: str, line: int) -> tuple[str, ...]:
    """The names in a header; repeated ones are refused.

    Warns of a column without a name, such as the index that pandas writes.
    """
    names = column_names(header)
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
        if copied_text(name) != name:
            raise FileRefused(
                f"{source}, line {line}: the name of column {index + 1} is not UTF-8 text. "
                "Save the table as UTF-8."
            )
    return names

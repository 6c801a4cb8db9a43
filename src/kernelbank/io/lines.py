"""Bytes to lines to rows of CSV or JSON, with the line and the byte at which each row ends.

Bytes come in pieces of any size, and the rows do not depend on where pieces end. A line is a row,
of CSV too: a cell holds no line end, so one wrong quote does not swallow the rows after it. A line
that is longer than `MAX_ROW_BYTES` is rejected: so no file takes more memory than a few such lines.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

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

_REASONS = {
    "unexpected end": "has a quote that is not closed in its line",
    "expected after": "has text after a closing quote",
    "new-line character": "has a carriage return inside a cell",
    "larger than field limit": "has a cell that is too long",
}

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
    """Complete lines of a text, and the rows in them."""

    raw: bytes
    """The bytes of the lines. All `raw` together are all bytes."""
    offset: int
    line: int
    """The byte and the line (from 1) of the text at which the chunk begins."""
    rows: Sequence[Any] = ()
    """(n,): lists of cells (CSV) or dictionaries (JSON); a `BrokenRow` is a tuple."""
    lines: Sequence[int] = ()
    """(n,): the line of each row, counted from 0 in the chunk; blank lines are no rows."""
    line_ends: Sequence[int] = ()
    """(lines,): the bytes of the chunk up to the end of each line."""

    def line_of(self, row: int) -> int:
        """The line of the text, from 1, in which a row is."""
        return self.line + self.lines[row]

    def end(self, row: int) -> int:
        """How many bytes of the text there are up to the end of a row."""
        return self.offset + self.line_ends[self.lines[row]]

    def is_unended(self, row: int) -> bool:
        """Whether a row has no line end: a file that grows may continue it.

        After the last row there may be blank lines, of which the last has no end.
        """
        return self.lines[row] == len(self.line_ends) - 1 and not self.raw.endswith(b"\n")


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
            yield self._chunk(data[:end], [broken], [0], [end])
            data = data[end:]
        cut = len(data) if last else data.rfind(b"\n") + 1
        complete, rest = data[:cut], data[cut:]
        if complete:
            yield self._chunk(complete, *self._rows(complete))
        if len(rest) > self.max_row_bytes:
            text = rest.decode("utf-8", "surrogateescape")
            self._too_long = self._beginning(text.removeprefix(self._mark))
            yield self._chunk(rest)
        else:
            self._rest = rest

    def _chunk(self, raw: bytes, *rows: Any) -> TextChunk:
        """The next bytes of the text with their rows, as in `TextChunk`."""
        chunk = TextChunk(raw, self._offset, self._line, *rows)
        self._offset += len(raw)
        self._line += len(chunk.line_ends)
        return chunk

    def _rows(self, data: bytes) -> tuple[list[Any], list[int], list[int]]:
        """The rows of lines, with the broken ones between them, as in `TextChunk`.

        Bytes that are not UTF-8 become lone surrogates: they are rejected only where they are used.
        """
        ends = (np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1).tolist()
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        if data.endswith(b"\n"):
            lines.pop()
        else:
            ends.append(len(data))
        lines[0] = lines[0].removeprefix(self._mark)
        rows: list[Any] = []
        numbers: list[int] = []
        for number, (line, begin, end) in enumerate(zip(lines, [0, *ends], ends, strict=False)):
            row: Any
            if end - begin - 1 > self.max_row_bytes:
                row = self._beginning(line), TOO_LONG
            else:
                row = self._row(line)
                row = (line.strip(), row) if isinstance(row, str) else row
            if row != []:  # a blank line is not a row
                rows.append(row)
                numbers.append(number)
        return rows, numbers, ends

    def _row(self, line: str) -> list[str] | dict[str, object] | str:
        """The row of a line, [] if it is blank, or the reason why it is not a row."""
        if self._dialect is None:
            return parse_object(line) if line.strip() else []
        delimiter, plain = self._dialect.delimiter, line.removesuffix("\r")
        if '"' not in plain and "\r" not in plain and len(plain) < csv.field_size_limit():
            return plain.split(delimiter) if plain else []  # quicker
        try:
            return next(csv.reader([line + "\n"], delimiter=delimiter, strict=True))
        except csv.Error as error:
            reasons = (reason for part, reason in _REASONS.items() if part in str(error))
            return next(reasons, f"is not a row ({error})")

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

"""JSON objects: a row is a dictionary, and the names of its values come with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lines import TOO_LONG, LineSplitter, TextChunk
from .row_block import RowData

INVALID_JSON = "is broken JSON"
NOT_AN_OBJECT = "is not a JSON object"


def parse_object(text: str) -> dict[str, Any] | str:
    """The JSON object in a text, or why there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError too
        return INVALID_JSON
    return value if isinstance(value, dict) else NOT_AN_OBJECT


class JsonSplitter(LineSplitter):
    """Bytes of JSON lines to rows."""

    def _parse(
        self, text: str, lines: list[str], ends: NDArray[np.int64], following: int | None
    ) -> TextChunk:
        del text, following  # a row never takes more than a line
        rows: list[dict[str, Any] | None] = []
        row_lines: list[int] = []
        broken: dict[int, tuple[str, str]] = {}
        long = set(np.flatnonzero(self._line_lengths(ends) > self.max_row_bytes).tolist())
        for index, line in enumerate(lines):
            if not line or line.isspace():
                continue
            value = TOO_LONG if index in long else parse_object(line)
            row_lines.append(index)
            if isinstance(value, str):
                shown = self._beginning(line) if index in long else line.strip()
                broken[len(rows)] = (shown, value)
                rows.append(None)
            else:
                rows.append(value)
        return TextChunk(rows, row_lines, row_lines, len(lines), broken)


class JsonRows(RowData):
    """Rows that are dictionaries. A key that a row lacks is a missing value."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any] | None], broken: dict[int, tuple[Any, str]]
    ) -> None:
        self.rows = rows
        self.broken = broken
        self._valid = [row for row in rows if row is not None]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Sequence[Any]:
        return [row.get(name) for row in self._valid]

    def first_keys(self) -> tuple[str, ...] | None:
        return next((tuple(row) for row in self._valid if row), None)


def first_object_keys(rows: Sequence[Mapping[str, Any] | None]) -> tuple[str, ...] | None:
    """The keys of the first row that is an object."""
    return next((tuple(row) for row in rows if row is not None), None)

"""Messages of Kafka as rows: what they hold, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .jsonl import JsonRows, parse_object
from .row_block import Position, RowLocations

EMPTY = "is a message without a value"


class OffsetLocations(RowLocations):
    """Messages by partition and offset."""

    def __init__(
        self,
        name: str,
        first: int,
        messages: Sequence[Any],
        before: dict[int, int],
        missing: int,
    ) -> None:
        self.first = first
        self._missing = missing
        self._name = name
        self._offsets = [(message.partition(), message.offset()) for message in messages]
        self._before = before

    def reached(self, row: int) -> dict[int, int]:
        """For every partition the next offset after a row."""
        offsets = dict(self._before)
        for partition, offset in self._offsets[: row + 1]:
            offsets[partition] = offset + 1
        return offsets

    def where(self, row: int) -> str:
        partition, offset = self._offsets[row]
        return f"{self._name}, partition {partition}, offset {offset}"

    def position(self, row: int) -> Position:
        offsets = {str(key): value for key, value in sorted(self.reached(row).items())}
        return {"rows": self.first + row + 1, "offsets": offsets, "missing": self._missing}

    def identifier(self, row: int) -> str:
        """Partition and offset: 0-17."""
        return "{}-{}".format(*self._offsets[row])


def json_rows(messages: Sequence[Any]) -> JsonRows:
    """The JSON objects of messages; other values are broken rows."""
    rows: list[dict[str, Any] | None] = []
    broken: dict[int, tuple[Any, str]] = {}
    for index, message in enumerate(messages):
        raw = message.value()
        text = "" if raw is None else raw.decode("utf-8", "surrogateescape")
        row = EMPTY if raw is None else parse_object(text)
        if isinstance(row, str):
            broken[index] = (text, row)
            rows.append(None)
        else:
            rows.append(row)
    return JsonRows(rows, broken)

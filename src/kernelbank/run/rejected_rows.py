"""The bad rows that a run has skipped: their number, and the first and last of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import FileRefused
from ..io.sources import RejectedRow

SHOWN = 20
"""How many of the first bad rows are kept for the page, and how many of the last."""

_FIELDS = ("row", "where", "column", "value", "reason", "advice")


class RejectedRows:
    """Counts rejected rows and keeps the first and the last of them as JSON data."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[dict[str, Any]] = []
        self.last: list[dict[str, Any]] = []

    def add(self, rejected: RejectedRow, number: int, advice: str = "") -> dict[str, Any]:
        """Count row `number` of the source; returns its record for the file of bad rows."""
        record = {
            "row": number,
            "where": rejected.where,
            "column": rejected.column,
            "value": rejected.value,
            "reason": rejected.reason,
            "advice": advice,
        }
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(record)
        else:
            self.last = [*self.last, record][-SHOWN:]
        return record

    def to_json(self) -> dict[str, Any]:
        """The state as JSON data, for the checkpoint."""
        return {"count": self.count, "first": self.first, "last": self.last}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `to_json` returned, after checking it."""
        count, first, last = saved["count"], list(saved["first"]), list(saved["last"])
        is_count = isinstance(count, int) and not isinstance(count, bool)
        if not is_count or len(first) != min(count, SHOWN):
            raise FileRefused(f"it claims {count!r} bad rows.")
        if len(last) != min(count - len(first), SHOWN):
            raise FileRefused("it holds the wrong number of bad rows.")
        for record in (*first, *last):
            if tuple(record) != _FIELDS or type(record["row"]) is not int:
                raise FileRefused("a bad row in it has the wrong fields.")
            texts = [value for name, value in record.items() if name != "row"]
            if not all(isinstance(text, (str, type(None))) for text in texts):
                raise FileRefused("a bad row in it is not described by text.")
        self.count, self.first, self.last = count, first, last

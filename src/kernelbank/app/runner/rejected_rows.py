"""Rows that were set aside: how many, and some of them to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FileRefused
from ...io.sources import Bad, Block

SHOWN = 20
"""So many of the first bad rows are kept to be shown, and so many of the last."""

_FIELDS = ("row", "where", "column", "value", "reason")


class Aside:
    """How many rows were set aside, and the first and last of them in words."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[dict[str, Any]] = []
        self.last: list[dict[str, Any]] = []

    def take(self, block: Block, bad: Bad) -> dict[str, Any]:
        """Count a row; what is to be told of it."""
        words = {
            "row": block.first + bad.row + 1,
            "where": bad.where,
            "column": bad.column,
            "value": bad.value,
            "reason": bad.reason,
        }
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(words)
        else:
            self.last = [*self.last, words][-SHOWN:]
        return words

    def plain(self) -> dict[str, Any]:
        """As what JSON can hold."""
        return {"count": self.count, "first": self.first, "last": self.last}

    def restore(self, before: Mapping[str, Any]) -> None:
        """Go on from what `plain` said."""
        count, first, last = before["count"], list(before["first"]), list(before["last"])
        known = isinstance(count, int) and not isinstance(count, bool)
        if not known or len(first) != min(count, SHOWN):
            raise FileRefused(f"it claims {count!r} bad rows.")
        if len(last) != min(count - len(first), SHOWN):
            raise FileRefused("it has the wrong number of bad rows to show.")
        for words in (*first, *last):
            if tuple(words) != _FIELDS:
                raise FileRefused("a bad row has other words than it should.")
        self.count, self.first, self.last = count, first, last

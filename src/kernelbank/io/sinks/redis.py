"""Answers to a Redis stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import RunRefused
from .base import PUT_BACK, Output, Row, occupied, worded


class Stream(Output):
    """A Redis stream. A row has an id made of its number, so writing it again changes nothing."""

    def __init__(self, address: str, header: Sequence[str]) -> None:
        from ..sources import RedisOutput

        self._output = RedisOutput(address)
        self._header = header
        self._last = 0
        self.place = self._output.place

    def vacant(self) -> None:
        if self._output.highest != (0, 0):
            raise occupied(self.place)

    def begin(self) -> None:
        """Nothing to do: the first row makes the stream."""

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            cells = zip(self._header, row, strict=True)
            self._output.add(row[0], {k: "" if v is None else worded(v) for k, v in cells})
            self._last = row[0]

    def mark(self) -> dict[str, Any]:
        self._output.flush()
        return {"last": self._last}

    def check(self, mark: Mapping[str, Any]) -> None:
        top, _ = self._output.highest
        if top < int(mark["last"]):
            raise RunRefused(
                f"{self.place} has lost rows: {mark['last']} were written, and it ends at {top}. "
                f"{PUT_BACK}"
            )

    def rewind(self, mark: Mapping[str, Any]) -> None:
        """Rows that are there already stay; they are compared when they come again."""
        self._last = mark["last"]

    def close(self, *, whole: bool) -> None:  # noqa: ARG002  (a mark has sent all rows)
        self._output.close(send=False)

"""Redis streams: entries by id, and new ones as they come. Fields are text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ...errors import FileRefused
from ..addresses import RedisAddress
from ..redis_connection import RedisConnection
from ..retries import PATIENCE
from .base import (
    DEFAULT_BLOCK_ROWS,
    POLL_SECONDS,
    Source,
    check_block_rows,
    foreign_position,
    position_count,
)
from .jsonl import JsonRows
from .row_block import Position, RowBlock, RowLocations, empty_block

_ID = re.compile(r"\d{1,20}-\d{1,20}")
_FIRST_ID = "0-0"


class RedisStream(Source):
    """A stream of a Redis server, read without a consumer group."""

    kind = "redis"

    def __init__(
        self, address: RedisAddress, idle: float | None = None, patience: float = PATIENCE
    ) -> None:
        self.name = f"stream {address.stream}"
        self.address = address.shown
        self._address = address
        self._idle = idle
        self._connection = RedisConnection(address, patience)

    def blocks(
        self,
        position: Position | None = None,
        size: int = DEFAULT_BLOCK_ROWS,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns
        count, last = 0, _FIRST_ID
        if position is not None:
            count, last = position_count(position, "rows", self.name), position.get("id", "")
            if not (isinstance(last, str) and _ID.fullmatch(last)):
                raise foreign_position(position, self.name)
        return self._blocks(count, last, check_block_rows(size))

    def _blocks(self, count: int, last: str, size: int) -> Iterator[RowBlock]:
        last_read = time.monotonic()
        checked = False
        while True:
            # Check again whenever nothing comes: the server may have restarted without its data,
            # and the client reconnects silently.
            checked = checked or self._connection.attempt(partial(self._check, last)) is not None
            if not checked:
                yield empty_block(count)
                continue
            entries = self._connection.attempt(partial(self._read, last, size))
            if entries:
                locations = IdLocations(self.name, count, [name.decode() for name, _ in entries])
                rows = [_row(fields) for _, fields in entries]
                if self.columns is None:
                    self.columns = tuple(rows[0])
                yield RowBlock(JsonRows(rows, {}), locations)
                count += len(rows)
                last = locations.ids[-1]
                last_read = time.monotonic()  # the time in which the rows were used is not idle
            else:
                checked = False
                if self._idle is not None and time.monotonic() - last_read > self._idle:
                    return
                yield empty_block(count)

    def _read(self, last: str, size: int, client: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
        found = client.xread(
            {self._address.stream: last}, count=size, block=int(POLL_SECONDS * 1000)
        )
        return list(found[0][1]) if found else []

    def _check(self, last: str, client: Any) -> bool:
        """Refuse a key that is not a stream, and a stream that was restarted since `last`."""
        kind = client.type(self._address.stream)
        if kind not in (b"stream", b"none"):
            raise FileRefused(
                f"{self._address.shown}: this key is a {kind.decode()}, not a stream. "
                "Give the name of a stream."
            )
        if last == _FIRST_ID:
            return True
        top = _FIRST_ID
        if kind == b"stream":
            top = client.xinfo_stream(self._address.stream)["last-generated-id"].decode()
        if _parsed_id(top) < _parsed_id(last):
            raise FileRefused(
                f"{self._address.shown}: the stream was restarted: its last id is {top}, but "
                f"{last} had been read. Restore the stream, or start a new run."
            )
        return True

    def close(self) -> None:
        self._connection.close()


class IdLocations(RowLocations):
    """Entries by their ids."""

    def __init__(self, name: str, first: int, ids: list[str]) -> None:
        self.first = first
        self.ids = ids
        self._name = name

    def where(self, row: int) -> str:
        return f"{self._name}, id {self.ids[row]}"

    def position(self, row: int) -> Position:
        return {"rows": self.first + row + 1, "id": self.ids[row]}

    def identifier(self, row: int) -> str:
        return self.ids[row]


def _row(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for name, value in fields.items()
    }


def _parsed_id(identifier: str) -> tuple[int, int]:
    time_part, _, sequence = identifier.partition("-")
    return int(time_part), int(sequence)

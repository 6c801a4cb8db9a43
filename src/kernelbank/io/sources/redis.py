"""Redis Streams: entries by id, and new ones as they come. Fields are text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ...errors import FileRefused
from ..redis_connection import PATIENCE, RedisConnection
from .addresses import RedisAddress
from .base import POLL, SIZE, Source, foreign, rows_per_block, whole
from .jsonl import JsonRows
from .rows import Position, RowBlock, RowLocations, nothing

_ID = re.compile(r"\d{1,20}-\d{1,20}")
_BEGINNING = "0-0"


class RedisStream(Source):
    """A stream of a Redis server, read without a consumer group: the position is ours alone."""

    kind = "redis"

    def __init__(
        self, address: RedisAddress, idle: float | None = None, patience: float = PATIENCE
    ) -> None:
        self.name = f"stream {address.stream}"
        self._address = address
        self._idle = idle
        self._link = RedisConnection(address, patience)

    @property
    def fingerprint(self) -> dict[str, Any]:
        columns = None if self.columns is None else list(self.columns)
        return {"kind": self.kind, "address": self._address.shown, "columns": columns}

    def blocks(
        self,
        position: Position | None = None,
        size: int = SIZE,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns
        count, last = 0, _BEGINNING
        if position is not None:
            count, last = whole(position, "rows", self.name), position.get("id", "")
            if not (isinstance(last, str) and _ID.fullmatch(last)):
                raise foreign(position, self.name)
        return self._blocks(count, last, rows_per_block(size))

    def _blocks(self, count: int, last: str, size: int) -> Iterator[RowBlock]:
        heard = time.monotonic()
        checked = False
        while True:
            # Also whenever nothing comes: the server may have come back without its data, and the
            # client connects again without a word.
            checked = checked or self._link.attempt(partial(self._check, last)) is not None
            if not checked:
                yield nothing(count)
                continue
            entries = self._link.attempt(partial(self._read, last, size))
            if entries:
                places = IdLocations(self.name, count, [name.decode() for name, _ in entries])
                rows = [_row(fields) for _, fields in entries]
                if self.columns is None:
                    self.columns = tuple(rows[0])
                yield RowBlock(JsonRows(rows, {}), places)
                count += len(rows)
                last = places.ids[-1]
                heard = time.monotonic()  # the time in which the rows were used is not idle
            else:
                checked = False
                if self._idle is not None and time.monotonic() - heard > self._idle:
                    return
                yield nothing(count)

    def _read(self, last: str, size: int, client: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
        found = client.xread({self._address.stream: last}, count=size, block=int(POLL * 1000))
        return list(found[0][1]) if found else []

    def _check(self, last: str, client: Any) -> bool:
        """Refuse a key that is no stream, and a stream that has begun anew since `last`."""
        kind = client.type(self._address.stream)
        if kind not in (b"stream", b"none"):
            raise FileRefused(
                f"{self._address.shown}: this key is a {kind.decode()}, not a stream. "
                "Give the name of a stream."
            )
        if last == _BEGINNING:
            return True
        top = _BEGINNING
        if kind == b"stream":
            top = client.xinfo_stream(self._address.stream)["last-generated-id"].decode()
        if _order(top) < _order(last):
            raise FileRefused(
                f"{self._address.shown}: the stream has begun anew: its last id is {top}, but "
                f"{last} had been read. Begin a new run, or restore the stream."
            )
        return True

    def close(self) -> None:
        self._link.close()


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


def _row(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for name, value in fields.items()
    }


def _order(identifier: str) -> tuple[int, int]:
    time_part, _, sequence = identifier.partition("-")
    return int(time_part), int(sequence)

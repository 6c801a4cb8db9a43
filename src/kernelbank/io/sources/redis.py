"""Redis streams: entries by id, and new ones as they come. Fields are text."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import FileRefused, KernelBankWarning
from ..addresses import RedisAddress
from ..redis_connection import RedisConnection
from ..redis_streams import FIRST_ID, Id, StreamInfo, parsed_id, shown_id
from ..retries import PATIENCE
from .base import GO_ON_WITH_GAPS, POLL_SECONDS, Source, foreign_position, position_count
from .jsonl import JsonRows
from .row_block import Position, RowBlock, RowLocations, empty_block

_ID = re.compile(r"\d{1,20}-\d{1,20}")

Entry = tuple[bytes, dict[bytes, bytes]]


@dataclass
class Progress:
    """How far a stream is read.

    Parameters
    ----------
    rows : how many entries were read.
    last : the id of the last one.
    added : how many entries were ever added up to it; None while that is not known.
    missing : how many entries were deleted before they were read.
    """

    rows: int = 0
    last: Id = FIRST_ID
    added: int | None = None
    missing: int = 0


class RedisStream(Source):
    """A stream of a Redis server, read without a consumer group.

    Redis counts the entries that were ever added. What is counted after our position and is not
    there has been deleted before it was read. Entries that were read may be deleted.
    """

    kind = "redis"

    def __init__(
        self,
        address: RedisAddress,
        idle: float | None = None,
        patience: float = PATIENCE,
        *,
        allow_gaps: bool = False,
    ) -> None:
        self.name = f"stream {address.stream}"
        self.address = address.shown
        self._address = address
        self._idle = idle
        self._allow_gaps = allow_gaps
        self._connection = RedisConnection(address, patience)

    def _start_at(self, position: Position | None) -> Progress:
        at = Progress()
        if position is not None:
            at.rows = position_count(position, "rows", self.name)
            last = position.get("id", "")
            if not (isinstance(last, str) and _ID.fullmatch(last)):
                raise foreign_position(position, self.name)
            at.last = parsed_id(last)
            if position.get("added") is not None:
                at.added = position_count(position, "added", self.name)
            at.missing = position_count({"missing": 0, **position}, "missing", self.name)
        self.missing_rows = at.missing
        return at

    def _blocks(self, start: Progress, size: int) -> Iterator[RowBlock]:
        at = start
        last_read = time.monotonic()
        while True:
            read = self._connection.attempt(partial(self._read, at, size))
            if read is None:
                yield empty_block(at.rows)
                continue
            info, entries = read
            self._check_gap(at, info, len(entries), size)
            if entries:
                ids = [name.decode() for name, _ in entries]
                locations = IdLocations(self.name, ids, at.rows, at.added, at.missing)
                rows = [_row(fields) for _, fields in entries]
                if self.columns is None:
                    self.columns = tuple(rows[0])
                yield RowBlock(JsonRows(rows, {}), locations)
                at.rows += len(rows)
                at.last = parsed_id(ids[-1])
                if at.added is not None:
                    at.added += len(rows)
                last_read = time.monotonic()  # the time in which the rows were used is not idle
            else:
                if self._idle is not None and time.monotonic() - last_read > self._idle:
                    return
                yield empty_block(at.rows)

    def _read(self, at: Progress, size: int, client: Any) -> tuple[StreamInfo, list[Entry]]:
        """The stream and its next entries at one moment; waits a while if there are none."""
        info, entries = self._read_now(at, size, client)
        place = {self._address.stream: shown_id(at.last)}
        if not entries and client.xread(place, count=1, block=int(POLL_SECONDS * 1000)):
            info, entries = self._read_now(at, size, client)
        return info, entries

    def _read_now(self, at: Progress, size: int, client: Any) -> tuple[StreamInfo, list[Entry]]:
        pipeline = client.pipeline(transaction=True)
        pipeline.xinfo_stream(self._address.stream)
        pipeline.xread({self._address.stream: shown_id(at.last)}, count=size)
        reply, found = pipeline.execute(raise_on_error=False)
        info = StreamInfo.of_reply(reply, self._address.shown)
        if isinstance(found, Exception):
            raise found
        if info.last < at.last:
            raise FileRefused(
                f"{self._address.shown}: the stream was restarted: its last id is "
                f"{shown_id(info.last)}, but {shown_id(at.last)} had been read. Restore the "
                "stream, or start a new run."
            )
        return info, list(found[0][1]) if found else []

    def _check_gap(self, at: Progress, info: StreamInfo, count: int, size: int) -> None:
        """Refuse, or count, entries after our position that were deleted before they were read.

        `count` of at most `size` entries were read at the moment of `info`.
        """
        trimmed = info.first is None or info.first > at.last  # our last entry is gone too
        if not trimmed and count == size:
            return  # there may be more: look again where they end
        following = info.length if trimmed else count
        reached = None if info.added is None else info.added - following
        missing: int | None
        if at.added is None or reached is None:
            missing = None if trimmed and following else 0
        else:
            missing = reached - at.added if reached >= at.added else None
        # A new run begins with the first entry there is.
        if missing != 0 and not (missing is None and at.last == FIRST_ID):
            self._report_gap(at, missing)
        at.added = reached

    def _report_gap(self, at: Progress, missing: int | None) -> None:
        """Refuse or count missing entries; None if their number is not known."""
        many = "entries are" if missing != 1 else "entry is"
        many = "entries may be" if missing is None else f"{missing:,} {many}"
        text = (
            f"{self._address.shown}: {many} missing after id {shown_id(at.last)}: deleted (XTRIM, "
            "MAXLEN or XDEL) before being read."
        )
        if missing is None:
            text += " How many is not known: the server has not counted all entries."
        if not self._allow_gaps:
            raise FileRefused(f"{text} {GO_ON_WITH_GAPS}")
        warnings.warn(text, KernelBankWarning, stacklevel=2)
        at.missing += missing or 0
        self.missing_rows = at.missing

    def close(self) -> None:
        self._connection.close()


class IdLocations(RowLocations):
    """Entries by their ids; the numbers are those of `Progress` before the first one."""

    def __init__(
        self, name: str, ids: list[str], first: int, added: int | None, missing: int
    ) -> None:
        self.first = first
        self.ids = ids
        self._name = name
        self._added = added
        self._missing = missing

    def where(self, row: int) -> str:
        return f"{self._name}, id {self.ids[row]}"

    def position(self, row: int) -> Position:
        return {
            "rows": self.first + row + 1,
            "id": self.ids[row],
            "added": None if self._added is None else self._added + row + 1,
            "missing": self._missing,
        }

    def identifier(self, row: int) -> str:
        return self.ids[row]


def _row(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for name, value in fields.items()
    }

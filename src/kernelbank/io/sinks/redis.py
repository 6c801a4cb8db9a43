"""Predictions to a Redis stream, each exactly once, also if a run is killed and resumed.

A server that is killed may come back without rows that it had acknowledged. So the newest rows are
held here: before rows are sent, and at each commit, the server is asked how far the stream is, on
the connection that is then used; what it has lost is written again.
"""

from __future__ import annotations

import time
import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from ...errors import BrokerConnection, FileRefused, KernelBankWarning, RunRefused
from ..addresses import redis_address
from ..redis_connection import BROKEN, RedisConnection, ResponseError
from ..redis_streams import FIRST_ID, StreamInfo, shown_id
from ..retries import PATIENCE
from .base import RESTORE, Row, Sink, cell_text, occupied

BATCH_ROWS = 256
"""Rows that are sent together."""

HELD_ROWS = 10_000
"""Rows before the last commit that are held too, as a server may lose them later."""

WAIT_SECONDS = 10.0
"""Seconds in which the replicas must have acknowledged a commit."""

_SEQUENCE = 1
"""The second number of every id."""

_APPENDONLY = "Set `appendonly yes` on the server, so that it keeps what it has acknowledged."


class RedisSink(Sink):
    """A Redis stream. Row n has the id n-1, so writing it again changes nothing.

    Redis refuses an id that is not above the last one; then it is checked that the entry is there
    and has the same fields. Readers may remove entries (XTRIM, XDEL), but not the stream.

    Parameters
    ----------
    address : redis://user@host:port/stream-name?db=0.
    columns : the names of a row's values; the first value is the row's number.
    patience : seconds for which a broken connection is tried again.
    password : of the server, if the address has none.
    wait : how many replicas must have the rows before a commit is done.

    >>> RedisSink("redis://localhost/predictions", ["row", "prediction"]).address
    'redis://localhost:6379/predictions?db=0'
    """

    can_rewind = False

    def __init__(
        self,
        address: str,
        columns: Sequence[str],
        patience: float = PATIENCE,
        *,
        password: str | None = None,
        wait: int = 0,
    ) -> None:
        parts = redis_address(address, password)
        self.address = parts.shown  # without a password
        self._stream = parts.stream
        self._columns = list(columns)
        self._connection = RedisConnection(parts, patience)
        self._wait = wait
        self._held: list[Row] = []
        """The rows since the last commit, and the newest ones before."""
        self._sent = 0
        """How many of them the server has acknowledged."""
        self._before = 0
        """The number of the last row before those that are held."""
        self._added: int | None = None
        """How many entries the server has counted, at least; None if it does not count."""

    def check_vacant(self) -> None:
        if self._info().last != FIRST_ID:
            raise occupied(self.address)

    def start(self) -> None:
        """The first row makes the stream. Warn of a server that may lose it."""
        self._check_persistence()

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._held.append(row)
            if len(self._held) - self._sent >= BATCH_ROWS:
                self._flush()

    def commit(self) -> dict[str, Any]:
        self._flush()
        while not self._connection.call(self._confirm):
            self._flush()
        surplus = len(self._held) - HELD_ROWS
        if surplus > 0:
            self._before = self._held[surplus - 1][0]
            self._sent -= surplus
            del self._held[:surplus]
        return {"last": self._last_row}

    def check(self, commit: Mapping[str, Any]) -> None:
        # The highest id that ever was in the stream: readers may have removed entries.
        last, written = self._info().last, int(commit["last"])
        if last[0] < written:
            raise RunRefused(
                f"{self.address} has lost rows {last[0] + 1:,} to {written:,}, which were written. "
                f"{RESTORE} {_APPENDONLY}"
            )
        self._check_ours(last)

    def rewind(self, commit: Mapping[str, Any]) -> None:
        """Rows that are there already stay; they are compared when they are written again."""
        self._held, self._sent, self._before = [], 0, commit["last"]
        self._check_persistence()

    def clear(self) -> None:
        """Nothing to do: only a run without predictions is begun again."""

    def close(self, *, complete: bool) -> None:
        self._connection.close()

    # --- rows -------------------------------------------------------------------------------------

    @property
    def _last_row(self) -> int:
        """The number of the last row that the server has acknowledged."""
        number: int = self._held[self._sent - 1][0] if self._sent else self._before
        return number

    def _flush(self) -> None:
        """Send all rows that are not sent, and return when Redis has them."""
        while self._sent < len(self._held):
            batch = self._held[self._sent : self._sent + BATCH_ROWS]
            replies = self._connection.call(partial(self._send, batch))
            if not replies:  # earlier rows are lost: these first
                continue
            refused = []
            for row, reply in zip(batch, replies, strict=True):
                if not isinstance(reply, Exception):
                    continue
                if "equal or smaller" not in str(reply):
                    raise FileRefused(f"{self.address}: Redis refuses: {reply}.")
                refused.append(row)
            if refused:
                self._check_present(refused)
            self._sent += len(batch)
            if self._added is not None:
                self._added += len(batch) - len(refused)

    def _send(self, batch: Sequence[Row], client: Any) -> list[Any]:
        """The replies to the rows; none if rows before them are lost."""
        # One connection for both: a server that restarts between them would break it.
        with client.pipeline(transaction=False) as pipeline:
            if not self._is_whole(self._read_info(pipeline)):
                return []
            for row in batch:
                pipeline.xadd(self._stream, self._fields(row), id=_id(row))
            replies = pipeline.execute(raise_on_error=False)
        for reply in replies:
            # The server is still loading, or the connection broke: send the whole batch again.
            if isinstance(reply, BROKEN):
                raise reply
        return list(replies)

    def _fields(self, row: Row) -> dict[str, str]:
        return {name: cell_text(value) for name, value in zip(self._columns, row, strict=True)}

    def _check_present(self, rows: Sequence[Row]) -> None:
        """Refuse a stream that does not hold these rows; a reader may have removed some."""

        def query(client: Any) -> tuple[StreamInfo, list[Any]]:
            pipeline = client.pipeline(transaction=False)
            for row in rows:
                pipeline.xrange(self._stream, _id(row), _id(row))
            found = list(pipeline.execute())
            with client.pipeline(transaction=False) as pipeline:
                return self._read_info(pipeline), found

        info, entries = self._connection.call(query)
        for row, found in zip(rows, entries, strict=True):
            mine = (row[0], _SEQUENCE)
            trimmed = info.first is None or mine < info.first
            if not found and (trimmed or (info.deleted is not None and mine <= info.deleted)):
                continue
            expected = {name.encode(): text.encode() for name, text in self._fields(row).items()}
            if not found or dict(found[0][1]) != expected:
                raise self._foreign(_id(row))

    # --- what the server has ----------------------------------------------------------------------

    def _info(self) -> StreamInfo:
        def query(client: Any) -> StreamInfo:
            with client.pipeline(transaction=False) as pipeline:
                return self._read_info(pipeline)

        return self._connection.call(query)

    def _read_info(self, pipeline: Any) -> StreamInfo:
        """The stream now; the connection stays that of the pipeline."""
        reply: Any
        try:
            reply = pipeline.immediate_execute_command("XINFO STREAM", self._stream)
        except ResponseError as error:
            reply = error
        return StreamInfo.of_reply(reply, self.address)

    def _is_whole(self, info: StreamInfo) -> bool:
        """Whether the stream has all acknowledged rows; if not, go back to the first lost one."""
        reached, acknowledged = info.last[0], self._last_row
        self._check_ours(info.last)
        if reached >= acknowledged:
            added, self._added = self._added, info.added
            if added is None or info.added is None or info.added >= added:
                return True
            # It was removed and made again between two commands: a hole that no id shows.
            raise FileRefused(
                f"{self.address} has lost rows up to row {acknowledged:,}, which it had "
                f"acknowledged: {added - info.added:,} are missing, because the stream was removed "
                f"during the run. {RESTORE}"
            )
        if reached < self._before:
            raise FileRefused(
                f"{self.address} has lost rows {reached + 1:,} to {acknowledged:,}, which it had "
                f"acknowledged, and only those from row {self._before + 1:,} on can be written "
                f"again. {RESTORE} {_APPENDONLY}"
            )
        warnings.warn(
            f"{self.address} has lost rows {reached + 1:,} to {acknowledged:,}, which it had "
            f"acknowledged. They are written again. {_APPENDONLY}",
            BrokerConnection,
            stacklevel=2,
        )
        self._sent = bisect_right(self._held, reached, hi=self._sent, key=itemgetter(0))
        self._added = info.added
        return False

    def _confirm(self, client: Any) -> bool:
        """Whether the server, and the replicas that are asked for, have all rows."""
        with client.pipeline(transaction=False) as pipeline:
            info = self._read_info(pipeline)
            if not self._is_whole(info):
                return False
            if self._wait:
                self._wait_for_replicas(pipeline, info)
        return True

    def _wait_for_replicas(self, pipeline: Any, info: StreamInfo) -> None:
        # WAIT is about the writes of its own connection, which may be new: so write something.
        if info.last != FIRST_ID:
            pipeline.immediate_execute_command("XSETID", self._stream, shown_id(info.last))
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            # For a second at a time, which is less than the timeout of the connection.
            found = pipeline.immediate_execute_command("WAIT", self._wait, 1000)
            if found >= self._wait:
                return
            if time.monotonic() > deadline:
                raise RunRefused(
                    f"{self.address}: {found} of {self._wait} replicas have the rows after "
                    f"{WAIT_SECONDS:g} seconds (--redis-wait). Start the replicas, or give a "
                    "smaller number."
                )

    def _check_persistence(self) -> None:
        """Warn of a server that loses acknowledged rows when it is killed."""

        def query(client: Any) -> Mapping[str, Any]:
            try:
                facts: Mapping[str, Any] = client.info("persistence")
            except ResponseError:  # this user may not ask
                return {}
            return facts

        if self._connection.call(query).get("aof_enabled") == 0:
            warnings.warn(
                f"{self.address}: this server has no append-only file (appendonly no). If it is "
                "killed, it loses rows that it has acknowledged. The run then writes the newest "
                f"ones again, or stops. {_APPENDONLY}",
                KernelBankWarning,
                stacklevel=2,
            )

    def _check_ours(self, last: tuple[int, int]) -> None:
        if last != FIRST_ID and last[1] != _SEQUENCE:
            raise self._foreign(shown_id(last))

    def _foreign(self, identifier: str) -> FileRefused:
        return FileRefused(
            f"{self.address}: the stream holds entries that this run has not written (at id "
            f"{identifier}). Give a stream of its own."
        )


def _id(row: Row) -> str:
    return shown_id((row[0], _SEQUENCE))

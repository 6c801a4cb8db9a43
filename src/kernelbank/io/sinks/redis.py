"""Predictions to a Redis stream, each exactly once, also if a run is killed and resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FileRefused, RunRefused
from ..addresses import redis_address
from ..redis_connection import BROKEN, RedisConnection
from ..retries import PATIENCE
from .base import RESTORE, Row, Sink, cell_text, occupied

BATCH_ROWS = 256
"""Rows that are sent together."""


class RedisSink(Sink):
    """A Redis stream. Row n has the id n-1, so writing it again changes nothing.

    Redis refuses an id that is not above the last one; then it is checked that the entry is there
    and has the same fields.

    Parameters
    ----------
    address : redis://user:password@host:port/stream-name?db=0.
    columns : the names of a row's values; the first value is the row's number.
    patience : seconds for which a broken connection is tried again.

    >>> RedisSink("redis://localhost/predictions", ["row", "prediction"]).address
    'redis://localhost:6379/predictions?db=0'
    """

    can_rewind = False

    def __init__(self, address: str, columns: Sequence[str], patience: float = PATIENCE) -> None:
        parts = redis_address(address)
        self.address = parts.shown  # without a password
        self._stream = parts.stream
        self._columns = list(columns)
        self._connection = RedisConnection(parts, patience)
        self._unsent: list[tuple[str, dict[str, str]]] = []
        """(id, fields) of rows that are not sent yet."""
        self._last_row = 0

    def check_vacant(self) -> None:
        if self._last_id() != (0, 0):
            raise occupied(self.address)

    def start(self) -> None:
        """Nothing to do: the first row makes the stream."""

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            fields = {name: cell_text(v) for name, v in zip(self._columns, row, strict=True)}
            self._unsent.append((f"{row[0]}-1", fields))
            self._last_row = row[0]
            if len(self._unsent) >= BATCH_ROWS:
                self._flush()

    def commit(self) -> dict[str, Any]:
        self._flush()
        return {"last": self._last_row}

    def check(self, commit: Mapping[str, Any]) -> None:
        # The highest id that ever was in the stream: readers may have removed entries.
        last, _ = self._last_id()
        if last < int(commit["last"]):
            raise RunRefused(
                f"{self.address} has lost rows: {commit['last']} were written, and it ends at "
                f"{last}. {RESTORE}"
            )

    def rewind(self, commit: Mapping[str, Any]) -> None:
        """Rows that are there already stay; they are compared when they are written again."""
        self._last_row = commit["last"]

    def clear(self) -> None:
        """Nothing to do: only a run without predictions is begun again."""

    def close(self, *, complete: bool) -> None:  # noqa: ARG002  (a commit has sent all rows)
        self._connection.close()

    def _last_id(self) -> tuple[int, int]:
        def query(client: Any) -> str:
            if not client.exists(self._stream):
                return "0-0"
            return str(client.xinfo_stream(self._stream)["last-generated-id"].decode())

        number, _, sequence = self._connection.call(query).partition("-")
        return int(number), int(sequence)

    def _flush(self) -> None:
        """Send all unsent rows, and return when Redis has them."""
        if not self._unsent:
            return
        refused = []
        replies = self._connection.call(self._send)
        for entry, reply in zip(self._unsent, replies, strict=True):
            if not isinstance(reply, Exception):
                continue
            if "equal or smaller" not in str(reply):
                raise FileRefused(f"{self.address}: Redis refuses: {reply}.")
            refused.append(entry)
        if refused:
            self._check_present(refused)
        self._unsent.clear()

    def _send(self, client: Any) -> list[Any]:
        pipeline = client.pipeline(transaction=False)
        for identifier, fields in self._unsent:
            pipeline.xadd(self._stream, fields, id=identifier)
        replies = pipeline.execute(raise_on_error=False)
        for reply in replies:
            # The server is still loading, or the connection broke: send the whole batch again.
            if isinstance(reply, BROKEN):
                raise reply
        return list(replies)

    def _check_present(self, entries: list[tuple[str, dict[str, str]]]) -> None:
        """Refuse a stream that does not hold these entries with the same fields."""

        def query(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for identifier, _ in entries:
                pipeline.xrange(self._stream, identifier, identifier)
            return list(pipeline.execute())

        for (identifier, fields), found in zip(entries, self._connection.call(query), strict=True):
            expected = {name.encode(): value.encode() for name, value in fields.items()}
            if not found or dict(found[0][1]) != expected:
                raise FileRefused(
                    f"{self.address}: the stream holds entries that this run has not written "
                    f"(at id {identifier}). Give a stream of its own."
                )

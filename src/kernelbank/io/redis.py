"""Redis streams: the connection, the source of rows, and the sink of predictions."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import FileRefused, KernelBankWarning, RunRefused
from ..utils import validation as check
from .brokers import (
    PATIENCE,
    REDIS_PASSWORD,
    BrokerSource,
    RedisAddress,
    Result,
    Retries,
    redis_address,
)
from .sinks import RESTORE, Commit, Row, Sink, cell_text, occupied
from .source import (
    POLL_SECONDS,
    Position,
    RowBlock,
    empty_block,
    foreign_position,
    position_count,
)

with check.optional("Redis streams need", "the package redis", "redis"):
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry


Client = Any  # a client or pipeline of redis-py, whose stubs do not say what commands return

Entry = tuple[str, dict[str, str]]
Id = tuple[int, int]  # the two numbers of an id such as 1700000000000-0

FIRST_ID: Id = (0, 0)  # below the id of every entry
BROKEN = (redis.ConnectionError, redis.TimeoutError)  # the errors after which trying again may help


class RedisConnection:
    """A connection to one Redis server."""

    def __init__(self, address: RedisAddress, retries: Retries) -> None:
        self._address = address
        self._retries = retries
        # The client's own retries are off: `patience` limits their time here.
        self._client = redis.Redis(
            host=address.host,
            port=address.port,
            db=address.database,
            username=address.user,
            password=address.password,
            ssl=address.encrypted,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            decode_responses=True,
            encoding_errors="surrogateescape",
        )

    def attempt(self, action: Callable[[Client], Result]) -> Result | None:
        """The result of an action on a pipeline; None while the connection is broken."""
        try:
            return self._retries.attempt(partial(self._run, action), BROKEN, self._broken)
        except redis.InvalidResponse:
            raise FileRefused(
                f"{self._address.shown}: what answers there is not Redis. Check host and port."
            ) from None
        except redis.ResponseError as error:
            raise FileRefused(f"{self._address.shown}: Redis refuses: {error}.") from None

    def call(self, action: Callable[[Client], Result]) -> Result:
        """The action's result; it is tried again while the connection is broken."""
        while True:
            result = self.attempt(action)
            if result is not None:
                return result

    def _run(self, action: Callable[[Client], Result]) -> Result:
        timeout = self._retries.timeout  # it has grown since the last attempt
        times = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        self._client.connection_pool.connection_kwargs |= times
        with self._client.pipeline(transaction=False) as pipeline:
            return action(pipeline)

    def _broken(self, error: redis.RedisError) -> str:
        """Why the connection is broken: the system's words, if there are some."""
        if isinstance(error, redis.AuthenticationError):
            raise FileRefused(
                f"{self._address.shown}: Redis refuses the user or password ({error}). Give the "
                f"password in {REDIS_PASSWORD}."
            ) from None
        self._client.connection_pool.disconnect()
        cause = error.__cause__ or error.__context__
        words = cause.strerror if isinstance(cause, OSError) else None
        hint = "; is this port encrypted?" if self._address.encrypted else ""
        return (words or str(error).rstrip(".")) + hint

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


# --- what a server says about a stream ------------------------------------------------------------


@dataclass(frozen=True)
class StreamInfo:
    """A stream at one moment. One that does not exist is empty.

    Parameters
    ----------
    last : the highest id that ever was in it; removing entries does not change it.
    first : the lowest id that is in it; None if it is empty.
    length : how many entries are in it.
    added : how many entries were ever added.
    deleted : the highest id that was deleted by name (XDEL).
    """

    last: Id = FIRST_ID
    first: Id | None = None
    length: int = 0
    added: int = 0
    deleted: Id = FIRST_ID

    @classmethod
    def of_reply(cls, reply: Any, shown: str) -> StreamInfo:
        """From the reply to XINFO STREAM; `shown` is the address of the stream."""
        if isinstance(reply, redis.ResponseError):
            if "no such key" in str(reply):
                return cls()
            if "WRONGTYPE" in str(reply):
                raise FileRefused(
                    f"{shown}: this key is not a stream. Give the name of a stream."
                ) from None
        if isinstance(reply, Exception):
            raise reply
        if "entries-added" not in reply:
            raise FileRefused(
                f"{shown}: this server does not count the entries of a stream, so lost ones would "
                "not be noticed. Use Redis 7 or newer."
            )
        first = reply["first-entry"]
        return cls(
            parsed_id(reply["last-generated-id"]),
            None if first is None else parsed_id(first[0]),
            reply["length"],
            reply["entries-added"],
            parsed_id(reply["max-deleted-entry-id"]),
        )


def parsed_id(identifier: str) -> Id:
    """The two numbers of an id."""
    number, _, sequence = identifier.partition("-")
    return int(number), int(sequence)


def shown_id(identifier: Id) -> str:
    """An id as Redis writes it."""
    return "{}-{}".format(*identifier)


# --- rows -----------------------------------------------------------------------------------------

_ID = re.compile(r"\d{1,20}-\d{1,20}")


@dataclass
class StreamProgress:
    """How far a stream is read: how many entries, up to which id."""

    rows: int = 0
    last: Id = FIRST_ID
    added: int | None = None
    """How many entries were ever added up to the last one; None before the first is read."""
    first: str | None = None
    """The id of the first entry, if none was read yet by a run that began with it."""


class RedisStream(BrokerSource):
    """A stream of a Redis server, read without a consumer group.

    Redis counts the entries that were ever added. What is counted after our position and is not
    there has been deleted before it was read. Entries that were read may be deleted.
    """

    kind = "redis"

    def __init__(self, address: RedisAddress, **options: Any) -> None:
        super().__init__(address, f"stream {address.stream}", **options)
        self._stream = address.stream
        self._connection = RedisConnection(address, self._retries)

    def _parsed(self, position: Position | None) -> StreamProgress:
        at = StreamProgress()
        if position is not None:
            at.rows = position_count(position, "rows", self.name)
            at.first = position.get("first")
            for identifier in (position.get("id"), at.first or "0-0"):
                if not (isinstance(identifier, str) and _ID.fullmatch(identifier)):
                    raise foreign_position(position, self.name)
            at.last = parsed_id(position["id"])
            at.added = position_count(position, "added", self.name)
            self.missing_rows = position_count({"missing": 0, **position}, "missing", self.name)
        return at

    def _next_block(self, at: StreamProgress, size: int) -> RowBlock | None:
        read = self._connection.attempt(partial(self._read_next, at, size))
        if read is None:
            return empty_block(at.rows)
        info, entries = read
        ids, rows = [name for name, _ in entries], [fields for _, fields in entries]
        self._check_gap(at, info, ids, size)
        if not entries:
            return None
        if self.columns is None:
            self.columns = tuple(rows[0])
        if not at.rows:
            self.start = {
                "rows": 0,
                "id": shown_id(at.last),
                "added": at.added,
                "missing": self.missing_rows,
                "first": ids[0],
            }
        added = at.added or 0

        def reached(row: int) -> Position:
            return {"id": ids[row], "added": added + row + 1}

        block = self._block(rows, at.rows, ids, "id {}-{}", reached)
        at.rows += len(rows)
        at.last = parsed_id(ids[-1])
        at.added = added + len(rows)
        return block

    def _read_next(
        self, at: StreamProgress, size: int, pipeline: Client
    ) -> tuple[StreamInfo, list[Entry]]:
        """The stream and its next entries at one moment; waits a while if there are none."""
        wait = "BLOCK", int(POLL_SECONDS * 1000), "STREAMS", self._stream, shown_id(at.last)
        info, entries = self._read_now(at, size, pipeline)
        if not entries and pipeline.immediate_execute_command("XREAD", *wait):
            pipeline.reset()
            info, entries = self._read_now(at, size, pipeline)
        return info, entries

    def _read_now(
        self, at: StreamProgress, size: int, pipeline: Client
    ) -> tuple[StreamInfo, list[Entry]]:
        pipeline.multi()
        pipeline.xinfo_stream(self._stream)
        pipeline.xread({self._stream: shown_id(at.last)}, count=size)
        reply, streams = pipeline.execute(raise_on_error=False)
        info = StreamInfo.of_reply(reply, self.address)
        if isinstance(streams, Exception):
            raise streams
        if info.last < at.last:
            raise FileRefused(
                f"{self.address}: the stream was restarted: its last id is "
                f"{shown_id(info.last)}, but {shown_id(at.last)} had been read. Restore the "
                "stream, or start a new run."
            )
        return info, list(streams[0][1]) if streams else []

    def _check_gap(self, at: StreamProgress, info: StreamInfo, ids: list[str], size: int) -> None:
        """Refuse, or count, entries after our position that were deleted before they were read.

        `ids` of at most `size` entries were read at the moment of `info`.
        """
        count = len(ids)
        trimmed = info.first is None or info.first > at.last  # our last entry is gone too
        if not trimmed and count == size:
            return  # there may be more: look again where they end
        reached = info.added - (info.length if trimmed else count)
        # A new run begins with the first entry there is, and then always with that one.
        missing = 0 if at.added is None else reached - at.added
        if missing or (at.first is not None and ids[:1] != [at.first]):
            many = f"{missing:,} entries are" if missing > 1 else "1 entry is"
            if missing < 1:
                many = "the stream was made again, entries may be"
            text = (
                f"{self.address}: {many} missing after id {shown_id(at.last)}: deleted (XTRIM, "
                "MAXLEN or XDEL) before being read."
            )
            self.report_gap(text, max(missing, 0))
        at.added, at.first = reached, None

    def close(self) -> None:
        self._connection.close()


# --- predictions ----------------------------------------------------------------------------------
# A server that is killed may come back without rows that it had acknowledged. So before rows are
# sent, and at each commit, the server is asked how far the stream is, on the connection that is
# then used. If rows are lost, the run stops before it makes a hole.

BATCH_ROWS = 256  # rows that are sent together
_SEQUENCE = 1  # the second number of every id
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

    >>> RedisSink("redis://localhost/predictions", ["row", "prediction"]).address
    'redis://localhost:6379/predictions?db=0'
    """

    can_rewind = False

    def __init__(self, address: str, columns: Sequence[str], patience: float = PATIENCE) -> None:
        parts = redis_address(address)
        self.address = parts.shown  # without a password
        self._stream = parts.stream
        self.set_columns(columns)
        self._connection = RedisConnection(parts, Retries(parts.shown, patience))
        self._waiting: list[Row] = []  # rows that are still to be sent
        self._last = 0  # the number of the last row that the server has acknowledged
        self._committed = 0  # the same at the last commit
        self._added = 0  # how many entries the server has counted, at least

    def check_vacant(self) -> None:
        if self._connection.call(self._info).last != FIRST_ID:
            raise occupied(self.address)

    def start(self) -> None:
        """The first row makes the stream. Warn of a server that may lose it."""

        def query(pipeline: Client) -> dict[str, object]:
            try:
                return dict(pipeline.immediate_execute_command("INFO", "persistence"))
            except redis.ResponseError:  # this user may not ask
                return {}

        if self._connection.call(query).get("aof_enabled") == 0:
            warnings.warn(
                f"{self.address}: this server has no append-only file (appendonly no). If it is "
                f"killed, it loses rows that it has acknowledged, and the run stops. {_APPENDONLY}",
                KernelBankWarning,
                stacklevel=2,
            )

    def write(self, rows: Sequence[Row]) -> None:
        self._waiting += rows
        while len(self._waiting) >= BATCH_ROWS:
            self._send_batch()

    def flush(self) -> None:
        while self._waiting:
            self._send_batch()

    def commit(self) -> Commit:
        self.flush()
        self._connection.call(self._check_whole)
        self._committed = self._last
        return {"last": self._last}

    def check(self, commit: Commit) -> None:
        # The highest id that ever was in the stream: readers may have removed entries.
        last, written = self._connection.call(self._info).last, int(commit["last"])
        if last[0] < written:
            raise RunRefused(
                f"{self.address} has lost rows {last[0] + 1:,} to {written:,}, which were written. "
                f"{RESTORE} {_APPENDONLY}"
            )
        self._check_ours(last)

    def rewind(self, commit: Commit) -> None:
        """Rows that are there already stay; they are compared when they are written again."""
        self._waiting, self._last, self._committed = [], commit["last"], commit["last"]
        self.start()

    def clear(self) -> None:
        """Nothing to do: only a run without predictions is begun again."""

    def close(self, *, complete: bool) -> None:
        self._connection.close()

    # --- rows -------------------------------------------------------------------------------------

    def _send_batch(self) -> None:
        """Return when Redis has the next rows."""
        batch = self._waiting[:BATCH_ROWS]
        refused = self._connection.call(partial(self._send, batch))
        self._last = batch[-1][0]
        self._added += len(batch) - len(refused)
        del self._waiting[: len(batch)]
        if refused:
            self._check_present(refused)

    def _send(self, batch: Sequence[Row], pipeline: Client) -> list[Row]:
        """Send rows, unless earlier ones are lost; returns those that are refused by their ids."""
        # One connection for both: a server that restarts between them would break it.
        self._check_whole(pipeline)
        for row in batch:
            pipeline.xadd(self._stream, self._fields(row), id=_id(row))
        refused = []
        for row, reply in zip(batch, pipeline.execute(raise_on_error=False), strict=True):
            if isinstance(reply, BROKEN):  # or the server is still loading: send them all again
                raise reply
            if isinstance(reply, Exception):
                if "equal or smaller" not in str(reply):
                    raise FileRefused(f"{self.address}: Redis refuses: {reply}.")
                refused.append(row)
        return refused

    def _fields(self, row: Row) -> dict[str, str]:
        return {name: cell_text(value) for name, value in zip(self._columns, row, strict=True)}

    def _check_present(self, rows: Sequence[Row]) -> None:
        """Refuse a stream that does not hold these rows; a reader may have removed some."""

        def query(pipeline: Client) -> tuple[list[list[Entry]], StreamInfo]:
            for row in rows:
                pipeline.xrange(self._stream, _id(row), _id(row))
            return list(pipeline.execute()), self._info(pipeline)

        entries, info = self._connection.call(query)
        for row, row_entries in zip(rows, entries, strict=True):
            mine = (row[0], _SEQUENCE)
            trimmed = info.first is None or mine < info.first
            if not row_entries and (trimmed or mine <= info.deleted):
                continue
            if not row_entries or dict(row_entries[0][1]) != self._fields(row):
                raise self._foreign(_id(row))

    # --- what the server has ----------------------------------------------------------------------

    def _info(self, pipeline: Client) -> StreamInfo:
        """The stream now, asked on the connection of the pipeline."""
        reply: Any
        try:
            reply = pipeline.immediate_execute_command("XINFO STREAM", self._stream)
        except redis.ResponseError as error:
            reply = error
        return StreamInfo.of_reply(reply, self.address)

    def _check_whole(self, pipeline: Client) -> bool:
        """Refuse a stream without rows that the server had acknowledged; else True."""
        info = self._info(pipeline)
        self._check_ours(info.last)
        reached, is_whole = info.last[0], info.last[0] >= self._last
        # It may have been removed and made again between two commands: a hole that no id shows.
        if not is_whole or info.added < self._added:
            remedy = RESTORE
            if not is_whole and reached >= self._committed:
                remedy = "With --state, the same command writes them again."
            raise FileRefused(
                f"{self.address} has lost rows up to row {self._last:,}, which it had acknowledged"
                f"{'' if is_whole else f': it ends at row {reached:,}'}. {remedy} {_APPENDONLY}"
            )
        self._added = info.added
        return True

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

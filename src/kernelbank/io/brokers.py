"""Brokers: addresses, passwords, new attempts to reach one, and what sources of rows share.

Passwords are never shown.
"""

from __future__ import annotations

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ..errors import BrokerConnection, SourceLost
from ..utils import validation as check
from .source import POLL_SECONDS, DictRows, Position, RowBlock, Source, empty_block

REDIS_FORM = "redis://user@host:6379/stream-name?db=0"
KAFKA_FORM = "kafka://host:9092/topic"

REDIS_PASSWORD = "KERNELBANK_REDIS_PASSWORD"
"""The environment variable with the password of Redis, for addresses without one."""

KAFKA_PASSWORD = "KERNELBANK_KAFKA_PASSWORD"
"""The environment variable with `sasl.password`, for addresses with a `sasl.username` only."""


@dataclass(frozen=True)
class RedisAddress:
    """The address of a Redis stream."""

    host: str
    port: int
    stream: str
    database: int = 0
    encrypted: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The address without user and password."""
        scheme = "rediss" if self.encrypted else "redis"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}/{self.stream}?db={self.database}"


@dataclass(frozen=True)
class KafkaAddress:
    """The address of a Kafka topic, and settings of the client library."""

    servers: str
    topic: str
    settings: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The address without settings, which may hold a password."""
        return f"kafka://{self.servers}/{self.topic}"


def redis_address(address: str) -> RedisAddress:
    """The parts of redis://user:password@host:port/stream-name?db=0.

    If the address has no password, it is that of the environment variable.
    """
    parts, stream, options = _split(address, REDIS_FORM)
    database = options.pop("db", "0")
    if not (parts.hostname and stream and database.isdecimal()) or options:
        raise _malformed(address, REDIS_FORM)
    return RedisAddress(
        parts.hostname,
        parts.port or 6379,
        stream,
        int(database),
        parts.scheme == "rediss",
        unquote(parts.username) if parts.username else None,
        unquote(parts.password or "") or os.environ.get(REDIS_PASSWORD) or None,
    )


def kafka_address(address: str) -> KafkaAddress:
    """The parts of kafka://host:port,host:port/topic?setting=value.

    If there is a `sasl.username` and no `sasl.password`, the environment variable gives it.
    """
    parts, topic, settings = _split(address, KAFKA_FORM)
    if not (parts.netloc and topic) or "@" in parts.netloc or "/" in topic:
        raise _malformed(address, KAFKA_FORM)
    servers = ",".join(
        server if ":" in server else f"{server}:9092" for server in parts.netloc.split(",")
    )
    secret = os.environ.get(KAFKA_PASSWORD)
    if secret and "sasl.username" in settings:
        settings.setdefault("sasl.password", secret)
    return KafkaAddress(servers, topic, settings)


def _split(address: str, form: str) -> tuple[SplitResult, str, dict[str, str]]:
    """The parts of an address, the name of the stream or topic, and the settings."""
    try:
        parts = urlsplit(address)
        settings = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        if parts.fragment or (form == REDIS_FORM and parts.port == 0):
            raise ValueError
    except ValueError:
        raise _malformed(address, form) from None
    return parts, unquote(parts.path.removeprefix("/")), settings


def _malformed(address: str, form: str) -> Exception:
    remedy = "Write characters such as / @ ? # in a name or password as % and two digits."
    return check.refuse("address", f"be like {form}", without_password(address), remedy)


def without_password(address: str) -> str:
    """The address without its user, password and settings; a file's name stays as it is."""
    scheme, mark, rest = address.partition("://")
    before, _, place = rest.rpartition("@")
    if "?" in before:  # does a password hold the ?, or a setting the @? Show neither.
        place = "***"
    return f"{scheme}://{place.partition('?')[0]}" if mark else address


Result = TypeVar("Result")

PATIENCE = 30.0  # seconds for which a broker that cannot be reached is tried again
PAUSES = 0.25, 8.0  # seconds of the first and of the longest pause
TIMEOUTS = 1.5, 10.0
"""Seconds that the first attempt may take, so that a user is told within two, and later ones."""


class Retries:
    """Attempts with growing pauses, a line for each, and an end.

    Parameters
    ----------
    address : of the broker, as it is shown.
    patience : seconds from the first failure on, after which `failed` raises `SourceLost`.
    """

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self.timeout = TIMEOUTS[0]
        """Seconds that the next attempt may take. It grows: a slow broker is reached in the end."""
        self._address = address
        self._patience = patience
        self._failed_since: float | None = None
        self._pause = PAUSES[0]
        self._next = 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until the next attempt is due; 0 if it is."""
        return max(self._next - time.monotonic(), 0.0)

    def attempt(
        self,
        action: Callable[[], Result],
        broken: tuple[type[Exception], ...],
        reason: Callable[[Any], str],
    ) -> Result | None:
        """The result of an action; None if it is not due yet, or ends in an error of `broken`."""
        if self.seconds_left:
            time.sleep(min(self.seconds_left, POLL_SECONDS))
            return None
        try:
            result = action()
        except broken as error:
            self.failed(reason(error))
            return None
        self.succeeded()
        return result

    def failed(self, reason: str) -> None:
        """An attempt has failed: say so, or raise `SourceLost` if it is time to give up."""
        now = time.monotonic()
        if self._failed_since is None:
            self._failed_since = now
        left = self._failed_since + self._patience - now
        if left <= 0:
            raise SourceLost(
                f"{self._address}: no connection for {self._patience:g} seconds ({reason}). Start "
                "the server or check the address. With --state the run can be resumed afterwards."
            )
        pause = min(self._pause, left)
        warnings.warn(
            f"{self._address} cannot be reached ({reason}). Next attempt in {pause:.2g} s; "
            f"giving up in {left:.2g} s.",
            BrokerConnection,
            stacklevel=2,
        )
        self._next = now + pause
        self._pause = min(2 * self._pause, PAUSES[1])
        self.timeout = min(2 * self.timeout, TIMEOUTS[1])

    def succeeded(self) -> None:
        """An attempt has succeeded."""
        if self._failed_since is not None:
            warnings.warn(f"{self._address} is reached again.", BrokerConnection, stacklevel=2)
        self._failed_since, self._pause, self._next = None, PAUSES[0], 0.0


# --- sources --------------------------------------------------------------------------------------


class BrokerSource(Source):
    """A stream of rows that have ids, come at any time, and may be deleted before they are read."""

    def __init__(
        self,
        address: RedisAddress | KafkaAddress,
        name: str,
        idle: float | None = None,
        patience: float = PATIENCE,
        allow_gaps: bool = False,
    ) -> None:
        self.name = name
        self.address = address.shown
        self._idle = idle
        self.allow_gaps = allow_gaps
        self._retries = Retries(address.shown, patience)

    def _read(self, start: Any, size: int, columns: Sequence[str] | None) -> Iterator[RowBlock]:
        last_read = time.monotonic()
        while True:
            block = self._next_block(start, size)
            if block is not None:
                yield block
                if len(block):  # the time in which the rows were used is not idle
                    last_read = time.monotonic()
                continue
            late = -1.0 if self._idle is None else time.monotonic() - last_read - self._idle
            if late > 0 and self._has_ended(start, late):
                return
            yield empty_block(start.rows)

    @abstractmethod
    def _next_block(self, at: Any, size: int) -> RowBlock | None:
        """The next rows; none if the broker is out of reach, None if there are none yet.

        `at`, what `_parsed` has returned, is then how far the stream is read.
        """

    def _block(
        self,
        rows: Sequence[object],
        first: int,
        ids: Sequence[str],
        words: str,
        reached: Callable[[int], Position],
    ) -> RowBlock:
        """Rows after the first ones, with ids of two numbers, which `words` shows."""
        missing = self.missing_rows
        return RowBlock(
            DictRows(rows),
            self.name,
            first,
            place=lambda row: words.format(*ids[row].split("-")),
            reached=lambda row: {**reached(row), "missing": missing},
            ids=ids,
        )

    def _has_ended(self, at: Any, late: float) -> bool:
        """Whether a stream has ended that is idle for `late` seconds more than allowed."""
        return True

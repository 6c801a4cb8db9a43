"""A connection to Redis that is tried again after breaks, for a stated time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import FileRefused
from .addresses import REDIS_PASSWORD, RedisAddress
from .retries import PATIENCE, Retries

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Redis streams need the package redis, which is not installed. Install both: "
        "pip install 'kernelbank[redis]'"
    ) from error

Result = TypeVar("Result")

BROKEN = (redis.ConnectionError, redis.TimeoutError)
"""The errors after which trying again may help."""

ResponseError = redis.ResponseError
"""What Redis answers to a command that it refuses."""

_LONGEST_SLEEP = 0.2
"""Seconds after which `attempt` returns, so that its caller can stop."""

_PLAIN_REPLIES = (b"+PONG", b"-NOAUTH", b"-DENIED", b"-ERR")
"""What Redis answers to a PING without encryption."""


class RedisConnection:
    """A connection to one Redis server.

    Parameters
    ----------
    address : the address of the server.
    patience : seconds for which a broken connection is tried again before `SourceLost`.
    """

    def __init__(self, address: RedisAddress, patience: float = PATIENCE) -> None:
        self._address = address
        self._retries = Retries(address.shown, patience)
        # The client's own retries are off: `patience` limits their time here.
        self._client = redis.Redis(
            host=address.host,
            port=address.port,
            db=address.database,
            username=address.user,
            password=address.password,
            ssl=address.encrypted,
            socket_timeout=self._retries.timeout,
            socket_connect_timeout=self._retries.timeout,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )

    def attempt(self, action: Callable[[Any], Result]) -> Result | None:
        """The action's result; None if the connection is broken, or its next attempt not due."""
        if self._retries.seconds_left:
            time.sleep(min(self._retries.seconds_left, _LONGEST_SLEEP))
            return None
        try:
            result = action(self._client)
        except redis.AuthenticationError as error:
            raise FileRefused(
                f"{self._address.shown}: Redis refuses the user or password ({error}). Give the "
                f"password with --redis-password-file or in {REDIS_PASSWORD}."
            ) from None
        except redis.InvalidResponse:
            raise FileRefused(
                f"{self._address.shown}: what answers there is not Redis. Check host and port."
            ) from None
        except BROKEN as error:
            self._check_encryption()
            self._retries.failed(_reason(error))
            self._set_timeout(self._retries.timeout)
            return None
        except redis.ResponseError as error:
            raise FileRefused(f"{self._address.shown}: Redis refuses: {error}.") from None
        self._retries.succeeded()
        return result

    def call(self, action: Callable[[Any], Result]) -> Result:
        """The action's result; it is tried again while the connection is broken."""
        while True:
            result = self.attempt(action)
            if result is not None:
                return result

    def _set_timeout(self, seconds: float) -> None:
        """For connections from now on; the present ones are broken."""
        pool = self._client.connection_pool
        pool.connection_kwargs |= {"socket_timeout": seconds, "socket_connect_timeout": seconds}
        pool.disconnect()

    def _check_encryption(self) -> None:
        """Refuse an encrypted address whose port answers without encryption."""
        if self._address.encrypted and self._answers_plainly():
            plain = replace(self._address, encrypted=False).shown
            raise FileRefused(
                f"{self._address.shown}: Redis answers at this port without encryption. Give "
                f"{plain}, or the port that is encrypted."
            )

    def _answers_plainly(self) -> bool:
        place = (self._address.host, self._address.port)
        try:
            with socket.create_connection(place, timeout=_LONGEST_SLEEP) as plain:
                plain.sendall(b"PING\r\n")
                return plain.recv(100).startswith(_PLAIN_REPLIES)
        except OSError:
            return False

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _reason(error: BaseException) -> str:
    """Why a connection is broken: the system's words, where there are some."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(error).rstrip(".")

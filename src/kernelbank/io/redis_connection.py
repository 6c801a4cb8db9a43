"""A connection to Redis that is tried again after breaks, for a stated time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import FileRefused, SourceLost
from .addresses import RedisAddress

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

PATIENCE = 30.0
"""Seconds for which a broken connection is tried again."""

BROKEN = (redis.ConnectionError, redis.TimeoutError)
"""The errors after which trying again may help."""

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class RedisConnection:
    """A connection to one Redis server.

    Parameters
    ----------
    address : the address of the server.
    patience : seconds for which a broken connection is tried again before `SourceLost`.
    """

    def __init__(self, address: RedisAddress, patience: float = PATIENCE) -> None:
        self._address = address
        self._patience = patience
        self._pause = _FIRST_PAUSE
        self._broken_since: float | None = None
        # The client's own retries are off: `patience` limits their time here.
        self._client = redis.Redis(
            host=address.host,
            port=address.port,
            db=address.database,
            username=address.user,
            password=address.password,
            ssl=address.encrypted,
            socket_timeout=5.0,
            socket_connect_timeout=5.0,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )

    def attempt(self, action: Callable[[Any], Result]) -> Result | None:
        """The action's result; None, after a pause, if the connection is broken now."""
        try:
            result = action(self._client)
        except redis.AuthenticationError as error:
            raise FileRefused(
                f"{self._address.shown}: Redis refuses the user or password ({error})."
            ) from None
        except BROKEN as error:
            self._wait(error)
            return None
        except redis.ResponseError as error:
            raise FileRefused(f"{self._address.shown}: Redis refuses: {error}.") from None
        self._broken_since = None
        self._pause = _FIRST_PAUSE
        return result

    def call(self, action: Callable[[Any], Result]) -> Result:
        """The action's result; it is tried again while the connection is broken."""
        while True:
            result = self.attempt(action)
            if result is not None:
                return result

    def _wait(self, error: Exception) -> None:
        now = time.monotonic()
        if self._broken_since is None:
            self._broken_since = now
        if now - self._broken_since >= self._patience:
            raise SourceLost(
                f"{self._address.shown}: no connection for {self._patience:g} seconds ({error}). "
                "Start the server or check the address; the run can be resumed afterwards."
            ) from None
        time.sleep(min(self._pause, self._patience))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

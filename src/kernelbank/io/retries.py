"""When a broker that cannot be reached is tried again, and what is said about it."""

from __future__ import annotations

import time
import warnings

from ..errors import BrokerConnection, SourceLost

PATIENCE = 30.0
"""Seconds for which a broker that cannot be reached is tried again."""

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 8.0

FIRST_TIMEOUT = 1.5
"""Seconds that the first attempt may take: so a user is told within two seconds."""

LONGEST_TIMEOUT = 10.0


class Retries:
    """Attempts with growing pauses, a line for each, and an end.

    Parameters
    ----------
    address : of the broker, as it is shown.
    patience : seconds from the first failure on, after which `failed` raises `SourceLost`.
    """

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self.timeout = FIRST_TIMEOUT
        """Seconds that the next attempt may take. It grows: a slow broker is reached in the end."""
        self._address = address
        self._patience = patience
        self._failed_since: float | None = None
        self._pause = FIRST_PAUSE
        self._next = 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until the next attempt is due; 0 if it is."""
        return max(self._next - time.monotonic(), 0.0)

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
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self.timeout = min(2 * self.timeout, LONGEST_TIMEOUT)

    def succeeded(self) -> None:
        """An attempt has succeeded."""
        if self._failed_since is not None:
            warnings.warn(f"{self._address} is reached again.", BrokerConnection, stacklevel=2)
        self._failed_since, self._pause, self._next = None, FIRST_PAUSE, 0.0

"""Deferring Ctrl-C while a block is learned, so that no block is ever half learned."""

from __future__ import annotations

# As `signal`, but without looking up the names of handlers, which takes 20 microseconds.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from typing import Any

_SIGINT = int(signal.SIGINT)


class defer_sigint:  # noqa: N801
    """Defer a Ctrl-C inside the block to its end. (Only the main thread ever gets one.)

    A class, because it is entered for every row: a generator takes twice the time.
    """

    __slots__ = ("_handler", "_waiting")

    def __enter__(self) -> None:
        self._waiting = False
        self._handler: Any = None
        if threading.current_thread() is threading.main_thread():
            self._handler = _signal.getsignal(_SIGINT)
            if self._handler is not None:  # else set from outside Python: leave it
                _signal.signal(_SIGINT, self._wait)

    def _wait(self, *_: object) -> None:
        self._waiting = True

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            _signal.signal(_SIGINT, self._handler)
            if self._waiting:
                signal.raise_signal(signal.SIGINT)

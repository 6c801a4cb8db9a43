"""Deferring Ctrl-C while a block is learned, so that no block is ever half learned."""

from __future__ import annotations

# As `signal`, but without looking up the names of handlers, which takes 20 microseconds.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGINT = int(signal.SIGINT)


@contextmanager
def defer_sigint() -> Iterator[None]:
    """Defer a Ctrl-C inside the block to its end. (Only the main thread ever gets one.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _signal.getsignal(_SIGINT)
    if handler is None:  # set from outside Python: leave it
        yield
        return
    waiting: list[int] = []
    _signal.signal(_SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        _signal.signal(_SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)

"""Holding back Ctrl-C while a block is worked, so that no block is ever half learned."""

from __future__ import annotations

# As `signal`, but without the search for the handlers' names, which takes twenty microseconds.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGINT = int(signal.SIGINT)


@contextmanager
def defer_sigint() -> Iterator[None]:
    """Let a Ctrl-C that comes inside wait until the end. (Only the main thread ever gets one.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _signal.getsignal(_SIGINT)
    if handler is None:  # set from outside Python: not ours to touch
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

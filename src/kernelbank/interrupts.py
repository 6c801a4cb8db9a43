"""Holding back Ctrl-C while a block is worked, so that no block is ever half learned."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Let a Ctrl-C that comes inside wait until the end. (Only the main thread ever gets one.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    handler: Any = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting and callable(handler):
            handler(*waiting[0])

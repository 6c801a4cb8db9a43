"""Signals that end a run: after its block, or at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class StopFlag:
    """Whether a signal has asked to stop, and which one."""

    def __init__(self) -> None:
        self.signal_number = 0

    def is_set(self) -> bool:
        return bool(self.signal_number)

    def __call__(self, number: int, _: object) -> None:
        if not self.signal_number:
            self.signal_number = number
        elif number != signal.SIGHUP:  # a terminal that closes sends it twice
            raise KeyboardInterrupt  # the second signal: end at once, with the last checkpoint


@contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """SIGINT, SIGTERM and SIGHUP end the run after its block; a second one ends it at once.

    SIGHUP comes when the terminal is closed; with `nohup` it is ignored, and stays so.
    """
    stop = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Ray leaves the signal handlers of this process as they are."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def keep_sigterm_handler() -> Iterator[None]:
    """Let `ray.init` not take SIGTERM: its handler would end the process without a checkpoint.

    A SIGTERM meanwhile goes to the handler that was there before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # there Ray takes no signal either
        return
    module: Any = signal
    set_handler = signal.signal

    def refuse_sigterm(number: int, handler: Any) -> Any:
        if number == signal.SIGTERM:
            return signal.getsignal(number)
        return set_handler(number, handler)

    module.signal = refuse_sigterm
    try:
        yield
    finally:
        module.signal = set_handler
        before = signal.getsignal(signal.SIGTERM)
        if before is not None:  # Ray's own code has put another one before Python's
            set_handler(signal.SIGTERM, before)

"""`ray.init` takes SIGTERM twice over, and would end a run without its checkpoint."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def defer_sigterm() -> Iterator[None]:
    """Defer a SIGTERM inside the block to its end, and leave its handler as it was.

    Ray sets a handler in Python, which exits. Then its compiled part puts another one before it,
    which prints a stack trace and sets an alarm that aborts the process after three seconds.
    """
    module: Any = signal
    before = signal.getsignal(signal.SIGTERM)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or before is None or not hasattr(module, "setitimer"):
        yield  # in other threads Ray takes no signal; None: set from outside Python
        return
    set_handler = signal.signal
    timer = signal.getitimer(signal.ITIMER_REAL)
    on_alarm = signal.getsignal(signal.SIGALRM) or signal.SIG_DFL
    waiting = False

    def wait(*_: object) -> None:
        nonlocal waiting
        waiting = True
        signal.setitimer(signal.ITIMER_REAL, *timer)  # no alarm of Ray's
        set_handler(signal.SIGALRM, on_alarm)

    def keep_sigterm(number: int, handler: Any) -> Any:
        return wait if number == signal.SIGTERM else set_handler(number, handler)

    set_handler(signal.SIGTERM, wait)
    module.signal = keep_sigterm
    try:
        yield
    finally:
        module.signal = set_handler
        set_handler(signal.SIGTERM, before)
        if waiting:
            signal.raise_signal(signal.SIGTERM)

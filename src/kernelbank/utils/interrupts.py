"""Deferring signals while a bank changes, so that it is never left between two samples.

Python runs the handler of a signal between any two instructions of the main thread, and a handler
may raise: Ctrl-C does, and so do soft timeouts by SIGALRM. Inside `defer_signals` every handler
that is a Python function is replaced by one that only notes the signal. At the end the handlers are
put back, and those of the signals that came are called.
"""

from __future__ import annotations

# As `signal`, but without looking up the names of handlers, which takes 20 microseconds.
import _signal  # type: ignore[import-not-found]
import os
import signal
import sys
import threading
from typing import Any

_NUMBERS = tuple(sorted(map(int, signal.valid_signals())))
_getsignal, _set, _ident = _signal.getsignal, _signal.signal, threading.get_ident


class _Handlers:
    """The handlers of this process."""

    def __init__(self) -> None:
        self.deferring = 0
        """The main thread while it defers signals, else 0."""
        self._replaced: dict[int, Any] = {}
        """The handlers that are replaced, by signal."""
        self._came: list[int] = []
        """The signals that came since then, each once."""
        self._found: list[Any] = []
        self._to_replace: list[tuple[int, Any]] = []
        """The handlers of all signals last time, and those to be replaced: seldom others."""

    def replace(self) -> None:
        """Begin to defer."""
        found = list(map(_getsignal, _NUMBERS))
        if found != self._found:
            pairs = zip(_NUMBERS, found, strict=True)
            self._to_replace = [pair for pair in pairs if callable(pair[1])]  # Python functions
            self._found = found
        note = self.note
        for number, handler in self._to_replace:
            if handler != note:
                self._replaced[number] = handler
                _set(number, note)
        # Only now: if a signal has raised above, nothing ends the deferral. Handlers that were
        # replaced until then are called by `note`, and put back next time.
        self.deferring = _ident()

    def note(self, number: int, frame: Any) -> None:
        """The handler in place of others."""
        if not self.deferring:  # it came while handlers were being replaced or put back
            self._replaced[number](number, frame)
        elif number not in self._came:
            self._came.append(number)

    def put_back(self) -> None:
        """End the deferral, and handle the signals that came."""
        self.deferring = 0
        try:
            for number, handler in list(self._replaced.items()):
                if _getsignal(number) == self.note:
                    _set(number, handler)
                del self._replaced[number]
        finally:
            if self._came:
                self._handle(sys._getframe(1))

    def _handle(self, frame: Any) -> None:
        """Call the handlers of the signals that came; all of them, even if one raises."""
        number = self._came.pop(0)
        try:
            handler = _getsignal(number)
            if callable(handler):
                handler(number, frame)
            else:  # it was changed meanwhile
                signal.raise_signal(number)
        finally:
            if self._came:
                self._handle(frame)

    def after_fork(self) -> None:
        """In a child that another thread has forked, the thread that defers signals is missing."""
        if self.deferring and self.deferring != _ident():
            self._came.clear()
            self.put_back()


_handlers = _Handlers()
os.register_at_fork(after_in_child=_handlers.after_fork)


class defer_signals:  # noqa: N801
    """Defer signals inside the block to its end. (Only the main thread ever handles them.)

    A class, because it is entered for every row: a generator takes twice the time.
    """

    __slots__ = ("_outermost",)

    def __enter__(self) -> None:
        self._outermost = not _handlers.deferring and _ident() == threading.main_thread().ident
        if self._outermost:
            _handlers.replace()

    def __exit__(self, *error: object) -> None:
        if self._outermost:
            _handlers.put_back()

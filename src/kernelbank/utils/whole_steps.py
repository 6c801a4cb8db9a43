"""Steps of a bank that are done whole, undone, or known to be cut off.

A bank changes in steps: a block of samples, a row, new inputs. Whatever interrupts one, the bank is
afterwards as before the step or as after it: signals wait for its end, and so do warnings, which
may be errors by the user's filters. Where neither is possible (an exception that another thread has
raised here, no memory, a fork in the middle), the bank refuses every further use.

Python runs the handler of a signal between any two instructions of the main thread, and a handler
may raise: Ctrl-C does, and so do soft timeouts by SIGALRM. Inside `defer_signals` every handler
that is a Python function is replaced by one that only notes the signal. At the end the handlers are
put back, and the handlers of the signals that came are called.
"""

from __future__ import annotations

# As `signal`, but without looking up the names of handlers, which takes 20 microseconds.
import _signal  # type: ignore[import-not-found]
import os
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from ..errors import HalfLearned

_NUMBERS = tuple(sorted(map(int, signal.valid_signals())))
_getsignal, _set, _ident = _signal.getsignal, _signal.signal, threading.get_ident


class _Handlers:
    """The handlers of this process."""

    def __init__(self) -> None:
        self.deferring = 0
        """The main thread while it defers signals, else 0."""
        self._replaced: dict[int, Callable[[int, object], object]] = {}
        """The handlers that are replaced, by signal."""
        self._came: list[int] = []  # the signals that came since then, each once
        self._last: list[object] = []
        self._to_replace: list[tuple[int, Callable[[int, object], object]]] = []
        """The handlers of all signals last time, and those to be replaced: seldom others."""

    def replace(self) -> None:
        """Begin to defer."""
        handlers = list(map(_getsignal, _NUMBERS))
        if handlers != self._last:
            pairs = zip(_NUMBERS, handlers, strict=True)
            self._to_replace = [pair for pair in pairs if callable(pair[1])]  # Python functions
            self._last = handlers
        note = self.note
        for number, handler in self._to_replace:
            if handler != note:
                self._replaced[number] = handler
                _set(number, note)
        # Only now: if a signal has raised above, nothing ends the deferral. Handlers that were
        # replaced until then are called by `note`, and put back next time.
        self.deferring = _ident()

    def note(self, number: int, frame: object) -> None:
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

    def _handle(self, frame: object) -> None:
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


_PACKAGE = __name__.partition(".")[0] + "."


class Stepping(Protocol):
    """A bank, as `whole_step` knows it."""

    _turn: threading.RLock

    def _before_step(self) -> object:
        """What `_failed_step` needs to undo the step."""

    def _failed_step(self, before: Any, error: BaseException) -> None:
        """Undo a step that an exception has ended, or call `_cut_off`."""

    def _cut_off(self, why: str) -> None:
        """Put a `CutOff` in the place of the state."""


class _Steps(threading.local):
    """The steps of one thread."""

    depth = 0
    """How many are inside one another."""

    def __init__(self) -> None:
        self.warnings: list[tuple[type[Warning], str]] = []
        """Warnings that wait for the end of the outermost step."""


_steps = _Steps()


class whole_step:  # noqa: N801
    """A block of code that changes a bank."""

    __slots__ = ("_bank", "_before", "_deferred")

    def __init__(self, bank: Stepping) -> None:
        self._bank = bank
        self._deferred = defer_signals()

    def __enter__(self) -> None:
        self._deferred.__enter__()
        try:
            self._before = self._bank._before_step()
        except BaseException:
            self._deferred.__exit__()
            raise
        _steps.depth += 1

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _steps.depth -= 1
        try:
            if error is not None:
                self._bank._failed_step(self._before, error)
            elif not _steps.depth and _steps.warnings:
                _give_warnings()
        finally:
            if not _steps.depth:
                _steps.warnings.clear()
            self._deferred.__exit__()


def warn_after_step(kind: type[Warning], message: str) -> None:
    """Warn, attributed to the line outside this package that called it, once the bank is whole."""
    _steps.warnings.append((kind, message))
    if not _steps.depth:
        _give_warnings()


def _give_warnings() -> None:
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    waiting = _steps.warnings.copy()
    _steps.warnings.clear()
    for kind, message in waiting:
        warnings.warn(message, kind, stacklevel=level)


class CutOff:
    """In the place of the state of a bank that was cut off in the middle of a step."""

    def __init__(self, why: str) -> None:
        self.__dict__["_why"] = why

    def __getattr__(self, name: str) -> NoReturn:
        raise HalfLearned(
            f"This bank cannot be used any more: {self._why}. Load it from a file with kb.load, or "
            "make a new one and learn the stream again."
        )


# --- forks ----------------------------------------------------------------------------------------

_banks: dict[int, weakref.ref[Stepping]] = {}  # all banks of this process, by their address


def new_turn(bank: Stepping) -> threading.RLock:
    """The lock by which threads take turns with a bank."""
    address = id(bank)
    _banks[address] = weakref.ref(bank, lambda _: _banks.pop(address, None))
    return threading.RLock()


def _after_fork() -> None:
    """In a child: banks that another thread was using have nobody who ends its step."""
    for reference in list(_banks.values()):
        bank = reference()
        if bank is None:
            continue
        if bank._turn.acquire(blocking=False):
            bank._turn.release()
        else:
            bank._turn = threading.RLock()
            bank._cut_off("the process was forked while another thread was using it")


os.register_at_fork(after_in_child=_after_fork)

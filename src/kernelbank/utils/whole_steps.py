"""Steps of a bank that are done whole, undone, or known to be cut off.

A bank changes in steps: a block of samples, a row, new inputs. Whatever interrupts one, the bank is
afterwards as before the step or as after it: signals wait for its end, and so do warnings, which
may be errors by the user's filters. Where neither is possible (an exception that another thread has
raised here, no memory, a fork in the middle), the bank refuses every further use.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from ..errors import HalfLearned
from .interrupts import defer_signals

_PACKAGE = __name__.partition(".")[0] + "."


class Stepping(Protocol):
    """A bank, as `whole_step` knows it."""

    _turn: Any

    def _before_step(self) -> Any:
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
        self.owner = ""
        """Who runs, where several do in turn."""


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

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
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


@contextmanager
def named_warnings(owner: str) -> Iterator[None]:
    """Begin the warnings of this thread with the name of the one who runs."""
    before, _steps.owner = _steps.owner, owner
    try:
        yield
    finally:
        _steps.owner = before


def with_owner(message: str) -> str:
    """The message, with the name that `named_warnings` was given."""
    return f"{_steps.owner}: {message}" if _steps.owner else message


def warn_after_step(kind: type[Warning], message: str) -> None:
    """Warn, attributed to the line outside this package that called it, once the bank is whole."""
    _steps.warnings.append((kind, with_owner(message)))
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

_banks: dict[int, weakref.ref[Stepping]] = {}
"""All banks of this process, by their address."""


def new_turn(bank: Stepping) -> Any:
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

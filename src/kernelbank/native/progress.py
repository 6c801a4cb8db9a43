"""Lines on standard error that tell why the first call takes seconds.

Functions are compiled once per machine: the machine code is kept on disk. Programs get the same
message from the logger "kernelbank", at level INFO.
"""

import logging
import sys
import time
from contextlib import suppress

_log = logging.getLogger("kernelbank")


def tell(text: str) -> None:
    """Print a line on standard error, at a terminal, in a pipe and in a notebook, and log it."""
    _show(text + "\n")
    _log.info(text)


def _show(text: str) -> None:
    if sys.stderr is not None:  # as in a program without a console
        with suppress(OSError, ValueError):  # nobody reads it, or the disk behind it is full
            sys.stderr.write(text)
            sys.stderr.flush()


class _Progress:
    def __init__(self) -> None:
        self.seconds = 0.0
        """How long this process has compiled so far."""
        self.quiet = False
        """Whether nothing is reported: for processes whose parent reports."""
        self._count = 0
        self._start = 0.0
        self._told = False

    def compiling(self) -> None:
        """Report that one more function is compiled, because it is not on disk yet."""
        if self.quiet:
            return
        self._count += 1
        if self._count == 1:
            self._start = time.perf_counter()
        if not self._told:
            self._told = True
            tell("kernelbank compiles its loops for this machine, once ...")
        elif sys.stderr is not None and sys.stderr.isatty():
            _show(f"\r{self._count} ...")  # a line that is updated, at a terminal only

    def finished(self) -> None:
        """Report that all functions are ready, if any had to be compiled."""
        if self._count:
            spent = time.perf_counter() - self._start
            self.seconds += spent
            if sys.stderr is not None and sys.stderr.isatty():
                _show("\r")
            functions = f"{self._count} function{'s' * (self._count != 1)}"
            tell(f"kernelbank has compiled {functions} in {spent:.0f} s.")
        self._count = 0


progress = _Progress()

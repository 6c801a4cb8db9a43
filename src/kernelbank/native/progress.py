"""A line on the terminal that tells why the first call takes seconds.

Functions are compiled once per machine: the machine code is kept on disk. Programs get the same
message from the logger "kernelbank", at level INFO.
"""

import logging
import sys
import time

_log = logging.getLogger("kernelbank")


class _Progress:
    def __init__(self) -> None:
        self._count = 0
        self._start = 0.0

    def compiling(self) -> None:
        """Report that one more function is compiled, because it is not on disk yet."""
        if self._count == 0:
            self._start = time.perf_counter()
            _log.info("compiling loops for this machine; this happens once")
        self._count += 1
        self._show(f"kernelbank compiles its loops for this machine, once: {self._count} ...")

    def finished(self) -> None:
        """Report that all functions are ready, if any had to be compiled."""
        if self._count:
            seconds = time.perf_counter() - self._start
            _log.info("compiled %d functions in %.1f s", self._count, seconds)
            self._show(f"kernelbank has compiled its loops for this machine in {seconds:.0f} s.\n")
        self._count = 0

    def _show(self, text: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r" + text)
            sys.stderr.flush()


progress = _Progress()

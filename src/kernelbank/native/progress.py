"""A line that tells a person at a terminal why the first call takes seconds.

Compiling happens once on a machine: the machine code is kept on disk. Programs hear the same
through the logger "kernelbank", at level INFO.
"""

import logging
import sys
import time

_log = logging.getLogger("kernelbank")


class _Line:
    def __init__(self) -> None:
        self.count = 0
        self.start = 0.0

    def compiling(self) -> None:
        """One more function is not on disk yet and is compiled now."""
        if self.count == 0:
            self.start = time.perf_counter()
            _log.info("compiling loops for this machine; this happens once")
        self.count += 1
        self._show(f"kernelbank compiles its loops for this machine, once: {self.count} ...")

    def finished(self) -> None:
        """All that was needed is there."""
        if self.count:
            seconds = time.perf_counter() - self.start
            _log.info("compiled %d functions in %.1f s", self.count, seconds)
            self._show(f"kernelbank has compiled its loops for this machine in {seconds:.0f} s.\n")
        self.count = 0

    def _show(self, text: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r" + text)
            sys.stderr.flush()


line = _Line()

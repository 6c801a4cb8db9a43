"""The pictures of a run that is at work: a page that follows it, and a file at its end."""

from __future__ import annotations

import ipaddress
import time
from contextlib import AbstractContextManager
from pathlib import Path

from ..report.file import write
from ..report.report_data import Story
from ..runner.runner import Runner
from ..runner.status import RunStatus
from ..runner.timings import PAGE
from .live import Live

PERIOD = 0.5
"""Seconds between two tellings, at least."""

PRESENT = 5.0
"""Seconds between two looks at the present function, which take longest."""

SHARE = 0.01
"""Of the run's time, at most, for telling: what takes long is told more seldom."""


class Pictures(AbstractContextManager["Pictures"]):
    """Tells a run to those who watch it. `update` after every block, `end` at the end."""

    def __init__(self, file: Path | None, live: Live | None) -> None:
        self._file, self._live = file, live
        self._story = Story()
        self._next = self._look = 0.0

    def update(self, run: Runner) -> None:
        """Tell how the run stands, if it is time to."""
        begin = time.monotonic()
        if self._live is None or begin < self._next:
            return
        present = begin >= self._look
        if present:
            self._look = begin + PRESENT
        with run.timings.measure(PAGE):
            self._live.publish(self._story.parts(RunStatus.of_run(run), present=present))
        spent = time.monotonic() - begin
        self._next = begin + max(PERIOD, spent / SHARE)

    def end(self, run: Runner, status: str) -> None:
        """Tell how it ended, and leave the file."""
        final = RunStatus.of_run(run, status)
        if self._live is not None:
            self._live.publish(self._story.parts(final))
            self._live.end()
        if self._file is not None:
            write(self._file, final)

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.close()


def only_here(host: str) -> bool:
    """Whether what listens on this address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"

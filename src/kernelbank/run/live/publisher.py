"""Publishes the report of a run: to its live page while it runs, and to a file at its end."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

from ..report.report_data import ReportData, write_report
from ..runner import Runner
from ..status import RunStatus
from ..timings import PAGE
from .live_page import LivePage

PERIOD = 0.5
"""Least seconds between two updates."""

CURVES_PERIOD = 5.0
"""Least seconds between two evaluations of the present prediction curves, the slowest part."""

MAX_SHARE = 0.01
"""Largest share of the run's time for updates: updates that take long are less frequent."""


class Publisher(AbstractContextManager["Publisher"]):
    """Call `update` after every block, and `end` at the end of the run."""

    def __init__(self, file: Path | None, page: LivePage | None) -> None:
        self._file, self._page = file, page
        self._data = ReportData()
        self._next_update = self._next_curves = 0.0

    def update(self, run: Runner) -> None:
        """Publish the present report to the live page, if it is time to."""
        begin = time.monotonic()
        if self._page is None or begin < self._next_update:
            return
        curves = begin >= self._next_curves
        if curves:
            self._next_curves = begin + CURVES_PERIOD
        with run.timings.measure(PAGE):
            self._page.publish(self._data.parts(RunStatus.of_run(run), curves=curves))
        spent = time.monotonic() - begin
        self._next_update = begin + max(PERIOD, spent / MAX_SHARE)

    def end(self, run: Runner, phase: str) -> None:
        """Publish how the run ended, and write the report file."""
        status = RunStatus.of_run(run, phase)
        if self._page is not None:
            self._page.publish(self._data.parts(status))
            self._page.end()
        if self._file is not None:
            write_report(self._file, status)

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.close()

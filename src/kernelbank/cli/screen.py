"""What a person sees of a run: a line that lives, and a table at the end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..service.run import Run

_PERIOD = 0.25
_LOG_PERIOD = 5.0
_CARRIERS = 3


class Summary:
    """The figures of a run so far, from its history."""

    def __init__(self, run: Run) -> None:
        history, progress = run.history, run.progress
        self.labels = run.settings.task == "classification"
        self.rows, self.bad = progress.rows, progress.bad
        seconds = max(time.monotonic() - progress.started, 1e-9)
        self.seconds = seconds
        self.speed = (progress.rows - progress.first_row) / seconds
        self.error = self.persistence = self.best = self.coverage = float("nan")
        self.best_name = ""
        self.carriers: list[tuple[str, float]] = []
        if history is None or not history.rows:
            return
        sums = {name: float(values.sum()) for name, values in history.figures.items()}
        count = sums["answered"]
        if not count:
            return
        self.error = self._figure(sums["loss"], count)
        self.persistence = self._figure(sums["persistence"], count)
        names = run.bank.names
        if not self.labels:
            self.coverage = sums["inside"] / count
            losses = history.losses.sum(axis=0)
            place = int(np.argmin(losses))
            self.best, self.best_name = self._figure(float(losses[place]), count), names[place]
        weights = history.weights[-1]
        for place in np.argsort(-weights)[:_CARRIERS]:
            if weights[place] > 0.005:
                self.carriers.append((names[place], float(weights[place])))

    def _figure(self, total: float, count: float) -> float:
        """Root mean square error, or the share of wrong answers."""
        return total / count if self.labels else (total / count) ** 0.5

    def plain(self) -> dict[str, Any]:
        """For machines."""
        own = {
            "rows": self.rows,
            "bad_rows": self.bad,
            "rows_per_second": round(self.speed, 1),
            "error": self.error,
            "persistence": self.persistence,
            "best_slot": self.best,
            "best_slot_name": self.best_name,
            "coverage": self.coverage,
            "weights": dict(self.carriers),
        }
        return {
            k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in own.items()
        }


class Screen:
    """Shows a run on a terminal, in a log, or not at all."""

    def __init__(self, *, quiet: bool, log_json: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._quiet, self._log = quiet, log_json
        self._console = Console(file=self._stream, highlight=False)
        terminal = self._console.is_terminal and not quiet and not log_json
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._lives = terminal
        self._last = 0.0

    def __enter__(self) -> Screen:
        if self._lives:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lives:
            self._live.stop()

    def say(self, words: str, **facts: Any) -> None:
        """One sentence, or one object of the log."""
        if self._log:
            self._write({"event": words, **facts})
        elif not self._quiet:
            detail = "".join(f" {value}" for value in facts.values())
            self._console.print(Text(f"{words}{detail}"))

    def update(self, run: Run) -> None:
        """After a block."""
        now = time.monotonic()
        if self._log and now - self._last >= _LOG_PERIOD:
            self._last = now
            self._write({"event": "progress", **Summary(run).plain()})
        elif self._lives and now - self._last >= _PERIOD:
            self._last = now
            self._live.update(Text(line(Summary(run), run), no_wrap=True, overflow="ellipsis"))
            self._live.refresh()

    def _write(self, facts: dict[str, Any]) -> None:
        self._stream.write(json.dumps(facts, ensure_ascii=False) + "\n")
        self._stream.flush()

    def end(self, run: Run, reason: str) -> None:
        """The table."""
        summary = Summary(run)
        if self._log:
            self._write({"event": "end", "reason": reason, **summary.plain()})
        elif not self._quiet:
            self._console.print(table(summary, run))


def line(summary: Summary, run: Run) -> str:
    """The line that lives."""
    words = [f"{summary.rows:,} rows", f"{summary.speed:,.0f}/s"]
    if summary.bad:
        words.append(f"{summary.bad:,} bad")
    name = "wrong" if summary.labels else "error"
    own = f"{name} {_shown(summary.error, summary.labels)}"
    beside = [f"persistence {_shown(summary.persistence, summary.labels)}"]
    if not summary.labels:
        beside.append(f"best slot {_shown(summary.best, False)}")
    words.append(f"{own} ({', '.join(beside)})")
    share = run.source.share
    if share and share > 0 and summary.rows > run.progress.first_row:
        left = summary.seconds * (1 - share) / share
        words.append(f"{_clock(left)} left")
    words.append(", ".join(f"{weight:.2f} {name}" for name, weight in summary.carriers))
    return " · ".join(words)


def table(summary: Summary, run: Run) -> Table:
    """The table at the end."""
    found = Table(show_header=False, box=None, pad_edge=False)
    found.add_column(style="dim")
    found.add_column()
    rows: list[tuple[str, str]] = [("rows", f"{summary.rows:,}")]
    if run.progress.first_row:
        rows.append(("of these before", f"{run.progress.first_row:,}"))
    if run.progress.predicted_only:
        rows.append(("without a target", f"{run.progress.predicted_only:,}"))
    rows.append(("bad rows set aside", f"{summary.bad:,}"))
    rows.append(("time", f"{_clock(summary.seconds)}, {summary.speed:,.0f} rows/s"))
    name = "wrong answers" if summary.labels else "root mean square error"
    rows.append((name, _shown(summary.error, summary.labels)))
    rows.append(("  of persistence", _shown(summary.persistence, summary.labels)))
    if not summary.labels:
        best = _shown(summary.best, False)
        rows.append(("  of the best slot", f"{best}  {summary.best_name}"))
        rows.append(
            ("targets inside", f"{summary.coverage:.1%} of {run.settings.coverage:.0%} intervals")
        )
    for place, (slot, weight) in enumerate(summary.carriers):
        rows.append(("largest weights" if not place else "", f"{weight:.2f}  {slot}"))
    changes = run.bank.ledger.changes
    if changes:
        last = changes[-1]
        rows.append(
            ("signals of change", f"{len(changes)}, the last after row {last.row}: {last.what}")
        )
    for label, text in rows:
        found.add_row(Text(label), Text(text))
    return found


def _shown(value: float, share: bool) -> str:
    return f"{value:.2%}" if share else f"{value:.4g}"


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {left:02d} s"


def quoted(words: Sequence[str]) -> str:
    """A command as it can be typed again."""
    import shlex

    return " ".join(shlex.quote(word) for word in words)

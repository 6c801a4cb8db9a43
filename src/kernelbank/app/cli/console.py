"""What a person sees of a run: a line that lives, and a table at the end; or a log for machines.

All of it goes to standard error. Without a terminal there there is no line that lives and no
control character.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, TextIO

from ..runner.run import Run
from .run_summary import Summary

_PERIOD = 0.25
_LOG_PERIOD = 5.0
_MEMORY = 10.0
"""Seconds over which the speed of the living line is taken: it neither jumps nor lags."""

_CLEAR = "\r\x1b[K"
_GAP = "  "
_LEAST = 16
"""Columns below which a slot's name says nothing."""


class Screen:
    """Shows a run on a terminal, in a log, or not at all."""

    def __init__(self, *, quiet: bool, log_json: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._quiet, self._log = quiet, log_json
        terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lives = terminal and not quiet and not log_json
        self._drawn = ""
        self._last = 0.0
        self._pace = Pace()

    def __enter__(self) -> Screen:
        self._draw("Starting. The very first run compiles its loops, up to a minute.")
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("")
        self._lives = False

    def say(self, event: str, words: str, **facts: Any) -> None:
        """A sentence, or an object of the log."""
        if self._quiet:
            return
        if self._log:
            self._write({"event": event, **facts})
            return
        drawn = self._drawn
        self._draw("")
        self._print(words)
        self._draw(drawn)

    def insist(self, event: str, words: str, **facts: Any) -> None:
        """A sentence that is said even if the screen is to be quiet: somebody has asked for it."""
        quiet, self._quiet = self._quiet, False
        self.say(event, words, **facts)
        self._quiet = quiet

    def refuse(self, message: str) -> bool:
        """Say what went wrong, if it belongs into the log: whether that was so."""
        if self._log:
            self._write({"event": "error", "message": message})
        return self._log

    def update(self, run: Run) -> None:
        """After a block."""
        if self._quiet or not (self._log or self._lives):
            return
        now = time.monotonic()
        self._pace.note(now, run.progress.rows + run.aside.count, run.source.share)
        if now - self._last < (_LOG_PERIOD if self._log else _PERIOD):
            return
        self._last = now
        summary = Summary(run)
        if self._log:
            self._write({"event": "progress", **summary.plain()})
        else:
            left = self._pace.left(run.most, run.progress.rows)
            # A full last column would make some terminals begin a new line.
            self._draw(line(summary, self._pace.speed, left, self._width() - 1))

    def end(self, run: Run, reason: str, places: Sequence[tuple[str, str]]) -> None:
        """The table; `places` say what is where."""
        if self._quiet:
            return
        summary = Summary(run)
        if self._log:
            where = {name: place for name, place in places if name in ("predictions", "state")}
            self._write({"event": "end", "reason": reason, **summary.plain(), **where})
            return
        self._print("\n".join(table(summary, run, places, self._width())))

    # --- writing --------------------------------------------------------------------------------

    def _width(self) -> int:
        """Of the terminal; without one, lines may be as long as they are."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):  # no terminal, or no file at all
            return 1000

    def _draw(self, text: str) -> None:
        """Replace the line that lives."""
        if self._lives and (text or self._drawn):
            self._stream.write(_CLEAR + text[: max(self._width() - 1, 0)])
            self._stream.flush()
            self._drawn = text

    def _print(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def _write(self, facts: dict[str, Any]) -> None:
        self._print(json.dumps(facts, ensure_ascii=False, allow_nan=False))


class Pace:
    """How fast it goes now, and how long it will take."""

    def __init__(self) -> None:
        self._notes: deque[tuple[float, int, float | None]] = deque()

    def note(self, now: float, rows: int, share: float | None) -> None:
        """So many rows, and this share of the source, are done."""
        self._notes.append((now, rows, share))
        while len(self._notes) > 2 and self._notes[1][0] <= now - _MEMORY:
            self._notes.popleft()

    @property
    def speed(self) -> float | None:
        """Rows a second; None before that can be told."""
        (first, before, _), (now, rows, _) = self._notes[0], self._notes[-1]
        return (rows - before) / (now - first) if now > first else None

    def left(self, most: int | None, done: int) -> float | None:
        """Seconds until the source, or the number of rows asked for, is at its end."""
        (first, _, before), (now, _, share) = self._notes[0], self._notes[-1]
        ends = []
        if share is not None and before is not None and share > before:
            ends.append((now - first) * (1 - share) / (share - before))
        if most is not None and self.speed:
            ends.append((most - done) / self.speed)
        return min(ends, default=None)


def line(summary: Summary, speed: float | None, left: float | None, width: int) -> str:
    """The line that lives: what matters most is there first, whatever the width."""
    name = "wrong" if summary.labels else "error"
    known = [  # in the order of the line; the first numbers have a place in the order of weight
        (0, f"{summary.rows:>7,} rows"),
        (4, "" if speed is None else f"{speed:>6,.0f}/s"),
        (1, f"{name} {_steady(summary.error, summary.labels)}"),
        (5, f"persistence {_steady(summary.persistence, summary.labels)}"),
        (6, "" if summary.labels else f"best slot {_steady(summary.best, False)}"),
        (2, f"{summary.bad:,} bad" if summary.bad else ""),
        (3, "" if left is None else f"{_clock(max(left, 1)):>5} left"),
    ]
    chosen: set[int] = set()
    used = -len(_GAP)
    for weight, text in sorted(known):
        if text and used + len(_GAP) + len(text) <= width:
            chosen.add(weight)
            used += len(_GAP) + len(text)
    words = [text for weight, text in known if weight in chosen]
    for slot, share in summary.carriers:
        room = width - used - len(_GAP)
        if room < _LEAST:
            break
        words.append(cropped(f"{share:.2f} {slot}", room))
        used += len(_GAP) + len(words[-1])
    return _GAP.join(words)[:width]


def table(
    summary: Summary, run: Run, places: Sequence[tuple[str, str]], width: int = 1000
) -> list[str]:
    """The lines at the end. Only what must be whole, a place, may be longer than `width`."""
    progress = run.progress
    rows: list[tuple[str, str]] = [("rows", f"{summary.rows:,}")]
    if progress.first_row:
        rows.append(("  done before", f"{progress.first_row:,}"))
    if run.player.predicted_only:
        rows.append(("  without a target", f"{run.player.predicted_only:,}"))
    speed = f"{summary.speed:,.0f} rows/s" if summary.rows > progress.first_row else "no new rows"
    rows.append(("time", f"{_clock(summary.seconds)}, {speed}"))
    if summary.answered:
        name = "wrong answers" if summary.labels else "root mean square error"
        rows.append((name, _shown(summary.error, summary.labels)))
        rows.append(("  of persistence", _shown(summary.persistence, summary.labels)))
        best = _shown(summary.best, summary.labels)
        rows.append(("  of the best slot", f"{best}  {summary.best_name}"))
        if not summary.labels:
            asked = f"{100 * run.settings.coverage:.4g} %"
            rows.append(
                ("targets inside", f"{100 * summary.coverage:.1f} % of the {asked} intervals")
            )
    for place, (slot, weight) in enumerate(summary.carriers):
        rows.append(("largest weights" if not place else "", f"{weight:.2f}  {slot}"))
    changes = run.bank.ledger.changes
    if changes:
        last = changes[-1]
        rows.append(
            ("signals of change", f"{len(changes)}, the last after row {last.row:,}: {last.what}")
        )
    first = max(len(label) for label, _ in rows) + len(_GAP)
    lines = [cropped(f"{label:<{first}}{text}", width) for label, text in rows]
    lines += [f"{label:<{first}}{text}" for label, text in places if text]
    return lines


def cropped(text: str, width: int) -> str:
    """The text, or its beginning and a sign that there is more."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _steady(value: float, share: bool) -> str:
    """A number whose width seldom changes."""
    return f"{100 * value:5.2f} %" if share else f"{value:#.3g}".rstrip(".").rjust(5)


def _shown(value: float, share: bool) -> str:
    return f"{100 * value:.2f} %" if share else f"{value:.4g}"


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s" if whole else "less than 1 s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {left:02d} s"


def quoted(words: Sequence[str]) -> str:
    """A command as it can be typed again."""
    return " ".join(shlex.quote(word) for word in words)

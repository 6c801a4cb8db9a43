"""What a run prints: a line that is updated on a terminal, a summary at the end, or a JSON log.

Everything goes to standard error. Without a terminal there is no updated line and no control
character.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

from ..run.runner import Runner
from ..run.status import RunStatus

_LINE_PERIOD = 0.25
_LOG_PERIOD = 5.0

_CLEAR = "\r\x1b[K"
_GAP = "  "
_LISTED = 8
"""How many of several targets, or of the labels, the summary lists."""
_CHANGES_LISTED = 3


class Console:
    """Shows a run on a terminal, in a log, or not at all."""

    def __init__(self, *, quiet: bool, log_json: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._quiet, self._log = quiet, log_json
        terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._has_line = terminal and not quiet and not log_json
        self._line = ""
        self._updated = 0.0

    def __enter__(self) -> Console:
        self._draw("Starting.")
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("")
        self._has_line = False

    def message(self, event: str, text: str, *, always: bool = False, **facts: object) -> None:
        """Print a sentence, or an object of the log; with `always`, even if quiet."""
        if self._quiet and not always:
            return
        if self._log:
            self._write_json({"event": event, **facts})
            return
        line = self._line
        self._draw("")
        self._print(text)
        self._draw(line)

    def log_error(self, message: str) -> bool:
        """Write an error to the log; False if there is no log."""
        if self._log:
            self._write_json({"event": "error", "message": message})
        return self._log

    def update(self, run: Runner) -> None:
        """Show the status after a block, if it is time to."""
        if self._quiet or not (self._log or self._has_line):
            return
        now = time.monotonic()
        if now - self._updated < (_LOG_PERIOD if self._log else _LINE_PERIOD):
            return
        self._updated = now
        status = RunStatus.of_run(run)
        if self._log:
            self._write_json({"event": "progress", **status.to_log()})
        else:
            self._draw(status_line(status))

    def summary(self, status: RunStatus, reason: str, places: Sequence[tuple[str, str]]) -> None:
        """Print the summary at the end; `places` are names and addresses of what was written."""
        if self._quiet:
            return
        if self._log:
            where = {name: place for name, place in places if name in ("predictions", "state")}
            self._write_json({"event": "end", "reason": reason, **status.to_log(), **where})
            return
        self._print("\n".join(summary_table(status, places, self._width())))

    # --- writing --------------------------------------------------------------------------------

    def _width(self) -> int:
        """The width of the terminal; without one, lines may have any length."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):  # not a terminal, or not a file
            return 1000

    def _draw(self, text: str) -> None:
        """Replace the updated line."""
        if self._has_line and (text or self._line):
            # A full last column would make some terminals begin a new line.
            self._stream.write(_CLEAR + text[: max(self._width() - 1, 0)])
            self._stream.flush()
            self._line = text

    def _print(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def _write_json(self, facts: Mapping[str, object]) -> None:
        self._print(json.dumps(facts, ensure_ascii=False, allow_nan=False))


def status_line(status: RunStatus) -> str:
    """The updated line, what matters most first: a narrow terminal crops it."""
    labels, scores, bad = status.is_classification, status.scores, status.rejected.count
    of_target = f" of {status.target}" if len(status.options.targets) > 1 else ""
    parts = [
        f"{status.rows:>7,} rows",
        f"{'errors' if labels else 'RMSE'}{of_target} {_fixed_width(scores.error, labels)}",
        f"baseline {_fixed_width(scores.baseline_error, labels)}",
        f"{status.rows_per_second:>6,.0f}/s",
    ]
    return "  ".join([*parts, f"{bad:,} bad"] if bad else parts)


def summary_table(
    status: RunStatus, places: Sequence[tuple[str, str]], width: int = 1000
) -> list[str]:
    """The lines of the summary. Only addresses may be longer than `width`."""
    rows: list[tuple[str, str]] = [("rows", f"{status.rows:,}" if status.rows else "no rows")]
    if status.rows_before:
        rows.append(("  done before", f"{status.rows_before:,}"))
    without_target = status.session.rows_without_target
    if without_target:
        rows.append(("  without a target", f"{without_target:,}"))
    several = len(status.options.targets) > 1
    unscored = status.rows - without_target - status.scored
    if unscored > 0 and not several:
        them = "it" if unscored == 1 else "them"
        rows.append(("  not scored", f"{unscored:,}: no target was known before {them}"))
    if status.missing_rows:
        rows.append(("missing rows", f"{status.missing_rows:,}, deleted before they were read"))
    for column, beyond in status.categories_beyond.items():
        text = f"{beyond['categories']:,} without an input of their own, in {beyond['rows']:,} rows"
        rows.append((f"categories of {column}", text))
    new = status.rows > status.rows_before
    speed = f"{status.rows_per_second:,.0f} rows/s" if new else "no new rows"
    rows.append(("time", f"{_duration(status.seconds)}, {speed}"))
    for target in status.each_target[:_LISTED]:
        rows += _errors(target, several=several)
    more = len(status.options.targets) - _LISTED
    if more > 0:
        rows.append(("", f"and {more} more target{'s' * (more > 1)}: --log-json lists all"))
    for score in status.chosen_forecasts:
        ahead = f"RMSE, {score.horizon} row{'s' * (score.horizon != 1)} ahead"
        seasonal = f", of the period before {score.seasonal:.4g}" if status.bank.periods else ""
        level = f"{100 * score.coverage:.1f} % inside their {100 * status.options.coverage:.4g} %"
        text = f"{score.error:.4g} (last value {score.last_value:.4g}{seasonal}), {level} intervals"
        rows.append((ahead, text if score.scored else "not scored yet"))
    for number, (slot, weight) in enumerate([] if several else status.largest_weights):
        rows.append(("" if number else "largest weights", f"{weight:.2f}  {slot}"))
    groups = sorted(status.change_groups, key=lambda group: -group.cost)
    for number, group in enumerate(groups[:_CHANGES_LISTED]):
        kinds = [f"{what} ({of})" if several and of else what for what, of, _ in group.kinds]
        text = f"after row {group.first:,}: {', '.join(dict.fromkeys(kinds))}"
        count = f"{len(groups):,}, the costliest " if len(groups) > 1 else "1, "
        rows.append(("", text) if number else ("detected changes", count + text))
    first = max(len(label) for label, _ in (*rows, *places)) + len(_GAP)
    lines = [cropped(f"{label:<{first}}{text}", width) for label, text in rows]
    lines += [f"{label:<{first}}{text}" for label, text in places if text]
    return lines


def _errors(status: RunStatus, *, several: bool) -> list[tuple[str, str]]:
    """The lines of the only target, or of one of several."""
    labels = status.is_classification
    title = f"RMSE of {cropped(status.target, 24)}" if several else "RMSE"
    if not status.scored:
        return [(title, "unknown: no target was known before a prediction")] if several else []
    over = f"  over {status.scored:,} prediction{'s' * (status.scored != 1)}" if several else ""
    scores = status.scores
    rows = [
        ("error rate" if labels else title, _number(scores.error, labels) + over),
        ("  baseline (last value)", _number(scores.baseline_error, labels)),
        ("  best slot", f"{_number(scores.best_slot_error, labels)}  {scores.best_slot}"),
    ]
    if labels:
        return [*rows, ("log loss", f"{scores.log_loss:.4f}"), *_labels(status)]
    inside = f"inside their {100 * status.options.coverage:.4g} % intervals"
    share = f"{100 * scores.coverage:.1f} %"
    if several:
        return [*rows, ("  coverage", f"{share} {inside}")]
    return [*rows, ("coverage", f"{share} of the targets {inside}")]


def _labels(status: RunStatus) -> list[tuple[str, str]]:
    """The recall and the precision of each label, the most frequent ones if there are many."""

    def share(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.1f} %"

    scores = status.label_scores
    listed = sorted(scores, key=lambda name: -scores[name].rows)[:_LISTED]
    rows = []
    for name in (name for name in scores if name in listed):
        score = scores[name]
        recall = f"recall {share(score.recall)} of {score.rows:,} rows"
        precision = f"precision {share(score.precision)} of {score.predicted:,}"
        rows.append((f"  {cropped(name, 24)}", f"{recall}, {precision} predictions"))
    more = len(scores) - len(listed)
    return rows + ([("", f"and {more} more: --log-json lists all")] if more else [])


def cropped(text: str, width: int) -> str:
    """The text, or its beginning and "..."."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _fixed_width(value: float, is_share: bool) -> str:
    """A number whose width seldom changes."""
    return f"{100 * value:5.2f} %" if is_share else f"{value:#.3g}".rstrip(".").rjust(5)


def _number(value: float, is_share: bool) -> str:
    return f"{100 * value:.2f} %" if is_share else f"{value:.4g}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s" if whole else "less than 1 s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {left:02d} s"

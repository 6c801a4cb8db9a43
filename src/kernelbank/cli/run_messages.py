"""What `kernelbank run` says at its end: how to go on, and where the results are."""

from __future__ import annotations

import sys

from ..io.brokers import KAFKA_PASSWORD, REDIS_PASSWORD, typed_without_password, without_password
from ..io.sinks import JsonLinesSink
from ..run.options import RunOptions
from ..run.runner import Runner
from .console import shell_command


def command_again(*more: str) -> str:
    """The command again, without passwords."""
    return shell_command(["kernelbank", *map(typed_without_password, sys.argv[1:]), *more])


def command_text(*more: str) -> str:
    """The command again, and how to give a password that is left out."""
    hidden = [word for word in sys.argv[1:] if word != typed_without_password(word)]
    if not hidden:
        return command_again(*more)
    place = f"in a file for --redis-password-file or in {REDIS_PASSWORD}"
    if all("kafka://" in word for word in hidden):
        place = f"in {KAFKA_PASSWORD}"
    return f"{command_again(*more)} (its password is left out; it belongs {place})"


def how_to_pass_bad_row(runner: Runner) -> str:
    """After a stop at a bad row."""
    if runner.checkpoints is None or not runner.rows:
        return "To go on, correct the row, or skip such rows with --on-bad-row skip."
    return (
        "Everything before it is saved. To go on, correct the row and give the same command again, "
        f"or skip such rows: {command_text('--on-bad-row', 'skip')}"
    )


def how_to_go_on(runner: Runner) -> str:
    """After a stop because of too many bad rows."""
    place = _bad_rows_place(runner)
    saved = f"All bad rows are in {place}." if place else ""
    if runner.checkpoints is None:
        return saved
    if not runner.rows:
        return f"{saved} Nothing is predicted yet: with other options this --state begins again."
    return f"{saved} To go on all the same, give the same command again: {command_text()}"


def how_to_resume(options: RunOptions) -> str:
    """After a stop that a signal or an error has caused."""
    if options.state is not None:
        return f"Nothing is lost. To resume, give the same command again: {command_text()}"
    written = ""
    if options.predictions is not None:
        written = f"The predictions so far are in {without_password(options.predictions)}. "
    return f"{written}Without --state, the run cannot be resumed."


def written_places(runner: Runner) -> list[tuple[str, str]]:
    """What was written, and where it is."""
    options, count = runner.options, runner.rejected.count
    place = _bad_rows_place(runner)
    bad = "none"
    if count:
        kept = f"in {place}" if place else "not saved: give --state or --predictions"
        bad = f"{count:,} skipped, {kept}"
    return [
        ("bad rows", bad),
        ("predictions", without_password(options.predictions or "")),
        ("state", "" if runner.checkpoints is None else str(runner.checkpoints.folder)),
        ("report", "" if options.report is None else str(options.report)),
    ]


def _bad_rows_place(runner: Runner) -> str:
    return str(runner.bad_rows.path) if isinstance(runner.bad_rows, JsonLinesSink) else ""

"""`kernelbank run`: opens what the options name, runs, and says how it ended."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..bank.engines import Engine, Ray, Serial, Threads
from ..errors import (
    BadRow,
    BrokerConnection,
    FileRefused,
    KernelBankError,
    KernelBankWarning,
    RunRefused,
    TooManyBadRows,
)
from ..io.brokers import without_password
from ..io.sinks import CsvSink, JsonLinesSink, ParquetSink, Sink
from ..io.sources import open_source
from ..run.live.page import LivePage, Publisher
from ..run.options import REDIS_SCHEMES, RunOptions, prediction_columns
from ..run.report.data import check_report_path
from ..run.runner import Runner
from ..run.state_folder import BAD_ROWS, CheckpointDir
from ..run.status import RunStatus
from . import error_text
from .console import Console

REFUSED = 2
"""The exit code of what cannot be done; a signal's exit code is 128 plus its number."""


def run(values: Mapping[str, Any]) -> int:
    """Run with the options that are given (None for the default); returns the exit code."""
    console = Console(quiet=bool(values.get("quiet")), log_json=bool(values.get("log_json")))
    try:
        with _warnings_to(console), ExitStack() as opened:
            options = RunOptions(**{n: value for n, value in values.items() if value is not None})
            return _run(options, console, opened)
    except KeyboardInterrupt:
        is_saved = values.get("state") is not None
        text = "To resume, give the same command again." if is_saved else "Nothing is saved."
        console.message("interrupted", f"Interrupted. {text}")
        return 128 + signal.SIGINT
    except ModuleNotFoundError as error:
        if error.name is not None:  # not a message of ours about an extra
            raise
        raise RunRefused(str(error)) from None
    except (KernelBankError, OSError, MemoryError) as error:
        if console.log_error(error_text(error)):
            return REFUSED
        raise


def _run(options: RunOptions, console: Console, opened: ExitStack) -> int:
    """`opened` closes what is opened here, however this ends."""
    if options.report is not None:
        check_report_path(options.report, "--report")
    if options.source == "-" and sys.stdin is None:
        raise RunRefused("standard input is closed. Send rows to it, or give a file.")
    source = open_source(
        options.source,
        allow_gaps=options.allow_gaps,
        complete=options.complete,
        follow=options.follow,
        idle=options.stop_when_idle,
        delimiter=options.delimiter,
        decimal=options.decimal,
    )
    opened.callback(source.close)
    checkpoints = None if options.state is None else CheckpointDir(options.state)
    if checkpoints is not None:
        opened.callback(checkpoints.close)
    bad_rows = _bad_rows_sink(options, checkpoints)
    runner = Runner(
        options,
        source,
        _prediction_sinks(options),
        bad_rows,
        checkpoints,
        _engine(options),
    )
    started = False
    with stop_on_signals() as stop:
        try:
            runner.on_resumed = partial(_tell_resumed, console)
            runner.resume()
            started = True
            publisher = opened.enter_context(
                Publisher(options.report, _live_page(options, console))
            )
            with console:
                reason = _run_to_end(runner, stop, console, publisher)
            runner.close(complete=True)
        except BaseException as error:
            runner.close(complete=False)
            saved = checkpoints is not None and started and runner.rows > 0
            told = isinstance(error, (BadRow, TooManyBadRows, FileRefused)) or not isinstance(
                error, Exception
            )
            if saved and not told:
                error.add_note(how_to_resume(options))
            raise
    phase = "stopped" if reason == "stopped" else "ended"
    console.summary(RunStatus.of_run(runner, phase), reason, written_places(runner))
    if reason == "stopped":
        console.message("stopped", f"Stopped. {how_to_resume(options)}")
        return 128 + stop.signal_number
    if not runner.rows and not options.allow_empty:
        raise RunRefused(
            f"{source.name}: there are no rows. Check the source; if it may be without rows, use "
            "--allow-empty."
        )
    return 0


def _tell_resumed(console: Console, run: Runner) -> None:
    text = f"Resuming after {run.rows:,} row{'s' * (run.rows != 1)}."
    console.message("resumed", text, rows=run.rows)


def _run_to_end(runner: Runner, stop: StopFlag, console: Console, publisher: Publisher) -> str:
    """Run, commit and draw; returns why it ended."""

    def on_block(run: Runner) -> None:
        console.update(run)
        if run.options.live is not None:
            publisher.update(run)

    try:
        reason = runner.run(stop.is_set, on_block)
        runner.finish()
    except (BadRow, TooManyBadRows) as error:
        runner.commit()
        runner.close(complete=True)
        publisher.end(runner, "stopped")
        if isinstance(error, TooManyBadRows):
            raise BadRow(f"{runner.source.name}: {error} {how_to_go_on(runner)}".rstrip()) from None
        raise BadRow(f"{error} {how_to_pass_bad_row(runner)}") from None
    except Exception:
        if runner.commit_whole_rows():
            runner.close(complete=True)
        raise
    publisher.end(runner, "stopped" if reason == "stopped" else "ended")
    return reason


# --- what the options name ------------------------------------------------------------------------


def _engine(options: RunOptions) -> Engine:
    if options.engine == "ray":
        return Ray(
            options.shards,
            options.ray_address,
            allow_unauthenticated=options.ray_allow_unauthenticated,
        )
    return Threads(options.shards) if options.engine == "threads" else Serial()


def _prediction_sinks(options: RunOptions) -> list[Sink]:
    if options.predictions is None:
        return []
    columns = (*prediction_columns(options), *options.copied_columns)
    if options.predictions.startswith(REDIS_SCHEMES):
        from ..io.redis import RedisSink

        return [RedisSink(options.predictions, columns)]
    path = Path(options.predictions)
    if path.suffix == ".parquet":
        return [ParquetSink(path, columns, options.copied_columns)]
    return [CsvSink(path, columns)]


def _bad_rows_sink(options: RunOptions, checkpoints: CheckpointDir | None) -> JsonLinesSink | None:
    if checkpoints is not None:
        return JsonLinesSink(checkpoints.folder / BAD_ROWS)
    is_file = options.predictions is not None and "://" not in options.predictions
    if is_file and options.on_bad_row == "skip":
        return JsonLinesSink(Path(f"{options.predictions}.{BAD_ROWS}"))
    return None


def _live_page(options: RunOptions, console: Console) -> LivePage | None:
    if options.live is None:
        return None
    page = LivePage(options.live)
    text = f"Live page: {page.address}"
    console.message("live", text, always=True, address=page.address)
    return page


@contextmanager
def _warnings_to(console: Console) -> Iterator[None]:
    """Show warnings as notes: one line each, or one object of the log."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = " ".join(str(message).split())
        console.message("note", f"note: {text}", message=text)

    with warnings.catch_warnings():
        warnings.simplefilter("default", KernelBankWarning)
        warnings.simplefilter("always", BrokerConnection)  # a second break is news too
        warnings.showwarning = show
        yield


def how_to_pass_bad_row(runner: Runner) -> str:
    """After a stop at a bad row."""
    if runner.checkpoints is None or not runner.rows:
        return "To go on, correct the row, or skip such rows with --on-bad-row skip."
    return (
        "Everything before it is saved. To go on, correct the row and give the same command again, "
        "or skip such rows with --on-bad-row skip."
    )


def how_to_go_on(runner: Runner) -> str:
    """After a stop because of too many bad rows."""
    place = _bad_rows_place(runner)
    saved = f"All bad rows are in {place}." if place else ""
    if runner.checkpoints is None:
        return saved
    if not runner.rows:
        return f"{saved} Nothing is predicted yet: with other options this --state begins again."
    return f"{saved} To go on all the same, give the same command again."


def how_to_resume(options: RunOptions) -> str:
    """After a stop that a signal or an error has caused."""
    if options.state is not None:
        return "Nothing is lost. To resume, give the same command again."
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
        bad_place = f"in {place}" if place else "not saved: give --state or --predictions"
        bad = f"{count:,} skipped, {bad_place}"
    return [
        ("bad rows", bad),
        ("predictions", without_password(options.predictions or "")),
        ("state", "" if runner.checkpoints is None else str(runner.checkpoints.folder)),
        ("report", "" if options.report is None else str(options.report)),
    ]


def _bad_rows_place(runner: Runner) -> str:
    return str(runner.bad_rows.path) if isinstance(runner.bad_rows, JsonLinesSink) else ""


class StopFlag:
    """Whether a signal has asked to stop, and which one."""

    def __init__(self) -> None:
        self.signal_number = 0
        self._is_lost = False
        self._earlier_hook = sys.unraisablehook

    def is_set(self) -> bool:
        if self._is_lost:
            raise KeyboardInterrupt
        return bool(self.signal_number)

    def see_lost_error(self, lost: Any) -> None:
        """Python drops and prints what is raised in a callback: end after the block instead."""
        if isinstance(lost.exc_value, KeyboardInterrupt):
            self._is_lost = True
        else:
            self._earlier_hook(lost)

    def __call__(self, number: int, _: object) -> None:
        if not self.signal_number:
            self.signal_number = number
        elif number != signal.SIGHUP:  # a terminal that closes sends it twice
            raise KeyboardInterrupt  # the second signal: end at once, with the last checkpoint


@contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """SIGINT, SIGTERM and SIGHUP end the run after its block; a second one ends it at once.

    SIGHUP comes when the terminal is closed; with `nohup` it is ignored, and stays so.
    """
    stop = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    earlier_hook, sys.unraisablehook = sys.unraisablehook, stop.see_lost_error
    try:
        yield stop
    finally:
        sys.unraisablehook = earlier_hook
        for number, handler in before.items():
            signal.signal(number, handler)

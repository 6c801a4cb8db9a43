"""`kernelbank run`: opens what the options name, runs, and says how it ended."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
from ..io.brokers import read_password
from ..io.sinks import CsvSink, JsonLinesSink, ParquetSink, Sink
from ..io.sources import open_source
from ..run.checkpoint_dir import BAD_ROWS, CheckpointDir
from ..run.live.live_page import LivePage, is_loopback
from ..run.live.publisher import Publisher
from ..run.model_session import prediction_columns
from ..run.option_combinations import REDIS_SCHEMES
from ..run.options import RunOptions
from ..run.report.report_data import check_report_path
from ..run.runner import Runner
from ..run.status import RunStatus
from .console import Console
from .one_line_errors import error_text
from .run_messages import (
    command_again,
    command_text,
    how_to_go_on,
    how_to_pass_bad_row,
    how_to_resume,
    written_places,
)
from .stop_signals import StopFlag, stop_on_signals

REFUSED = 2
"""The exit code of what cannot be done; a signal's exit code is 128 plus its number."""


def run(given: Mapping[str, Any]) -> int:
    """Run with the options that are given (None for the default); returns the exit code."""
    console = Console(quiet=bool(given.get("quiet")), log_json=bool(given.get("log_json")))
    try:
        with _warnings_to(console), ExitStack() as opened:
            options = RunOptions(**{n: value for n, value in given.items() if value is not None})
            return _run(options, console, opened)
    except KeyboardInterrupt:
        resume = f"To resume, give the same command again: {command_text()}"
        text = "Nothing is saved." if given.get("state") is None else resume
        console.message("interrupted", f"Interrupted. {text}", command=command_again())
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
    password = None
    if options.redis_password_file is not None:
        password = read_password(options.redis_password_file, "--redis-password-file")
    source = open_source(
        options.source,
        allow_gaps=options.allow_gaps,
        redis_password=password,
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
        _prediction_sinks(options, password),
        bad_rows,
        checkpoints,
        _engine(options),
    )
    started = False
    with stop_on_signals() as stop:
        try:
            resumed, started = runner.resume(), True
            if resumed:
                text = f"Resuming after {runner.rows:,} row{'s' * (runner.rows != 1)}."
                console.message("resumed", text, rows=runner.rows)
            publisher = opened.enter_context(
                Publisher(options.report, _live_page(options, console))
            )
            with console:
                reason = _run_to_end(runner, stop, console, publisher)
            runner.close(complete=True)
        except BaseException as error:
            runner.close(complete=False)
            saved = checkpoints is not None and started and runner.rows > 0
            told = isinstance(error, (BadRow, FileRefused)) or not isinstance(error, Exception)
            if saved and not told:
                error.add_note(how_to_resume(options))
            raise
    phase = "stopped" if reason == "stopped" else "ended"
    console.summary(RunStatus.of_run(runner, phase), reason, written_places(runner))
    if reason == "stopped":
        text = f"Stopped. {how_to_resume(options)}"
        console.message("stopped", text, command=command_again())
        return 128 + stop.signal_number
    if not runner.rows and not options.allow_empty:
        raise RunRefused(
            f"{source.name}: there are no rows. Check the source; if it may be without rows, use "
            "--allow-empty."
        )
    return 0


def _run_to_end(runner: Runner, stop: StopFlag, console: Console, publisher: Publisher) -> str:
    """Run, commit and draw; returns why it ended."""

    def on_block(run: Runner) -> None:
        console.update(run)
        publisher.update(run)

    try:
        reason = runner.run(stop.is_set, on_block)
        runner.finish()
    except BadRow as error:
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


def _prediction_sinks(options: RunOptions, password: str | None) -> list[Sink]:
    if options.predictions is None:
        return []
    columns = (*prediction_columns(options), *options.kept_columns)
    if options.predictions.startswith(REDIS_SCHEMES):
        from ..io.redis import RedisSink

        wait = options.redis_wait
        return [RedisSink(options.predictions, columns, password=password, wait=wait)]
    path = Path(options.predictions)
    if path.suffix == ".parquet":
        return [ParquetSink(path, columns, options.kept_columns)]
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
    page = LivePage(options.live_host, options.live)
    text = f"Live page: {page.address}"
    console.message("live", text, always=True, address=page.address)
    if not is_loopback(options.live_host):
        warning = (
            "other machines may reach the live page. Anyone who has its address can read it, and "
            "so can anyone who listens on the network: it is not encrypted."
        )
        console.message("note", f"note: {warning}", message=warning)
    return page


@contextmanager
def _warnings_to(console: Console) -> Iterator[None]:
    """Show warnings as notes: one line each, or one object of the log."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        console.message("note", f"note: {text}", message=text)

    with warnings.catch_warnings():
        warnings.simplefilter("default", KernelBankWarning)
        warnings.simplefilter("always", BrokerConnection)  # a second break is news too
        warnings.showwarning = show
        yield

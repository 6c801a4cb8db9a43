"""`kernelbank run`: what its options mean, and how it starts, stops and goes on."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...bank.engines import Engine, Ray, Serial, Threads
from ...errors import BadRow, KernelBankError, KernelBankWarning, RunRefused, ShardLost
from ...io.sinks.base import Output
from ...io.sinks.csv import Lines
from ...io.sinks.parquet import Parts
from ...io.sinks.redis import Stream
from ...io.sources import open_source
from ...io.sources.addresses import without_password
from ..live.live import Live
from ..live.publisher import Pictures, only_here
from ..report.file import check_place
from ..runner.checkpoint_dir import BAD_ROWS, Journal
from ..runner.model_session import header_of
from ..runner.run import Run
from ..runner.settings import Settings
from .console import Screen, quoted

PART_ROWS = 50_000
BROKERS = ("redis://", "rediss://")

REFUSED = 2
"""The exit code of what cannot be done; that of a signal is 128 and its number."""


@dataclass(frozen=True)
class Wishes:
    """The options."""

    source: str
    target: str
    features: str | None
    categorical: str | None
    time: str | None
    task: str
    lags: int
    delay: int
    preset: str
    size: str
    coverage: float
    engine: str
    ray_address: str | None
    shards: int | None
    state: Path | None
    predictions: str | None
    checkpoint_every: int
    on_bad_row: str
    allow_missing: bool
    predict_missing: bool
    max_rows: int | None
    stop_when_idle: float | None
    delimiter: str
    report: Path | None
    live: int | None
    live_host: str
    quiet: bool
    log_json: bool

    @property
    def settings(self) -> Settings:
        return Settings(
            target=self.target,
            task=self.task,
            features=None if self.features is None else _words(self.features),
            categorical=_words(self.categorical or ""),
            time=self.time,
            lags=self.lags,
            delay=self.delay,
            preset=self.preset,
            size=self.size,
            coverage=self.coverage,
            on_bad_row=self.on_bad_row,
            allow_missing=self.allow_missing,
            predict_missing=self.predict_missing,
        )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def run(wishes: Wishes) -> int:
    """Play the source; the exit code."""
    screen = Screen(quiet=wishes.quiet, log_json=wishes.log_json)
    try:
        with _noted(screen), ExitStack() as opened:
            return _run(wishes, screen, opened)
    except KeyboardInterrupt:
        kept = wishes.state is not None
        said = (
            f"To go on, give the same command again: {_command()}" if kept else "Nothing is kept."
        )
        screen.say("broken off", f"Broken off. {said}", command=_command())
        return 128 + signal.SIGINT
    except ModuleNotFoundError as error:
        if error.name is not None:  # not a message of ours about an extra
            raise
        raise RunRefused(str(error)) from None
    except (KernelBankError, OSError) as error:
        if screen.refuse(" ".join(str(error).split())):
            return REFUSED
        raise


def _run(wishes: Wishes, screen: Screen, opened: ExitStack) -> int:
    """`opened` lets go of what is opened here, however this ends."""
    _check_predictions(wishes.predictions)
    if wishes.report is not None:
        check_place(wishes.report, "--report")
    if wishes.source == "-" and sys.stdin is None:
        raise RunRefused("standard input is closed. Send rows to it, or give a file.")
    source = open_source(wishes.source, idle=wishes.stop_when_idle, delimiter=wishes.delimiter)
    opened.callback(source.close)
    journal = None if wishes.state is None else Journal(wishes.state)
    if journal is not None:
        opened.callback(journal.close)
    play = Run(
        wishes.settings,
        source,
        _outputs(wishes),
        _bad_rows(wishes, journal),
        journal,
        engine=_engine(wishes),
        every=wishes.checkpoint_every,
        most=wishes.max_rows,
    )
    with _stopping() as stop:
        try:
            if play.resume():
                rows = play.progress.rows
                screen.say("resumed", f"Going on after {rows:,} row{'s' * (rows != 1)}.", rows=rows)
            pictures = opened.enter_context(Pictures(wishes.report, _live(wishes, screen)))
            with screen:
                reason = _played(play, stop, screen, journal, pictures)
            play.close(whole=True)
        except BaseException as error:
            play.close(whole=False)
            refused = isinstance(error, (RunRefused, ShardLost))
            if refused and journal is not None and play.progress.rows:
                raise RunRefused(f"{error} {_again(wishes, journal)}") from None
            raise
    screen.end(play, reason, _places(wishes, play, journal))
    if reason == "stopped":
        screen.say("stopped", f"Stopped. {_again(wishes, journal)}", command=_command())
        return 128 + stop.number
    return 0


def _played(
    play: Run, stop: Stop, screen: Screen, journal: Journal | None, pictures: Pictures
) -> str:
    """Why it ended; everything is marked and drawn then."""

    def shown(run: Run) -> None:
        screen.update(run)
        pictures.update(run)

    try:
        reason = play.play(stop.is_set, shown)
        play.finish()
    except BadRow as error:
        play.mark()
        play.close(whole=True)
        pictures.end(play, "stopped")
        raise BadRow(f"{error} {_past_it(journal)}") from None
    pictures.end(play, "stopped" if reason == "stopped" else "ended")
    return reason


def _engine(wishes: Wishes) -> Engine:
    if wishes.ray_address is not None and wishes.engine != "ray":
        raise RunRefused("--ray-address needs --engine ray.")
    if wishes.shards is not None and wishes.engine == "serial":
        raise RunRefused("--shards needs --engine threads or --engine ray.")
    if wishes.engine == "ray":
        return Ray(wishes.shards, wishes.ray_address)
    return Threads(wishes.shards) if wishes.engine == "threads" else Serial()


def _live(wishes: Wishes, screen: Screen) -> Live | None:
    if wishes.live is None:
        return None
    live = Live(wishes.live_host, wishes.live)
    screen.insist("live", f"Live page: {live.address}", address=live.address)
    if not only_here(wishes.live_host):
        said = (
            "other machines may reach the live page. Whoever has its address can read it, and so "
            "can whoever listens on the way: it is not encrypted."
        )
        screen.say("note", f"note: {said}", message=said)
    return live


def _command(*more: str) -> str:
    return quoted(["kernelbank", *sys.argv[1:], *more])


def _past_it(journal: Journal | None) -> str:
    if journal is None:
        return "Mend it, or use --on-bad-row skip."
    return (
        "Everything before it is kept. Mend it and give the same command again, or set it aside: "
        f"{_command('--on-bad-row', 'skip')}"
    )


def _again(wishes: Wishes, journal: Journal | None) -> str:
    if journal is not None:
        return f"Nothing is lost. To go on, give the same command again: {_command()}"
    kept = "" if wishes.predictions is None else f"The answers so far are in {wishes.predictions}. "
    return f"{kept}Without --state, the run cannot be gone on with."


def _places(wishes: Wishes, play: Run, journal: Journal | None) -> list[tuple[str, str]]:
    """What the user may look for, and where it is."""
    bad = f"{play.aside.count:,} set aside"
    if play.aside.count and isinstance(play.bad_rows, Lines):
        bad += f", in {play.bad_rows.path}"
    elif play.aside.count:
        bad += ", not kept: give --state or --predictions"
    shown = without_password(wishes.predictions or "")
    return [
        ("bad rows", bad if play.aside.count else "none"),
        ("predictions", shown if "://" in (wishes.predictions or "") else wishes.predictions or ""),
        ("state", "" if journal is None else str(journal.folder)),
        ("report", "" if wishes.report is None else str(wishes.report)),
    ]


def _check_predictions(address: str | None) -> None:
    if address is not None and not address.startswith(BROKERS):
        if address.endswith((".csv", ".parquet")) and "://" not in address:
            return
        raise RunRefused(
            "--predictions must end with .csv or .parquet, or be redis://host:port/stream; "
            f"got {address}."
        )


def _outputs(wishes: Wishes) -> list[Output]:
    if wishes.predictions is None:
        return []
    header = header_of(wishes.task)
    if wishes.predictions.startswith(BROKERS):
        return [Stream(wishes.predictions, header)]
    path = Path(wishes.predictions)
    return [Parts(path, header, PART_ROWS) if path.suffix == ".parquet" else Lines(path, header)]


def _bad_rows(wishes: Wishes, journal: Journal | None) -> Output | None:
    if journal is not None:
        return Lines(journal.folder / BAD_ROWS)
    beside = wishes.predictions is not None and "://" not in wishes.predictions
    if beside and wishes.on_bad_row == "skip":
        return Lines(Path(f"{wishes.predictions}.{BAD_ROWS}"))
    return None


@contextmanager
def _noted(screen: Screen) -> Iterator[None]:
    """Warnings are notes: a line each on a screen, an object each in a log."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        said = " ".join(str(message).split())
        screen.say("note", f"note: {said}", message=said)

    with warnings.catch_warnings():
        warnings.simplefilter("default", KernelBankWarning)
        warnings.showwarning = show
        yield


class Stop:
    """Whether somebody has asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.number = 0

    def is_set(self) -> bool:
        return bool(self.number)

    def __call__(self, number: int, _: object) -> None:
        if self.number:
            raise KeyboardInterrupt  # asked twice: now, with what was marked last
        self.number = number


@contextmanager
def _stopping() -> Iterator[Stop]:
    """Ctrl-C and a polite kill end the run after the present block; the second time, at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

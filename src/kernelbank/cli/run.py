"""`kernelbank run`: what its options mean, and how it starts, stops and goes on."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadRow, RunRefused
from ..service.journal import BAD_ROWS, Journal
from ..service.lines import Lines
from ..service.outputs import Output
from ..service.parts import Parts
from ..service.run import Run, header_of
from ..service.settings import Settings
from ..service.stream import Stream
from ..sources import open_source
from .screen import Screen, quoted

PART_ROWS = 50_000


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
    state: Path | None
    predictions: str | None
    checkpoint_every: int
    on_bad_row: str
    allow_missing: bool
    predict_missing: bool
    max_rows: int | None
    stop_when_idle: float | None
    delimiter: str
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
    journal = None if wishes.state is None else Journal(wishes.state)
    try:
        return _run(wishes, screen, journal)
    except KeyboardInterrupt:
        where = "without --state, all is gone." if journal is None else _again(journal).strip()
        screen.say("broken off:", what=where)
        return 128 + signal.SIGINT
    finally:
        if journal is not None:
            journal.close()


def _run(wishes: Wishes, screen: Screen, journal: Journal | None) -> int:
    source = open_source(wishes.source, idle=wishes.stop_when_idle, delimiter=wishes.delimiter)
    play = Run(
        wishes.settings,
        source,
        _outputs(wishes),
        _bad_rows(wishes, journal),
        journal,
        engine=wishes.engine,
        every=wishes.checkpoint_every,
        most=wishes.max_rows,
    )
    begun = False
    with _stopping() as stop:
        try:
            if play.resume():
                screen.say("going on after", rows=f"{play.progress.rows:,} rows")
            else:
                play.begin()
            begun = True
            with screen:
                reason = _played(play, stop, screen, journal)
            _close(play, whole=True)
        except RunRefused as error:
            _close(play, whole=False)
            raise RunRefused(f"{error}{_again(journal) if begun else ''}") from None
        except BaseException:
            _close(play, whole=False)
            raise
    screen.end(play, reason)
    if reason == "stopped":
        screen.say(
            "stopped:",
            what=f"nothing is lost.{_again(journal)}"
            if journal
            else "without --state, all is gone.",
        )
        return 128 + stop.number
    return 0


def _played(play: Run, stop: Stop, screen: Screen, journal: Journal | None) -> str:
    """Why it ended; everything is marked then."""
    try:
        reason = play.play(stop.is_set, screen.update)
        play.finish(reason)
    except BadRow as error:
        play.mark()
        _close(play, whole=True)
        hint = "Mend it, or use --on-bad-row skip."
        raise BadRow(f"{error} {hint}{_again(journal)}") from None
    return reason


def _again(journal: Journal | None) -> str:
    if journal is None:
        return ""
    return f" To go on, give the same command again: {quoted(['kernelbank', *sys.argv[1:]])}"


def _close(play: Run, *, whole: bool) -> None:
    for output in play._all_outputs():
        output.close(whole=whole)
    play.source.close()


def _outputs(wishes: Wishes) -> list[Output]:
    if wishes.predictions is None:
        return []
    header = header_of(wishes.task)
    if wishes.predictions.startswith("redis://"):
        return [Stream(wishes.predictions, header)]
    path = Path(wishes.predictions)
    if path.name.endswith(".parquet"):
        return [Parts(path, header, PART_ROWS)]
    if path.name.endswith(".csv"):
        return [Lines(path, header)]
    raise RunRefused(
        f"--predictions must end with .csv or .parquet, or be redis://host:port/stream; got {path}."
    )


def _bad_rows(wishes: Wishes, journal: Journal | None) -> Output | None:
    if journal is not None:
        return Lines(journal.folder / BAD_ROWS)
    beside = wishes.predictions is not None and "://" not in wishes.predictions
    if beside and wishes.on_bad_row == "skip":
        return Lines(Path(f"{wishes.predictions}.{BAD_ROWS}"))
    return None


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

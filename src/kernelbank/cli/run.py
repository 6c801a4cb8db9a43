"""`kernelbank run`: what its options mean, and how it starts, stops and goes on."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadRow, KernelBankError, RunRefused
from ..service.journal import BAD_ROWS, Journal
from ..service.outputs import Lines, Output, Parts, Stream
from ..service.run import Run, header_of
from ..service.settings import Settings
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
    finally:
        if journal is not None:
            journal.close()


def _run(wishes: Wishes, screen: Screen, journal: Journal | None) -> int:
    begun = journal is not None and journal.path.exists()
    source = open_source(wishes.source, idle=wishes.stop_when_idle, delimiter=wishes.delimiter)
    outputs = _outputs(wishes, begun=begun)
    bad_rows = _bad_rows(wishes, journal, begun=begun)
    play = Run(
        wishes.settings,
        source,
        outputs,
        bad_rows,
        journal,
        engine=wishes.engine,
        every=wishes.checkpoint_every,
        most=wishes.max_rows,
    )
    if play.resume():
        screen.say("going on after", rows=f"{play.progress.rows:,} rows")
    else:
        play.mark()  # from now on, whatever is in the outputs is ours
    reason = "failed"
    with screen, _stopping() as stop:
        try:
            reason = play.play(stop.is_set, screen.update)
            play.finish()
        except BadRow as error:
            play.mark()
            _close(play, whole=False)
            hint = "Mend it, or use --on-bad-row skip."
            raise BadRow(f"{error} {hint}{_again(journal)}") from None
        except KernelBankError:
            _close(play, whole=False)
            raise
    _close(play, whole=reason == "end")
    screen.end(play, reason)
    if reason == "stopped":
        screen.say(
            "stopped:",
            what=f"nothing is lost.{_again(journal)}"
            if journal
            else "without --state, all is gone.",
        )
        return 130
    return 0


def _again(journal: Journal | None) -> str:
    if journal is None:
        return ""
    return f" To go on, give the same command again: {quoted(['kernelbank', *sys.argv[1:]])}"


def _close(play: Run, *, whole: bool) -> None:
    for output in play._all_outputs():
        output.close(whole=whole)
    play.source.close()


def _outputs(wishes: Wishes, *, begun: bool) -> list[Output]:
    if wishes.predictions is None:
        return []
    header = header_of(wishes.task)
    if wishes.predictions.startswith("redis://"):
        return [Stream(wishes.predictions, header)]
    path = Path(wishes.predictions)
    if not begun and path.exists() and (path.is_dir() or path.stat().st_size):
        raise RunRefused(
            f"{path} exists, and belongs to no run with this --state. Remove it, or give another."
        )
    if path.name.endswith(".parquet"):
        return [Parts(path, header, PART_ROWS)]
    if path.name.endswith(".csv"):
        return [Lines(path, header)]
    raise RunRefused(
        f"--predictions must end with .csv or .parquet, or be redis://host:port/stream; got {path}."
    )


def _bad_rows(wishes: Wishes, journal: Journal | None, *, begun: bool) -> Output | None:
    if journal is not None:
        path = journal.folder / BAD_ROWS
    elif wishes.predictions is not None and "://" not in wishes.predictions:
        path = Path(f"{wishes.predictions}.{BAD_ROWS}")
        if wishes.on_bad_row != "skip":
            return None
    else:
        return None
    if not begun and path.exists() and path.stat().st_size:
        raise RunRefused(f"{path} exists, of another run. Remove it, or give another --state.")
    return Lines(path)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Ctrl-C and a polite kill end the run after the present block."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""The run itself: blocks in, answers out, everything marked together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ...auto import AutoBank
from ...auto.serialization import DAMAGE
from ...errors import BadRow, FileRefused, RunRefused
from ...io.sinks.base import Output
from ...io.sources import Bad, Block, Source
from ...utils.validation import Floats
from .checkpoint_dir import Journal
from .feature_encoder import Intake, Piece
from .history import History
from .model_session import Player
from .rejected_rows import Aside
from .settings import Settings
from .timings import CHECKPOINTS, COLUMNS, READING, WRITING, Diary


@dataclass
class Progress:
    """What a screen may show."""

    rows: int = 0
    started: float = field(default_factory=time.monotonic)
    first_row: int = 0
    """How many rows were done when this process started."""


class Run:
    """One run over a source. `play` goes on until the source ends, or is told to stop."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        outputs: list[Output],
        bad_rows: Output | None,
        journal: Journal | None,
        *,
        engine: Any = "serial",
        every: int = 10_000,
        most: int | None = None,
    ) -> None:
        self.settings = settings
        self.source = source
        self.outputs = outputs
        self.bad_rows = bad_rows
        self.journal = journal
        self.every = every
        self.most = most
        self.intake = Intake(
            settings.target,
            settings.task,
            settings.features,
            settings.categorical,
            settings.time,
            allow_missing=settings.allow_missing,
            predict_missing=settings.predict_missing,
            lags=settings.lags,
        )
        self.diary = Diary()
        self.aside = Aside()
        self.player = Player(settings, engine, self.diary)
        self.progress = Progress()
        self._position: Any = None
        self._levels = 0
        """How many categories the bank knows. The intake is ahead of it by up to a block."""
        self._unsaved = 0
        self._settled = False
        self._begun = False

    @property
    def bank(self) -> AutoBank:
        """The bank."""
        return self.player.bank

    @property
    def history(self) -> History | None:
        """What has been remembered, once there is something."""
        return self.player.history

    # --- playing --------------------------------------------------------------------------------

    def play(self, stopped: Callable[[], bool], shown: Callable[[Run], None]) -> str:
        """Play blocks until the end; why it ended. `shown` is called after every block."""
        for block in self._blocks():
            if len(block):
                if not self._settled:
                    self._settle(_columns(self.source, block))
                if not self._begun:
                    self.begin()
                self._take(block)
            elif self._unsaved:
                self.mark()  # nothing has come for a while: a good moment
            shown(self)
            if self.full:
                return "--max-rows"
            if stopped():
                return "stopped"
        return "end"

    @property
    def full(self) -> bool:
        """Whether as many rows are done as were asked for."""
        return self.most is not None and self.progress.rows >= self.most

    def finish(self) -> None:
        """Mark everything. Targets that have not come still wait: a source may go on one day."""
        if self._begun:
            self.mark()
        else:
            self.begin()

    def _blocks(self) -> Iterator[Block]:
        size = min(1024, self.every)
        if self.source.columns is not None and not self._settled:
            self._settle(self.source.columns)
        yield from self.diary.each(READING, self.source.blocks(self._position, size))

    def _settle(self, columns: Sequence[str] | None) -> None:
        """Look at the columns; None if all rows so far are broken, which says nothing of them."""
        if columns is not None:
            self.intake.settle(list(columns))
            self._settled = True

    def _take(self, block: Block) -> None:
        """A block, in the order of its rows: pieces are played, bad rows stop it or go aside."""
        with self.diary.during(COLUMNS):
            pieces, bad = self.intake.take(block)
        if pieces and not self._settled:  # objects without any key
            self._settle(())
        events: list[tuple[int, Any]] = [(piece.rows[0], piece) for piece in pieces]
        events += [(one.row, one) for one in bad]
        for _, event in sorted(events, key=lambda pair: pair[0]):
            if self.full:
                return
            if isinstance(event, Piece):
                room = len(event.rows) if self.most is None else self.most - self.progress.rows
                self._play(block, event, room)
            elif self.settings.on_bad_row == "stop":
                raise BadRow(str(event))
            else:
                self._set_aside(block, event)

    def _play(self, block: Block, piece: Piece, room: int) -> None:
        """Play a piece, cut where a snapshot is due."""
        added, done = piece.added, 0
        while done < min(room, len(piece.rows)):
            cut = slice(done, min(done + self.player.room, room))
            part = Piece(piece.rows[cut], piece.X[cut], piece.targets[cut], added)
            self._play_part(block, part)
            added, done = 0, done + len(part.rows)

    def _play_part(self, block: Block, piece: Piece) -> None:
        self._levels += piece.added
        answers = self.player.play(piece, len(self.intake.features))
        first = block.first + 1
        numbered = [(first + row, *answer) for row, answer in zip(piece.rows, answers, strict=True)]
        with self.diary.during(WRITING):
            for output in self.outputs:
                output.write(numbered)
        self.progress.rows += len(piece.rows)
        self._done(block, piece.rows[-1], len(piece.rows))

    def _done(self, block: Block, row: int, count: int) -> None:
        """So many rows more are done, the last of them `row` of the block."""
        self._position = block.position(row)
        self._unsaved += count
        if self._unsaved >= self.every:
            self.mark()

    def _set_aside(self, block: Block, bad: Bad) -> None:
        words = self.aside.take(block, bad)
        if self.bad_rows is not None:
            self.bad_rows.write([(json.dumps(words, ensure_ascii=False),)])
        self._done(block, bad.row, 1)

    # --- marks ------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Make everything so far last, together; without a journal, at least what was written."""
        with self.diary.during(CHECKPOINTS):
            self._mark()

    def _mark(self) -> None:
        self._unsaved = 0
        self._begun = True
        marks = [output.mark() for output in self._all_outputs()]
        if self.journal is None:
            return
        facts, arrays = self.player.described()
        self.journal.write(
            {
                "version": __version__,
                "settings": self.settings.plain(),
                "source": self.source.identity_at(self._position),
                "position": self._position,
                "progress": [self.progress.rows, self.player.predicted_only],
                "bad_rows": self.aside.plain(),
                "diary": self.diary.plain(),
                "outputs": marks,
                "places": [output.place for output in self.outputs],
                "levels": [list(pair) for pair in self.intake.levels[: self._levels]],
                "features": self.intake.features if self._settled else None,
                **facts,
            },
            arrays,
        )

    def close(self, *, whole: bool) -> None:
        """Let go of the outputs; `whole` if all is well and what waits should be seen."""
        for output in self._all_outputs():
            output.close(whole=whole)

    def _all_outputs(self) -> list[Output]:
        return [*self.outputs, *([self.bad_rows] if self.bad_rows is not None else [])]

    def begin(self) -> None:
        """Take the outputs of a new run, and mark that they are ours before anything is written."""
        for output in self._all_outputs():
            output.vacant()
        for output in self._all_outputs():
            output.begin()
        self.mark()

    def resume(self) -> bool:
        """Go back to what was marked last; False if nothing was. Changes nothing if it refuses."""
        found = None if self.journal is None else self.journal.read()
        if found is None or self.journal is None:
            return False
        header, arrays = found
        try:
            self.settings.compare(header["settings"], self.journal.folder)
            self.source.recognise(header["source"])
            self._compare_places(header["places"])
            marks = self._restore(header, arrays)
            for output, mark in zip(self._all_outputs(), marks, strict=True):
                output.check(mark)
        except FileRefused:
            raise
        except DAMAGE as error:
            raise FileRefused(f"{self.journal.path} is damaged: {error}") from None
        for output, mark in zip(self._all_outputs(), marks, strict=True):
            output.rewind(mark)
        return True

    def _compare_places(self, before: list[str]) -> None:
        now = [output.place for output in self.outputs]
        if before != now:
            assert self.journal is not None
            raise RunRefused(
                f"{self.journal.folder} is the state of a run with other outputs: --predictions "
                f"was {', '.join(before) or 'none'}, now {', '.join(now) or 'none'}. Give that of "
                "then, or another --state."
            )

    def _restore(self, header: Any, arrays: dict[str, Floats]) -> list[Any]:
        """Take everything over from a file; how far the outputs were."""
        try:
            self.player.restore(header, arrays)
            self.aside.restore(header["bad_rows"])
            self.diary.go_on(header["diary"])
        except FileRefused as error:
            raise ValueError(str(error)) from None  # they do not know the file's name
        self._position = header["position"]
        rows, self.player.predicted_only = map(int, header["progress"])
        self.progress.rows = self.progress.first_row = rows
        self.intake.levels = [(str(c), str(level)) for c, level in header["levels"]]
        self._levels = len(self.intake.levels)
        self._begun = True
        return list(header["outputs"])


def _columns(source: Source, block: Block) -> Sequence[str] | None:
    """The source's columns, or else the keys of the first object that has come."""
    if source.columns is not None:
        return source.columns
    return next((keys for _, _, keys in block.unlike(())), None)

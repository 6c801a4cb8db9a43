"""The run itself: blocks in, answers out, everything marked together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import __version__
from .._validate import Floats
from ..auto import AutoBank
from ..auto.files import describe
from ..engines import as_engine
from ..errors import BadRow, FileRefused, RunRefused
from ..saved import restored
from ..sources import Block, Source
from ..state import under
from .history import FIGURES, FIRST_SNAPSHOT, History
from .intake import Intake, Piece
from .journal import DAMAGE, Journal
from .outputs import Output, Row
from .settings import Settings
from .snapshots import snapshot

NUMBERS = ("row", "prediction", "lower", "upper", "target")
LABELS = ("row", "prediction", "probability", "target")


def header_of(task: str) -> tuple[str, ...]:
    """The columns of the predictions."""
    return NUMBERS if task == "regression" else LABELS


@dataclass
class Progress:
    """What a screen may show."""

    rows: int = 0
    bad: int = 0
    predicted_only: int = 0
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
        self.bank: AutoBank = settings.bank(engine)
        self._deepen()
        self.history: History | None = None
        self.progress = Progress()
        self._engine = engine
        self._position: Any = None
        self._last: Any = None
        self._waiting: list[tuple[Floats, Any]] = []
        """Rows that were answered and whose target has not come."""
        self._levels = 0
        """How many categories the bank knows. The intake is ahead of it by up to a block."""
        self._unsaved = 0
        self._settled = False
        self._begun = False

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
        yield from self.source.blocks(self._position, size)

    def _settle(self, columns: Sequence[str] | None) -> None:
        """Look at the columns; None if all rows so far are broken, which says nothing of them."""
        if columns is not None:
            self.intake.settle(list(columns))
            self._settled = True

    def _deepen(self) -> None:
        """Let the bank remember as many questions as wait for their targets."""
        pending = self.bank._pending
        pending.most = max(pending.most, self.settings.delay + 1)

    def _take(self, block: Block) -> None:
        """A block, in the order of its rows: pieces are played, bad rows stop it or go aside."""
        pieces, bad = self.intake.take(block)
        if pieces and not self._settled:  # objects without any key
            self._settle(())
        events: list[tuple[int, Any]] = [(piece.rows[0], piece) for piece in pieces]
        events += [(one.row, one) for one in bad]
        for row, event in sorted(events, key=lambda pair: pair[0]):
            if self.full:
                return
            if isinstance(event, Piece):
                room = len(event.rows) if self.most is None else self.most - self.progress.rows
                self._play(block, event, room)
            elif self.settings.on_bad_row == "stop":
                raise BadRow(str(event))
            else:
                self._set_aside(block, event)
                self._position = block.position(row)

    def _play(self, block: Block, piece: Piece, room: int) -> None:
        """Play a piece, cut where a snapshot is due."""
        added, done = piece.added, 0
        while done < min(room, len(piece.rows)):
            some = FIRST_SNAPSHOT if self.history is None else self.history.until_snapshot
            cut = slice(done, min(done + some, room))
            part = Piece(piece.rows[cut], piece.X[cut], piece.targets[cut], added)
            self._play_part(block, part)
            added, done = 0, done + len(part.rows)

    def _play_part(self, block: Block, piece: Piece) -> None:
        rows, X, targets = piece.rows, piece.X, piece.targets
        self._levels += piece.added
        if self.settings.delay:
            answers = self._play_late(X, targets, piece.added)
        elif targets == [None]:
            answers = [self._predict_only(X, piece.added)]
        else:
            answers = self._play_at_once(X, targets, piece.added)
        numbered = [
            (block.first + row + 1, *answer) for row, answer in zip(rows, answers, strict=True)
        ]
        for output in self.outputs:
            output.write(numbered)
        self.progress.rows += len(rows)
        self._position = block.position(rows[-1])
        self._unsaved += len(rows)
        if self._unsaved >= self.every:
            self.mark()

    def _set_aside(self, block: Block, bad: Any) -> None:
        self.progress.bad += 1
        self._unsaved += 1
        if self.bad_rows is not None:
            words = {
                "row": block.first + bad.row + 1,
                "where": bad.where,
                "column": bad.column,
                "value": bad.value,
                "reason": bad.reason,
            }
            self.bad_rows.write([(json.dumps(words, ensure_ascii=False),)])
        self._position = block.position(bad.row)
        if self._unsaved >= self.every:
            self.mark()

    # --- a piece ----------------------------------------------------------------------------------

    def _play_at_once(self, X: Floats, targets: list[Any], added: int) -> list[Row]:
        trace = self.bank.run(
            X, targets, record="all", coverage=self.settings.coverage, added=added
        )
        self._remember(trace, targets)
        return self._worded(trace, targets)

    def _play_late(self, X: Floats, targets: list[Any], added: int) -> list[Row]:
        self._widen(added)
        answers: list[Row] = []
        for x, target in zip(X, targets, strict=True):
            if target is None:  # it waits as the others do, so that all come so many rows later
                answers.append(self._predict_only(x[None], 0))
            else:
                trace = self.bank.answer_one(x, record="all", coverage=self.settings.coverage)
                self._remember(trace, [target])
                answers += self._worded(trace, [target])
            self._waiting.append((x, target))
            if len(self._waiting) > self.settings.delay:
                self._learn_oldest()
        return answers

    def _widen(self, added: int) -> None:
        if added:
            self.bank.add_inputs(added)
            self._waiting = [(np.append(x, [np.nan] * added), y) for x, y in self._waiting]

    def _learn_oldest(self) -> None:
        x, target = self._waiting.pop(0)
        if target is not None:
            self.bank.learn_one(x, target)
            self._last = target

    def _predict_only(self, X: Floats, added: int) -> Row:
        """A row without a target: answered, not learned, and not remembered as a question."""
        self.progress.predicted_only += 1
        self._widen(added)
        coverage = self.settings.coverage
        if self.settings.task == "regression":
            low, high = self.bank.predict_interval(X, coverage)[0].tolist()
            return float(self.bank.predict(X)[0]), low, high, None
        if not self.bank.classes:
            return None, None, None
        shares = self.bank.predict_proba(X)[0]
        return _plain(self.bank.predict(X)[0]), float(shares.max()), None

    def _worded(self, trace: Any, targets: list[Any]) -> list[Row]:
        if self.settings.task == "regression":
            columns = (trace.predictions.tolist(), trace.lower.tolist(), trace.upper.tolist())
            return list(zip(*columns, targets, strict=True))
        shares = trace.probabilities.max(axis=1, initial=0.0).tolist()
        labels = [_plain(label) for label in trace.predictions]
        return [
            # Before the first class is known there is no answer, only what a trace fills in.
            (label, share, target) if share else (None, None, target)
            for label, share, target in zip(labels, shares, targets, strict=True)
        ]

    # --- history ----------------------------------------------------------------------------------

    def _remember(self, trace: Any, targets: list[Any]) -> None:
        slots = trace.weights.shape[1]
        if self.history is None:
            self.history = History(slots)
        count = len(targets)
        figures = np.zeros((count, len(FIGURES)))
        figures[:, :2] = 1.0
        if self.settings.task == "regression":
            y = np.array(targets)
            before = np.concatenate([[self._last if self._last is not None else y[0]], y[:-1]])
            figures[:, 2] = (trace.predictions - y) ** 2
            figures[:, 3] = (before - y) ** 2
            figures[:, 4] = (trace.lower <= y) & (y <= trace.upper)
            figures[:, 5] = trace.upper - trace.lower
            losses = (trace.slot_predictions - y[:, None]) ** 2
        else:
            last = [self._last if self._last is not None else targets[0], *targets[:-1]]
            figures[:, 2] = [a != b for a, b in zip(trace.predictions, targets, strict=True)]
            figures[:, 3] = [a != b for a, b in zip(last, targets, strict=True)]
            losses = np.zeros((count, slots))
        if self._last is None:  # the first answer was given before any target was known
            figures[0, 1:] = 0.0
            losses[0] = 0.0
        if not self.settings.delay:  # else it is the last target that has been learned
            self._last = targets[-1]
        self.history.add(figures, trace.weights, losses)
        if self.history.until_snapshot == self.history.snapshot_stride:
            numeric = len(self.intake.features)
            taken = snapshot(self.bank, self.history.rows, numeric, self.settings.coverage)
            if taken is not None:
                self.history.take(taken)

    # --- marks ------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Make everything so far last, together; without a journal, at least what was written."""
        self._unsaved = 0
        self._begun = True
        marks = [output.mark() for output in self._all_outputs()]
        if self.journal is None:
            return
        header, arrays = describe(self.bank)
        own = {f"bank/{name}": array for name, array in arrays.items()}
        facts = None
        if self.history is not None:
            facts = self.history.facts()
            own |= {f"history/{name}": array for name, array in self.history.state().items()}
        own["waiting"] = np.array([x for x, _ in self._waiting] or np.zeros((0, 0)))
        self.journal.write(
            {
                "version": __version__,
                "settings": self.settings.plain(),
                "source": self.source.identity_at(self._position),
                "position": self._position,
                "progress": [self.progress.rows, self.progress.bad, self.progress.predicted_only],
                "outputs": marks,
                "places": [output.place for output in self.outputs],
                "levels": [list(pair) for pair in self.intake.levels[: self._levels]],
                "features": self.intake.features if self._settled else None,
                "waiting": [y for _, y in self._waiting],
                "last": self._last,
                "bank": header,
                "history": facts,
            },
            own,
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
            engine = as_engine(self._engine)
            self.bank = restored(header["bank"], under("bank/", arrays), engine, {}, 2**32)
            self._deepen()
            if header["history"] is not None:
                self.history = History.restored(header["history"], under("history/", arrays))
        except FileRefused as error:
            raise ValueError(str(error)) from None  # they do not know the file's name
        self._position = header["position"]
        rows, bad, only = map(int, header["progress"])
        self.progress.rows, self.progress.bad, self.progress.predicted_only = rows, bad, only
        self.progress.first_row = rows
        self.intake.levels = [(str(c), str(level)) for c, level in header["levels"]]
        self._levels = len(self.intake.levels)
        self._begun = True
        self._last = header["last"]
        self._waiting = list(zip(arrays["waiting"], header["waiting"], strict=True))
        return list(header["outputs"])


def _columns(source: Source, block: Block) -> Sequence[str] | None:
    """The source's columns, or else the keys of the first object that has come."""
    if source.columns is not None:
        return source.columns
    return next((keys for _, _, keys in block.unlike(())), None)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label

"""The run itself: reads blocks, predicts and learns their rows, writes predictions, and commits."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from .. import __version__
from ..auto import AutoBank
from ..auto.loading import DAMAGE
from ..bank.engines import Engine
from ..errors import (
    BadRow,
    FileRefused,
    KernelBankError,
    KernelBankWarning,
    RunRefused,
    TooManyBadRows,
)
from ..io.cells import shown_cell
from ..io.checkpoint import damage_text
from ..io.sinks import Commit, Row, Sink
from ..io.source import POLL_SECONDS, Position
from ..io.sources import RejectedRow, RowBlock, Source
from ..utils.validation import Floats
from . import Saved
from .advice import bad_row_advice, first_row_advice, header_advice
from .encoder import Batch, CopiedColumns, FeatureEncoder
from .notes import JUDGED_ROWS
from .options import RunOptions, prediction_columns
from .session import Session
from .state_folder import CheckpointDir, require, saved_count

BLOCK_ROWS = 1024

FIRST_ROWS = 1000
"""If more than half of so many first rows are bad, the run stops."""

SHOWN = 20
"""How many of the first bad rows the page shows."""


BAD_ROW = ("row", "where", "column", "value", "reason", "advice")
"""The fields of a line of the file of bad rows."""

BadRowRecord = dict[str, Any]


class RejectedRows:
    """Counts rejected rows and keeps the first of them as JSON data."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[BadRowRecord] = []

    def add(self, rejected: RejectedRow, number: int, advice: str = "") -> BadRowRecord:
        """Count row `number` of the source; returns its record for the file of bad rows."""
        record = {**asdict(rejected), "row": number, "advice": advice}
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(record)
        return record

    def to_json(self) -> dict[str, object]:
        """The state as JSON data, for the checkpoint."""
        return {"count": self.count, "first": self.first}

    def restore(self, saved: Saved) -> None:
        """Continue from what `to_json` returned, after checking it."""
        count = saved_count(saved["count"], "bad rows")
        first = list(saved["first"])
        require(len(first) == min(count, SHOWN), "it holds the wrong number of bad rows.")
        for record in first:
            number, *texts = record.values()
            require(tuple(record) == BAD_ROW, "a bad row in it has the wrong fields.")
            described = all(isinstance(text, (str, type(None))) for text in texts)
            require(described and type(number) is int, "a bad row in it is not described by text.")
        self.count, self.first = count, first


class RunTimes:
    """When the first process of a run started, how many there were, and their time in all."""

    def __init__(self) -> None:
        self.started = _now()
        self.starts = 1
        self.versions = {
            "kernelbank": __version__,
            "Python": platform.python_version(),
            "numpy": version("numpy"),
            "system": f"{platform.system()} {platform.machine()}",
        }
        self._before = 0.0
        self._begin = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since this process started."""
        return max(time.monotonic() - self._begin, 1e-9)

    def to_json(self) -> dict[str, object]:
        """The state as JSON data, for the checkpoint and the page."""
        return {
            "started": self.started,
            "starts": self.starts,
            "updated": _now(),
            "seconds": round(self._before + self.seconds, 6),
            "versions": self.versions,
        }

    def restore(self, saved: Saved) -> None:
        """Continue from what an earlier process saved; the versions are those of this process."""
        earlier = check_times(saved)
        self.started, self.starts = earlier["started"], earlier["starts"] + 1
        self._before = earlier["seconds"]


def check_times(saved: Saved) -> Saved:
    """What `RunTimes.to_json` returned, after checking it."""
    starts, seconds = saved_count(saved["starts"], "starts"), float(saved["seconds"])
    require(starts and 0 <= seconds < 1e12, "its times are impossible.")
    times = {name: datetime.fromisoformat(saved[name]) for name in ("started", "updated")}
    return {
        **{name: moment.isoformat() for name, moment in times.items()},
        "starts": starts,
        "seconds": seconds,
        "versions": {str(name): str(number) for name, number in saved["versions"].items()},
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Runner:
    """One run over a source. A new run calls `run`, `finish` and `close`; one with a checkpoint
    calls `resume` before.

    `commit` writes the checkpoint: first every sink makes its rows durable and says how far it is,
    then one file is replaced atomically that holds the model, the position in the source and how
    far every sink is. `resume` goes back to that file.

    Parameters
    ----------
    options : all options of the run.
    source : where rows are read.
    sinks : where predictions are written.
    bad_rows : where rejected rows are written, if anywhere.
    checkpoints : the folder of the checkpoint, if there is one.
    engine : where the slots run.
    """

    def __init__(
        self,
        options: RunOptions,
        source: Source,
        sinks: list[Sink],
        bad_rows: Sink | None,
        checkpoints: CheckpointDir | None,
        engine: Engine | str = "serial",
    ) -> None:
        self.options = options
        self.source = source
        self.sinks = sinks
        self.bad_rows = bad_rows
        self.all_sinks = sinks if bad_rows is None else [*sinks, bad_rows]
        self.checkpoints = checkpoints
        self.encoder = FeatureEncoder(options)
        self._copied = CopiedColumns(options)
        self.times = RunTimes()
        self.rejected = RejectedRows()
        self.session = Session(options, engine)
        self.rows = 0
        """Rows that are predicted, over all processes of the run."""
        self.rows_before = 0
        """Rows that were predicted when this process started."""
        self._flushed = time.monotonic()
        self._position: Position | None = None
        self._uncommitted_rows = 0
        self._has_data_commit = False
        """Whether a commit holds a row: from then on its position says which rows were read."""
        self._has_columns = False
        self._running: Sequence[int] = ()
        """The rows of the block that are being worked on."""
        self._sinks_started = False
        self._to_rewind: list[tuple[Sink, Commit]] = []
        """Sinks of a resumed run, and where each goes back to when rows have come."""
        self.on_resumed: Callable[[Runner], None] = lambda _: None
        """Called when a run is surely resumed: its source may still be refused where it is read."""
        self._is_whole = True
        """Whether model, sinks and position are those after the same row."""
        self._provisional = False
        """Whether rows have come whose end has not: nothing is committed from there on."""

    @property
    def bank(self) -> AutoBank:
        """The model."""
        return self.session.bank

    # --- rows ---

    def run(self, should_stop: Callable[[], bool], on_block: Callable[[Runner], None]) -> str:
        """Run blocks until the source ends; returns why it ended.

        `on_block` is called after every block, also after an empty one.
        """
        for block in self._blocks():
            if len(block):
                if not self._has_columns:
                    self._set_columns(self.source.columns)
                self._rewind()  # not before: a source whose rows are gone is refused until then
                if not self._sinks_started:
                    self.start(block)
                with self._place_in_errors(block):
                    if block.provisional:
                        self._run_provisional(block)
                    else:
                        self._run_block(block)
                if self._uncommitted_rows and not self._has_data_commit:
                    self.commit()  # until then the position of the first row has to be there
                self._flush_if_due()
            elif self._uncommitted_rows:
                self.commit()  # no row has come for a while: commit now
            on_block(self)
            if self.is_full:
                return "--max-rows"
            if should_stop():
                return "stopped"
        if self.rows < JUDGED_ROWS:
            self.encoder.notes.judge()
        if self.rejected.count and not self.rows:
            raise TooManyBadRows(
                f"none of the {self.rejected.count:,} rows can be used. {self._first_bad_row()}"
            )
        return "end"

    def _flush_if_due(self) -> None:
        """Let readers of the predictions see them, if rows come slowly one after the other.

        A little early, as the next block may take POLL_SECONDS to come.
        """
        now = time.monotonic()
        if now - self._flushed >= self.options.flush_every - POLL_SECONDS:
            for sink in self.all_sinks:
                sink.flush()
            self._flushed = now

    @property
    def is_full(self) -> bool:
        """Whether `--max-rows` rows are predicted."""
        return self.options.max_rows is not None and self.rows >= self.options.max_rows

    def _blocks(self) -> Iterator[RowBlock]:
        if not self._has_columns:
            self._set_columns(self.source.columns)
        # The first block gives labels their columns, which must not depend on checkpoints.
        by_labels = self.options.task == "classification" and self.options.classes is None
        size = BLOCK_ROWS if by_labels else min(BLOCK_ROWS, self.options.checkpoint_every)
        last = ""
        try:
            for block in self.source.blocks(self._position, size):
                yield block
                last = block.where(len(block) - 1) if len(block) else last
        except Exception as error:
            if last:
                error.add_note(f"The last row before was {last}.")
            raise

    @contextmanager
    def _place_in_errors(self, block: RowBlock) -> Iterator[None]:
        """Note in errors which rows of a block were being worked on."""
        self._running = range(len(block))
        try:
            yield
        except (
            BadRow,
            TooManyBadRows,
            RunRefused,
        ):  # which name their row, or what cannot be written to
            raise
        except Exception as error:
            first, last = (block.where(self._running[i]) for i in (0, -1))
            error.add_note(f"It came at {first}." if first == last else f"From {first} to {last}.")
            raise

    def _set_columns(self, columns: Sequence[str] | None) -> None:
        """Check the columns; None if they are unknown, as all rows so far are broken."""
        if columns is None:
            return
        try:
            self.encoder.set_columns(list(columns))
        except RunRefused as error:
            advice = header_advice(self.options, columns, self.source)
            raise RunRefused(f"{error} {advice}".rstrip()) from None
        self._copied.check(columns)
        self.session.set_columns(self.encoder.columns)
        self._has_columns = True

    def _run_block(self, block: RowBlock) -> None:
        """Run the rows of a block in order: batches, and bad rows, which stop it or are skipped."""
        batches, rejected = self.encoder.encode(block)
        copies = self._copied.cells(block)
        if batches and not self._has_columns:  # JSON objects without any key
            self._set_columns(())
        steps: list[tuple[int, Batch | RejectedRow]] = [(part.rows[0], part) for part in batches]
        steps += [(part.row, part) for part in rejected]
        for _, step in sorted(steps, key=lambda pair: pair[0]):
            if self.is_full:
                return
            if isinstance(step, Batch):
                self._run_accepted(block, step, copies)
            else:
                self._reject(block, step)

    def _run_accepted(self, block: RowBlock, batch: Batch, copies: list[Row]) -> None:
        """Run the rows of a batch, cut at the rows that the model refuses: they are bad rows."""
        done = 0
        for refused in self.session.refused(batch.targets):
            self._run_batch(block, batch.part(done, refused.row), copies)
            if self.is_full:
                return
            row, value = batch.rows[refused.row], shown_cell(str(refused.label))
            where, target = block.where(row), self.options.targets[0]
            self._reject(block, RejectedRow(row, where, target, value, refused.reason))
            done = refused.row + 1
        self._run_batch(block, batch.part(done, len(batch.rows)), copies)

    def _reject(self, block: RowBlock, rejected: RejectedRow) -> None:
        """Stop at a bad row, or set it aside: whoever has rejected it."""
        if self.options.on_bad_row == "skip":
            self._skip(block, rejected)
            return
        if block.provisional and block.is_unended(rejected.row):  # perhaps it is bad only so far
            _note(f"{rejected} The source ends before its end, so it is not used.")
            return
        advice = self._first_row_advice(block, rejected) or self._advice(rejected)
        raise BadRow(f"{rejected} {advice}".rstrip())

    def _run_provisional(self, block: RowBlock) -> None:
        """Run rows that may still change: commit before them, and never after them.

        They are predicted and learned, so that they are in the results of this process. The next
        process cuts the sinks back to the commit, and reads the rows as they are then.
        """
        if self._uncommitted_rows:
            self.commit()
        self._provisional = True
        before = self.rows
        self._run_block(block)
        if self.rows == before:
            return
        where = f"{block.where(0)}: the source ends before the end of this row."
        for sink in self.sinks:
            if not sink.can_rewind:
                _note(f"{where} It is not written to {sink.address}, which cannot take it back.")
        if self.checkpoints is not None:
            _note(
                f"{where} It is in the results, but not in --state: the same command reads it "
                "again, as it is then."
            )

    def _first_row_advice(self, block: RowBlock, rejected: RejectedRow) -> str:
        """What to do about all columns of a bad first row at once; "" if it has one or none."""
        features = self.encoder.features
        if self.rows or rejected.column not in features:
            return ""
        parsed = block.parse(text=features, allow_missing=True)
        places = np.flatnonzero(parsed.rows == rejected.row)
        cells = {name: parsed.texts[name][int(i)] for i in places[:1] for name in features}
        return first_row_advice(cells, self.options)

    def _advice(self, rejected: RejectedRow) -> str:
        features = self.encoder.features
        return bad_row_advice(rejected, self.options, features, self.source, self.rows)

    def _first_bad_row(self) -> str:
        """The first bad row and what to do about it."""
        _, where, column, value, reason, _ = self.rejected.first[0].values()
        first = RejectedRow(0, where, column, value, reason)
        return f"The first: {first} {self._advice(first)}".rstrip()

    def _run_batch(self, block: RowBlock, batch: Batch, copies: list[Row]) -> None:
        """Predict, learn and write a batch, cut at commits and at `--max-rows`."""
        most = self.options.max_rows
        count = len(batch.rows) if most is None else min(len(batch.rows), most - self.rows)
        done = 0
        while done < count:
            self._is_whole = False
            until_commit = max(1, self.options.checkpoint_every - self._uncommitted_rows)
            part = batch.part(done, min(done + until_commit, count))
            self._running = part.rows
            predictions = self.session.predict_and_learn(part)
            first = block.first + 1
            numbered = [
                (first + row, *values, *copies[row])
                for row, values in zip(part.rows, predictions, strict=True)
            ]
            for sink in self.sinks:
                if sink.can_rewind or not self._provisional:
                    sink.write(numbered)
            self.rows += len(part.rows)
            self._advance(block, part.rows[-1], len(part.rows))
            done += len(part.rows)

    def _skip(self, block: RowBlock, rejected: RejectedRow) -> None:
        self._is_whole = False
        number = block.first + rejected.row + 1
        record = self.rejected.add(rejected, number, self._advice(rejected))
        if self.bad_rows is not None:
            self.bad_rows.write([(record,)])
        self._advance(block, rejected.row, 1)
        bad, done = self.rejected.count, self.rows + self.rejected.count
        # Exactly once: if the same command is given again, the run goes on all the same.
        if bad == FIRST_ROWS // 2 + 1 and done <= FIRST_ROWS and not self._provisional:
            raise TooManyBadRows(
                f"{bad:,} of the first {done:,} rows cannot be used. {self._first_bad_row()}"
            )

    # --- committing -------------------------------------------------------------------------------

    def start(self, first: RowBlock | None = None) -> None:
        """Take the sinks of a new run, and commit that they are ours before any row is written.

        first : the rows that follow, so that this commit does not say that there were none.
        """
        labels = [] if first is None or not self._has_columns else self.encoder.labels(first)
        self.session.name_labels(labels)
        self._set_prediction_columns()
        for sink in self.all_sinks:
            sink.check_vacant()
        for sink in self.all_sinks:
            sink.start()
        if self._position is None:
            self._position = self.source.start
        self.commit(before_rows=first is not None)

    def _set_prediction_columns(self) -> None:
        """Columns for the probabilities of the labels."""
        columns = prediction_columns(self.options, self.session.named_labels)
        for sink in self.sinks:
            sink.set_columns((*columns, *self.options.copied_columns))

    def _advance(self, block: RowBlock, row: int, count: int) -> None:
        """`count` more rows are done, up to row `row` of the block; commit if it is time."""
        if self._provisional:
            return
        self._position = block.position(row)
        self._uncommitted_rows += count
        self._is_whole = True
        if self._uncommitted_rows >= self.options.checkpoint_every:
            self.commit()

    def commit(self, before_rows: bool = False) -> None:
        """Write the checkpoint. Without a folder for it, only the sinks are made durable.

        After provisional rows the last checkpoint stays: it was written before them.
        """
        if self._provisional:
            return
        self._is_whole = False
        self._has_data_commit |= self._uncommitted_rows > 0
        self._uncommitted_rows = 0
        self._sinks_started = True
        commits = [sink.commit() for sink in self.all_sinks]
        if self.checkpoints is not None:
            self._write_checkpoint(self.checkpoints, commits, before_rows)
        self._is_whole = True

    def finish(self) -> None:
        """Commit. Pending targets stay pending: the source may have more rows one day."""
        self._rewind()
        if self._sinks_started:
            self.commit()
        else:
            self.start()

    def commit_whole_rows(self) -> bool:
        """After an error: commit the rows before it, unless it came in the midst of a batch.

        Then, or if this fails too, the last checkpoint remains. Returns whether it is committed.
        """
        if not (self._is_whole and self._sinks_started) or self._to_rewind:
            return False
        try:
            self.commit()
        except (KernelBankError, OSError):
            return False
        return True

    def close(self, *, complete: bool) -> None:
        """Close the sinks; with `complete`, rows that they hold back are written.

        Else a run without a row and without --state leaves no output that only has a header.
        """
        if not complete and not self.rows and self.checkpoints is None:
            for sink in self.all_sinks:
                sink.discard()
        for sink in self.all_sinks:
            sink.close(complete=complete)

    def _write_checkpoint(
        self, checkpoints: CheckpointDir, commits: Sequence[object], before_rows: bool
    ) -> None:
        facts, arrays = self.session.describe()
        header = {
            "version": __version__,
            "options": self.options.to_json(),
            "source": self.source.fingerprint,
            "position": self._position,
            "rows": self.rows,
            "before_rows": before_rows,
            "rejected_rows": self.rejected.to_json(),
            "missing_rows": self.source.missing_rows,
            "times": self.times.to_json(),
            "sinks": commits,
            "predictions": [sink.address for sink in self.sinks],
            "features": self.encoder.features if self._has_columns else None,
            **facts,
        }
        checkpoints.write(header, arrays)

    # --- resuming ---------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Go back to the last checkpoint; False if there is none. A refusal changes no file.

        The sinks go back when rows have come, as the source may still be refused where it is read.
        """
        checkpoints = self.checkpoints
        if checkpoints is None or (saved := checkpoints.read()) is None:
            return False
        header, arrays = saved
        try:
            if self._starts_again(header):
                return False
            self.options.check_resumes(header["options"], checkpoints.folder)
            self.source.verify(header["source"])
            earlier, now = header["predictions"], [sink.address for sink in self.sinks]
            if earlier != now:
                raise RunRefused(
                    f"{checkpoints.folder} is the state of a run with other outputs: --predictions "
                    f"was {', '.join(earlier) or 'none'}, now {', '.join(now) or 'none'}. Give "
                    "the earlier one, or another --state."
                )
            self._restore(header, arrays)
            self._set_prediction_columns()
            committed = list(zip(self.all_sinks, header["sinks"], strict=True))
            for sink, commit in committed:
                sink.check(commit)
        except FileRefused:
            raise
        except DAMAGE as error:
            raise FileRefused(f"{checkpoints.path} is damaged: {damage_text(error)}.") from None
        self._to_rewind = committed
        return True

    def _rewind(self) -> None:
        """Remove from the sinks what was written after the checkpoint."""
        if self._to_rewind:
            self.on_resumed(self)
        for sink, commit in self._to_rewind:
            sink.rewind(commit)
        self._to_rewind = []

    def _starts_again(self, header: Saved) -> bool:
        """Whether nothing was predicted, and the options or the source may be others now.

        Then a new run in the same folder loses nothing: its outputs are emptied. After a kill
        before the first rows were committed, and after rows that were set aside, this is so only
        with other options or another source.
        """
        if header["rows"]:
            return False
        is_same = self.options.to_json() == header["options"]
        is_same &= header["source"]["address"] == self.source.address
        if is_same and (header["before_rows"] or header["rejected_rows"]["count"]):
            return False
        addresses = [*header["predictions"], None]  # the bad rows are in the folder of the state
        for address, commit in zip(addresses, header["sinks"], strict=False):
            for sink in self.all_sinks:
                if address == (None if sink is self.bad_rows else sink.address):
                    sink.check(commit)
                    sink.clear()
        return True

    def _restore(self, header: Saved, arrays: dict[str, Floats]) -> None:
        try:
            self.session.restore(header, arrays)
            self.session.allow_labels()
            self.rejected.restore(header["rejected_rows"])
            self.times.restore(header["times"])
        except FileRefused as error:
            raise ValueError(str(error)) from None  # `resume` adds the name of the file
        self._position = header["position"]
        self.rows = self.rows_before = saved_count(header["rows"], "rows")
        self._has_data_commit = self.rows > 0
        self._sinks_started = True


def _note(text: str) -> None:
    """Tell about a row whose end has not come."""
    warnings.warn(
        f"{text} If the source is complete, give --complete.", KernelBankWarning, stacklevel=3
    )

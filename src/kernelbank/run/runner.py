"""The run itself: reads blocks, predicts and learns their rows, and writes the predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ..errors import BadRow, KernelBankWarning, RunRefused, TooManyBadRows
from ..io.cells import shown_cell
from ..io.sinks import Row
from ..io.sources import RejectedRow, RowBlock
from .advice import bad_row_advice, first_row_advice, header_advice
from .checkpointed_run import CheckpointedRun
from .feature_encoder import Batch
from .timings import ENCODING, READING, WRITING

BLOCK_ROWS = 1024

FIRST_ROWS = 1000
"""If more than half of so many first rows are bad, the run stops."""


class Runner(CheckpointedRun):
    """One run over a source; the parameters are those of `CheckpointedRun`.

    A new run calls `run`, `finish` and `close`; one with a checkpoint calls `resume` before.
    """

    _running: Sequence[int] = ()
    """The rows of the block that are being worked on."""

    def run(self, should_stop: Callable[[], bool], on_block: Callable[[Runner], None]) -> str:
        """Run blocks until the source ends; returns why it ended.

        `on_block` is called after every block, also after an empty one.
        """
        for block in self._blocks():
            if len(block):
                if not self._columns_known:
                    columns = self.source.columns
                    self._set_columns(block.first_keys() if columns is None else columns)
                if not self._sinks_started:
                    self.start()
                with self._place_in_errors(block):
                    if block.provisional:
                        self._run_provisional(block)
                    else:
                        self._run_block(block)
            elif self._uncommitted_rows:
                self.commit()  # no row has come for a while: commit now
            on_block(self)
            if self.is_full:
                return "--max-rows"
            if should_stop():
                return "stopped"
        if self.rejected.count and not self.rows:
            raise TooManyBadRows(
                f"none of the {self.rejected.count:,} rows can be used. {self._first_bad_row()}"
            )
        return "end"

    @property
    def is_full(self) -> bool:
        """Whether `--max-rows` rows are predicted."""
        return self.options.max_rows is not None and self.rows >= self.options.max_rows

    def _blocks(self) -> Iterator[RowBlock]:
        size = min(BLOCK_ROWS, self.options.checkpoint_every)
        if not self._columns_known:
            self._set_columns(self.source.columns)
        last = ""
        try:
            for block in self.timings.measure_each(
                READING, self.source.blocks(self._position, size)
            ):
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
        except (BadRow, RunRefused):  # which name their row, or what cannot be written to
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
        self._kept.check(columns)
        self.session.set_columns(self.encoder.columns)
        self._columns_known = True

    def _run_block(self, block: RowBlock) -> None:
        """Run the rows of a block in order: batches, and bad rows, which stop it or are skipped."""
        with self.timings.measure(ENCODING):
            batches, rejected = self.encoder.encode(block)
            kept = self._kept.cells(block)
        if batches and not self._columns_known:  # JSON objects without any key
            self._set_columns(())
        steps: list[tuple[int, Batch | RejectedRow]] = [(one.rows[0], one) for one in batches]
        steps += [(one.row, one) for one in rejected]
        for _, step in sorted(steps, key=lambda pair: pair[0]):
            if self.is_full:
                return
            if isinstance(step, Batch):
                self._run_accepted(block, step, kept)
            else:
                self._reject(block, step)

    def _run_accepted(self, block: RowBlock, batch: Batch, kept: list[Row]) -> None:
        """Run the rows of a batch, cut at the rows that the model refuses: they are bad rows."""
        done = 0
        for refused in self.session.refused(batch.targets):
            self._run_batch(block, batch.part(done, refused.row), kept)
            if self.is_full:
                return
            row, value = batch.rows[refused.row], shown_cell(str(refused.label))
            where, target = block.where(row), self.options.targets[0]
            self._reject(block, RejectedRow(row, where, target, value, refused.reason))
            done = refused.row + 1
        self._run_batch(block, batch.part(done, len(batch.rows)), kept)

    def _reject(self, block: RowBlock, rejected: RejectedRow) -> None:
        """Stop at a bad row, or set it aside: whoever has rejected it."""
        if self.options.on_bad_row == "skip":
            self._skip(block, rejected)
            return
        if self._is_partial(block, rejected):
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

    def _is_partial(self, block: RowBlock, rejected: RejectedRow) -> bool:
        """Whether a bad row is bad perhaps only because its end has not come; then a note."""
        is_partial = block.provisional and block.is_unended(rejected.row)
        if is_partial:
            _note(f"{rejected} The source ends before its end, so it is not used.")
        return is_partial

    def _first_row_advice(self, block: RowBlock, rejected: RejectedRow) -> str:
        """What to do about all columns of a bad first row at once; "" if it has one or none."""
        if self.rows or rejected.column not in self.encoder.features:
            return ""
        features = self.encoder.features
        parsed = block.parse(text=features, allow_missing=True)
        found = np.flatnonzero(parsed.rows == rejected.row)
        cells = {name: parsed.texts[name][int(i)] for i in found[:1] for name in features}
        return first_row_advice(cells, self.options)

    def _advice(self, rejected: RejectedRow) -> str:
        features = self.encoder.features
        return bad_row_advice(rejected, self.options, features, self.source, self.rows)

    def _first_bad_row(self) -> str:
        """The first bad row and what to do about it."""
        record = self.rejected.first[0]
        first = RejectedRow(0, *(record[name] for name in ("where", "column", "value", "reason")))
        return f"The first: {first} {self._advice(first)}".rstrip()

    def _run_batch(self, block: RowBlock, batch: Batch, kept: list[Row]) -> None:
        """Predict, learn and write a batch, cut where a snapshot is due and at `--max-rows`."""
        most = self.options.max_rows
        count = len(batch.rows) if most is None else min(len(batch.rows), most - self.rows)
        done = 0
        while done < count:
            self._is_whole = False
            part = batch.part(done, min(done + self.session.max_batch, count))
            self._running = part.rows
            predictions = self.session.predict_and_learn(part)
            first = block.first + 1
            numbered = [
                (first + row, *values, *kept[row])
                for row, values in zip(part.rows, predictions, strict=True)
            ]
            with self.timings.measure(WRITING):
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


def _note(text: str) -> None:
    """Tell about a row whose end has not come."""
    warnings.warn(
        f"{text} If the source is complete, give --complete.", KernelBankWarning, stacklevel=3
    )

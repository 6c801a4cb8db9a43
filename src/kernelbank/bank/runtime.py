"""The runtime of a bank: runs blocks, undoes failed ones, and records them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

import numpy as np

from ..kernels.sample_buffer import SampleBlock
from ..native.workspace import SLIDE_PERIOD
from ..utils.validation import Floats
from .runtime_queries import RuntimeQueries
from .single_sample import DECLINED, DIAGNOSE
from .trace import Trace

_LARGEST_SUM = 1e300
"""Sums of weights beyond this count as this."""


class Runtime(RuntimeQueries):
    """Everything that changes while a bank learns, and the code that changes it: here learning."""

    def learn_one(self, x: Any, y: Any) -> bool:
        """Learn (x, y) by one compiled call if they are plain floats; False if they are not."""
        calls = self.single_sample_calls
        if calls is None:
            return False
        result = calls.learn(x, y)
        if self.weight_sums is not None and result != DECLINED:
            self._add_weights(1)
        if result == DIAGNOSE:
            self.check_diagnostics()
        return result != DECLINED

    def iter_blocks(self, X: Floats, y: Floats) -> Iterator[SampleBlock]:
        """The samples in blocks. The executor gets them all in advance, so that it may prefetch."""
        self.open(X[0])
        blocks: list[SampleBlock] = []
        size, seen, done = self.workspace.size, self.ledger.samples, 0
        while done < len(X):
            length = size
            if self._engine.slide_aligned:
                length = min(size, SLIDE_PERIOD - (seen + done) % SLIDE_PERIOD)
            end = min(done + length, len(X))
            blocks.append(SampleBlock(seen + done, X[done:end], y[done:end]))
            done = end
        self.executor.prefetch(blocks)
        yield from blocks

    @property
    def calls_users_functions(self) -> bool:
        """Whether a block may call a user's function; unknown, so true, before the first one."""
        return not self.is_open or bool(self._callbacks)

    @property
    def undoes_blocks(self) -> bool:
        """Whether a block may be interrupted anywhere, and is undone then."""
        return self.is_open and self.executor.fallible and not self._callbacks

    @property
    def is_cut_off(self) -> bool:
        """Whether a block has ended in its middle."""
        return self.is_open and self.executor.is_cut_off

    def run_block(self, X: Floats, y: Floats, past_predictions: Floats | None = None) -> None:
        """Learn a block; one that fails, by a user's function or for another reason, is undone.

        past_predictions : (n, P), what the slots predicted earlier, for delayed targets.
        """
        self.open(X[0])
        first, count = self.ledger.samples, len(X)
        self.workspace.points[:count] = X
        before = self.checkpoint() if self.may_fail else None
        try:
            self.run_targets(first, y, past_predictions)
        except BaseException:
            if before is not None:
                self.undo(first, before)
            raise
        self.finish_block(first, count)

    def run_targets(
        self, first: int, targets: Floats, past_predictions: Floats | None = None
    ) -> None:
        """Learn the block whose inputs are on the workspace."""
        workspace, count = self.workspace, len(targets)
        workspace.new_targets[:count] = targets
        self.busy = bool(self._callbacks)
        try:
            if past_predictions is not None:
                workspace.past_predictions[:count] = past_predictions
                workspace.has_past_predictions[:count] = 1.0
            self.executor.run_block(first, count)
            self._raise_callback_error()
        finally:
            self.busy = False
            if past_predictions is not None:
                workspace.has_past_predictions[:count] = 0.0

    def skip_target(self, first: int) -> None:
        """Take the sample on the workspace, whose target is missing: it is not learned.

        What the slots know of the inputs alone may change, and they decay or forget as always.
        """
        workspace = self.workspace
        workspace.new_targets[0] = nan
        self.executor.skip_sample(first)
        self.ledger.skip_sample()
        values, weights = workspace.slot_predictions[:1].copy(), self.weights[None].copy()
        prediction = self._combine(weights, values)
        workspace.proposed[0] = weights[0]
        for array in (workspace.slot_cost, workspace.slot_loss, workspace.window_loss):
            array[0] = nan
        workspace.curvature[0] = nan
        self.ledger.write_skipped(workspace, float(prediction[0]))

    def finish_block(self, first: int, count: int) -> None:
        """What follows a block that was learned."""
        self._add_weights(count)
        self._diagnose(first)

    def _add_weights(self, count: int) -> None:
        """Add up the weights of a block, sample by sample: the same bits for any blocks."""
        sums = self.weight_sums
        if sums is None:
            return
        rows = np.abs(self.workspace.proposed[:count])
        if count == 1:
            sums += rows[0]
        else:
            sums[:] = np.cumsum(np.vstack([sums, rows]), axis=0)[-1]
        np.minimum(sums, _LARGEST_SUM, out=sums)

    @property
    def may_fail(self) -> bool:
        """Whether a block may fail, by a user's function or for another reason."""
        return bool(self._callbacks) or self.executor.fallible

    def clear_weight_sums(self) -> None:
        """Begin to sum weights anew, after a revision."""
        if self.weight_sums is not None:
            self.weight_sums[:] = 0.0

    def record(self, trace: Trace, row: int, count: int) -> None:
        """Write what the trace keeps of the last block, from this row on."""
        trace.write(row, self.rows(count, trace.fields))

    def rows(self, count: int, fields: Sequence[str]) -> dict[str, Floats]:
        """What a trace of these fields keeps of the last block."""
        workspace = self.workspace
        rows = self.ledger.rows(workspace, count)
        slot_rows = {
            "weights": workspace.proposed,
            "slot_cost": workspace.slot_cost,
            "slot_loss": workspace.slot_loss,
            "slot_predictions": workspace.slot_predictions,
            "curvature": workspace.curvature,
            "window_loss": workspace.window_loss,
        }
        return {name: rows[name] if name in rows else slot_rows[name][:count] for name in fields}

    def check_diagnostics(self) -> None:
        """Check the diagnostics after the last sample."""
        self._diagnose(self.ledger.samples - 1)

    def _diagnose(self, first: int) -> None:
        step = self.workspace.combiner_step
        self.diagnostics.check(self.ledger, self.executor, first, step)

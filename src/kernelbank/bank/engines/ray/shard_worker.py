"""One shard with a workspace and a sample buffer of its own, in whatever process it runs.

A worker learns blocks in the order of the sample numbers and refuses all others. So a caller that
has lost count, or a worker that was restarted, is noticed at once. What phase 2 needs of a block is
kept in `PendingBlocks`, so the worker may be several blocks ahead of the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernels.sample_buffer import SampleBuffer
from ....losses.objective import Objective
from ....native.phases import Phases
from ....native.simd import WIDTH
from ....native.workspace import SLIDE_PERIOD, Workspace
from ....utils.validation import Floats
from ...layout import Layout
from ...ledger import Ledger
from ...shard import Shard
from .pending_blocks import PendingBlock, PendingBlocks
from .wire import LeafSums, PackedWeights, index_type, unpack_weights

Samples = tuple[Floats, Floats]
"""Inputs (n, d) and targets (n,) of a block."""

Snapshot = tuple[dict[str, Floats], dict[int, Any]]
"""The arrays of a shard by name, and what its learners keep besides arrays, by leaf."""


class GatheredReply(NamedTuple):
    """What a shard returns when it has learned a block of n samples, with `exchange="gathered"`."""

    evidence: Floats
    """(5, n, P): the arrays named in `EVIDENCE`."""
    extra: dict[str, Floats]
    """The arrays that the combiner names in `needs`."""
    step_ratio: Floats
    """(P,): see `Learner.step_ratio`."""


class SumsReply(NamedTuple):
    """The same with `exchange="sums"`."""

    bounds: Floats
    """(3, n): see `CandidateSlots.bounds`."""
    nonfinite: tuple[np.ndarray, np.ndarray]
    """Samples and slots of predictions that are not finite."""
    step_ratio: Floats


class MixedBlock(NamedTuple):
    """What a shard returns in phase 2 with `exchange="sums"`."""

    leaf_sums: LeafSums
    best: Floats
    """(n,): the least cumulative cost of a slot after each sample."""
    cost: Floats
    """(P,): cumulative cost of each slot after the block."""
    loss: Floats
    """(P,): cumulative loss of each slot after the block."""
    qp_terms: Floats
    """(2, P): the newest curvature and loss on the window."""


class OutOfOrder(RuntimeError):
    """A worker was sent a block that does not follow what it has learned."""


class ShardWorker:
    """The slots of some leaves, with everything that they need to work alone."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        leaf_numbers: Sequence[int],
        size: int,
        first_input: Floats,
        *,
        needs: frozenset[str],
    ) -> None:
        """`size`: samples learned at a time. `needs`: the combiner's."""
        leaves = [layout.leaves[number] for number in leaf_numbers]
        slots = [layout.slots[index] for leaf in leaves for index in leaf.slots]
        kernels = [slot.kernel for slot in slots if slot.learner.uses_kernel_rows]
        self._workspace = Workspace(
            objective,
            size,
            len(first_input),
            len(slots),
            len(leaves),
            needs=needs,
            workers=1,
        )
        self._buffer = SampleBuffer(
            layout.history_length(objective),
            kernels,
            self._workspace,
            first_input,
            layout.initial_points,
        )
        self._shard = Shard(objective, layout, leaves, self._workspace, self._buffer, alone=True)
        self._learning = Phases([self._buffer.add_samples]) + self._shard.learn_phases
        self._querying = Phases([self._buffer.query]) + self._shard.query_phases
        parts: list[Any] = [objective.loss, *dict.fromkeys(kernels)]
        found = [callback for part in parts for callback in part.callbacks]
        found += [*self._learning.callbacks, *self._querying.callbacks]
        self._callbacks = tuple(dict.fromkeys(found))
        self._memory = PendingBlocks(self._shard, self._workspace)
        self._lanes = self._shard.lane_positions
        self._pending: dict[int, PendingBlock] = {}  # by the number of the first sample
        self._next_sample: int | None = None  # None: whichever comes
        self._incomplete = False  # a block was learned in part

    # --- the two phases of a block --------------------------------------------------------------

    def learn(
        self, first: int, samples: Samples, with_snapshot: bool, by_sums: bool
    ) -> tuple[GatheredReply | SumsReply, Snapshot | None]:
        """Phase 1: learn a block; return a reply, and the snapshot after it if that is wanted."""
        count = len(samples[1])
        block = self._memory.allocate(count)
        learned = {name: getattr(self._workspace, name) for name in self._workspace.needs}
        extra = {name: np.empty((count, *array.shape[1:])) for name, array in learned.items()}
        for start, end in self._learn_steps(first, samples, block):
            for name, array in learned.items():
                extra[name][start:end] = array[: end - start]
            self._memory.append(block, first + start, start, end - start)
        self._pending[first] = block
        snapshot = self.snapshot() if with_snapshot else None
        step_ratio = self._shard.step_ratio()
        if not by_sums:
            return GatheredReply(block.evidence, extra, step_ratio), snapshot
        samples_out, slots_out = np.nonzero(~np.isfinite(block.by_name["slot_predictions"]))
        nonfinite = (samples_out, slots_out)
        return SumsReply(block.candidates.bounds(), nonfinite, step_ratio), snapshot

    def replay(self, first: int, samples: Samples) -> None:
        """Learn a block again whose evidence and sums the driver has already."""
        for start, end in self._learn_steps(first, samples, None):
            self._shard.close(end - start)

    def _learn_steps(
        self, first: int, samples: Samples, block: PendingBlock | None
    ) -> Iterator[tuple[int, int]]:
        """Learn within slide periods; yields the rows of each step, for the caller to finish it."""
        if self._next_sample not in (None, first) or self._incomplete:
            raise OutOfOrder(f"this shard expects sample {self._next_sample}, and got {first}")
        points, targets = samples
        self._incomplete = True
        start = 0
        while start < len(points):
            left = SLIDE_PERIOD - (first + start) % SLIDE_PERIOD
            end = min(start + min(left, self._workspace.size), len(points))
            self._workspace.points[: end - start] = points[start:end]
            self._workspace.new_targets[: end - start] = targets[start:end]
            self._memory.write_evidence_to(None if block is None else block.evidence[:, start:end])
            self._learning.run(first + start, end - start)
            self._raise_callback_errors()
            yield start, end
            start = end
        self._incomplete = False
        self._next_sample = first + len(points)

    def mix(self, first: int, packed: PackedWeights) -> LeafSums:
        """Phase 2: the leaves' sums for the pending block whose first sample is `first`."""
        block = self._pending.pop(first)
        (count, slots), indices, values = unpack_weights(packed)
        lanes, samples = self._lanes[indices % slots], indices // slots
        rows, own = np.unique(lanes // WIDTH * count + samples, return_inverse=True)
        weights = np.zeros((len(rows), WIDTH))
        weights[own, lanes % WIDTH] = values
        shape = (len(self._shard.leaf_numbers), count, self._workspace.sums.shape[2])
        sums = np.empty((len(rows), shape[2]))
        for buffers in block.buffers:
            buffers.mix(rows // count, first + rows % count, weights, sums)
        self._memory.release(block)
        return shape, rows.astype(index_type(shape[0] * count)), sums

    def ask_candidates(self, first: int, method: str, threshold: Floats) -> Any:
        """Call a method of the `CandidateSlots` of a pending block."""
        return getattr(self._pending[first].candidates, method)(np.array(threshold))

    def mix_and_add_costs(
        self, first: int, packed: PackedWeights, cost: Floats, loss: Floats
    ) -> MixedBlock:
        """Phase 2 by sums: `mix`, and add the slots' costs to `cost` and `loss`, (P,)."""
        evidence = self._pending[first].by_name
        workspace = copy.copy(self._workspace)
        workspace.slot_cost, workspace.slot_loss = evidence["slot_cost"], evidence["slot_loss"]
        workspace.best = np.empty(len(workspace.slot_cost))
        cost, loss = np.array(cost), np.array(loss)
        Phases([Ledger.slot_cost_phase(workspace, cost, loss)]).run(first, len(workspace.best))
        qp_terms = np.array([evidence["curvature"][-1], evidence["window_loss"][-1]])
        return MixedBlock(self.mix(first, packed), workspace.best, cost, loss, qp_terms)

    def _raise_callback_errors(self) -> None:
        """Raise what a function of the user's has raised."""
        errors = [
            error for callback in self._callbacks if (error := callback.take_error()) is not None
        ]
        if errors:
            raise errors[0]

    # --- predictions ----------------------------------------------------------------------------

    def predict_query(self, seen: int, point: Floats) -> Floats:
        """(P,): the slots' values at a point."""
        self._workspace.query_point[:] = point
        self._querying.run(seen, 1)
        try:
            self._raise_callback_errors()
        except BaseException:
            self._buffer.forget_query()
            raise
        return self._workspace.slot_values.copy()

    def forget_query(self) -> None:
        """Discard what the last query has left for the next block."""
        self._buffer.forget_query()

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the points, for leaves with a slot with wanted[p] != 0."""
        points = np.array(points)  # arrays from the object store are read-only
        out = np.zeros((len(points), self._workspace.slots))
        for start in range(0, len(points), self._workspace.size):
            some = points[start : start + self._workspace.size]
            statistics = self._buffer.compare(seen, some)
            rows = out[start : start + self._workspace.size]
            self._shard.evaluate(seen, some, statistics, wanted, rows)
        self._raise_callback_errors()
        return out

    def variance(self, seen: int, points: Floats) -> Floats:
        """(n, P): predictive variances, NaN where there is none."""
        out = np.full((len(points), self._workspace.slots), np.nan)
        self._shard.variance(seen, np.array(points), out)
        self._raise_callback_errors()
        return out

    def step_ratio(self) -> Floats:
        return self._shard.step_ratio()

    def dropped(self) -> Floats:
        return self._shard.dropped()

    # --- state ----------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Copies of everything that the next block depends on."""
        return self.state(), self.copy_models()

    def state(self) -> dict[str, Floats]:
        """Copies of all arrays, in leaf order."""
        result = {name: array.copy() for name, array in self._buffer.arrays().items()}
        result |= {name: array.copy() for name, (_, array) in self._shard.state().items()}
        return result

    def copy_models(self) -> dict[int, Any]:
        """Copies of what learners keep besides arrays, by leaf."""
        return self._shard.copy_models()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot, at whichever sample comes next."""
        state, models = snapshot
        for name, array in self._buffer.arrays().items():
            array[...] = state[name]
        for name, (_, array) in self._shard.state().items():
            array[...] = state[name]
        self._buffer.clear_statistics()
        self._shard.restore_models(models)

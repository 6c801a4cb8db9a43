"""A station: one shard with a workspace and a buffer of its own, in whatever process it stands.

It learns blocks in the order of the samples' numbers and refuses all others; a caller that has lost
count, or a station that was started anew, is noticed at once. What phase 2 needs of a block is put
aside, so the station may be several blocks ahead of the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from .candidate_slots import Lists, outline
from .pending_blocks import Aside, Block
from .wire import Packed, Parts, singles

Kept = tuple[dict[str, Floats], dict[int, Any]]
"""The arrays of a station, and what its learners keep beside arrays, by leaf."""


class OutOfStep(RuntimeError):
    """A station was asked for a block that does not follow what it has learned."""


class Station:
    """The slots of some leaves, and everything that they need to work alone."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        numbers: Sequence[int],
        size: int,
        first_input: Floats,
        *,
        values: bool,
    ) -> None:
        """`numbers`: of the leaves. `size`: samples worked at a time. `values`: hand them over."""
        leaves = [layout.leaves[number] for number in numbers]
        slots = sum(len(leaf.slots) for leaf in leaves)
        self._layout = layout
        own = [layout.slots[place] for leaf in leaves for place in leaf.slots]
        kernels = [slot.kernel for slot in own if slot.learner.uses_kernel_rows]
        self.workspace = Workspace(
            objective, size, len(first_input), slots, len(leaves), values=values, workers=1
        )
        self._buffer = SampleBuffer(
            layout.history_length(objective), kernels, self.workspace, first_input
        )
        self._shard = Shard(objective, layout, leaves, self.workspace, self._buffer, alone=True)
        self._learning = Phases([self._buffer.take]) + self._shard.learning
        self._looking = Phases([self._buffer.query]) + self._shard.looking
        parts: list[Any] = [objective.loss, *dict.fromkeys(kernels)]
        found = [callback for part in parts for callback in part.callbacks]
        found += [*self._learning.callbacks, *self._looking.callbacks]
        self._callbacks = tuple(dict.fromkeys(found))
        self._aside = Aside(self._shard, self.workspace)
        self._seats = self._shard.seats
        self.waiting: dict[int, Block] = {}
        self._position: int | None = None
        self._spoiled = False

    # --- the two phases -------------------------------------------------------------------------

    def learn(
        self, first: int, block: tuple[Floats, Floats], keep: bool, supports_distributed_qp: bool
    ) -> tuple[Any, Any]:
        """Phase 1: (evidence, values, step_ratio), and the state after the block if it is to be kept.

        evidence[i] is (n, P) for each of `FIELDS`; values (n, window, P), if they are handed over.
        With `supports_distributed_qp` it is (outline, spoiled, step_ratio) instead: spoiled, the samples and places of
        predictions that are not finite.
        """
        count = len(block[1])
        waiting = self._aside.block(count)
        values = np.empty(
            (count if self.workspace.values.size else 0, *self.workspace.values.shape[1:])
        )
        for start, end in self._worked(first, block, waiting):
            if len(values):
                values[start:end] = self.workspace.values[: end - start]
            self._aside.keep(waiting, first + start, start, end - start)
        self.waiting[first] = waiting
        state = self.kept() if keep else None
        if not supports_distributed_qp:
            return (waiting.evidence, values, self._shard.step_ratio()), state
        told = waiting.told
        spoiled = np.nonzero(~np.isfinite(told["slot_predictions"]))
        outlined = outline(told["curvature"], told["window_loss"])
        return (outlined, spoiled, self._shard.step_ratio()), state

    def replay(self, first: int, block: tuple[Floats, Floats]) -> None:
        """Learn samples of which everything has been handed over before."""
        for start, end in self._worked(first, block):
            self._shard.close(end - start)

    def _worked(
        self, first: int, block: tuple[Floats, Floats], waiting: Block | None = None
    ) -> Iterator[tuple[int, int]]:
        """Learn piece by piece; yields where each begins and ends, for the caller to close it."""
        if self._position not in (None, first) or self._spoiled:
            raise OutOfStep(f"this shard stands at sample {self._position}, and got {first}")
        points, targets = block
        start = 0
        self._spoiled = True
        while start < len(points):
            room = SLIDE_PERIOD - (first + start) % SLIDE_PERIOD
            end = min(start + min(room, self.workspace.size), len(points))
            self.workspace.points[: end - start] = points[start:end]
            self.workspace.new_targets[: end - start] = targets[start:end]
            self._aside.aim(None if waiting is None else waiting.evidence[:, start:end])
            self._learning.run(first + start, end - start)
            self._check()
            yield start, end
            start = end
        self._spoiled = False
        self._position = first + len(points)

    def mix(self, first: int, packed: Packed) -> Parts:
        """Phase 2: the leaves' parts of the proposals, for the block that began with `first`."""
        block = self.waiting.pop(first)
        (count, slots), places, weights = singles(packed)
        seats, samples = self._seats[places % slots], places // slots
        rows, own = np.unique(seats // WIDTH * count + samples, return_inverse=True)
        lanes = np.zeros((len(rows), WIDTH))
        lanes[own, seats % WIDTH] = weights
        shape = (len(self._shard.numbers), count, self.workspace.sums.shape[2])
        sums = np.empty((len(rows), shape[2]))
        for piece in block.pieces:
            piece.mix(rows // count, first + rows % count, lanes, sums)
        self._aside.release(block)
        return shape, rows.astype(np.int32 if shape[0] * shape[1] < 2**31 else np.int64), sums

    def narrow(self, first: int, level: Floats) -> Floats:
        """For a block by sums: see `Below.narrow`."""
        return self.waiting[first].below.narrow(np.array(level))

    def take(self, first: int, level: Floats) -> Lists:
        """For a block by sums: see `Below.take`."""
        return self.waiting[first].below.take(np.array(level))

    def take_anew(self, first: int, level: Floats) -> Lists:
        """For a block by sums: see `Below.take_anew`."""
        return self.waiting[first].below.take_anew(np.array(level))

    def mix_and_add_costs(self, first: int, packed: Packed, cost: Floats, loss: Floats) -> Any:
        """Phase 2 by sums: the leaves' parts; the best, costs and losses of slots; `figures`.

        `cost` and `loss` are what the slots had been charged before the block.
        """
        told = self.waiting[first].told
        workspace = copy.copy(self.workspace)
        workspace.slot_cost, workspace.slot_loss = told["slot_cost"], told["slot_loss"]
        workspace.best = np.empty(len(workspace.slot_cost))
        cost, loss = np.array(cost), np.array(loss)
        Phases([Ledger.slot_cost_phase(workspace, cost, loss)]).run(first, len(workspace.best))
        figures = np.array([told["curvature"][-1], told["window_loss"][-1]])
        return self.mix(first, packed), workspace.best, cost, loss, figures

    def _check(self) -> None:
        errors = [
            error for callback in self._callbacks if (error := callback.take_error()) is not None
        ]
        if errors:
            raise errors[0]

    # --- looking --------------------------------------------------------------------------------

    def predict_query(self, seen: int, point: Floats) -> Floats:
        """(P,): the slots' values at a point."""
        self.workspace.query_point[:] = point
        self._looking.run(seen, 1)
        try:
            self._check()
        except BaseException:
            self._buffer.forget_query()
            raise
        return self.workspace.slot_values.copy()

    def forget_query(self) -> None:
        """What the last look has left behind is not to be used."""
        self._buffer.forget_query()

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the points, for leaves with a slot with wanted[p] != 0."""
        given = np.array(points)  # what comes from elsewhere may be read only
        out = np.zeros((len(given), self.workspace.slots))
        for start in range(0, len(given), self.workspace.size):
            some = given[start : start + self.workspace.size]
            statistics = self._buffer.compare(seen, some)
            rows = out[start : start + self.workspace.size]
            self._shard.evaluate(seen, some, statistics, wanted, rows)
        self._check()
        return out

    def variance(self, points: Floats) -> Floats:
        """(n, P): predictive variances, NaN where there is none."""
        out = np.full((len(points), self.workspace.slots), np.nan)
        self._shard.variance(np.array(points), out)
        self._check()
        return out

    def step_ratio(self) -> Floats:
        return self._shard.step_ratio()

    def dropped(self) -> Floats:
        return self._shard.dropped()

    # --- state ----------------------------------------------------------------------------------

    def kept(self) -> Kept:
        """Copies of everything that the next block depends on."""
        return self.state(), self.remember()

    def state(self) -> dict[str, Floats]:
        """Copies of all arrays, leaves in their order."""
        result = {name: array.copy() for name, array in self._buffer.arrays().items()}
        result |= {name: array.copy() for name, (_, array) in self._shard.arrays().items()}
        return result

    def numbers(self) -> dict[str, np.ndarray]:
        """The numbers of the leaves of each array that has leaves."""
        return {name: numbers for name, (numbers, _) in self._shard.arrays().items()}

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Go on from what `state` returned, at whichever sample comes next."""
        for name, array in self._buffer.arrays().items():
            array[...] = state[name]
        for name, (_, array) in self._shard.arrays().items():
            array[...] = state[name]
        self._buffer.forget_rows()
        self._start_anew()

    def reset(self) -> None:
        """Forget everything that was learned."""
        for array in self._buffer.arrays().values():
            array[...] = 0.0
        self._shard.reset()
        self._buffer.forget_rows()
        self._start_anew()

    def _start_anew(self) -> None:
        while self.waiting:  # another thread may be at one of them: whoever takes it out has it
            self._aside.release(self.waiting.popitem()[1])
        self._position = None
        self._spoiled = False

    def start(self, first_input: Floats) -> None:
        """Be told the first sample."""
        self._buffer.begin(first_input)

    def remember(self) -> dict[int, Any]:
        """Copies of what learners keep beside arrays, by leaf."""
        return {
            int(number): kept
            for learner, group in self._shard.groups
            for number, kept in zip(group.numbers, learner.remember(group), strict=True)
        }

    def recall(self, kept: Mapping[int, Any]) -> None:
        """Go back to what `remember` returned."""
        for learner, group in self._shard.groups:
            learner.recall(group, [kept[int(number)] for number in group.numbers])

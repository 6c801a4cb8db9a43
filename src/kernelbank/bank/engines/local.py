"""The executor of shards in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...kernels.sample_buffer import SampleBuffer
from ...losses.objective import Objective
from ...native.callbacks import Callback
from ...native.phases import Phases
from ...native.workspace import Workspace
from ...utils.interrupts import defer_signals
from ...utils.validation import Floats
from ..layout import Layout, Leaf
from ..shard import Shard
from .base import CombineStage, Executor, partition


def join_leaves(
    shards: Iterable[Mapping[str, tuple[np.ndarray, Floats]]], prefix: str = ""
) -> dict[str, Floats]:
    """Copies of the shards' arrays whose names begin so, with all leaves in their order.

    shards : what `Shard.state` returns.
    """
    result: dict[str, Floats] = {}
    pieces: dict[str, list[tuple[np.ndarray, Floats]]] = {}
    for state in shards:
        for name, (numbers, array) in state.items():
            if name.startswith(prefix):
                pieces.setdefault(name, []).append((numbers, array))
    for name, parts in pieces.items():
        if len(parts) == 1:  # in the order of the leaves
            result[name] = parts[0][1].copy()
            continue
        order = np.argsort(np.concatenate([numbers for numbers, _ in parts]))
        result[name] = np.concatenate([array for _, array in parts])[order]
    return result


class LocalExecutor(Executor):
    """Shards in this process, one after the other."""

    _buffer: SampleBuffer
    _shards: list[Shard]

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        shards: int,
        leader: Executor | None = None,
        only: Sequence[Leaf] | None = None,
    ) -> None:
        """`leader`: that of the first output of the bank, for another output.

        only : the leaves of one shard, if there are no others in this process: the workspace has
            columns and rows for these.
        """
        self._layout = layout
        self._workspace = workspace
        self._size = workspace.size
        parts = partition(layout.dependency_groups(layout.leaves), shards)
        kernels = layout.row_kernels
        if only is not None:
            parts = [list(only)]
            own = [layout.slots[index] for leaf in only for index in leaf.slots]
            kernels = [slot.kernel for slot in own if slot.learner.uses_kernel_rows]
        leaders: list[Shard | None] = [None] * len(parts)
        self._buffer: SampleBuffer
        self._shards: list[Shard]
        if isinstance(leader, LocalExecutor):
            self._buffer = leader._buffer.for_output(workspace)
            leaders[:] = leader._shards
        else:
            self._buffer = SampleBuffer(
                layout.history_length(objective),
                kernels,
                workspace,
                first_input,
                layout.initial_points,
            )
        self._shards = [
            Shard(
                objective,
                layout,
                leaves,
                workspace,
                self._buffer,
                alone=only is not None,
                leader=first,
            )
            for leaves, first in zip(parts, leaders, strict=True)
        ]

    def connect(self, stage: CombineStage) -> None:
        self._combine_query = stage.combine_query
        self.__dict__.pop("_query_phases", None)
        self._skip_phases = Phases([self._buffer.add_samples])
        for shard in self._shards:
            self._skip_phases += shard.skip_phases
        self._phases, self._backward_phases = (
            self._block_phases([getattr(shard, order) for shard in self._shards], stage)
            for order in ("learn_phases", "backward_phases")
        )

    @cached_property
    def _query_phases(self) -> Phases:
        """All phases of a query; made when first needed, since `run` needs none."""
        query = Phases([self._buffer.query] if self._buffer.leads else [])
        with defer_signals():  # compiling must not be interrupted
            for shard in self._shards:
                query += shard.query_phases
            return query + self._combine_query

    def _block_phases(self, learning: list[Phases], stage: CombineStage) -> Phases:
        """All phases of a block, with those that learn."""
        phases = Phases([self._buffer.add_samples])
        for part in [*learning, stage.weight_phases]:
            phases += part
        for shard in self._shards:
            phases += shard.mix_phases
        return phases + stage.cost_phases

    def run_block(self, first: int, count: int) -> None:
        self._phases.run(first, count)  # one call: a block is learned whole or not at all

    def skip_sample(self, number: int) -> None:
        self._skip_phases.run(number, 1)
        for shard in self._shards:
            shard.close_skipped(self._workspace)

    def single_sample_phases(self) -> tuple[Phases, Phases, Phases] | None:
        return self._phases, self._backward_phases, self._query_phases

    def predict_query(self, seen: int) -> None:
        self._query_phases.run(seen, 1)

    def forget_query(self) -> None:
        self._buffer.forget_query()

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        out = np.zeros((len(points), self._workspace.slots))
        for start in range(0, len(points), self._size):
            some = points[start : start + self._size]
            statistics = self._buffer.compare(seen, some)
            for shard in self._shards:
                shard.evaluate(seen, some, statistics, wanted, out[start : start + self._size])
        return out

    def variance(self, seen: int, points: Floats) -> Floats:
        out = np.full((len(points), self._workspace.slots), np.nan)
        for shard in self._shards:
            shard.variance(seen, points, out)
        return out

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        if not any(shard.learn_phases.callbacks for shard in self._shards):
            return ()  # then a query has none either
        phases = [p for shard in self._shards for p in (shard.learn_phases, shard.query_phases)]
        return tuple(callback for part in phases for callback in part.callbacks)

    def step_ratio(self) -> Floats:
        return np.asarray(sum(shard.step_ratio() for shard in self._shards))

    def dropped(self) -> Floats:
        return np.asarray(sum(shard.dropped() for shard in self._shards))

    def state(self) -> dict[str, Floats]:
        return {name: a.copy() for name, a in self._buffer.arrays().items()} | self._slots("")

    def group_state(self, group: int) -> dict[str, Floats]:
        prefix = f"group{group}/"
        return {name[len(prefix) :]: array for name, array in self._slots(prefix).items()}

    def _slots(self, prefix: str) -> dict[str, Floats]:
        """Copies of the slots' arrays whose names begin so, with all leaves in their order."""
        return join_leaves([shard.state() for shard in self._shards], prefix)

    def restore(self, state: Mapping[str, Floats]) -> None:
        for name, array in self._buffer.arrays().items():
            array[...] = state[name]
        for shard in self._shards:
            for name, (numbers, array) in shard.state().items():
                if len(numbers) == len(state[name]):  # all leaves, in their order
                    array[...] = state[name]
                    continue
                group = self._layout.leaves[int(numbers[0])].group
                array[...] = state[name][numbers - self._layout.first_leaves[group]]
        self._buffer.clear_statistics()

    def copy_models(self) -> dict[int, Any]:
        return {leaf: kept for shard in self._shards for leaf, kept in shard.copy_models().items()}

    def restore_models(self, models: Mapping[int, Any]) -> None:
        for shard in self._shards:
            shard.restore_models(models)

"""A shard: some leaves of a bank, and the two phases of their work on a block.

Phase 1 learns the block and writes evidence. Phase 2 gets the weights and writes the leaves' parts
of the bank's predictions. One shard with all leaves is the serial bank; engines differ only in
where the shards are. No shard reads the slots of another, so no result depends on their number.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.program import PackedProgram
from ..kernels.sample_buffer import ArraySpec, SampleBuffer
from ..learners.base import LeafArrays, SlotGroup
from ..losses.objective import Objective
from ..native.phases import Phase, Phases
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import Floats
from . import slot_metrics
from .layout import GroupSettings, Layout, Leaf
from .slot_targets import OwnTargetGroup, ShardGroup, state_shapes


class Shard:
    """The slots of some leaves, from the first sample on."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        leaves: Iterable[Leaf],
        workspace: Workspace,
        buffer: SampleBuffer,
        *,
        alone: bool = False,
        leader: Shard | None = None,
    ) -> None:
        """`alone`: the workspace has columns and rows for the slots of this shard only.

        leader : the shard of the same leaves for the first output of the bank, for another output.
        """
        leaves = list(leaves)
        self.objective = objective
        self.layout = layout
        self.buffer = buffer
        self.slots = np.arange(len(layout.slots))
        self.leaf_numbers = np.arange(len(layout.leaves))
        if alone:
            self.slots = np.array(sorted(index for leaf in leaves for index in leaf.slots))
            self.leaf_numbers = np.array(sorted(leaf.number for leaf in leaves))
        dimension = workspace.points.shape[1]
        self.groups: list[ShardGroup] = []
        self.arrays = LeafArrays(len(leaves), workspace.size, objective.window)
        start = 0
        by_group: dict[int, list[Leaf]] = {}
        for leaf in leaves:
            by_group.setdefault(leaf.group, []).append(leaf)
        for number, members in sorted(by_group.items()):
            settings = layout.groups[number]
            learner = settings.learner
            kernels = layout.kernels(members)
            program = PackedProgram.none()
            if learner.uses_kernel_rows:
                program = PackedProgram.pack(kernels, buffer.statistic_numbers, dimension)
            length = buffer.history_length
            followed = None
            if leader is None:
                parts = (len(members), dimension, kernels[0][0], length)
                shapes = state_shapes(settings, objective, *parts)
            else:
                first = leader.groups[len(self.groups)]
                shapes = {name: array.shape for name, array in first.scored.state.items()}
                if self._follows(settings, leader):
                    followed = first.trained
                    shapes = {n: s for n, s in shapes.items() if n not in learner.shared_arrays}
            arrays = SlotGroup(
                self.arrays,
                start,
                settings.objective(objective),
                kernels,
                program,
                layout.columns(members),
                np.array([leaf.number for leaf in members], dtype=np.int64),
                learner,
                shapes,
                dimension,
            )
            if followed is not None:
                arrays.borrow(followed, learner.shared_arrays)
            start += len(members)
            arrays.identities = layout.identity_columns(members)
            arrays.first_sample = layout.first_sample
            arrays.output = workspace.output
            if alone:
                found = np.searchsorted(self.slots, arrays.columns)
                arrays.workspace_columns = np.where(arrays.columns >= 0, found, -1)
                arrays.workspace_numbers = np.searchsorted(self.leaf_numbers, arrays.numbers)
            if settings.has_own_targets:
                index = settings.residual_of
                base = None if index is None else self._find(index)
                group: ShardGroup = OwnTargetGroup(settings, arrays, followed, base)
            else:
                group = ShardGroup(settings, arrays, followed)
            self._start(group)
            self.groups.append(group)
        self.scored = [group.scored for group in self.groups]
        self.backward_phases: Phases
        """`learn_phases` in another order, with the same result. If a sample begins with the slots
        that the one before has ended with, then these are still in the cache."""
        self.learn_phases = self._learn_phases(workspace)
        self.mix_phases = Phases([self.mix_phase(workspace)])
        self._workspace = workspace

    def _follows(self, settings: GroupSettings, leader: Shard) -> bool:
        own, first = settings.objective(self.objective), settings.objective(leader.objective)
        return settings.learner.follows(own, first)

    def _find(self, index: int) -> tuple[ShardGroup, int, int]:
        """Group, leaf and lane of a slot of this shard."""
        number, leaf, lane = self.layout.place(index)
        leaf_number = self.layout.first_leaves[number] + leaf
        for group in self.groups:
            numbers = group.scored.numbers.tolist()
            if leaf_number in numbers:
                return group, numbers.index(leaf_number), lane
        raise AssertionError("a slot and those that learn its residual are in one shard")

    # --- the two phases of a block --------------------------------------------------------------

    def _learn_phases(self, workspace: Workspace) -> Phases:
        own = {group: group.phases(self.buffer, workspace) for group in self.groups}
        self.skip_phases = Phases([phase for group in self.groups for phase in own[group]])
        """Those of a sample whose target is missing, so that there is nothing to score."""
        after = [self._score(workspace)]
        if "values" in workspace.needs:
            after.append(self._gather_values(workspace))
        bases = [group for group in self.groups if group.base is None]
        others = [group for group in self.groups if group.base is not None]  # after their bases
        orders = [[*bases, *others], [*bases[::-1], *others]]
        forward, self.backward_phases = (
            Phases([*(phase for group in order for phase in own[group]), *after])
            for order in orders
        )
        return forward

    @cached_property
    def _columns(self) -> np.ndarray:
        """(leaves, 4): columns of the slots in the workspace."""
        return np.concatenate([group.workspace_columns for group in self.scored])

    def _score(self, workspace: Workspace) -> Phase:
        return Phase(
            slot_metrics.score_slots,
            **self.arrays.common(),
            slots=workspace.slots,
            slide_period=SLIDE_PERIOD,
            history_length=self.buffer.history_length,
            half_regularization=self.objective.half_regularization,
            loss=self.objective.loss.value_address,
            compiled_loss=not self.objective.loss.callbacks,
            parameters=self.objective.loss.parameters,
            targets=self.buffer.targets,
            alive=self.arrays.alive,
            columns=self._columns,
            scratch=np.zeros((self.objective.window + 1, WIDTH)),
            losses_before=self.arrays.losses_before,
            curvature=workspace.curvature,
            window_loss=workspace.window_loss,
            slot_cost=workspace.slot_cost,
            slot_loss=workspace.slot_loss,
            slot_predictions=workspace.slot_predictions,
        )

    def _gather_values(self, workspace: Workspace) -> Phase:
        return Phase(
            slot_metrics.gather_values,
            leaves=self.arrays.leaves,
            steps=workspace.size + 1,
            slots=workspace.slots,
            window=self.objective.window,
            values=self.arrays.values,
            window_loss=workspace.window_loss,
            columns=self._columns,
            out=workspace.values,
        )

    def mix_phase(self, workspace: Workspace) -> Phase:
        """The leaves' parts of the bank's predictions, from the weights on the workspace."""
        return Phase(
            slot_metrics.mix_leaves,
            **self.arrays.common(),
            slots=workspace.slots,
            weights=workspace.proposed,
            columns=self._columns,
            losses_before=self.arrays.losses_before,
            effects=self.arrays.effects,
            numbers=np.concatenate([group.workspace_numbers for group in self.scored]),
            sums=workspace.sums,
        )

    def close_skipped(self, workspace: Workspace) -> None:
        """After `skip_phases` on one sample: note the slots' predictions, and `close`."""
        for group in self.groups:
            first = group.scored.predictions[:, :1].copy()
            self._scatter(group, first, workspace.slot_predictions[:1])
        self.close(1)

    def close(self, count: int) -> None:
        """Make the state after sample `count` the one before the next block; see `mix_phases`."""
        for group in self.scored:
            group.values[:, 0] = group.values[:, count]
            group.norms[:, 0] = group.norms[:, count]

    @cached_property
    def query_phases(self) -> Phases:
        """The phases that write the slots' values at the query point; made when first needed."""
        phases: list[Phase] = []
        workspace = self._workspace
        for group in self.groups:
            phases += group.predict_phases(self.buffer, workspace)
        scatter = Phase(
            slot_metrics.scatter_query,
            leaves=self.arrays.leaves,
            columns=self._columns,
            query_values=self.arrays.query_values,
            slot_values=workspace.slot_values,
        )
        return Phases([*phases, scatter])

    # --- predictions and checks ------------------------------------------------------------------

    def evaluate(
        self, seen: int, points: Floats, statistics: Floats, wanted: Floats, out: Floats
    ) -> None:
        """out[t, p] = f_p(points[t]) for leaves that have a slot with wanted[p] != 0."""
        needed: dict[ShardGroup, np.ndarray] = {}
        for group in self.groups:
            columns = group.scored.workspace_columns
            needed[group] = ((wanted[columns] != 0) & (group.scored.columns >= 0)).any(axis=1)
        for group in reversed(self.groups):  # a residual slot needs its base too
            if group.base is not None and needed[group].any():
                base, leaf, _ = group.base
                needed[base][leaf] = True
        for group in self.groups:
            values = group.evaluate(seen, points, statistics, needed[group])
            self._scatter(group, values, out)

    def variance(self, seen: int, points: Floats, out: Floats) -> None:
        """out[t, p] = predictive variance of slot p at points[t], NaN where there is none."""
        for group in self.groups:
            self._scatter(group, group.variance(seen, points), out)

    @staticmethod
    def _scatter(group: ShardGroup, values: Floats, out: Floats) -> None:
        """Write the (leaves, n, 4) values of a group to the columns of its slots in (n, P)."""
        columns = group.scored.workspace_columns
        slot_metrics.scatter_leaves(len(out), values=values, columns=columns, out=out)

    def step_ratio(self) -> Floats:
        """(P,): see `Learner.step_ratio`; 0 for slots of other shards."""
        return self._by_slot([group.learner.step_ratio(group.trained) for group in self.groups])

    def dropped(self) -> Floats:
        """(P,): see `Learner.dropped`; 0 for slots of other shards."""
        return self._by_slot([group.trained.dropped() for group in self.groups])

    def _by_slot(self, per_group: list[Floats]) -> Floats:
        result = np.zeros(len(self.slots))
        for group, values in zip(self.groups, per_group, strict=True):
            own = group.scored.columns >= 0
            result[group.scored.workspace_columns[own]] = values[own]
        return result

    # --- state ----------------------------------------------------------------------------------

    @staticmethod
    def array_specs(
        objective: Objective, layout: Layout, dimension: int, leader: Objective | None = None
    ) -> dict[str, ArraySpec]:
        """Shape and dtype of all arrays of a bank's state, in leaf order, without making any.

        leader : the objective of the bank's first output, for another output.
        """
        length = layout.history_length(objective)
        result = SampleBuffer.array_specs(length, dimension, leads=leader is None)
        counts = Counter(leaf.group for leaf in layout.leaves)
        for number, settings in enumerate(layout.groups):
            leaves = counts[number]
            common = {
                "values": (leaves, objective.window, WIDTH),
                "norms": (leaves, WIDTH),
                "alive": (leaves, WIDTH),
            }
            kernel = layout.first_kernel(number)
            own = state_shapes(settings, objective, leaves, dimension, kernel, length)
            if leader is not None and settings.learner.follows(
                settings.objective(objective), settings.objective(leader)
            ):
                own = {n: s for n, s in own.items() if n not in settings.learner.shared_arrays}
            for name, shape in {**own, **common}.items():
                dtype = settings.learner.dtype_of(name)
                result[f"group{number}/{name}"] = (shape, dtype)
        return result

    def _start(self, group: ShardGroup) -> None:
        """Set the arrays of a group that do not start at zero."""
        if group.leader is None or not group.learner.shared_arrays:
            group.learner.prepare(group.trained)
        if self.layout.initial is not None:
            self.layout.initial.start(group.learner, group.trained)

    def copy_models(self) -> dict[int, Any]:
        """Copies of the models behind slots whose state is not arrays, by leaf number."""
        return {
            int(number): model
            for group in self.scored
            for number, model in zip(group.numbers, copy.deepcopy(group.models), strict=True)
        }

    def restore_models(self, models: Mapping[int, Any]) -> None:
        """Continue from what `copy_models` returned."""
        for group in self.scored:
            group.models[:] = [models[int(number)] for number in group.numbers]

    def state(self) -> dict[str, tuple[np.ndarray, Floats]]:
        """Everything that the next step depends on: name -> (numbers of the leaves, array).

        The arrays have the leaves as first axis. They are the shard's own, so writing to them
        restores it.
        """
        result: dict[str, tuple[np.ndarray, Floats]] = {}
        for group in self.scored:
            index = self.layout.leaves[int(group.numbers[0])].group
            common = {
                "values": group.values[:, 0],
                "norms": group.norms[:, 0],
                "alive": group.alive,
            }
            for name, array in {**group.state, **common}.items():
                if name not in group.borrowed:
                    result[f"group{index}/{name}"] = (group.numbers, array)
        return result

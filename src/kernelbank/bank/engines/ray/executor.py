"""The executor on Ray: the order of things in a block, predictions, and the state of all shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....kernels.sample_buffer import SampleBlock
from ....losses.objective import Objective
from ....native.workspace import Workspace
from ....utils.validation import Floats
from ...layout import Layout
from ...trace import BY_SLOT
from ..base import CombineStage, Executor
from .actor_pool import ActorPool
from .actors import ActorHandle, SentBlock
from .distributed_qp import solve_weights, weights_before
from .evidence import EVIDENCE
from .shard_worker import Snapshot
from .wire import LeafSums, Traffic, add_leaf_sums, pack_weights

MIN_SLOTS_FOR_SUMS = 1000  # from here on `exchange="auto"` sends sums

_OF_BUFFER = ("inputs", "targets")  # arrays of the sample buffer, which all shards have


class RayExecutor(Executor):
    """Shards in processes of a Ray cluster, on this machine or others."""

    fallible = True

    def __init__(
        self,
        settings: Any,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._workspace = workspace
        self._pool = ActorPool(settings, objective, layout, first_input, needs=workspace.needs)
        self._has_models = any(not group.learner.saveable for group in layout.groups)
        self._step_ratio: Floats | None = None

    def connect(self, stage: CombineStage) -> None:
        self._stage = stage
        self._weight_phases = stage.weight_phases
        exchange, slots = self._settings.exchange, len(self._layout.slots)
        enough = exchange == "sums" or (exchange == "auto" and slots >= MIN_SLOTS_FOR_SUMS)
        self._may_use_sums = stage.qp_terms is not None and enough

    @property
    def traffic(self) -> Traffic:
        """Bytes and calls between the driver and the shards."""
        return self._pool.traffic

    @property
    def process_ids(self) -> list[int]:
        """The process ids of the shards on their machines."""
        return [handle.process_id for handle in self._pool.handles]

    # --- blocks -----------------------------------------------------------------------------------

    def prefetch(self, blocks: Sequence[SampleBlock], recorded: Sequence[str]) -> None:
        by_slot = set(recorded) & set(BY_SLOT)
        self._pool.prefetch(blocks, by_sums=self._may_use_sums and not by_slot)

    def run_block(self, first: int, count: int) -> None:
        workspace = self._workspace
        points, targets = workspace.points[:count], workspace.new_targets[:count]
        block = self._pool.begin_block(first, points, targets)
        if block.by_sums:
            self._combine_by_sums(block, count)
        else:
            self._gather(block, count)
            self._weight_phases.run(first, count)
            self._mix(block, count)
            self._stage.add_slot_costs.run(first, count)
        self._stage.charge_bank_from_totals.run(first, count)
        self._pool.finish_block()

    def _gather(self, block: SentBlock, count: int) -> None:
        """Phase 1: write the evidence of all slots to the workspace."""
        replies = self._pool.learned(block)
        for handle, reply in zip(self._pool.handles, replies, strict=True):
            for name, array in zip(EVIDENCE, reply.evidence, strict=True):
                getattr(self._workspace, name)[:count, handle.slots] = array
            for name, array in reply.extra.items():
                getattr(self._workspace, name)[:count, ..., handle.slots] = array
        self._step_ratio = self._by_slot([reply.step_ratio for reply in replies])

    def _mix(self, block: SentBlock, count: int) -> None:
        """Phase 2: send the weights, add up the leaves' sums."""
        weights = self._workspace.proposed[:count]
        sums = self._pool.ask_pending(
            block, "mix", lambda handle: (pack_weights(weights[:, handle.slots]),)
        )
        self._add_leaf_sums(sums, count)

    def _add_leaf_sums(self, sums: list[LeafSums], count: int) -> None:
        leaves = [handle.leaves for handle in self._pool.handles]
        add_leaf_sums(sums, leaves, self._stage.leaf_totals[:count])

    def _combine_by_sums(self, block: SentBlock, count: int) -> None:
        """Both phases without one number per slot and sample; see `distributed_qp`."""
        stage, pool = self._stage, self._pool
        slots = [handle.slots for handle in pool.handles]
        replies = pool.learned(block)
        self._step_ratio = self._by_slot([reply.step_ratio for reply in replies])
        stage.prepare.run(block.first, count)

        def ask(method: str, threshold: Floats) -> list[Any]:
            return pool.ask_pending(block, "ask_candidates", lambda _: (method, threshold))

        after = solve_weights(ask, [reply.bounds for reply in replies], slots, count)
        nonfinite = []
        for own, reply in zip(slots, replies, strict=True):
            samples, columns = reply.nonfinite
            nonfinite.append((samples, own[columns]))
        before, newest = weights_before(after, stage.weights, nonfinite, count)
        cost, loss = stage.slot_totals
        mixed = pool.ask_pending(
            block,
            "mix_and_add_costs",
            lambda handle: (
                before.pack_columns(handle.slots, count),
                cost[handle.slots],
                loss[handle.slots],
            ),
        )
        self._add_leaf_sums([part.leaf_sums for part in mixed], count)
        self._workspace.best[:count] = np.min([part.best for part in mixed], axis=0)
        stage.weights[:] = newest
        assert stage.qp_terms is not None
        for own, part in zip(slots, mixed, strict=True):
            cost[own], loss[own] = part.cost, part.loss
            stage.qp_terms[:, own] = part.qp_terms

    def snapshot(self, *, models: bool) -> int:
        return self._pool.commit()

    def rollback(self, snapshot: int) -> None:
        self._pool.rollback(snapshot)
        self._step_ratio = None

    # --- predictions ------------------------------------------------------------------------------

    def predict_query(self, seen: int) -> None:
        point = self._workspace.query_point.copy()
        self._workspace.slot_values[:] = self._by_slot(self._pool.ask("predict_query", seen, point))
        self._stage.combine_query.run(seen, 1)

    def forget_query(self) -> None:
        self._pool.ask("forget_query")

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        shared = self._pool.share(points)
        return self._by_slot(
            self._pool.ask(
                "evaluate", seen, shared, of_shard=lambda handle: (wanted[handle.slots],)
            )
        )

    def variance(self, seen: int, points: Floats) -> Floats:
        return self._by_slot(self._pool.ask("variance", seen, points))

    def step_ratio(self) -> Floats:
        if self._step_ratio is None:
            self._step_ratio = self._by_slot(self._pool.ask("step_ratio"))
        return self._step_ratio

    def dropped(self) -> Floats:
        return self._by_slot(self._pool.ask("dropped"))

    def _by_slot(self, answers: list[Floats]) -> Floats:
        """(..., P): the shards' answers in the order of the bank's slots."""
        out = np.empty((*answers[0].shape[:-1], len(self._layout.slots)))
        for handle, values in zip(self._pool.handles, answers, strict=True):
            out[..., handle.slots] = values
        return out

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        states = self._pool.states()
        result = {name: states[0][name].copy() for name in _OF_BUFFER}
        parts: dict[str, list[tuple[np.ndarray, Floats]]] = {}
        for handle, state in zip(self._pool.handles, states, strict=True):
            for name, array in state.items():
                if name not in result:
                    parts.setdefault(name, []).append((self._leaves(handle, name), array))
        for name, some in parts.items():
            order = np.argsort(np.concatenate([leaves for leaves, _ in some]))
            result[name] = np.concatenate([array for _, array in some])[order]
        return result

    def _leaves(self, handle: ActorHandle, name: str) -> np.ndarray:
        """The numbers of the shard's leaves in an array: those of the group in its name."""
        group = int(name.partition("/")[0].removeprefix("group"))
        return np.array([n for n in handle.leaves if self._layout.leaves[n].group == group])

    def restore(self, state: Mapping[str, Floats]) -> None:
        self._restore(state, self.copy_models())

    def restore_models(self, kept: Mapping[int, Any]) -> None:
        if self._has_models:
            self._restore(self.state(), kept)

    def copy_models(self) -> dict[int, Any]:
        if not self._has_models:
            return {leaf.number: None for leaf in self._layout.leaves}
        return {n: kept for part in self._pool.ask("copy_models") for n, kept in part.items()}

    def _restore(self, state: Mapping[str, Floats], models: Mapping[int, Any]) -> None:
        snapshots: list[Snapshot] = []
        for handle in self._pool.handles:
            arrays = {}
            for name, array in state.items():
                if name in _OF_BUFFER:
                    arrays[name] = np.array(array)
                elif len(leaves := self._leaves(handle, name)):
                    group = self._layout.leaves[int(leaves[0])].group
                    arrays[name] = np.array(array[leaves - self._layout.first_leaves[group]])
            snapshots.append((arrays, {number: models[number] for number in handle.leaves}))
        self._step_ratio = None
        self._pool.restore(snapshots)

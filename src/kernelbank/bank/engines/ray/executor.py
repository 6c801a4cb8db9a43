"""The executor on Ray: the two phases of a block, looking, and the state, with shards far away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....errors import ShardLost
from ....utils.validation import Floats
from ..base import CombineStage
from . import distributed_qp as sums
from .actor_handle import Post, Sent
from .actor_pool import AHEAD, PostedCrew
from .pending_blocks import FIELDS
from .wire import pack

SUMS_PAY = 1000  # slots from which on `exchange="auto"` sends sums


class RayExecutor(PostedCrew):
    """Shards in processes of Ray's, on this machine or others."""

    def connect(self, stage: CombineStage) -> None:
        self._stage = stage
        self._weight_phases = stage.weight_phases
        wish, slots = self._settings.exchange, len(self._layout.slots)
        may = stage.qp_terms is not None and wish != "gathered"
        self._may_sum = may and (wish == "sums" or slots >= SUMS_PAY)

    # --- blocks -----------------------------------------------------------------------------------

    def run_block(self, first: int, count: int) -> None:
        block = self._present(first, count)
        self._send(1 + AHEAD)
        if block.supports_distributed_qp:
            self._weigh_by_sums(block, first, count)
        else:
            self._gather(block, count)
            self._weight_phases.run(first, count)
            self._mix(block, first, count)
            self._stage.add_slot_costs.run(first, count)
        self._stage.charge_bank_from_totals.run(first, count)
        self._done(block)

    def _gather(self, block: Sent, count: int) -> None:
        """Phase 1: the evidence of all slots, to the workspace."""
        step_ratio = np.zeros(len(self._layout.slots))
        for post, (evidence, values, own) in zip(self._posts, self._learned(block), strict=True):
            for rows, name in zip(evidence, FIELDS, strict=True):
                getattr(self._workspace, name)[:count, post.places] = rows
            if len(values):
                self._workspace.values[:count, :, post.places] = values
            step_ratio[post.places] = own
        self._excess = step_ratio

    def _mix(self, block: Sent, first: int, count: int) -> None:
        """Phase 2: the weights out, the leaves' sums to the workspace."""
        proposed = self._workspace.proposed[:count]
        answers = self._answers("mix", lambda post: (first, pack(proposed[:, post.places])), block)
        self._add(answers, count)

    def _add(self, answers: list[Any], count: int) -> None:
        sums.added(answers, [post.leaves for post in self._posts], self._stage.leaf_totals[:count])

    def _weigh_by_sums(self, block: Sent, first: int, count: int) -> None:
        """Both phases without a number a slot and sample; see `sums`."""
        stage = self._stage
        owned = [post.places for post in self._posts]
        replies = self._learned(block)
        self._excess = self._together([own for *_, own in replies], np.zeros(len(stage.weights)))
        stage.prepare.run(first, count)

        def ask(name: str, level: Floats) -> list[Any]:
            return self._answers(name, lambda _: (first, level), block)

        chosen = sums.solved(ask, [outline for outline, *_ in replies], owned, count)
        spoiled = [
            (samples, own[places])
            for own, (_, (samples, places), _) in zip(owned, replies, strict=True)
        ]
        rows, last = sums.proposed(chosen, stage.weights, spoiled, count)
        cost, loss = stage.slot_totals
        answers = self._answers(
            "mix_and_add_costs",
            lambda post: (
                first,
                sums.of_shard(rows, post.places, count),
                cost[post.places],
                loss[post.places],
            ),
            block,
        )
        self._add([parts for parts, *_ in answers], count)
        self._workspace.best[:count] = np.min([best for _, best, *_ in answers], axis=0)
        stage.weights[:] = last
        assert stage.qp_terms is not None
        for own, (_, _, costs, losses, figures) in zip(owned, answers, strict=True):
            cost[own], loss[own] = costs, losses
            stage.qp_terms[:, own] = figures

    # --- looking ----------------------------------------------------------------------------------

    def predict_query(self, seen: int) -> None:
        point = self._workspace.query_point.copy()
        for post, values in zip(self._posts, self._each("predict_query", seen, point), strict=True):
            self._workspace.slot_values[post.places] = values
        self._stage.combine_query.run(seen, 1)

    def forget_query(self) -> None:
        self._each("forget_query")

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        self._call_off()
        shared = self._ray.put(points)
        out = np.zeros((len(points), len(self._layout.slots)))
        answers = self._answers("evaluate", lambda post: (seen, shared, wanted[post.places]))
        self._rest()
        return self._together(answers, out)

    def variance(self, points: Floats) -> Floats:
        out = np.full((len(points), len(self._layout.slots)), np.nan)
        return self._together(self._each("variance", points), out)

    def _together(self, answers: list[Any], out: Floats) -> Floats:
        for post, values in zip(self._posts, answers, strict=True):
            out[..., post.places] = values
        return out

    def step_ratio(self) -> Floats:
        if self._excess is None:
            self._excess = self._together(
                self._each("step_ratio"), np.zeros(len(self._layout.slots))
            )
        return self._excess

    def dropped(self) -> Floats:
        return self._together(self._each("dropped"), np.zeros(len(self._layout.slots)))

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        parts = self._states()
        result = {name: parts[0][name].copy() for name in ("inputs", "targets")}
        pieces: dict[str, list[tuple[Any, Floats]]] = {}
        for post, part in zip(self._posts, parts, strict=True):
            for name, array in part.items():
                if name not in result:
                    pieces.setdefault(name, []).append((self._numbers(post, name), array))
        for name, some in pieces.items():
            order = np.argsort(np.concatenate([numbers for numbers, _ in some]))
            result[name] = np.concatenate([array for _, array in some])[order]
        return result

    def _states(self) -> list[dict[str, Floats]]:
        """The state of every shard; of one that was given up, from what the driver has kept."""
        if not any(post.given_up for post in self._posts):
            try:
                return self._each("state")
            except ShardLost:
                pass
        return [post.local(self._first_input, self._played).state() for post in self._posts]

    def _numbers(self, post: Post, name: str) -> Any:
        """The numbers of the leaves in a shard's array: those of the group in its name."""
        group = int(name.partition("/")[0].removeprefix("group"))
        return np.array([n for n in post.leaves if self._layout.leaves[n].group == group])

    def restore(self, state: Mapping[str, Floats]) -> None:
        models = self.remember() if self._models else {}
        self._go_on_from(state, models)

    def recall(self, kept: Mapping[int, Any]) -> None:
        if self._models:
            self._go_on_from(self.state(), kept)

    def remember(self) -> dict[int, Any]:
        if not self._models:
            return {leaf.number: None for leaf in self._layout.leaves}
        return {n: kept for part in self._each("remember") for n, kept in part.items()}

    def _go_on_from(self, state: Mapping[str, Floats], models: Mapping[int, Any]) -> None:
        firsts = self._layout.first_leaves
        names = [name for name in state if name not in ("inputs", "targets")]
        kept = []
        for post in self._posts:
            own = {name: np.array(state[name]) for name in ("inputs", "targets")}
            for name in names:
                numbers = self._numbers(post, name)
                if len(numbers):
                    group = self._layout.leaves[int(numbers[0])].group
                    own[name] = np.array(state[name][numbers - firsts[group]])
            kept.append((own, {number: models.get(number) for number in post.leaves}))
        self._forget(kept)
        self._rest()

    def reset(self) -> None:
        self._first_input = np.zeros_like(self._first_input)
        self._forget([None] * len(self._posts))

    def start(self, first_input: Floats) -> None:
        self._first_input = first_input.copy()
        self._each("start", first_input)

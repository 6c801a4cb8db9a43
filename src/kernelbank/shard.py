"""A shard: some leaves of a bank and the two phases of their work on a block.

Phase 1 learns the block and leaves evidence. Phase 2 gets the weights and returns the leaves' parts
of the proposals. One shard with all leaves is the serial bank; engines differ only in where the
shards live. No shard ever sees another's slots, so nothing here depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ._hot import rows as hot_rows
from ._hot import score as hot
from ._hot.lanes import WIDTH
from ._validate import Floats
from .kernels.base import Program, sources_of
from .layout import Layout, Leaf
from .learners.base import Group, Learner
from .setting import PAGE, Block, Evidence, Samples, Setting

_POINTS = 256  # points evaluated at a time by predict


class Shard:
    """The slots of some leaves, from the first sample on."""

    def __init__(
        self,
        setting: Setting,
        layout: Layout,
        leaves: Iterable[Leaf],
        first_input: Floats,
        block: int,
    ) -> None:
        self.setting = setting
        self.layout = layout
        self.samples = Samples.start(layout.reach(setting), first_input)
        own = list(leaves)
        slots = [layout.slots[place] for leaf in own for place in leaf.slots]
        self._sources = sources_of([slot.kernel for slot in slots if slot.learner.uses_rows])
        self._statistics = np.full((len(self._sources), block + 1, self.samples.reach + 1), np.nan)
        self._repeated = np.zeros((len(self._sources), block), dtype=np.bool_)
        self._count = 0
        self.groups: list[tuple[Learner, Group]] = []
        for number, learner in enumerate(layout.learners):
            members = [leaf for leaf in own if leaf.group == number]
            if members:
                self.groups.append(
                    (learner, self._group(learner, members, len(first_input), block))
                )

    def _group(self, learner: Learner, leaves: list[Leaf], dimension: int, block: int) -> Group:
        count, window = len(leaves), self.setting.window
        kernels = self.layout.kernels(leaves)
        shapes = learner.shapes(self.setting, count, dimension)
        program = Program.pack(kernels, self._sources) if learner.uses_rows else Program.none()
        group = Group(
            setting=self.setting,
            kernels=kernels,
            program=program,
            columns=self.layout.columns(leaves),
            numbers=np.array([leaf.number for leaf in leaves]),
            state={name: np.zeros(shape) for name, shape in shapes.items()},
            values=np.zeros((count, block + 1, window, WIDTH)),
            norms=np.zeros((count, block + 1, WIDTH)),
            predictions=np.zeros((count, block, WIDTH)),
            effects=np.zeros((count, block, WIDTH)),
            losses_before=np.zeros((count, block, WIDTH)),
            alive=np.ones((count, WIDTH)),
        )
        learner.prepare(group)
        return group

    # --- phase 1 ------------------------------------------------------------------------------

    def learn(self, first: int, X: Floats, y: Floats, evidence: Evidence) -> None:
        """Take all slots through the block and write their columns of the evidence."""
        position = self.samples.add(first, X, y)
        self._count = len(X)
        start = position - self.samples.reach
        self._compare(X, start, 1, self.samples.reach + 1, self._statistics, self._repeated)
        block = Block(first, X, position, self.samples, self._statistics, self._repeated)
        loss = self.setting.loss
        for learner, group in self.groups:
            learner.learn(group, block)
            hot.score(
                first,
                position,
                len(X),
                self.setting.half_regularization,
                loss.value_address,
                loss.parameters,
                self.samples.targets,
                group.values,
                group.norms,
                group.predictions,
                group.alive,
                group.columns,
                group.losses_before,
                evidence.curvature,
                evidence.window_loss,
                evidence.slot_cost,
                evidence.slot_loss,
                evidence.slot_predictions,
            )
            if evidence.values is not None:
                hot.gather_values(
                    len(X),
                    group.values,
                    evidence.window_loss,
                    group.columns,
                    evidence.values,
                )

    def _compare(
        self,
        points: Floats,
        start: int,
        step: int,
        count: int,
        statistics: Floats,
        repeated: np.ndarray,
    ) -> None:
        """Fill the statistics of the points against `count` inputs each."""
        for source, number in self._sources.items():
            hot_rows.statistic_rows(
                source.statistic.address,
                np.array([source.parameter]),
                points,
                self.samples.inputs,
                start,
                step,
                count,
                statistics[number],
                repeated[number],
            )

    # --- phase 2 ------------------------------------------------------------------------------

    def mix(self, first: int, weights: Floats, sums: Floats) -> None:
        """Write the leaves' parts of the proposals to `sums`, and close the block."""
        for _, group in self.groups:
            hot.mix(
                first,
                self._count,
                weights,
                group.columns,
                group.values,
                group.norms,
                group.predictions,
                group.losses_before,
                group.effects,
                group.numbers,
                sums,
            )
            group.values[:, 0] = group.values[:, self._count]
            group.norms[:, 0] = group.norms[:, self._count]
        self._statistics[:, 0] = self._statistics[:, self._count]

    # --- looking without learning -------------------------------------------------------------

    def evaluate(self, seen: int, points: Floats, wanted: Floats, out: Floats) -> None:
        """out[t, p] = f_p(points[t]) for leaves that have a slot with wanted[p] != 0, else 0."""
        reach = self.samples.reach
        start = self.samples.next_start(seen)
        for begin in range(0, len(points), _POINTS):
            some = points[begin : begin + _POINTS]
            statistics = np.full((len(self._sources), len(some) + 1, reach), np.nan)
            repeated = np.zeros((len(self._sources), len(some)), dtype=np.bool_)
            self._compare(some, start, 0, reach, statistics, repeated)
            for learner, group in self.groups:
                chosen = (wanted[group.columns] != 0) & (group.columns >= 0)
                values = learner.evaluate(group, seen, some, statistics, chosen.any(axis=1))
                hot.scatter(values, group.columns, out[begin : begin + _POINTS])

    def excess(self) -> Floats:
        """(P,): see `Learner.excess`; 0 for slots of other shards."""
        return self._by_slot([learner.excess(group) for learner, group in self.groups])

    def dropped(self) -> Floats:
        """(P,): see `Learner.dropped`; 0 for slots of other shards."""
        return self._by_slot([learner.dropped(group) for learner, group in self.groups])

    def _by_slot(self, per_group: list[Floats]) -> Floats:
        result = np.zeros(len(self.layout.slots))
        for (_, group), values in zip(self.groups, per_group, strict=True):
            own = group.columns >= 0
            result[group.columns[own]] = values[own]
        return result

    # --- state --------------------------------------------------------------------------------

    @staticmethod
    def shapes(setting: Setting, layout: Layout, dimension: int) -> dict[str, tuple[int, ...]]:
        """The shapes of all arrays of a bank's state, in leaf order, without making any."""
        length = layout.reach(setting) + PAGE
        result: dict[str, tuple[int, ...]] = {
            "inputs": (dimension, length),
            "targets": (length, WIDTH),
        }
        for number, learner in enumerate(layout.learners):
            leaves = sum(leaf.group == number for leaf in layout.leaves)
            common = {
                "values": (leaves, setting.window, WIDTH),
                "norms": (leaves, WIDTH),
                "alive": (leaves, WIDTH),
            }
            own = learner.shapes(setting, leaves, dimension)
            for name, shape in {**own, **common}.items():
                result[f"group{number}/{name}"] = shape
        return result

    def arrays(self) -> dict[str, tuple[np.ndarray | None, Floats]]:
        """Everything that the next step depends on: name -> (numbers of the leaves, array).

        Arrays with leaf numbers have the leaves as first axis; those without are the same in
        every shard. The arrays are the shard's own, so writing to them restores it.
        """
        result: dict[str, tuple[np.ndarray | None, Floats]] = {
            "inputs": (None, self.samples.inputs),
            "targets": (None, self.samples.targets),
        }
        for _, group in self.groups:
            index = self.layout.leaves[int(group.numbers[0])].group
            common = {
                "values": group.values[:, 0],
                "norms": group.norms[:, 0],
                "alive": group.alive,
            }
            for name, array in {**group.state, **common}.items():
                result[f"group{index}/{name}"] = (group.numbers, array)
        return result

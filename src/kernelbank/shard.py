"""A shard: some leaves of a bank and the two phases of their work on a block.

Phase 1 learns the block and leaves evidence. Phase 2 gets the weights and returns the leaves' parts
of the proposals. One shard with all leaves is the serial bank; engines differ only in where the
shards live. No shard ever sees another's slots, so nothing here depends on how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ._hot import score as hot
from ._hot.lanes import WIDTH
from ._hot.table import Phase, Phases, compiled
from ._validate import Floats
from .ground import Form, Ground
from .kernels.base import Program
from .layout import Layout, Leaf
from .learners import Residual
from .learners.base import Group, Learner
from .setting import PAGE, Board, Setting


class Shard:
    """The slots of some leaves, from the first sample on."""

    def __init__(
        self,
        setting: Setting,
        layout: Layout,
        leaves: Iterable[Leaf],
        board: Board,
        ground: Ground,
        *,
        alone: bool = False,
    ) -> None:
        """`alone`: the board has the columns and rows of this shard's slots and leaves only."""
        leaves = list(leaves)
        self.setting = setting
        self.layout = layout
        self.ground = ground
        self.places = np.arange(len(layout.slots))
        self.numbers = np.arange(len(layout.leaves))
        if alone:
            self.places = np.array(sorted(place for leaf in leaves for place in leaf.slots))
            self.numbers = np.array(sorted(leaf.number for leaf in leaves))
        dimension = board.points.shape[1]
        self.groups: list[tuple[Learner, Group]] = []
        by_group: dict[int, list[Leaf]] = {}
        for leaf in leaves:
            by_group.setdefault(leaf.group, []).append(leaf)
        for number, members in sorted(by_group.items()):
            learner = layout.learners[number]
            kernels = layout.kernels(members)
            program = Program.none()
            if learner.uses_rows:
                program = Program.pack(kernels, ground.numbers, dimension)
            group = Group(
                setting,
                kernels,
                program,
                layout.columns(members),
                np.array([leaf.number for leaf in members], dtype=np.int64),
                learner.shapes(setting, len(members), dimension, kernels[0][0], ground.reach),
                learner.bulky,
                board.size,
                dimension,
            )
            if alone:
                found = np.searchsorted(self.places, group.columns)
                group.board_columns = np.where(group.columns >= 0, found, -1)
                group.board_numbers = np.searchsorted(self.numbers, group.numbers)
            learner.prepare(group)
            self.groups.append((learner, group))
            if isinstance(learner, Residual):
                group.base = self._find(learner.base)
        self.learning = self._learning(board)
        self.mixing = Phases([self._mix(group, board) for _, group in self.groups])
        self.looking = self._looking(board)

    def _find(self, place: int) -> tuple[Learner, Group, int, int]:
        """Where a slot of this shard stands."""
        for learner, group in self.groups:
            found = np.argwhere(group.columns == place)
            if len(found):
                return learner, group, int(found[0, 0]), int(found[0, 1])
        raise AssertionError("a slot and what stands on it are dealt to one shard")

    # --- the two phases of a block --------------------------------------------------------------

    def _learning(self, board: Board) -> Phases:
        phases: list[Phase] = []
        for learner, group in self.groups:
            phases += learner.phases(group, self.ground, board)
            phases.append(self._score(group, board))
            if board.values.size:
                phases.append(self._gather(group, board))
        return Phases(phases)

    def _score(self, group: Group, board: Board) -> Phase:
        return Phase(
            compiled(hot.score),
            hot.SCORE,
            **group.common(),
            slots=board.slots,
            page=PAGE,
            reach=self.ground.reach,
            half_regularization=self.setting.half_regularization,
            loss=self.setting.loss.value_address,
            parameters=self.setting.loss.parameters,
            targets=self.ground.targets,
            alive=group.alive,
            columns=group.board_columns,
            scratch=np.zeros((self.setting.window + 1, WIDTH)),
            losses_before=group.losses_before,
            curvature=board.curvature,
            window_loss=board.window_loss,
            slot_cost=board.slot_cost,
            slot_loss=board.slot_loss,
            slot_predictions=board.slot_predictions,
        )

    def _gather(self, group: Group, board: Board) -> Phase:
        return Phase(
            compiled(hot.gather),
            hot.GATHER,
            leaves=group.leaves,
            steps=board.size + 1,
            slots=board.slots,
            window=self.setting.window,
            values=group.values,
            window_loss=board.window_loss,
            columns=group.board_columns,
            out=board.values,
        )

    @property
    def seats(self) -> np.ndarray:
        """Where the slot of each column of the board sits: its leaf's row there times 4 + lane."""
        result = np.zeros(len(self.places), dtype=np.int64)
        for _, group in self.groups:
            own = group.board_columns >= 0
            seats = group.board_numbers[:, None] * WIDTH + np.arange(WIDTH)
            result[group.board_columns[own]] = seats[own]
        return result

    def _mix(self, group: Group, board: Board) -> Phase:
        return Phase(
            compiled(hot.mix),
            hot.MIX,
            **group.common(),
            slots=board.slots,
            weights=board.proposed,
            columns=group.board_columns,
            losses_before=group.losses_before,
            effects=group.effects,
            numbers=group.board_numbers,
            sums=board.sums,
        )

    def close(self, count: int) -> None:
        """What was after the block's last sample is before the next: as `mixing` ends."""
        for _, group in self.groups:
            group.values[:, 0] = group.values[:, count]
            group.norms[:, 0] = group.norms[:, count]

    def _looking(self, board: Board) -> Phases:
        """The slots' values at the point that is looked at."""
        phases: list[Phase] = []
        for learner, group in self.groups:
            phases += learner.glances(group, self.ground, board)
            spread = Phase(
                compiled(hot.spread),
                hot.SPREAD,
                leaves=group.leaves,
                columns=group.board_columns,
                look_values=group.look_values,
                slot_values=board.slot_values,
            )
            phases.append(spread)
        return Phases(phases)

    # --- looking without learning ---------------------------------------------------------------

    def evaluate(
        self, seen: int, points: Floats, statistics: Floats, wanted: Floats, out: Floats
    ) -> None:
        """out[t, p] = f_p(points[t]) for leaves that have a slot with wanted[p] != 0."""
        needed = {
            id(group): ((wanted[group.board_columns] != 0) & (group.columns >= 0)).any(axis=1)
            for _, group in self.groups
        }
        for _, group in reversed(self.groups):  # what stands on another slot needs that one too
            if group.base is not None and needed[id(group)].any():
                _, base, leaf, _ = group.base
                needed[id(base)][leaf] = True
        for learner, group in self.groups:
            values = learner.evaluate(group, seen, points, statistics, needed[id(group)])
            group.parts["evaluated"] = values
            hot.scatter(values, group.board_columns, out)

    def variance(self, points: Floats, out: Floats) -> None:
        """out[t, p] = predictive variance of slot p at points[t], NaN where there is none."""
        for learner, group in self.groups:
            hot.scatter(learner.variance(group, points), group.board_columns, out)

    def excess(self) -> Floats:
        """(P,): see `Learner.excess`; 0 for slots of other shards."""
        return self._by_slot([learner.excess(group) for learner, group in self.groups])

    def dropped(self) -> Floats:
        """(P,): see `Learner.dropped`; 0 for slots of other shards."""
        return self._by_slot([learner.dropped(group) for learner, group in self.groups])

    def _by_slot(self, per_group: list[Floats]) -> Floats:
        result = np.zeros(len(self.places))
        for (_, group), values in zip(self.groups, per_group, strict=True):
            own = group.columns >= 0
            result[group.board_columns[own]] = values[own]
        return result

    # --- state ----------------------------------------------------------------------------------

    @staticmethod
    def forms(setting: Setting, layout: Layout, dimension: int) -> dict[str, Form]:
        """Shape and dtype of all arrays of a bank's state, in leaf order, without making any."""
        result = Ground.forms(layout.reach(setting), dimension)
        counts = Counter(leaf.group for leaf in layout.leaves)
        for number, learner in enumerate(layout.learners):
            leaves = counts[number]
            common = {
                "values": (leaves, setting.window, WIDTH),
                "norms": (leaves, WIDTH),
                "alive": (leaves, WIDTH),
            }
            kernel, reach = layout.first_kernel(number), layout.reach(setting)
            own = learner.shapes(setting, leaves, dimension, kernel, reach)
            for name, shape in {**own, **common}.items():
                dtype = setting.dtype if name in learner.bulky else "float64"
                result[f"group{number}/{name}"] = (shape, dtype)
        return result

    def reset(self) -> None:
        """Forget everything that was learned."""
        for _, array in self.arrays().values():
            array[...] = 0.0
        for learner, group in self.groups:
            group.alive[...] = 1.0
            learner.prepare(group)

    def arrays(self) -> dict[str, tuple[np.ndarray, Floats]]:
        """Everything that the next step depends on: name -> (numbers of the leaves, array).

        The arrays have the leaves as first axis. They are the shard's own, so writing to them
        restores it.
        """
        result: dict[str, tuple[np.ndarray, Floats]] = {}
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

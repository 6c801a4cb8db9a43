"""The ground: what all slots of a process stand on, the last inputs and how new ones compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._hot import rows as hot
from ._hot.lanes import WIDTH
from ._hot.table import Phase, compiled
from ._validate import Floats
from .kernels.base import Kernel, Sources, sources_of
from .setting import PAGE, Board

Form = tuple[tuple[int, ...], str]


@dataclass(frozen=True)
class Block:
    """Some samples of one page, as a learner written in Python gets them."""

    first: int
    points: Floats
    targets: Floats
    ground: Ground


class Ground:
    """The last inputs and targets, and how new inputs compare with them.

    inputs[k, position] is coordinate k; targets[position] the target in all four lanes. Sample
    number n stands at position reach + n % PAGE. statistics[s, t + 1] compares sample t of the
    block with the last `reach` inputs and itself, for every statistic s that the kernels need.
    """

    def __init__(
        self, reach: int, kernels: list[Kernel], board: Board, first_input: Floats
    ) -> None:
        """`kernels` are those whose learners use rows of kernel values, with `reach` terms."""
        self.numbers = sources_of(kernels, len(first_input))
        self._sources = Sources.pack(self.numbers, len(first_input))
        sources = len(self.numbers)
        self.reach = reach
        self.inputs = np.zeros((len(first_input), self.reach + PAGE))
        self.begin(first_input)
        self.targets = np.zeros((self.reach + PAGE, WIDTH))
        self.statistics = np.full((sources, board.size + 1, self.reach + 1), np.nan)
        self.repeated = np.zeros((sources, board.size), dtype=np.int64)
        # The memo of the last look: a prediction and then the learning of one sample compare it
        # with the last inputs, and compute its kernel values, only once.
        self.memo = np.zeros(3, dtype=np.int64)
        self.memo_point = np.zeros(len(first_input))
        self.memo_statistics = np.zeros((sources, self.reach + 1))
        self.memo_repeated = np.zeros((sources, 1), dtype=np.int64)
        self._terms = np.zeros((len(first_input), self.reach + 1))
        self.take = self._take(board)
        self.look = self._look(board)

    def begin(self, first_input: Floats) -> None:
        """Terms that do not exist need finite kernel values: they start as copies of the first."""
        self.inputs[...] = first_input[:, None]

    def next_start(self, seen: int) -> int:
        """Where the last `reach` samples start, once `seen` have been added."""
        return 0 if seen == 0 else (seen - 1) % PAGE + 1

    def compare(self, seen: int, points: Floats) -> Floats:
        """(sources, n + 1, reach + 1): points against the last inputs, for looking only."""
        statistics = np.empty((len(self.numbers), len(points) + 1, self.reach + 1))
        start = self.next_start(seen)
        own = self._sources
        hot.compare(
            own.addresses,
            own.parameters,
            own.coordinates,
            own.starts,
            points,
            self.inputs,
            start,
            self.reach,
            statistics,
        )
        return statistics

    def _take(self, board: Board) -> Phase:
        return Phase(
            compiled(hot.take),
            hot.TAKE,
            page=PAGE,
            reach=self.reach,
            dimension=board.points.shape[1],
            points=board.points,
            new_targets=board.new_targets,
            inputs=self.inputs,
            targets=self.targets,
            sources=len(self.numbers),
            addresses=self._sources.addresses,
            parameters=self._sources.parameters,
            coordinates=self._sources.coordinates,
            starts=self._sources.starts,
            statistics=self.statistics,
            steps=board.size + 1,
            repeated=self.repeated,
            memo=self.memo,
            memo_point=self.memo_point,
            memo_statistics=self.memo_statistics,
        )

    def _look(self, board: Board) -> Phase:
        return Phase(
            compiled(hot.look),
            hot.LOOK,
            page=PAGE,
            reach=self.reach,
            dimension=board.points.shape[1],
            inputs=self.inputs,
            sources=len(self.numbers),
            addresses=self._sources.addresses,
            parameters=self._sources.parameters,
            coordinates=self._sources.coordinates,
            starts=self._sources.starts,
            statistics=self.statistics,
            steps=board.size + 1,
            terms=self._terms,
            point=board.look_point,
            memo=self.memo,
            memo_point=self.memo_point,
            memo_statistics=self.memo_statistics,
            memo_repeated=self.memo_repeated,
        )

    # --- state ----------------------------------------------------------------------------------

    @staticmethod
    def forms(reach: int, dimension: int) -> dict[str, Form]:
        """Shape and dtype of the state's arrays, without making any."""
        length = reach + PAGE
        return {
            "inputs": ((dimension, length), "float64"),
            "targets": ((length, WIDTH), "float64"),
        }

    def arrays(self) -> dict[str, Floats]:
        """Everything that the next step depends on; writing to the arrays restores it."""
        return {"inputs": self.inputs, "targets": self.targets}

    def forget_rows(self) -> None:
        """After the state was written from outside: no row of statistics is known any more."""
        self.statistics[:, 0] = np.nan
        self.forget_look()

    def forget_look(self) -> None:
        """After a look that failed: what it left behind is not to be used."""
        self.memo[:] = 0

"""The buffer: what all slots of a process stand on, the last inputs and how new ones compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native.phases import Phase, compiled
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import Floats
from . import kernel_rows as hot
from .base import Kernel, PackedStatistics, number_statistics

ArraySpec = tuple[tuple[int, ...], str]


@dataclass(frozen=True)
class SampleBlock:
    """Consecutive samples: the number of the first, inputs (n, d) and targets (n,)."""

    first: int
    points: Floats
    targets: Floats


class SampleBuffer:
    """The last inputs and targets, and how new inputs compare with them.

    inputs[k, position] is coordinate k; targets[position] the target in all four lanes. Sample
    number n stands at position history_length + n % SLIDE_PERIOD. statistics[s, t + 1] compares sample t of the
    block with the last `history_length` inputs and itself, for every statistic s that the kernels need.
    """

    def __init__(
        self, history_length: int, kernels: list[Kernel], workspace: Workspace, first_input: Floats
    ) -> None:
        """`kernels` are those whose learners use rows of kernel values, with `history_length` terms."""
        self.statistic_numbers = number_statistics(kernels, len(first_input))
        self._sources = PackedStatistics.pack(self.statistic_numbers, len(first_input))
        sources = len(self.statistic_numbers)
        self.history_length = history_length
        self.inputs = np.zeros((len(first_input), self.history_length + SLIDE_PERIOD))
        self.fill(first_input)
        self.targets = np.zeros((self.history_length + SLIDE_PERIOD, WIDTH))
        self.statistics = np.full((sources, workspace.size + 1, self.history_length + 1), np.nan)
        self.repeated = np.zeros((sources, workspace.size), dtype=np.int64)
        # The memo of the last look: a prediction and then the learning of one sample compare it
        # with the last inputs, and compute its kernel values, only once.
        self.memo = np.zeros(3, dtype=np.int64)
        self.memo_point = np.zeros(len(first_input))
        self.memo_statistics = np.zeros((sources, self.history_length + 1))
        self.memo_repeated = np.zeros((sources, 1), dtype=np.int64)
        self._terms = np.zeros((len(first_input), self.history_length + 1))
        self.add_samples = self._add_samples(workspace)
        self.query = self._query(workspace)

    def fill(self, first_input: Floats) -> None:
        """Terms that do not exist need finite kernel values: they start as copies of the first."""
        self.inputs[...] = first_input[:, None]

    def next_start(self, seen: int) -> int:
        """Where the last `history_length` samples start, once `seen` have been added."""
        return 0 if seen == 0 else (seen - 1) % SLIDE_PERIOD + 1

    def compare(self, seen: int, points: Floats) -> Floats:
        """(sources, n + 1, history_length + 1): points against the last inputs, for looking only."""
        statistics = np.empty(
            (len(self.statistic_numbers), len(points) + 1, self.history_length + 1)
        )
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
            self.history_length,
            statistics,
        )
        return statistics

    def _add_samples(self, workspace: Workspace) -> Phase:
        return Phase(
            compiled(hot.add_samples),
            hot.ADD_SAMPLES,
            slide_period=SLIDE_PERIOD,
            history_length=self.history_length,
            dimension=workspace.points.shape[1],
            points=workspace.points,
            new_targets=workspace.new_targets,
            inputs=self.inputs,
            targets=self.targets,
            sources=len(self.statistic_numbers),
            addresses=self._sources.addresses,
            parameters=self._sources.parameters,
            coordinates=self._sources.coordinates,
            starts=self._sources.starts,
            statistics=self.statistics,
            steps=workspace.size + 1,
            repeated=self.repeated,
            memo=self.memo,
            memo_point=self.memo_point,
            memo_statistics=self.memo_statistics,
        )

    def _query(self, workspace: Workspace) -> Phase:
        return Phase(
            compiled(hot.query),
            hot.QUERY,
            slide_period=SLIDE_PERIOD,
            history_length=self.history_length,
            dimension=workspace.points.shape[1],
            inputs=self.inputs,
            sources=len(self.statistic_numbers),
            addresses=self._sources.addresses,
            parameters=self._sources.parameters,
            coordinates=self._sources.coordinates,
            starts=self._sources.starts,
            statistics=self.statistics,
            steps=workspace.size + 1,
            terms=self._terms,
            point=workspace.query_point,
            memo=self.memo,
            memo_point=self.memo_point,
            memo_statistics=self.memo_statistics,
            memo_repeated=self.memo_repeated,
        )

    # --- state ----------------------------------------------------------------------------------

    @staticmethod
    def array_specs(history_length: int, dimension: int) -> dict[str, ArraySpec]:
        """Shape and dtype of the state's arrays, without making any."""
        length = history_length + SLIDE_PERIOD
        return {
            "inputs": ((dimension, length), "float64"),
            "targets": ((length, WIDTH), "float64"),
        }

    def arrays(self) -> dict[str, Floats]:
        """Everything that the next step depends on; writing to the arrays restores it."""
        return {"inputs": self.inputs, "targets": self.targets}

    def clear_statistics(self) -> None:
        """After the state was written from outside: no row of statistics is known any more."""
        self.statistics[:, 0] = np.nan
        self.forget_query()

    def forget_query(self) -> None:
        """After a look that failed: what it left behind is not to be used."""
        self.memo[:] = 0

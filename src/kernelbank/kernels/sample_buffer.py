"""The sample buffer: the newest samples of a stream, and how new inputs compare with them.

All slots of a process share one. Its two compiled phases add the samples of a block, and prepare a
prediction at one query point.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from ..native.arguments import Arguments, floats, ints, lanes
from ..native.functions import native
from ..native.jit import inline
from ..native.phases import Phase
from ..native.simd import WIDTH, broadcast
from ..native.views import columns_from
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import Floats
from .base import Kernel
from .program import (
    STATISTICS,
    PackedStatistics,
    compare,
    copy_terms,
    number_statistics,
    set_last_term,
    statistic_row,
)

ArraySpec = tuple[tuple[int, ...], str]
"""Shape and dtype of an array."""


@dataclass(frozen=True)
class SampleBlock:
    """Consecutive samples: the number of the first, inputs (n, d) and targets (n,)."""

    first: int
    points: Floats
    targets: Floats


class SampleBuffer:
    """The newest inputs and targets, and statistics of new inputs with them.

    inputs[k, position] is coordinate k; targets[position] the target in all four lanes. Sample
    number n is at position history_length + n % SLIDE_PERIOD. statistics[s, t + 1] compares sample
    t of the block with the last `history_length` inputs and itself, for each statistic s.
    """

    def __init__(
        self,
        history_length: int,
        kernels: list[Kernel],
        workspace: Workspace,
        first_input: Floats,
        initial_points: Floats | None = None,
    ) -> None:
        """`kernels` are those of learners that use kernel rows, of `history_length` terms."""
        self._initial_points = initial_points
        self.leads = True
        """Whether the inputs are this buffer's own, not those of another output."""
        dimension = len(first_input)
        self.history_length = history_length
        self.statistic_numbers = number_statistics(kernels, dimension)
        self._packed = PackedStatistics.pack(self.statistic_numbers, dimension)
        count = len(self.statistic_numbers)
        self.inputs = np.zeros((dimension, history_length + SLIDE_PERIOD))
        self.fill(first_input)
        self.targets = np.zeros((history_length + SLIDE_PERIOD, WIDTH))
        self.statistics = np.full((count, workspace.size + 1, history_length + 1), np.nan)
        self.repeated = np.zeros((count, workspace.size), dtype=np.int64)
        # The memo of the last query: if a sample is predicted and then learned, its statistics
        # and kernel values are computed only once.
        self.memo = np.zeros(3, dtype=np.int64)
        self.memo_point = np.zeros(dimension)
        self.memo_statistics = np.zeros((count, history_length + 1))
        self.memo_repeated = np.zeros((count, 1), dtype=np.int64)
        common = {
            "slide_period": SLIDE_PERIOD,
            "history_length": history_length,
            "dimension": dimension,
            "inputs": self.inputs,
            **self._packed.arguments(),
            "statistics": self.statistics,
            "steps": workspace.size + 1,
            "memo": self.memo,
            "memo_point": self.memo_point,
            "memo_statistics": self.memo_statistics,
        }
        self.add_samples = Phase(
            _add_samples,
            **common,
            points=workspace.points,
            new_targets=workspace.new_targets,
            targets=self.targets,
            repeated=self.repeated,
        )
        self.query = Phase(
            _query,
            **common,
            point=workspace.query_point,
            terms=np.zeros((dimension, history_length + 1)),
            memo_repeated=self.memo_repeated,
        )

    def for_output(self, workspace: Workspace) -> SampleBuffer:
        """The same inputs with the targets of another output, whose workspace is given.

        Its block is to be run after that of this buffer, and its query likewise.
        """
        other = copy.copy(self)
        other.targets = np.zeros_like(self.targets)
        other.add_samples = Phase(
            _add_targets,
            slide_period=SLIDE_PERIOD,
            history_length=self.history_length,
            new_targets=workspace.new_targets,
            targets=other.targets,
        )
        other.leads = False
        return other

    def fill(self, first_input: Floats) -> None:
        """Let all terms be the first input: terms before it need finite kernel values.

        The points of an initial function are the newest of them.
        """
        self.inputs[...] = first_input[:, None]
        if self._initial_points is not None:
            length = self.history_length
            points = self._initial_points[-length:].T
            self.inputs[:, length - points.shape[1] : length] = points

    def compare(self, seen: int, points: Floats) -> Floats:
        """(statistics, n + 1, history_length + 1): points against the inputs of `seen` samples."""
        statistics = np.empty(
            (len(self.statistic_numbers), len(points) + 1, self.history_length + 1)
        )
        compare(
            len(points),
            dimension=points.shape[1],
            history_length=self.history_length,
            start=0 if seen == 0 else (seen - 1) % SLIDE_PERIOD + 1,
            **self._packed.arguments(),
            points=np.ascontiguousarray(points),
            inputs=self.inputs,
            terms=np.empty((points.shape[1], self.history_length + 1)),
            statistics=statistics,
        )
        return statistics

    # --- state ------------------------------------------------------------------------------------

    @staticmethod
    def array_specs(history_length: int, dimension: int, *, leads: bool) -> dict[str, ArraySpec]:
        """Shape and dtype of the state's arrays, without making any."""
        length = history_length + SLIDE_PERIOD
        inputs: dict[str, ArraySpec] = {"inputs": ((dimension, length), "float64")}
        return (inputs if leads else {}) | {"targets": ((length, WIDTH), "float64")}

    def arrays(self) -> dict[str, Floats]:
        """Everything that the next step depends on; writing to the arrays restores it."""
        return ({"inputs": self.inputs} if self.leads else {}) | {"targets": self.targets}

    def clear_statistics(self) -> None:
        """Drop all statistics, after the state was written from outside."""
        self.statistics[:, 0] = np.nan
        self.forget_query()

    def forget_query(self) -> None:
        """Drop the memo, after a query that failed."""
        self.memo[:] = 0


# --- compiled phases ------------------------------------------------------------------------------

_COMMON = STATISTICS.extended(
    "sample_buffer",
    slide_period=int,
    history_length=int,
    dimension=int,
    steps=int,  # longest block + 1
    inputs=floats("dimension", "history_length + slide_period"),
    statistics=floats("statistic_count", "steps", "history_length + 1"),
    memo=ints(3),
    memo_point=floats("dimension"),
    memo_statistics=floats("statistic_count", "history_length + 1"),
)
_ADD_SAMPLES = _COMMON.extended(
    "add_samples",
    points=floats("steps - 1", "dimension"),
    new_targets=floats("steps - 1"),
    targets=lanes("history_length + slide_period"),
    repeated=ints("statistic_count", "steps - 1"),
)
_QUERY = _COMMON.extended(
    "query_samples",
    point=floats("dimension"),
    terms=floats("dimension", "history_length + 1"),  # scratch
    memo_repeated=ints("statistic_count", 1),
)

VALID, SEEN, USED = 0, 1, 2
"""Entries of the memo: whether it is valid, after how many samples, whether this block uses it."""


@inline
def _equal(one, other, count):
    for m in range(count):
        if one[m] != other[m]:
            return False
    return True


@inline
def _is_last_query(a, first, count):
    """Whether the block is the one point of the last query, with nothing learned since."""
    memo = a.memo
    same = count == 1 and memo[VALID] == 1 and memo[SEEN] == first
    same = same and _equal(a.points[0], a.memo_point, a.dimension)
    memo[VALID] = 0
    memo[USED] = 1 if same else 0
    return same


@native(_ADD_SAMPLES)
def _add_samples(a, first, count):
    """Append the block to the buffer, and compare each sample with the inputs before it.

    statistics[s, t + 1] is the row of sample t, statistics[s, 0] that of the sample before the
    block. repeated[s, t] is 1 if a row equals the one before bit for bit, as on a regular grid:
    then the kernel values are the same too and need no new exponential.
    """
    length = a.history_length
    position = length + first % a.slide_period
    if first > 0 and first % a.slide_period == 0:  # slide: the newest samples move to the front
        for m in range(length):
            for k in range(a.dimension):
                a.inputs[k, m] = a.inputs[k, a.slide_period + m]
            a.targets[m] = a.targets[a.slide_period + m]
    for t in range(count):
        for k in range(a.dimension):
            a.inputs[k, position + t] = a.points[t, k]
        a.targets[position + t] = broadcast(a.new_targets[t])
    same_as_query = _is_last_query(a, first, count)
    for s in range(a.statistic_count):
        rows = a.statistics[s]  # (steps, length + 1)
        for t in range(count):
            row = rows[t + 1]
            if same_as_query:
                for m in range(length + 1):
                    row[m] = a.memo_statistics[s, m]
            else:
                terms = columns_from(a.inputs, position + t - length)
                statistic_row(a, s, a.points[t], terms, length + 1, row)
            a.repeated[s, t] = 1 if _equal(row, rows[t], length + 1) else 0
        for m in range(length + 1):  # for the next block
            rows[0, m] = rows[count, m]


@native(
    Arguments(
        "add_targets",
        slide_period=int,
        history_length=int,
        new_targets=floats(None),
        targets=lanes("history_length + slide_period"),
    )
)
def _add_targets(a, first, count):
    """Append the targets of the block, as `_add_samples` does."""
    length = a.history_length
    if first > 0 and first % a.slide_period == 0:
        for m in range(length):
            a.targets[m] = a.targets[a.slide_period + m]
    for t in range(count):
        a.targets[length + first % a.slide_period + t] = broadcast(a.new_targets[t])


@native(_QUERY)
def _query(a, first, count):
    """Compare the query point with the last inputs, and keep the statistics in the memo."""
    a.memo[VALID] = 0
    start = 0 if first == 0 else (first - 1) % a.slide_period + 1
    copy_terms(a.inputs, start, a.terms)
    set_last_term(a.point, a.terms)
    for s in range(a.statistic_count):
        row = a.memo_statistics[s]
        statistic_row(a, s, a.point, a.terms, a.history_length + 1, row)
        same = _equal(row, a.statistics[s, 0], a.history_length + 1)
        a.memo_repeated[s, 0] = 1 if same else 0
    for k in range(a.dimension):
        a.memo_point[k] = a.point[k]
    a.memo[SEEN] = first
    a.memo[VALID] = 1

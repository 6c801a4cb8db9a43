"""The sample buffer: the newest samples of a stream, and how new inputs compare with them.

All slots of a process share one. Its two compiled phases add the samples of a block, and prepare a
prediction at one query point.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native.formulas import call_statistic, int_pointer, pointer
from ..native.jit import inline
from ..native.phases import Phase, argument_fields, compiled, float_array, int_array, read_int
from ..native.simd import WIDTH, load, store
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import Floats
from .base import Kernel
from .program import PackedStatistics, compare, copy_terms, number_statistics, set_last_term

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
        self, history_length: int, kernels: list[Kernel], workspace: Workspace, first_input: Floats
    ) -> None:
        """`kernels` are those of learners that use kernel rows, of `history_length` terms."""
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
            "statistic_count": count,
            "addresses": self._packed.addresses,
            "parameters": self._packed.parameters,
            "coordinates": self._packed.coordinates,
            "starts": self._packed.starts,
            "statistics": self.statistics,
            "steps": workspace.size + 1,
            "memo": self.memo,
            "memo_point": self.memo_point,
            "memo_statistics": self.memo_statistics,
        }
        self.add_samples = Phase(
            compiled(_add_samples),
            _ADD_SAMPLES,
            **common,
            points=workspace.points,
            new_targets=workspace.new_targets,
            targets=self.targets,
            repeated=self.repeated,
        )
        self.query = Phase(
            compiled(_query),
            _QUERY,
            **common,
            point=workspace.query_point,
            terms=np.zeros((dimension, history_length + 1)),
            memo_repeated=self.memo_repeated,
        )

    def fill(self, first_input: Floats) -> None:
        """Let all terms be the first input: terms before it need finite kernel values."""
        self.inputs[...] = first_input[:, None]

    def compare(self, seen: int, points: Floats) -> Floats:
        """(statistics, n + 1, history_length + 1): points against the inputs of `seen` samples."""
        statistics = np.empty(
            (len(self.statistic_numbers), len(points) + 1, self.history_length + 1)
        )
        compare(
            self._packed.addresses,
            self._packed.parameters,
            self._packed.coordinates,
            self._packed.starts,
            points,
            self.inputs,
            0 if seen == 0 else (seen - 1) % SLIDE_PERIOD + 1,
            self.history_length,
            statistics,
        )
        return statistics

    # --- state ------------------------------------------------------------------------------------

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
        """Drop all statistics, after the state was written from outside."""
        self.statistics[:, 0] = np.nan
        self.forget_query()

    def forget_query(self) -> None:
        """Drop the memo, after a query that failed."""
        self.memo[:] = 0


# --- compiled phases ------------------------------------------------------------------------------

_COMMON = (
    "slide_period", "history_length", "dimension", "inputs", "statistic_count", "addresses",
    "parameters", "coordinates", "starts", "statistics", "steps", "memo", "memo_point",
    "memo_statistics",
)  # fmt: skip
_ADD_SAMPLES = argument_fields(*_COMMON, "points", "new_targets", "targets", "repeated")
_QUERY = argument_fields(*_COMMON, "point", "terms", "memo_repeated")

VALID, SEEN, USED = 0, 1, 2
"""Entries of the memo: whether it is valid, after how many samples, whether this block uses it."""


@inline
def _equal(one, other, count):
    for m in range(count):
        if one[m] != other[m]:
            return False
    return True


@inline
def _is_last_query(args, first, count):
    """Whether the block is the one point of the last query, with nothing learned since."""
    memo = int_array(args, _ADD_SAMPLES.memo)
    same = count == 1 and memo[VALID] == 1 and memo[SEEN] == first
    same = same and _equal(
        float_array(args, _ADD_SAMPLES.points),
        float_array(args, _ADD_SAMPLES.memo_point),
        read_int(args, _ADD_SAMPLES.dimension),
    )
    memo[VALID] = 0
    memo[USED] = 1 if same else 0
    return same


def _add_samples(args, first, count):
    """Append the block to the buffer, and compare each sample with the inputs before it.

    points: (n, d); inputs: (d, history_length + SLIDE_PERIOD); targets: the same positions, (., 4);
    statistics: (count, steps, history_length + 1); repeated: (count, steps - 1).
    statistics[s, t + 1] is the row of sample t, statistics[s, 0] that of the sample before the
    block. repeated[s, t] is 1 if a row equals the one before bit for bit, as on a regular grid:
    then the kernel values are the same too and need no new exponential.
    """
    slide_period = read_int(args, _ADD_SAMPLES.slide_period)
    history_length = read_int(args, _ADD_SAMPLES.history_length)
    dimension = read_int(args, _ADD_SAMPLES.dimension)
    points = float_array(args, _ADD_SAMPLES.points)
    inputs = float_array(args, _ADD_SAMPLES.inputs)
    targets = float_array(args, _ADD_SAMPLES.targets)
    statistics = float_array(args, _ADD_SAMPLES.statistics)
    coordinates = int_array(args, _ADD_SAMPLES.coordinates)
    starts = int_array(args, _ADD_SAMPLES.starts)
    steps = read_int(args, _ADD_SAMPLES.steps)
    stride = history_length + slide_period
    position = history_length + first % slide_period
    if first > 0 and first % slide_period == 0:  # slide: the newest samples move to the front
        for m in range(history_length):
            for k in range(dimension):
                inputs[k * stride + m] = inputs[k * stride + slide_period + m]
            store(targets, m, load(targets, slide_period + m))
    for t in range(count):
        for k in range(dimension):
            inputs[k * stride + position + t] = points[t * dimension + k]
        store(targets, position + t, float_array(args, _ADD_SAMPLES.new_targets)[t])
    same_as_query = _is_last_query(args, first, count)
    for s in range(read_int(args, _ADD_SAMPLES.statistic_count)):
        for t in range(count):
            row = pointer(statistics, (s * steps + t + 1) * (history_length + 1))
            last = pointer(statistics, (s * steps + t) * (history_length + 1))
            if same_as_query:
                for m in range(history_length + 1):
                    row[m] = float_array(args, _ADD_SAMPLES.memo_statistics)[
                        s * (history_length + 1) + m
                    ]
            else:
                call_statistic(
                    int_array(args, _ADD_SAMPLES.addresses)[s],
                    pointer(points, t * dimension),
                    pointer(inputs, position + t - history_length),
                    stride,
                    history_length + 1,
                    int_pointer(coordinates, starts[s]),
                    starts[s + 1] - starts[s],
                    pointer(float_array(args, _ADD_SAMPLES.parameters), s),
                    row,
                )
            same = 1 if _equal(row, last, history_length + 1) else 0
            int_array(args, _ADD_SAMPLES.repeated)[s * (steps - 1) + t] = same
        for m in range(history_length + 1):  # for the next block
            index = s * steps * (history_length + 1) + m
            statistics[index] = statistics[index + count * (history_length + 1)]


def _query(args, first, count):
    """Compare the query point with the last inputs, and keep the statistics.

    point: (d,); terms: (d, history_length + 1), scratch; memo_statistics: one row per statistic.
    """
    slide_period = read_int(args, _QUERY.slide_period)
    history_length = read_int(args, _QUERY.history_length)
    dimension = read_int(args, _QUERY.dimension)
    point = float_array(args, _QUERY.point)
    memo = int_array(args, _QUERY.memo)
    memo[VALID] = 0
    start = 0 if first == 0 else (first - 1) % slide_period + 1
    terms = float_array(args, _QUERY.terms)
    copy_terms(
        float_array(args, _QUERY.inputs),
        history_length + slide_period,
        start,
        history_length,
        dimension,
        terms,
    )
    set_last_term(point, dimension, terms, history_length)
    coordinates = int_array(args, _QUERY.coordinates)
    starts = int_array(args, _QUERY.starts)
    for s in range(read_int(args, _QUERY.statistic_count)):
        row = pointer(float_array(args, _QUERY.memo_statistics), s * (history_length + 1))
        call_statistic(
            int_array(args, _QUERY.addresses)[s],
            point,
            terms,
            history_length + 1,
            history_length + 1,
            int_pointer(coordinates, starts[s]),
            starts[s + 1] - starts[s],
            pointer(float_array(args, _QUERY.parameters), s),
            row,
        )
        last = pointer(
            float_array(args, _QUERY.statistics),
            s * read_int(args, _QUERY.steps) * (history_length + 1),
        )
        same = 1 if _equal(row, last, history_length + 1) else 0
        int_array(args, _QUERY.memo_repeated)[s] = same
    for k in range(dimension):
        float_array(args, _QUERY.memo_point)[k] = point[k]
    memo[SEEN] = first
    memo[VALID] = 1

"""Learners on centres: f = sum_j alpha_j k(c_j, .), with kept inputs c_j, oldest first."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.program import (
    EVALUATE,
    PackedProgram,
    PackedStatistics,
    kernel_row,
    number_statistics,
)
from ..native.dense import delete_element
from ..native.formulas import call_statistic, int_pointer, pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, int_array, read_int
from ..native.simd import WIDTH
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import FIELDS as FEATURE_FIELDS
from .feature_learner import (
    SAMPLE,
    FeatureLearner,
    Shapes,
    coefficients_of,
    size_of,
    window_features_of,
)

FIELDS = argument_fields(
    *FEATURE_FIELDS._fields,
    "instructions",  # of the kernels' program, see `kernels.program`
    "program",
    "constants",
    "addresses",  # of the statistics that the program reads
    "source_parameters",
    "coordinates",
    "starts",
    "statistics",  # (sources, row_length)
    "row",  # (row_length, 4)
    "stack",  # (depth + 1, row_length, 4)
    "row_length",
    "recent_values",  # (row_length,)
    "centres",  # (leaves, dimension, capacity)
)


@inline
def kernel_values(args, leaf, x, others, stride, count, out):
    """out[m] = k(x, column m of `others`), for m < count; rows of `others` are `stride` apart."""
    instructions = read_int(args, FIELDS.instructions)
    program = int_array(args, FIELDS.program)
    statistics = float_array(args, FIELDS.statistics)
    row_length = read_int(args, FIELDS.row_length)
    starts = int_array(args, FIELDS.starts)
    for i in range(instructions):
        if program[3 * i] == EVALUATE:
            source = program[3 * i + 1]
            call_statistic(
                int_array(args, FIELDS.addresses)[source],
                x,
                others,
                stride,
                count,
                int_pointer(int_array(args, FIELDS.coordinates), starts[source]),
                starts[source + 1] - starts[source],
                pointer(float_array(args, FIELDS.source_parameters), source),
                pointer(statistics, source * row_length),
            )
    row = float_array(args, FIELDS.row)
    kernel_row(
        instructions,
        program,
        float_array(args, FIELDS.constants),
        leaf,
        statistics,
        1,
        row_length,
        -1,
        0,
        count,
        row,
        float_array(args, FIELDS.stack),
    )
    for m in range(count):
        out[m] = row[m * WIDTH]


class CentresBase(FeatureLearner):
    """features(x)[j] = k(x, c_j). Subclasses are frozen dataclasses with a setting `budget`."""

    extra_capacity = 1  # a new centre may come before an old one is removed
    accepts_new_inputs: ClassVar[bool] = True
    budget: int

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.budget + self.extra_capacity

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {"centres": (dimension, capacity)}

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        known = old["centres"].shape[1]
        new["centres"][:, :known], new["centres"][:, known:] = old["centres"], 0.0
        others = {name: array for name, array in old.items() if name != "centres"}
        super().extend_inputs(others, new)

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        numbers = number_statistics(
            [kernel for leaf in group.kernels for kernel in leaf], dimension
        )
        program = PackedProgram.pack(group.kernels, numbers, dimension)
        sources = PackedStatistics.pack(numbers, dimension)
        capacity = group.state["coefficients"].shape[1]
        row_length = max(capacity, group.objective.window, 1)
        return {
            "instructions": len(program.code),
            "program": program.code,
            "constants": program.constants,
            "addresses": sources.addresses,
            "source_parameters": sources.parameters,
            "coordinates": sources.coordinates,
            "starts": sources.starts,
            "statistics": np.zeros((len(numbers), row_length)),
            "row": np.zeros((row_length, WIDTH)),
            "stack": np.zeros((program.depth + 1, row_length, WIDTH)),
            "row_length": row_length,
            "recent_values": np.zeros(row_length),
        }

    @staticmethod
    def compute_features(args, leaf, number):
        """point_features[j] = k(x, c_j), and k(x, x)."""
        point = float_array(args, FIELDS.point)
        capacity = read_int(args, FIELDS.capacity)
        features = float_array(args, FIELDS.point_features)
        centres = centres_of(args, leaf)
        kernel_values(args, leaf, point, centres, capacity, size_of(args, leaf), features)
        self_kernel = pointer(float_array(args, FIELDS.sample), SAMPLE.self_kernel)
        kernel_values(args, leaf, point, point, 1, 1, self_kernel)


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def centres_of(args, leaf):
    """(dimension, capacity): the centres of a slot, one per column."""
    length = read_int(args, FIELDS.dimension) * read_int(args, FIELDS.capacity)
    return pointer(float_array(args, FIELDS.centres), leaf * length)


@inline
def copy_centre(args, leaf, j, out):
    """out = c_j."""
    centres = centres_of(args, leaf)
    for k in range(read_int(args, FIELDS.dimension)):
        out[k] = centres[k * read_int(args, FIELDS.capacity) + j]


@inline
def append_centre(args, leaf, coefficient):
    """The present point becomes the newest centre."""
    capacity = read_int(args, FIELDS.capacity)
    window = read_int(args, FIELDS.window)
    size = size_of(args, leaf)
    point = float_array(args, FIELDS.point)
    centres = centres_of(args, leaf)
    for k in range(read_int(args, FIELDS.dimension)):
        centres[k * capacity + size] = point[k]
    coefficients_of(args, leaf)[size] = coefficient
    sample = float_array(args, FIELDS.sample)
    float_array(args, FIELDS.point_features)[size] = sample[SAMPLE.self_kernel]
    float_array(args, FIELDS.size)[leaf] = size + 1
    # The new feature of the window's older samples: k(x, x_i).
    number = int(sample[SAMPLE.number])
    older = min(number, window - 1)
    if older == 0:
        return
    slide_period = read_int(args, FIELDS.slide_period)
    stride = read_int(args, FIELDS.history_length) + slide_period
    position = read_int(args, FIELDS.history_length) + number % slide_period
    inputs = pointer(float_array(args, FIELDS.inputs), position - older)  # (width, stride)
    values = float_array(args, FIELDS.recent_values)
    kernel_values(args, leaf, point, inputs, stride, older, values)
    rows = window_features_of(args, leaf)  # (window, capacity)
    for age in range(1, older + 1):
        rows[(number - age) % window * capacity + size] = values[older - age]


@inline
def remove_centre(args, leaf, j):
    """Remove centre j; those behind it move up."""
    capacity = read_int(args, FIELDS.capacity)
    size = size_of(args, leaf)
    centres = centres_of(args, leaf)
    for k in range(read_int(args, FIELDS.dimension)):
        delete_element(pointer(centres, k * capacity), size, j)
    delete_element(coefficients_of(args, leaf), size, j)
    delete_element(float_array(args, FIELDS.point_features), size, j)
    rows = window_features_of(args, leaf)
    for i in range(read_int(args, FIELDS.window)):
        delete_element(pointer(rows, i * capacity), size, j)
    float_array(args, FIELDS.size)[leaf] = size - 1


@inline
def norm_from_centres(args, leaf, values):
    """alpha' K alpha, one row of K at a time, for methods that keep no K; O(budget^2).

    `values` is scratch of capacity + dimension numbers.
    """
    capacity = read_int(args, FIELDS.capacity)
    size = size_of(args, leaf)
    centres = centres_of(args, leaf)
    coefficients = coefficients_of(args, leaf)
    point = pointer(values, capacity)
    total = 0.0
    for i in range(size):
        copy_centre(args, leaf, i, point)
        kernel_values(args, leaf, point, centres, capacity, size, values)
        value = 0.0  # f(c_i)
        for j in range(size):
            value += coefficients[j] * values[j]
        total += coefficients[i] * value
    return max(total, 0.0)

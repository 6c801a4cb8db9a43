"""Learners on centres: f = sum_j alpha_j k(c_j, .), with kept inputs c_j, oldest first."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.program import (
    PackedProgram,
    PackedStatistics,
    compute_statistics,
    evaluate,
    kernel_row,
    number_statistics,
)
from ..losses.objective import Objective
from ..native.arguments import floats, ints, lanes
from ..native.dense import delete_element
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, lane
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import FeatureLearner, Shapes
from .feature_steps import FIELDS, NUMBER, SELF_KERNEL, size_of

CENTRES = FIELDS.extended(
    "centres",
    row_length=int,  # of a row of kernel values, with centres or with the window's inputs
    program=ints(None, 3),  # the kernels' program, see `kernels.program`
    constants=lanes("leaves", None, 3),
    addresses=ints(None),  # of the statistics that the program reads
    source_parameters=floats(None),
    coordinates=ints(None),
    starts=ints(None),
    statistics=floats(None, 1, "row_length"),
    stack=lanes(None, "row_length"),  # scratch of the kernels' program
    recent_values=floats("row_length"),  # scratch
    centres=floats("leaves", "dimension", "capacity"),  # one per column
)


class CentresBase(FeatureLearner):
    """features(x)[j] = k(x, c_j). Subclasses are frozen dataclasses with a setting `budget`."""

    extra_capacity = 1  # a new centre may come before an old one is removed
    accepts_new_inputs: ClassVar[bool] = True
    budget: int

    def check_initial(self, objective: Objective, terms: int) -> None:
        """Where the state is centres, coefficients, K and sums from 0 on, f may start anywhere."""
        if not self.state_shapes(1, 1).keys() <= {"centres", "gram", "dropped", "squares"}:
            super().check_initial(objective, terms)
        self.check_terms(terms, self.budget, "budget")

    def start_from(self, group: SlotGroup, points: Floats, coefficients: Floats) -> None:
        """The points are the oldest centres."""
        state, terms = group.state, len(points)
        for leaf, (kernel, *_) in enumerate(group.kernels):
            gram = evaluate(kernel, points, points)
            state["size"][leaf] = terms
            state["centres"][leaf, :, :terms] = points.T
            state["coefficients"][leaf, :terms] = coefficients[leaf, :, 0]
            if "gram" in state:
                state["gram"][leaf, :terms, :terms] = gram
            group.start_norm(leaf, 0, coefficients[leaf, :, 0], gram)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.budget + self.extra_capacity

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {"centres": (dimension, capacity)}

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        row_length = max(self.capacity(kernel, dimension), objective.window)
        rows = 3 * kernel.instruction_count(dimension) + 6  # statistics, and the program's stack
        return super().scratch_size(objective, dimension, kernel) + rows * row_length

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
            "program": program.code,
            "constants": program.constants,
            "addresses": sources.addresses,
            "source_parameters": sources.parameters,
            "coordinates": sources.coordinates,
            "starts": sources.starts,
            "statistics": np.zeros((len(numbers), 1, row_length)),
            "stack": np.zeros((program.depth + 1, row_length, WIDTH)),
            "row_length": row_length,
            "recent_values": np.zeros(row_length),
        }

    @staticmethod
    @native(CENTRES)
    def compute_features(a, leaf, number):
        """point_features[j] = k(x, c_j), and k(x, x)."""
        x = a.point
        values_at_centres(a, leaf, x, a.point_features)
        kernel_values(a, leaf, x, x, 1, 1, a.sample[SELF_KERNEL:])


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def kernel_values(a, leaf, x, others, stride, count, out):
    """out[m] = k(x, t_m) for m < count, where others[k * stride + m] is coordinate k of t_m."""
    compute_statistics(a, x, others, stride, count)
    row = a.stack[0]
    kernel_row(a.program, a.constants[leaf], a.statistics, -1, 0, count, row, a.stack[1:])
    for m in range(count):
        out[m] = lane(row[m], 0)


@inline
def values_at_centres(a, leaf, x, out):
    """out[j] = k(x, c_j)."""
    kernel_values(a, leaf, x, a.centres[leaf, 0], a.capacity, size_of(a, leaf), out)


@inline
def copy_centre(a, leaf, j, out):
    """out = c_j."""
    for k in range(a.dimension):
        out[k] = a.centres[leaf, k, j]


@inline
def append_centre(a, leaf, coefficient):
    """The present point becomes the newest centre."""
    x = a.point
    size = size_of(a, leaf)
    for k in range(a.dimension):
        a.centres[leaf, k, size] = x[k]
    a.coefficients[leaf, size] = coefficient
    a.point_features[size] = a.sample[SELF_KERNEL]
    a.size[leaf] = size + 1
    # The new feature of the window's older samples: k(x, x_i).
    number = int(a.sample[NUMBER])
    older = min(number, a.window - 1)
    if older == 0:
        return
    position = a.history_length + number % a.slide_period
    inputs = a.inputs[0][position - older :]  # coordinate 0; the others follow
    values = a.recent_values  # k(x, x_i), oldest first
    kernel_values(a, leaf, x, inputs, a.history_length + a.slide_period, older, values)
    for age in range(1, older + 1):
        a.window_features[leaf, (number - age) % a.window, size] = values[older - age]


@inline
def remove_centre(a, leaf, j):
    """Remove centre j; those behind it move up."""
    size = size_of(a, leaf)
    for k in range(a.dimension):
        delete_element(a.centres[leaf, k], size, j)
    delete_element(a.coefficients[leaf], size, j)
    delete_element(a.point_features, size, j)
    for i in range(a.window):
        delete_element(a.window_features[leaf, i], size, j)
    a.size[leaf] = size - 1


@inline
def norm_from_centres(a, leaf, centre, values):
    """alpha' K alpha, one row of K at a time, for methods that keep no K; O(budget^2).

    `centre` (dimension,) and `values` (capacity,) are scratch.
    """
    size = size_of(a, leaf)
    alpha = a.coefficients[leaf]
    total = 0.0
    for i in range(size):
        copy_centre(a, leaf, i, centre)
        values_at_centres(a, leaf, centre, values)
        value = 0.0  # f(c_i)
        for j in range(size):
            value += alpha[j] * values[j]
        total += alpha[i] * value
    return max(total, 0.0)

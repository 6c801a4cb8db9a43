"""How kernel values are computed: statistics of pairs of inputs, and a program on a stack.

A kernel formula needs a *statistic* of two inputs, such as the squared distance or the dot product.
Statistics are computed once for all kernels that use the same one.

Sums and products of kernels need several statistics. So a kernel is a small program in postfix
order (operands first, then the operation), as on a pocket calculator with a stack: a Gaussian plus
half a linear kernel is EVALUATE Gaussian, EVALUATE Linear, SCALE 0.5, ADD. An elementary kernel has
a program of one instruction.

Values are computed in *rows*: the kernel values of one input with all terms of an expansion, oldest
first and the input itself last, for the four slots of a leaf: shape (terms, 4).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..native.formulas import (
    CONSTANTS,
    call_kernel,
    call_statistic,
    compile_kernel,
    compile_statistic,
    int_pointer,
    pointer,
)
from ..native.jit import entry, inline
from ..native.simd import WIDTH, load, store
from ..utils.validation import Floats

if TYPE_CHECKING:
    from .base import Kernel

EVALUATE, ADD, MULTIPLY, SCALE = 0, 1, 2, 3
"""Operations: push the values of a formula; add or multiply the two topmost; scale the topmost."""

# --- what a kernel states -------------------------------------------------------------------------


@dataclass(frozen=True)
class Statistic:
    """A number that a kernel formula needs of two inputs: a sum (or product) over coordinates.

    `step(total, x, t, parameter)` adds one coordinate; `start` is the total before the first.
    """

    step: Callable[..., Any]
    start: float = 0.0

    @cached_property
    def address(self) -> int:
        return int(_compiled_statistic(self.step, self.start).address)


@dataclass(frozen=True)
class BoundStatistic:
    """A statistic with its parameter and coordinates (None: all), as an instruction names it."""

    statistic: Any
    parameter: float = 0.0
    coordinates: tuple[int, ...] | None = None

    def on(self, coordinates: tuple[int, ...]) -> BoundStatistic:
        """The same for an input that consists of some coordinates of another."""
        own = self.coordinates
        chosen = coordinates if own is None else tuple(coordinates[k] for k in own)
        return replace(self, coordinates=chosen)


@dataclass(frozen=True)
class Instruction:
    """One step of a kernel's program. `formula(s, a, b, c)` is the value from the statistic s."""

    operation: int
    statistic: BoundStatistic | None = None
    formula: Callable[..., Any] | None = None
    constants: tuple[float, ...] = ()

    @property
    def structure_key(self) -> tuple[Any, ...]:
        """What slots must have in common to be computed together: all but the constants."""
        return (self.operation, self.statistic, self.formula)

    @property
    def address(self) -> int:
        return 0 if self.formula is None else int(_compiled_formula(self.formula).address)

    def on(self, coordinates: tuple[int, ...]) -> Instruction:
        """The same for an input that consists of some coordinates of another."""
        if self.statistic is None:
            return self
        return replace(self, statistic=self.statistic.on(coordinates))


@cache
def _compiled_statistic(step: Callable[..., Any], start: float) -> Any:
    return compile_statistic(step, start)


@cache
def _compiled_formula(formula: Callable[..., Any]) -> Any:
    return compile_kernel(formula)


# --- packed for the compiled loops ----------------------------------------------------------------


@dataclass(frozen=True)
class PackedProgram:
    """The programs of kernels of one structure, as arrays; four slots of a leaf at once."""

    code: np.ndarray
    """(instructions, 3): operation, number of the statistic, address of the formula."""
    constants: Floats
    """(leaves, instructions, 3, 4)."""
    depth: int
    """The most results on the stack."""

    @classmethod
    def none(cls) -> PackedProgram:
        """For learners that need no kernel values."""
        return cls(np.zeros((0, 3), dtype=np.int64), np.zeros((0, 0, CONSTANTS, WIDTH)), 0)

    @classmethod
    def pack(
        cls, kernels: list[list[Kernel]], number_of: dict[BoundStatistic, int], dimension: int
    ) -> PackedProgram:
        """`kernels[leaf]` holds up to four; missing ones repeat the leaf's first."""
        first = kernels[0][0].for_dimension(dimension).program()
        code = np.zeros((len(first), 3), dtype=np.int64)
        depth = most = 0
        for i, instruction in enumerate(first):
            code[i, 0] = instruction.operation
            code[i, 2] = instruction.address
            if instruction.statistic is not None:
                code[i, 1] = number_of[instruction.statistic]
                depth += 1
            elif instruction.operation != SCALE:
                depth -= 1
            most = max(most, depth)
        constants = np.zeros((len(kernels), len(first), CONSTANTS, WIDTH))
        for leaf, members in enumerate(kernels):
            for lane in range(WIDTH):
                kernel = members[lane] if lane < len(members) else members[0]
                for i, instruction in enumerate(kernel.for_dimension(dimension).program()):
                    given = instruction.constants
                    constants[leaf, i, : len(given), lane] = given
        return cls(code, constants, most)


@dataclass(frozen=True)
class PackedStatistics:
    """Statistics as arrays.

    Statistic s uses coordinates[starts[s]] up to, but not including, coordinates[starts[s + 1]].
    """

    addresses: np.ndarray
    parameters: Floats
    coordinates: np.ndarray
    starts: np.ndarray

    @classmethod
    def pack(cls, statistics: Iterable[BoundStatistic], dimension: int) -> PackedStatistics:
        listed = list(statistics)
        everything = tuple(range(dimension))
        chosen = [everything if s.coordinates is None else s.coordinates for s in listed]
        return cls(
            np.array([bound.statistic.address for bound in listed], dtype=np.int64),
            np.array([bound.parameter for bound in listed], dtype=np.float64),
            np.array([k for coordinates in chosen for k in coordinates], dtype=np.int64),
            np.cumsum([0, *map(len, chosen)], dtype=np.int64),
        )


def distinct_structures(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The first kernel of each structure: the others have the same statistics and instructions."""
    first: dict[tuple[Any, ...], Kernel] = {}
    for kernel in kernels:
        first.setdefault(kernel.structure_key, kernel)
    return list(first.values())


def number_statistics(kernels: Iterable[Kernel], dimension: int) -> dict[BoundStatistic, int]:
    """All statistics that the kernels need, numbered in order of first use."""
    numbers: dict[BoundStatistic, int] = {}
    for kernel in distinct_structures(kernels):
        for instruction in kernel.for_dimension(dimension).program():
            if instruction.statistic is not None:
                numbers.setdefault(instruction.statistic, len(numbers))
    return numbers


def evaluate(kernel: Kernel, X: Floats, Z: Floats) -> Floats:
    """(n, m): the kernel values of (n, d) and (m, d) inputs, by the program that learners use."""
    dimension = X.shape[1]
    numbers = number_statistics([kernel], dimension)
    program = PackedProgram.pack([[kernel]], numbers, dimension)
    packed = PackedStatistics.pack(numbers, dimension)
    statistics = np.empty((len(numbers), len(X) + 1, len(Z) + 1))
    compare(
        packed.addresses,
        packed.parameters,
        packed.coordinates,
        packed.starts,
        X,
        np.ascontiguousarray(Z.T),
        0,
        len(Z),
        statistics,
    )
    values = np.zeros((len(X), len(Z)))
    _kernel_matrix(program.code, program.constants, statistics, program.depth, values)
    return values


# --- compiled -------------------------------------------------------------------------------------


@inline
def copy_terms(inputs, stride, start, history_length, dimension, terms):
    """terms[k, m] = inputs[k, start + m] for m < history_length; terms: (d, history_length + 1)."""
    for k in range(dimension):
        for m in range(history_length):
            terms[k * (history_length + 1) + m] = inputs[k * stride + start + m]


@inline
def set_last_term(point, dimension, terms, history_length):
    """terms[k, history_length] = point[k]: an input is compared with itself too, last."""
    for k in range(dimension):
        terms[k * (history_length + 1) + history_length] = point[k]


@entry
def compare(
    addresses, parameters, coordinates, starts, points, inputs, start, history_length, statistics
):
    """statistics[s, t + 1] = statistic s of points[t] with inputs start .. and with itself.

    points: (n, d); inputs: (d, positions); statistics: (statistics, n + 1, history_length + 1).
    """
    dimension = points.shape[1]
    terms = np.empty((dimension, history_length + 1))
    copy_terms(
        pointer(inputs, 0), inputs.shape[1], start, history_length, dimension, pointer(terms, 0)
    )
    for t in range(points.shape[0]):
        point = pointer(points, t * dimension)
        set_last_term(point, dimension, pointer(terms, 0), history_length)
        for s in range(statistics.shape[0]):
            call_statistic(
                addresses[s],
                point,
                pointer(terms, 0),
                history_length + 1,
                history_length + 1,
                int_pointer(coordinates, starts[s]),
                starts[s + 1] - starts[s],
                pointer(parameters, s),
                pointer(statistics, (s * statistics.shape[1] + t + 1) * (history_length + 1)),
            )


@inline
def kernel_row(program, constants, statistics, t, column, count, row, stack):
    """row[m] = the kernel values of a leaf's four slots with term m, for m < count.

    program: (instructions, 3) of operation, statistic number, address of the formula; constants:
    (instructions, 3) lanes; statistics: (statistics, steps, terms), read at step t + 1 from
    `column` on; row: lanes; stack: (depth, count) lanes, scratch. The lowest result of the stack is
    `row` itself.
    """
    depth = 0  # results on the stack
    for i in range(len(program)):
        operation = program[i, 0]
        if operation == EVALUATE:
            target = row if depth == 0 else stack[depth - 1]
            statistic = statistics[program[i, 1], t + 1][column:]
            call_kernel(program[i, 2], statistic, count, constants[i], target)
            depth += 1
            continue
        if operation == SCALE:
            top = row if depth == 1 else stack[depth - 2]
            for m in range(count):
                top[m] = top[m] * constants[i, 0]
            continue
        depth -= 1
        below = row if depth == 1 else stack[depth - 2]
        top = stack[depth - 1]
        if operation == ADD:
            for m in range(count):
                below[m] = below[m] + top[m]
        else:
            for m in range(count):
                below[m] = below[m] * top[m]


@inline
def repeats(program, repeated, t):
    """Whether all statistics of the program repeat at step t, so that the kernel row does too.

    repeated: (statistics, steps - 1).
    """
    for i in range(len(program)):
        if program[i, 0] == EVALUATE and repeated[program[i, 1], t] == 0:
            return False
    return True


@inline
def kernel_row_of_pointers(
    instructions,
    program,
    constants,
    leaf,
    statistics,
    steps,
    width,
    t,
    column,
    count,
    row,
    stack,
):
    """row[m] = the kernel values of a leaf's four slots with term m, for m < count: (count, 4).

    program: (instructions, 3) of operation, statistic number, address of the formula; constants:
    (leaves, instructions, 3, 4); statistics: (statistics, steps, width), read at step t + 1 from
    `column` on; stack: (depth, count, 4), scratch. The lowest result of the stack is `row` itself.
    """
    depth = 0  # results on the stack
    for i in range(instructions):
        operation = program[3 * i]
        if operation == EVALUATE:
            target = row if depth == 0 else pointer(stack, (depth - 1) * count * WIDTH)
            source = (program[3 * i + 1] * steps + t + 1) * width + column
            own = (leaf * instructions + i) * CONSTANTS * WIDTH
            call_kernel(
                program[3 * i + 2],
                pointer(statistics, source),
                count,
                pointer(constants, own),
                target,
            )
            depth += 1
            continue
        if operation == SCALE:
            top = row if depth == 1 else pointer(stack, (depth - 2) * count * WIDTH)
            factor = load(constants, (leaf * instructions + i) * CONSTANTS)
            for m in range(count):
                store(top, m, load(top, m) * factor)
            continue
        depth -= 1
        below = row if depth == 1 else pointer(stack, (depth - 2) * count * WIDTH)
        top = pointer(stack, (depth - 1) * count * WIDTH)
        if operation == ADD:
            for m in range(count):
                store(below, m, load(below, m) + load(top, m))
        else:
            for m in range(count):
                store(below, m, load(below, m) * load(top, m))


@entry
def _kernel_matrix(program, constants, statistics, depth, values):
    """values[i, j] = the kernel value of input i and term j, for the first slot."""
    count = values.shape[1]
    buffer = np.zeros((depth + 1, max(count, 1), WIDTH))
    code = np.zeros(program.size, np.int64)
    code[:] = program.ravel()
    for i in range(values.shape[0]):
        kernel_row_of_pointers(
            program.shape[0],
            code,
            constants,
            0,
            statistics,
            statistics.shape[1],
            statistics.shape[2],
            i,
            0,
            count,
            pointer(buffer, 0),
            pointer(buffer, count * WIDTH),
        )
        for j in range(count):
            values[i, j] = buffer[0, j, 0]

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
from typing import TYPE_CHECKING, Any

import numpy as np

from ..native.arguments import Arguments, floats, ints, lanes
from ..native.formulas import CONSTANTS, StatisticFormula, call_kernel, call_statistic
from ..native.functions import CompiledFunction, native
from ..native.jit import inline
from ..native.simd import WIDTH, lane
from ..native.views import row_length
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
    name: str
    """In the core."""
    start: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", StatisticFormula(self.step, self.start))

    @property
    def address(self) -> int:
        return int(self._compiled.address)  # type: ignore[attr-defined]


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
    formula: CompiledFunction | None = None
    constants: tuple[float, ...] = ()

    @property
    def structure_key(self) -> tuple[Any, ...]:
        """What slots must have in common to be computed together: all but the constants."""
        return (self.operation, self.statistic, self.formula)

    @property
    def address(self) -> int:
        return 0 if self.formula is None else self.formula.address

    def on(self, coordinates: tuple[int, ...]) -> Instruction:
        """The same for an input that consists of some coordinates of another."""
        if self.statistic is None:
            return self
        return replace(self, statistic=self.statistic.on(coordinates))


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
            for k in range(WIDTH):
                kernel = members[k] if k < len(members) else members[0]
                for i, instruction in enumerate(kernel.for_dimension(dimension).program()):
                    given = instruction.constants
                    constants[leaf, i, : len(given), k] = given
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

    def arguments(self) -> dict[str, Any]:
        """The values of STATISTICS."""
        return {"statistic_count": len(self.addresses), **vars(self)}


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
        len(X),
        dimension=dimension,
        history_length=len(Z),
        start=0,
        **packed.arguments(),
        points=np.ascontiguousarray(X),
        inputs=np.ascontiguousarray(Z.T),
        terms=np.empty((dimension, len(Z) + 1)),
        statistics=statistics,
    )
    values = np.zeros((len(X), len(Z)))
    _kernel_matrix(
        len(X),
        program=program.code,
        constants=program.constants,
        statistics=statistics,
        stack=np.empty((program.depth + 1, max(len(Z), 1), WIDTH)),
        values=values,
    )
    return values


# --- compiled -------------------------------------------------------------------------------------


STATISTICS = Arguments(
    "statistics",
    statistic_count=int,
    addresses=ints("statistic_count"),  # of the C functions
    parameters=floats("statistic_count"),
    coordinates=ints(None),  # of all statistics, one after the other
    starts=ints("statistic_count + 1"),  # of each statistic's coordinates
)


@inline
def statistic_row(a, s, point, terms, count, out):
    """out[m] = statistic s of the point (d,) with terms[:, m], for m < count. terms: (d, .)."""
    start = a.starts[s]
    call_statistic(
        a.addresses[s],
        point,
        terms,
        row_length(terms),
        count,
        a.coordinates[start:],
        a.starts[s + 1] - start,
        a.parameters[s:],
        out,
    )


@inline
def copy_terms(inputs, start, terms):
    """terms[k, m] = inputs[k, start + m] but for the last m; terms: (d, history_length + 1)."""
    for k in range(len(terms)):
        for m in range(row_length(terms) - 1):
            terms[k, m] = inputs[k, start + m]


@inline
def set_last_term(point, terms):
    """terms[k, -1] = point[k]: an input is compared with itself too, last."""
    for k in range(len(terms)):
        terms[k, row_length(terms) - 1] = point[k]


@native(
    STATISTICS.extended(
        "compare",
        dimension=int,
        history_length=int,
        start=int,
        points=floats(None, "dimension"),
        inputs=floats("dimension", None),
        terms=floats("dimension", "history_length + 1"),  # scratch
        statistics=floats("statistic_count", None, "history_length + 1"),
    )
)
def compare(a, first, count):
    """statistics[s, t + 1] = statistic s of points[t] with inputs start .. and with itself."""
    copy_terms(a.inputs, a.start, a.terms)
    for t in range(count):
        set_last_term(a.points[t], a.terms)
        for s in range(a.statistic_count):
            row = a.statistics[s, t + 1]
            statistic_row(a, s, a.points[t], a.terms, a.history_length + 1, row)


@inline
def compute_statistics(a, x, others, stride, count):
    """statistics[s, 0, m] = statistic s of x and t_m, m < count, for those that the program reads.

    others[k * stride + m] is coordinate k of t_m. a: has program, addresses, coordinates, starts,
    source_parameters and statistics.
    """
    for i in range(len(a.program)):
        if a.program[i, 0] == EVALUATE:
            source = a.program[i, 1]
            start, end = a.starts[source], a.starts[source + 1]
            call_statistic(
                a.addresses[source],
                x,
                others,
                stride,
                count,
                a.coordinates[start:],
                end - start,
                a.source_parameters[source:],
                a.statistics[source, 0],
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


@native(
    Arguments(
        "kernel_matrix",
        program=ints(None, 3),
        constants=lanes(1, None, 3),
        statistics=floats(None, None, None),
        stack=lanes(None, None),
        values=floats(None, None),
    )
)
def _kernel_matrix(a, first, count):
    """values[i, j] = the kernel value of input i and term j, for the first slot."""
    row = a.stack[0]
    for i in range(count):
        terms = len(a.values[i])
        kernel_row(a.program, a.constants[0], a.statistics, i, 0, terms, row, a.stack[1:])
        for j in range(terms):
            a.values[i, j] = lane(row[j], 0)

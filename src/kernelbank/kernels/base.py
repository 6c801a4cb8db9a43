"""What a kernel is: one formula, and an algebra of sums, products and positive multiples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from ..io.specs import Copied
from ..native.formulas import CONSTANTS, Callback, compile_kernel, compile_statistic
from ..native.simd import WIDTH
from ..utils import validation as check
from ..utils.validation import Floats
from . import kernel_rows as hot

LOG2E = 1 / math.log(2)


@dataclass(frozen=True)
class Statistic:
    """What a kernel computes from two inputs before its profile: a sum over the coordinates.

    `step(total, x, t, parameter)` takes in one coordinate; `start` is the total before the first.
    Kernels with equal statistics share the computation.
    """

    step: Callable[..., Any]
    start: float = 0.0

    @cached_property
    def address(self) -> int:
        return int(_compiled_statistic(self.step, self.start).address)


@cache
def _compiled_statistic(step: Callable[..., Any], start: float) -> Any:
    return compile_statistic(step, start)


@cache
def _compiled_profile(profile: Callable[..., Any]) -> Any:
    return compile_kernel(profile)


@dataclass(frozen=True)
class BoundStatistic:
    """A statistic with its parameter and coordinates (None: all), as a program refers to it."""

    statistic: Any
    parameter: float = 0.0
    coordinates: tuple[int, ...] | None = None

    def on(self, coordinates: tuple[int, ...]) -> BoundStatistic:
        """The same for an input that is made of some coordinates of another."""
        own = self.coordinates
        chosen = coordinates if own is None else tuple(coordinates[k] for k in own)
        return replace(self, coordinates=chosen)


@dataclass(frozen=True)
class Instruction:
    """One step of a kernel's postfix program (see `_hot.rows`)."""

    operation: int
    source: BoundStatistic | None = None
    profile: Callable[..., Any] | None = None
    constants: tuple[float, ...] = ()

    @property
    def structure_key(self) -> tuple[Any, ...]:
        """What slots must have in common to run side by side: all but the constants."""
        return (self.operation, self.source, self.profile)

    @property
    def address(self) -> int:
        return 0 if self.profile is None else int(_compiled_profile(self.profile).address)

    def on(self, coordinates: tuple[int, ...]) -> Instruction:
        """The same for an input that is made of some coordinates of another."""
        if self.source is None:
            return self
        return replace(self, source=self.source.on(coordinates))


class Kernel(Copied):
    """A positive-definite function k(x, t).

    Call a kernel with two arrays, (n, d) and (m, d), for the (n, m) matrix of its values. Kernels
    add, multiply with each other and with positive numbers:

    >>> import kernelbank as kb
    >>> k = kb.kernels.Gaussian(width=1.0) + 0.5 * kb.kernels.Linear(offset=0.0)
    >>> k([[0.0], [1.0]], [[0.0]]).round(3).tolist()
    [[1.0], [0.607]]
    """

    domain: ClassVar[str] = "real"
    """"real", or "non-negative" for kernels that are defined only there."""

    pairwise: ClassVar[bool] = True
    """Whether k(x, t) follows from x and t alone, so that there is a program for it."""

    def program(self) -> tuple[Instruction, ...]:
        """The postfix program that computes this kernel."""
        raise NotImplementedError

    def for_dimension(self, dimension: int) -> Kernel:
        """The kernel that this one is for inputs of so many coordinates; that one has a program."""
        return self

    def check_width(self, width: int, name: str) -> None:
        """Refuse inputs that lack a coordinate which the kernel looks at."""

    @property
    def structure_key(self) -> tuple[Any, ...]:
        """Kernels of equal shape differ only in constants, and are computed side by side."""
        return tuple(instruction.structure_key for instruction in self.program())

    @property
    def domains(self) -> frozenset[str]:
        """The domains of this kernel and of its parts."""
        return frozenset([self.domain])

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The user's Python functions inside this kernel."""
        sources = (i.source.statistic for i in self.program() if i.source is not None)
        return tuple(s.callback for s in sources if hasattr(s, "callback"))

    def __call__(self, X: Any, Z: Any) -> Floats:
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        self.check_width(left.shape[1], "X")
        for name, inputs in (("X", left), ("Z", right)):
            self.check_inputs(inputs, name)
        values = evaluate(self, left, right)
        for callback in self.callbacks:
            callback.check()
        return values

    def check_inputs(self, X: Floats, name: str) -> None:
        """Refuse inputs outside the kernel's domain."""
        if "non-negative" in self.domains and X.size and X.min() < 0:
            raise check.refuse(
                name,
                f"be non-negative for {self!r}",
                float(X.min()),
                "Shift or rescale the inputs, or use another kernel.",
            )

    def __add__(self, other: Any) -> Kernel:
        from .algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from .algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other)

    def __rmul__(self, factor: Any) -> Kernel:
        return self * factor


class Elementary(Kernel):
    """A kernel of one formula: profile(statistic(x, t), constants)."""

    statistic: ClassVar[Statistic]
    profile: ClassVar[Callable[..., Any]]

    def constants(self) -> tuple[float, ...]:
        """Up to three numbers that the profile takes as a, b, c."""
        return ()

    def parameter(self) -> float:
        """The number that the statistic takes, if any."""
        return 0.0

    def formula(self) -> Callable[..., Any]:
        """The profile, where it depends on a field."""
        return type(self).profile

    def program(self) -> tuple[Instruction, ...]:
        source = BoundStatistic(self.statistic, self.parameter())
        return (Instruction(hot.EVALUATE, source, self.formula(), self.constants()),)


@dataclass(frozen=True)
class PackedProgram:
    """The programs of kernels of one shape, packed for the loops: leaves of four side by side."""

    code: np.ndarray
    constants: Floats
    depth: int

    @classmethod
    def none(cls) -> PackedProgram:
        """For learners that never ask for kernel values."""
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
            if instruction.source is not None:
                code[i, 1] = number_of[instruction.source]
                depth += 1
            elif instruction.operation != hot.SCALE:
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
    """Statistics one after the other, packed for the loops.

    Statistic s looks at coordinates[starts[s]] up to, and without, coordinates[starts[s + 1]].
    """

    addresses: np.ndarray
    parameters: Floats
    coordinates: np.ndarray
    starts: np.ndarray

    @classmethod
    def pack(cls, sources: Iterable[BoundStatistic], dimension: int) -> PackedStatistics:
        listed = list(sources)
        everything = tuple(range(dimension))
        chosen = [everything if s.coordinates is None else s.coordinates for s in listed]
        return cls(
            np.array([source.statistic.address for source in listed], dtype=np.int64),
            np.array([source.parameter for source in listed], dtype=np.float64),
            np.array([k for coordinates in chosen for k in coordinates], dtype=np.int64),
            np.cumsum([0, *map(len, chosen)], dtype=np.int64),
        )


def distinct_structures(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The first kernel of every shape: the others have the same statistics and instructions."""
    first: dict[tuple[Any, ...], Kernel] = {}
    for kernel in kernels:
        first.setdefault(kernel.structure_key, kernel)
    return list(first.values())


def number_statistics(kernels: Iterable[Kernel], dimension: int) -> dict[BoundStatistic, int]:
    """Every statistic that the kernels need, numbered in order of first use."""
    numbers: dict[BoundStatistic, int] = {}
    for kernel in distinct_structures(kernels):
        for instruction in kernel.for_dimension(dimension).program():
            if instruction.source is not None:
                numbers.setdefault(instruction.source, len(numbers))
    return numbers


def evaluate(kernel: Kernel, X: Floats, Z: Floats) -> Floats:
    """The matrix of kernel values, by the same row programs that the learners use."""
    dimension = X.shape[1]
    numbers = number_statistics([kernel], dimension)
    program = PackedProgram.pack([[kernel]], numbers, dimension)
    sources = PackedStatistics.pack(numbers, dimension)
    statistics = np.empty((len(numbers), len(X) + 1, len(Z) + 1))
    hot.compare(
        sources.addresses,
        sources.parameters,
        sources.coordinates,
        sources.starts,
        X,
        np.ascontiguousarray(Z.T),
        0,
        len(Z),
        statistics,
    )
    values = np.zeros((len(X), len(Z)))
    hot.kernel_matrix(program.code, program.constants, statistics, program.depth, values)
    return values

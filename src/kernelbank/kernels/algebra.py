"""Sums, products and positive multiples of kernels, which are kernels again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..native.formulas import Callback
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Kernel
from .program import ADD, MULTIPLY, SCALE, Instruction


def require_kernel(name: str, value: Any, owner: str, *, pairwise: bool = True) -> None:
    """Refuse a part that is not a kernel, or that is not pairwise where it must be."""
    if not isinstance(value, Kernel):
        raise check.refuse(
            name, "be a kernel", value, "Use one of kb.kernels, or Custom for your own.", owner
        )
    if pairwise and not value.pairwise:
        remedy = "Give it a slot of its own: a bank combines slots."
        raise check.refuse(name, "be a function of two inputs alone", value, remedy, owner)


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        require_kernel("left", self.left, type(self).__name__)
        require_kernel("right", self.right, type(self).__name__)

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.left.structure_key, self.right.structure_key)

    @property
    def domains(self) -> frozenset[str]:
        return self.left.domains | self.right.domains

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        return (*self.left.callbacks, *self.right.callbacks)

    def for_dimension(self, dimension: int) -> Kernel:
        return type(self)(self.left.for_dimension(dimension), self.right.for_dimension(dimension))

    def check_width(self, width: int, name: str) -> None:
        self.left.check_width(width, name)
        self.right.check_width(width, name)

    def check_inputs(self, X: Floats, name: str) -> None:
        self.left.check_inputs(X, name)
        self.right.check_inputs(X, name)


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, t) = left(x, t) + right(x, t); written `left + right`."""

    def program(self) -> tuple[Instruction, ...]:
        return (*self.left.program(), *self.right.program(), Instruction(ADD))


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, t) = left(x, t) * right(x, t); written `left * right`."""

    def program(self) -> tuple[Instruction, ...]:
        return (*self.left.program(), *self.right.program(), Instruction(MULTIPLY))


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, t) = factor * kernel(x, t) with factor > 0; written `factor * kernel`."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        require_kernel("kernel", self.kernel, "Scaled")
        remedy = "Scale a kernel by a positive number only: a kernel is positive definite."
        factor = check.number("factor", self.factor, "Scaled", remedy, above=0)
        object.__setattr__(self, "factor", factor)

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return ("Scaled", self.kernel.structure_key)

    @property
    def domains(self) -> frozenset[str]:
        return self.kernel.domains

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        return self.kernel.callbacks

    def for_dimension(self, dimension: int) -> Kernel:
        return Scaled(self.kernel.for_dimension(dimension), self.factor)

    def check_width(self, width: int, name: str) -> None:
        self.kernel.check_width(width, name)

    def check_inputs(self, X: Floats, name: str) -> None:
        self.kernel.check_inputs(X, name)

    def program(self) -> tuple[Instruction, ...]:
        return (*self.kernel.program(), Instruction(SCALE, constants=(self.factor,)))

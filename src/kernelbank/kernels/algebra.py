"""Sums, products and positive multiples of kernels, which are kernels again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _validate as check
from .._hot import rows as hot
from .base import Instruction, Kernel


def _require_kernel(name: str, value: Any, owner: str) -> None:
    if not isinstance(value, Kernel):
        raise check.refuse(
            name, "be a kernel", value, "Use one of kb.kernels, or Custom for your own.", owner
        )
    if not value.pairwise:
        remedy = "Give it a slot of its own: a bank adds slots up."
        raise check.refuse(name, "be a function of two inputs alone", value, remedy, owner)


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        _require_kernel("left", self.left, type(self).__name__)
        _require_kernel("right", self.right, type(self).__name__)

    @property
    def domains(self) -> frozenset[str]:
        return self.left.domains | self.right.domains


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, t) = left(x, t) + right(x, t); written `left + right`."""

    def program(self) -> tuple[Instruction, ...]:
        return (*self.left.program(), *self.right.program(), Instruction(hot.ADD))


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, t) = left(x, t) * right(x, t); written `left * right`."""

    def program(self) -> tuple[Instruction, ...]:
        return (*self.left.program(), *self.right.program(), Instruction(hot.MULTIPLY))


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, t) = factor * kernel(x, t) with factor > 0; written `factor * kernel`."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        _require_kernel("kernel", self.kernel, "Scaled")
        remedy = "Scale a kernel by a positive number only: a kernel is positive definite."
        factor = check.number("factor", self.factor, "Scaled", remedy, above=0)
        object.__setattr__(self, "factor", factor)

    @property
    def domains(self) -> frozenset[str]:
        return self.kernel.domains

    def program(self) -> tuple[Instruction, ...]:
        return (*self.kernel.program(), Instruction(hot.SCALE, constants=(self.factor,)))

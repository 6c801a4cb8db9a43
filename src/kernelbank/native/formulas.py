"""How a formula gets into a compiled loop: as the address of a C function on arrays.

A learner's loop is compiled once. The formulas that differ from bank to bank (which kernel, which
loss) are small C functions with one of these signatures, and the loop gets their addresses:

- a *statistic* of a pair compares one input with many: s[m] = start, then
  s[m] = step(s[m], x[k], t[k, m], parameter) for each coordinate k. Squared distance and dot
  product are statistics. A statistic is computed once for all kernels that use it.
- a *kernel formula* turns a statistic into the kernel values of four slots:
  k = formula(s, a, b, c), where a, b, c hold one constant per slot.
- a *loss formula* maps rows of four predictions and four targets, element by element.
- a *transform formula* of targets is one that ignores its second argument.

Built-in formulas are compiled from one expression each. A user's Python function is called back
through a C function of the same signature (see `callbacks`), so there is one loop for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .functions import CompiledFunction
from .library import COMPILING, compiled_only

if COMPILING:
    from .llvm.calls import address_of, call_kernel, call_loss, call_phase, call_statistic
else:
    address_of = call_kernel = call_loss = call_phase = call_statistic = compiled_only

__all__ = [
    "CONSTANTS",
    "StatisticFormula",
    "address_of",
    "call_kernel",
    "call_loss",
    "call_phase",
    "call_statistic",
    "kernel_formula",
    "loss_formula",
    "transform_formula",
]

CONSTANTS = 3
"""Constants a, b, c of a kernel formula; each has one value per lane."""


class StatisticFormula(CompiledFunction):
    """A statistic, from step(total, x, t, parameter) for one coordinate and its start."""

    def __init__(self, step: Callable[..., Any], start: float) -> None:
        super().__init__(step, "statistic")
        self.start = start

    def compile(self) -> Any:
        from .llvm.compiling import compile_statistic

        return compile_statistic(self.function, self.start, self.symbol)


class _KernelFormula(CompiledFunction):
    def compile(self) -> Any:
        from .llvm.compiling import compile_kernel

        return compile_kernel(self.function, self.symbol)


class _LossFormula(CompiledFunction):
    def compile(self) -> Any:
        from .llvm.compiling import compile_loss

        return compile_loss(self.function, self.symbol)


def kernel_formula(formula: Callable[..., Any]) -> CompiledFunction:
    """Compile the decorated formula(s, a, b, c): kernel values from a statistic, in lanes."""
    return _KernelFormula(formula, "kernel")


def loss_formula(formula: Callable[..., Any]) -> CompiledFunction:
    """Compile the decorated formula(f, y, p): a loss or its derivative, in lanes."""
    return _LossFormula(formula, "loss")


def transform_formula(formula: Callable[..., Any]) -> CompiledFunction:
    """Compile the decorated formula(v, _, p): a transform of targets or its inverse, in lanes."""
    return _LossFormula(formula, "loss")

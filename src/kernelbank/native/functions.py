"""Compiled functions: every one has a symbol in the library, and is known to the builder.

    @native(ARGUMENTS)
    def learn_block(a, first, count): ...

compiles a function of typed arguments (see `arguments`). `first` is the number of a block's first
sample and `count` the number of samples; functions that are not about samples use them as they
like. Formulas of kernels and losses (see `formulas`) are compiled functions too.

The address of a function comes from the library; without one it is compiled just in time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

from .arguments import Arguments
from .library import LIBRARY
from .table import Table

REGISTRY: dict[str, CompiledFunction] = {}
"""All compiled functions by symbol."""

C_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""A function of typed arguments for ctypes: address of the table, first, count."""

_ON_TABLE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
"""The same without first and count, for functions that do not read them: half the time."""


class CompiledFunction:
    """A function that is called from compiled code, by its address."""

    def __init__(self, function: Callable[..., Any], kind: str, variant: str = "") -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        module = function.__module__.removeprefix("kernelbank.")
        parts = [kind, module, function.__qualname__, *([variant] if variant else [])]
        symbol = "kb_" + "_".join(parts).replace(".", "_").replace("<locals>", "")
        self.symbol = symbol
        REGISTRY.setdefault(symbol, self)

    def compile(self) -> Any:
        """The function compiled by Numba."""
        raise NotImplementedError

    @cached_property
    def _compiled(self) -> Any:
        return self.compile()

    @cached_property
    def address(self) -> int:
        """The address of the C function."""
        if LIBRARY is None:
            return int(self._compiled.address)
        if self.symbol not in LIBRARY:
            raise TypeError(
                f"{self.function.__qualname__} is not in the compiled library of kernelbank. For "
                "compiled functions of your own, install Numba and set KERNELBANK_NATIVE=jit."
            )
        return LIBRARY.address(self.symbol)


class NativeFunction(CompiledFunction):
    """A compiled function(a, first, count) of typed arguments."""

    def __init__(
        self, function: Callable[..., None], arguments: Arguments, variant: str = ""
    ) -> None:
        super().__init__(function, "function", variant)
        self.arguments = arguments

    def compile(self) -> Any:
        from .llvm.compiling import compile_function

        return compile_function(self.function, self.arguments, self.symbol)

    @cached_property
    def call(self) -> Any:
        """call(address of the table, first, count), without the interpreter's lock."""
        return C_FUNCTION(self.address)

    @cached_property
    def call_on_table(self) -> Any:
        """call(address of the table), for a function that reads neither first nor count."""
        return _ON_TABLE(self.address)

    def with_arguments(self, arguments: Arguments) -> NativeFunction:
        """The same function compiled for arguments of other types."""
        own = self.function
        copied = FunctionType(own.__code__, own.__globals__, own.__name__, closure=own.__closure__)
        copied.__qualname__, copied.__module__ = own.__qualname__, own.__module__
        copied.__doc__ = own.__doc__
        return NativeFunction(copied, arguments, arguments.name)

    def __call__(self, count: int = 0, /, **values: Any) -> None:
        """Call it once with these arguments, as function(a, 0, count)."""
        self.at(0, count, **values)

    def at(self, first: int, count: int, /, **values: Any) -> None:
        """Call it once with these arguments, as function(a, first, count)."""
        table = Table(self.arguments, values)
        self.call(table.address, first, count)


def native(arguments: Arguments) -> Callable[[Callable[..., None]], NativeFunction]:
    """Compile the decorated function(a, first, count), where `a` has these arguments."""
    return lambda function: NativeFunction(function, arguments)

"""From Python functions to C functions, by Numba."""

from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any

from numba.core import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic, register_jitable

from ..arguments import DEBUG, Arguments
from ..progress import progress
from .calls import KERNEL, LOSS, STATISTIC
from .code_cache import CodeCache
from .fingerprint import fingerprint
from .simd import LANES, WIDTH, emit_load, emit_store
from .views import ArgumentsType

Formula = Callable[..., Any]


class _CFunction(CFunc):  # type: ignore[misc]
    def _compile_uncached(self) -> Any:  # called if the function is not on disk
        progress.compiling()
        return super()._compile_uncached()


def _compile(signature: Any, function: Formula, name: str) -> Any:
    own = FunctionType(
        function.__code__, function.__globals__, function.__name__, closure=function.__closure__
    )
    own.__module__, own.__qualname__ = function.__module__, name  # a cache file of its own
    kinds = (signature.args, signature.return_type)
    compiled = _CFunction(own, kinds, {}, {"nopython": True, "error_model": "numpy"})
    if DEBUG:  # such code holds an address of this process, and must not be found by another
        compiled.compile()
        return compiled
    # Numba would look only at the file that defines the function, not at all that it reaches.
    with suppress(RuntimeError):  # no writable folder: compile in every process instead
        compiled._cache = CodeCache(own, fingerprint(function))
    compiled.compile()
    return compiled


@intrinsic
def _load(typingctx, start, row):
    """Row number `row` of rows of four float64."""

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.int64)
        offset = builder.mul(index, index.type(WIDTH))
        return emit_load(builder, builder.gep(args[0], [offset]), "float64")

    return LANES(start, row), codegen


@intrinsic
def _store(typingctx, start, row, value):
    """Write lanes, or one number for all four, to row number `row`."""

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.int64)
        offset = builder.mul(index, index.type(WIDTH))
        lanes = context.cast(builder, args[2], sig.args[2], LANES)
        emit_store(builder, builder.gep(args[0], [offset]), lanes)
        return context.get_dummy_value()

    return types.void(start, row, value), codegen


@intrinsic
def _from(typingctx, start, offset):
    """The address `offset` numbers later."""

    def codegen(context, builder, sig, args):
        return builder.gep(args[0], [context.cast(builder, args[1], sig.args[1], types.int64)])

    return start(start, offset), codegen


def compile_statistic(step: Formula, start: float, name: str) -> Any:
    """The C function of a statistic, from its step for one coordinate."""
    step = register_jitable(step)

    def statistic(x, inputs, stride, count, coordinates, width, parameters, out):
        parameter = parameters[0]
        for m in range(count):
            out[m] = start
        for k in range(width):
            coordinate = x[coordinates[k]]
            others = _from(inputs, coordinates[k] * stride)
            for m in range(count):
                out[m] = step(out[m], coordinate, others[m], parameter)

    return _compile(STATISTIC, statistic, name)


def compile_kernel(formula: Formula, name: str) -> Any:
    """The C function of a kernel formula, from its expression in s and the constants a, b, c."""
    formula = register_jitable(formula)

    def kernel(statistic, count, constants, out):
        a = _load(constants, 0)
        b = _load(constants, 1)
        c = _load(constants, 2)
        for m in range(count):
            _store(out, m, formula(statistic[m], a, b, c))

    return _compile(KERNEL, kernel, name)


def compile_loss(formula: Formula, name: str) -> Any:
    """The C function of a loss, or of its derivative, from its expression in f, y and p."""
    formula = register_jitable(formula)

    def loss(predictions, targets, rows, parameters, out):
        p = parameters[0]
        for i in range(rows):
            _store(out, i, formula(_load(predictions, i), _load(targets, i), p))

    return _compile(LOSS, loss, name)


def compile_function(function: Formula, arguments: Arguments, name: str) -> Any:
    """The C function of function(a, first, count)."""
    signature = types.void(ArgumentsType(arguments), types.int64, types.int64)
    return _compile(signature, function, name)

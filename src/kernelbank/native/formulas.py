"""How a formula gets into a compiled loop: as the address of a C function on arrays.

A learner's loop is compiled once. The formulas that differ from bank to bank (which kernel, which
loss) are small C functions with one of these signatures, and the loop gets their addresses:

- a *statistic* of a pair compares one input with many: s[m] = start, then
  s[m] = step(s[m], x[k], t[k, m], parameter) for each coordinate k. Squared distance and dot
  product are statistics. A statistic is computed once for all kernels that use it.
- a *kernel formula* turns a statistic into the kernel values of four slots:
  k = formula(s, a, b, c), where a, b, c hold one constant per slot.
- a *loss formula* maps rows of four predictions and four targets, element by element.
- a *phase* works on a block of samples (see `phases`).

Built-in formulas are compiled by Numba from one expression each. A user's Python function is
called back through a C function of the same signature, so there is one loop for both.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic, register_jitable

from .jit import cached
from .progress import progress
from .simd import WIDTH, load, store
from .views import ArgumentsType, ViewType

Formula = Callable[..., Any]

_POINTER = types.CPointer(types.float64)
INT_POINTER = types.CPointer(types.int64)
# x (d,), inputs (d, stride), stride, count, coordinates (width,), width, parameters, out (count,)
_STATISTIC = types.void(
    _POINTER, _POINTER, types.int64, types.int64, INT_POINTER, types.int64, _POINTER, _POINTER
)
# statistic (count,), count, constants (3, 4), out (count, 4)
_KERNEL = types.void(_POINTER, types.int64, _POINTER, _POINTER)
# predictions (rows, 4), targets (rows, 4), rows, parameters (1,), out (rows, 4)
_LOSS = types.void(_POINTER, _POINTER, types.int64, _POINTER, _POINTER)
_PHASE = types.void(INT_POINTER, types.int64, types.int64)

CONSTANTS = 3
"""Constants a, b, c of a kernel formula; each has one value per lane."""


# --- calling, from inside a compiled loop --------------------------------------------------------


def _pointer(kind: Any) -> Any:
    @intrinsic
    def offset_pointer(typingctx, start, offset):
        def codegen(context, builder, sig, args):
            data = args[0]
            if isinstance(sig.args[0], types.Array):
                data = context.make_array(sig.args[0])(context, builder, data).data
            return builder.gep(data, [context.cast(builder, args[1], sig.args[1], types.intp)])

        return kind(start, offset), codegen

    return offset_pointer


pointer = _pointer(_POINTER)
"""The address `offset` float64 after the start of a C-contiguous array, or after a pointer."""

int_pointer = _pointer(INT_POINTER)
"""The same for int64."""


def _emit_call(signature, context, builder, sig, args):
    values = [
        _as_argument(context, builder, value, given, wanted)
        for value, given, wanted in zip(args[1:], sig.args[1:], signature.args, strict=True)
    ]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)
    return context.get_dummy_value()


def _as_argument(context, builder, value, given, wanted):
    """An int, a pointer, or the pointer of a view."""
    if isinstance(given, ViewType):
        return cgutils.create_struct_proxy(given)(context, builder, value).data
    return context.cast(builder, value, given, wanted)


@intrinsic
def call_statistic(
    typingctx, address, x, inputs, stride, count, coordinates, width, parameters, out
):
    """out[m] = the statistic of x and inputs[:, m] on `width` coordinates, for m < count."""
    sig = types.void(address, x, inputs, stride, count, coordinates, width, parameters, out)
    return sig, lambda *emit: _emit_call(_STATISTIC, *emit)


@intrinsic
def call_kernel(typingctx, address, statistic, count, constants, out):
    """out[m, :] = the kernel values of four slots at statistic[m], for m < count."""
    sig = types.void(address, statistic, count, constants, out)
    return sig, lambda *emit: _emit_call(_KERNEL, *emit)


@intrinsic
def call_loss(typingctx, address, predictions, targets, rows, parameters, out):
    """out[i, :] = the loss, or its derivative, of row i of four, for i < rows."""
    sig = types.void(address, predictions, targets, rows, parameters, out)
    return sig, lambda *emit: _emit_call(_LOSS, *emit)


# --- compiling the built-in formulas -------------------------------------------------------------


class _CFunction(CFunc):  # type: ignore[misc]
    def _compile_uncached(self) -> Any:  # called if the function is not on disk
        progress.compiling()
        return super()._compile_uncached()


def _named(function: Formula, formula: Formula) -> Formula:
    """Name a function for its formula, so that each formula has a cache file of its own."""
    function.__qualname__ = f"{function.__name__}_{formula.__module__}.{formula.__qualname__}"
    return function


def _compile(signature: Any, function: Formula) -> Any:
    kinds = (signature.args, signature.return_type)
    options = {"nopython": True, "error_model": "numpy"}
    compiled = _CFunction(function, kinds, {}, options)
    cached(compiled, function)
    compiled.compile()
    return compiled


def compile_statistic(step: Formula, start: float) -> Any:
    """The C function of a statistic, from its step for one coordinate."""
    step = register_jitable(step)

    def statistic(x, inputs, stride, count, coordinates, width, parameters, out):
        parameter = parameters[0]
        for m in range(count):
            out[m] = start
        for k in range(width):
            coordinate = x[coordinates[k]]
            others = pointer(inputs, coordinates[k] * stride)
            for m in range(count):
                out[m] = step(out[m], coordinate, others[m], parameter)

    return _compile(_STATISTIC, _named(statistic, step))


def compile_kernel(formula: Formula) -> Any:
    """The C function of a kernel formula, from its expression in s and the constants a, b, c."""
    formula = register_jitable(formula)

    def kernel(statistic, count, constants, out):
        a = load(constants, 0)
        b = load(constants, 1)
        c = load(constants, 2)
        for m in range(count):
            store(out, m, formula(statistic[m], a, b, c))

    return _compile(_KERNEL, _named(kernel, formula))


def compile_loss(formula: Formula) -> Any:
    """The C function of a loss, or of its derivative, from its expression in f, y and p."""
    formula = register_jitable(formula)

    def loss(predictions, targets, rows, parameters, out):
        p = parameters[0]
        for i in range(rows):
            store(out, i, formula(load(predictions, i), load(targets, i), p))

    return _compile(_LOSS, _named(loss, formula))


def compile_phase(function: Formula, arguments: Any = None) -> Any:
    """The C function of a phase (see `phases`), from function(a, first, count)."""
    kind = INT_POINTER if arguments is None else ArgumentsType(arguments)
    return _compile(types.void(kind, types.int64, types.int64), function)


# --- calling back a user's own Python function ---------------------------------------------------

_C_POINTER = ctypes.POINTER(ctypes.c_double)
_C_STATISTIC = ctypes.CFUNCTYPE(
    None,
    _C_POINTER,
    _C_POINTER,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_int64,
    _C_POINTER,
    _C_POINTER,
)
_C_LOSS = ctypes.CFUNCTYPE(None, _C_POINTER, _C_POINTER, ctypes.c_int64, _C_POINTER, _C_POINTER)


_inside = threading.local()


def inside_callback() -> bool:
    """Whether this thread is inside a Python function that compiled code has called."""
    return getattr(_inside, "depth", 0) > 0


class Callback:
    """A Python function behind a C address. What it raises is kept, and raised by `check`.

    An exception cannot pass through compiled code: the caller of the loop calls `check` afterwards,
    and rolls back what was computed without a result.
    """

    def __init__(self, kind: Any, call: Callable[..., None]) -> None:
        self._error: BaseException | None = None

        def guarded(*arguments: Any) -> None:
            try:
                _inside.depth = getattr(_inside, "depth", 0) + 1
                # A slot that diverges overflows; the bank reports it once.
                with np.errstate(over="ignore", invalid="ignore"):
                    call(*arguments)
            except BaseException as error:
                self._error = self._error or error
            finally:
                _inside.depth -= 1

        self._thunk = kind(guarded)  # ctypes frees the code when this goes
        self.address: int = ctypes.cast(self._thunk, ctypes.c_void_p).value or 0

    def take_error(self) -> BaseException | None:
        """The error that the function has raised since the last call, if any."""
        error, self._error = self._error, None
        return error

    def check(self) -> None:
        """Raise what the function raised since the last check."""
        error = self.take_error()
        if error is not None:
            raise error


def write_result(result: Any, value: Any, name: str) -> None:
    """Copy the return value of a user's function to `result`, after a check of shape and type."""
    result[...] = np.nan
    array = np.asarray(value)
    if array.shape != result.shape or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name!r} must return real numbers of shape {result.shape}; got "
            f"{array.dtype} of shape {array.shape}. Let it work on whole arrays."
        )
    result[...] = array


def callback_statistic(kernel: Callable[[Any, Any], Any], name: str) -> Callback:
    """A statistic from k(X, Z) -> (n, m), called for one row of X at a time.

    The shapes of a call do not depend on the lengths of the blocks, so neither do the bits.
    """

    def call(x, inputs, stride, count, coordinates, width, parameters, out):
        chosen = np.ctypeslib.as_array(coordinates, (width,))
        last = int(chosen.max())
        row = np.ctypeslib.as_array(x, (last + 1,))[None, chosen]
        indices = chosen * stride + np.arange(count)[:, None]
        others = np.ctypeslib.as_array(inputs, (last * stride + count,))[indices]
        write_result(np.ctypeslib.as_array(out, (1, count)), kernel(row, others), name)

    return Callback(_C_STATISTIC, call)


def callback_loss(function: Callable[[Any, Any], Any], name: str) -> Callback:
    """A loss, or its derivative, from a NumPy function of predictions and targets."""

    def call(predictions, targets, rows, parameters, out):
        shape = (rows, WIDTH)
        f = np.ctypeslib.as_array(predictions, shape).copy()
        y = np.ctypeslib.as_array(targets, shape).copy()
        write_result(np.ctypeslib.as_array(out, shape), function(f, y), name)

    return Callback(_C_LOSS, call)


C_PHASE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""The type of a compiled phase for ctypes: address of the arguments, first, count."""


def callback_phase(function: Callable[[int, int], None]) -> Callback:
    """A phase from a Python function(first, count), which holds its arrays itself."""
    return Callback(C_PHASE, lambda args, first, count: function(first, count))

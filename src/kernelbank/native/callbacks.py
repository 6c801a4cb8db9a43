"""Python functions of users that compiled code calls back: kernels, losses, learners, combiners."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .functions import C_FUNCTION
from .simd import WIDTH

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


def callback_phase(function: Callable[[int, int], None]) -> Callback:
    """A phase from a Python function(first, count), which holds its arrays itself."""
    return Callback(C_FUNCTION, lambda args, first, count: function(first, count))

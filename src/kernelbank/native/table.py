"""Filled arguments of compiled functions (see `arguments`), checked."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from .arguments import LANES, Arguments, ArrayKind, Axis

_DTYPES = {name: np.dtype(name) for name in ("float64", "float32", "int64")}


class Table:
    """Filled arguments. It keeps the arrays alive, which must not move."""

    def __init__(self, arguments: Arguments, values: Mapping[str, Any]) -> None:
        fields = arguments.fields
        if fields.keys() != values.keys():
            missing, unknown = fields.keys() - values.keys(), values.keys() - fields.keys()
            raise TypeError(
                f"arguments of {arguments.name}: {sorted(missing)} are missing, "
                f"{sorted(unknown)} are unknown"
            )
        self._values = values
        numbers: dict[str, int] = {}
        for name, kind in fields.items():
            if kind is int:
                if not isinstance(values[name], (int, np.integer)):
                    raise _wrong(arguments, name, "be an int", repr(values[name]))
                numbers[name] = int(values[name])
        words: list[int] = []
        for name, kind in fields.items():
            value = values[name]
            if kind is int:
                words.append(numbers[name])
            elif kind is float:
                if not isinstance(value, (float, int, np.number)):
                    raise _wrong(arguments, name, "be a float", repr(value))
                words += struct.unpack("<q", struct.pack("<d", value))
            elif value is None:
                words += [0] * (1 + len(kind.axes))
            else:
                _check_array(arguments, name, kind, value, numbers)
                words.append(_address(value))
                words += value.shape[: len(kind.axes)]
        self._words = array("q", words or [0])
        self.address: int = self._words.buffer_info()[0]

    @property
    def entries(self) -> np.ndarray:
        """The words of the table: ints, bits of floats, addresses and lengths of arrays."""
        return np.frombuffer(self._words, dtype=np.int64)


def _address(value: np.ndarray) -> int:
    """The address of an array's first element; `value.ctypes.data` takes six times as long."""
    if value.size and value.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(value))
    return int(value.ctypes.data)


def _wrong(arguments: Arguments, name: str, rule: str, found: Any) -> TypeError:
    return TypeError(f"{name} of {arguments.name} must {rule}; got {found}")


def _check_array(
    arguments: Arguments, name: str, kind: ArrayKind, value: Any, numbers: dict[str, int]
) -> None:
    """Refuse an array of another type or shape."""
    if not isinstance(value, np.ndarray) or value.dtype != _DTYPES[kind.dtype]:
        found = getattr(value, "dtype", type(value).__name__)
        raise _wrong(arguments, name, f"be an array of {kind.dtype}", found)
    if not value.flags.c_contiguous:
        raise _wrong(arguments, name, "be C-contiguous", f"strides {value.strides}")
    axes = (*kind.axes, LANES) if kind.lanes else kind.axes
    shape = value.shape
    fits = len(axes) == len(shape)
    if fits:
        for axis, length in zip(axes, shape, strict=True):
            if axis is not None and _length(axis, numbers) != length:
                fits = False
    if not fits:
        wanted = tuple(_length(axis, numbers) for axis in axes)
        raise _wrong(arguments, name, f"have shape {axes} = {wanted}", shape)


def _length(axis: Axis, numbers: dict[str, int]) -> int | None:
    if not isinstance(axis, str):
        return axis
    if axis in numbers:
        return numbers[axis]
    return int(eval(_expression(axis), {"__builtins__": {}}, numbers))


@cache
def _expression(axis: str) -> CodeType:
    """The code of an axis; it is written in this package, never given by a user."""
    return compile(axis, axis, "eval")

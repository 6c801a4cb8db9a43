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

_FLOAT, _FLOAT_BITS = struct.Struct("<d"), struct.Struct("<q")
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
        self._arguments, self._values = arguments, values
        self._kept: Table | None = None
        """The table that has the other arrays."""
        numbers: dict[str, int] = {}
        for name in _integers(arguments):
            value = values[name]
            if type(value) is not int and not isinstance(value, (int, np.integer)):
                raise _wrong(arguments, name, "be an int", repr(value))
            numbers[name] = int(value)
        lengths: dict[Axis, int | None] = {**numbers}
        words: list[int] = []
        for name, kind in fields.items():
            value = values[name]
            if type(kind) is ArrayKind:
                if value is None:
                    words += [0] * (1 + len(kind.axes))
                else:
                    if not _fits(kind, value, numbers, lengths):
                        raise _misfit(arguments, name, kind, value, numbers)
                    words.append(_address(value))
                    words += value.shape[: len(kind.axes)]
            elif kind is int:
                words.append(numbers[name])
            else:
                if not isinstance(value, (float, int, np.number)):
                    raise _wrong(arguments, name, "be a float", repr(value))
                words += _FLOAT_BITS.unpack(_FLOAT.pack(value))
        self._words = array("q", words or [0])
        self.address: int = self._words.buffer_info()[0]

    def with_arrays(self, arrays: Mapping[str, np.ndarray]) -> Table:
        """The same arguments with other arrays, of the same types and shapes, for some of them."""
        other = Table.__new__(Table)
        other._arguments, other._values, other._kept = self._arguments, arrays, self
        words, places = array("q", self._words), _places(self._arguments)
        for name, value in arrays.items():
            known = self._values[name]
            if (
                value.shape != known.shape
                or value.dtype != known.dtype
                or not value.flags.c_contiguous
            ):
                raise _wrong(self._arguments, name, f"be like {known.shape}", value.shape)
            words[places[name]] = _address(value)
        other._words = words
        other.address = words.buffer_info()[0]
        return other

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


@cache
def _integers(arguments: Arguments) -> tuple[str, ...]:
    """The names of the int arguments."""
    return tuple(name for name, kind in arguments.fields.items() if kind is int)


@cache
def _places(arguments: Arguments) -> dict[str, int]:
    """Where the words of each argument begin."""
    places, place = {}, 0
    for name, kind in arguments.fields.items():
        places[name] = place
        place += 1 + len(kind.axes) if type(kind) is ArrayKind else 1
    return places


def _fits(
    kind: ArrayKind, value: Any, numbers: dict[str, int], lengths: dict[Axis, int | None]
) -> bool:
    """Whether an array has the type and the shape of an argument.

    lengths : of the axes that are known already; gets those of others.
    """
    if not isinstance(value, np.ndarray) or value.dtype != _DTYPES[kind.dtype]:
        return False
    axes, shape = kind.axes, value.shape
    if kind.lanes:
        if shape[-1:] != (LANES,):
            return False
        shape = shape[:-1]
    if len(axes) != len(shape) or not value.flags.c_contiguous:
        return False
    for axis, length in zip(axes, shape, strict=True):
        if axis is None or axis == length:
            continue
        known = lengths.get(axis)
        if known is None:
            known = lengths[axis] = _length(axis, numbers)
        if known != length:
            return False
    return True


def _misfit(
    arguments: Arguments, name: str, kind: ArrayKind, value: Any, numbers: dict[str, int]
) -> TypeError:
    """What is wrong with an array that does not fit."""
    if not isinstance(value, np.ndarray) or value.dtype != _DTYPES[kind.dtype]:
        found = getattr(value, "dtype", type(value).__name__)
        return _wrong(arguments, name, f"be an array of {kind.dtype}", found)
    if not value.flags.c_contiguous:
        return _wrong(arguments, name, "be C-contiguous", f"strides {value.strides}")
    axes = (*kind.axes, LANES) if kind.lanes else kind.axes
    wanted = tuple(_length(axis, numbers) for axis in axes)
    return _wrong(arguments, name, f"have shape {axes} = {wanted}", value.shape)


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

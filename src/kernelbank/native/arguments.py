"""Typed arguments of compiled functions: numbers and arrays with names, types and shapes.

    SCALE = Arguments(
        "scale",
        samples=int,
        factor=float,
        values=floats("samples", 3),
        out=lanes("samples - 1"),        # (samples - 1, 4)
    )

    @inline
    def mean(row):                       # a row of an array is an array
        return (row[0] + row[1] + row[2]) / 3.0

    def scale(a, first, count):          # compiled with the type SCALE
        for t in range(count):
            a.out[t] = a.factor * mean(a.values[t])

| kind         | what it is in compiled code                                      | filled with    |
|--------------|-----------------------------------------------------------------|----------------|
| `int`        | int64                                                           | int, bool      |
| `float`      | float64                                                         | float, int     |
| `floats(..)` | array of float64 (or float32); an element is a float64           | NumPy array    |
| `ints(..)`   | array of int64                                                  | NumPy array    |
| `lanes(..)`  | array whose last axis is four lanes; an element is four numbers  | NumPy array    |

Axes are lengths: numbers, names of `int` arguments, sums and products of these such as
"budget + 1", or None for any length. Names, types and shapes are checked when arguments are filled
(see `table`); an array that a function does not use may be None. With all indices an element is
read or written; fewer indices, or a slice, mean a part of the array: `a.values[leaf]`, `row[j:]`.
Indices are not checked, and negative ones have no meaning, except in a debug build
(`KERNELBANK_DEBUG=1`), where an index outside its axis is counted in `OUT_OF_BOUNDS` and replaced
by 0.

In memory, arguments are a table of int64 that is filled once: an int is itself, a float its bits,
and an array its address and the lengths of its axes. The functions get the address of the table, so
a call from Python costs the same whatever the number of arrays behind it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

DEBUG = os.environ.get("KERNELBANK_DEBUG") == "1"
"""Whether compiled code checks every index."""

OUT_OF_BOUNDS = np.zeros(1, dtype=np.int64)
"""How many indices were outside their arrays, in a debug build."""

LANES = 4
Axis = int | str | None


@dataclass(frozen=True)
class ArrayKind:
    """An array argument: element type, axes, and whether its elements are four lanes."""

    dtype: str
    axes: tuple[Axis, ...]
    lanes: bool = False


def floats(*axes: Axis, dtype: str = "float64") -> ArrayKind:
    """An array of floats with these axes."""
    return ArrayKind(dtype, axes)


def ints(*axes: Axis) -> ArrayKind:
    """An array of int64 with these axes."""
    return ArrayKind("int64", axes)


def lanes(*axes: Axis) -> ArrayKind:
    """An array of float64 with these axes and one more, of four lanes."""
    return ArrayKind("float64", axes, lanes=True)


class Arguments:
    """The names and kinds of the arguments of a compiled function."""

    def __init__(self, name: str, **fields: Any) -> None:
        self.name = name
        self.fields: dict[str, Any] = fields
        self.positions: dict[str, int] = {}
        """Where each argument begins in the table."""
        size = 0
        for field, kind in fields.items():
            self.positions[field] = size
            size += 1 + len(kind.axes) if isinstance(kind, ArrayKind) else 1

    def extended(self, name: str, **fields: Any) -> Arguments:
        """These arguments and more: a function of these takes the result too."""
        return Arguments(name, **self.fields, **fields)

"""Phases and tables: how compiled functions get at arrays without being handed them one by one.

A *phase* is a piece of the work on a block: learn a group, score it, weigh, mix, charge. Its C
function takes a *table*, the number of the block's first sample, and how many there are. The table
is a list of int64 made once: addresses of arrays, whole numbers, and floats by their bits. So a
whole block, or a single sample, is one call from Python, whatever the number of arrays behind it.

The arrays of a table must stay where they are; `Table` keeps them alive.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .formulas import WHOLES, Callback, callback_phase, compile_phase
from .jit import entry, inline

_FLOATS = types.CPointer(types.float64)


_KNOWN = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64))


def fields(*names: str) -> Any:
    """The places of a table by name: fields("a", "b").b is 1."""
    kind = namedtuple("Fields", names)
    return kind(*range(len(names)))


class Table:
    """Values by the names of their places, with all arrays that they point to."""

    def __init__(self, places: Any = (), /, **values: Any) -> None:
        names = getattr(places, "_fields", ())
        if set(names) != set(values):
            raise TypeError(f"a table needs {sorted(names)}, not {sorted(values)}")
        self._kept = values
        self.entries = np.array([_entry(values[name]) for name in names] or [0], dtype=np.int64)
        self.address: int = self.entries.ctypes.data


class Phase:
    """The address of a C function and its table."""

    def __init__(self, function: Any, places: Any = (), /, **values: Any) -> None:
        """`function` is a compiled phase or a `Callback`; `values` fill the places by name."""
        self._function = function
        self._table = Table(places, **values)
        self.entry = (function.address, self._table.address)

    @classmethod
    def of_python(cls, function: Callable[[int, int], None]) -> "Phase":
        """A phase that calls back function(first, count) in Python."""
        return cls(callback_phase(function))

    @property
    def entries(self) -> np.ndarray:
        """The table, as whole numbers."""
        return self._table.entries

    @property
    def callback(self) -> Callback | None:
        """The callback, if this phase is a Python function."""
        function = self._function
        return function if isinstance(function, Callback) else None


def _entry(value: Any) -> int:
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous or value.dtype not in _KNOWN:
            raise TypeError(f"a table cannot point to {value.dtype} of the strides {value.strides}")
        return int(value.ctypes.data)
    if isinstance(value, float):
        return int(np.float64(value).view(np.int64))
    return int(value)


@cache
def compiled(function: Callable[..., None]) -> Any:
    """The C function of a phase, compiled when it is first needed."""
    return compile_phase(function)


def variant(function: Callable[..., None], name: str, **instead: Any) -> Callable[..., None]:
    """The same function with other globals; its own name keeps it apart in the file cache."""
    result = FunctionType(function.__code__, {**function.__globals__, **instead}, name)
    result.__qualname__ = name
    result.__module__ = function.__module__
    return result


class SideBySide:
    """Phases of which each does some of a block's samples: they may run at the same time."""

    def __init__(self, phases: list[Phase]) -> None:
        self.phases = phases


class Phases:
    """Phases in the order in which they run."""

    def __init__(self, phases: Sequence[Phase | SideBySide]) -> None:
        self._kept = tuple(phases)
        flat = [own for p in phases for own in (p.phases if isinstance(p, SideBySide) else [p])]
        self._entries = np.array([phase.entry for phase in flat], dtype=np.int64).reshape(-1, 2)
        self.address: int = self._entries.ctypes.data
        self.number = len(flat)
        self.callbacks = tuple(p.callback for p in flat if p.callback is not None)
        self.tables = tuple(phase.entries for phase in flat)

    def stages(self) -> list[list["Phases"]]:
        """The same in stages: the members of a stage may run at the same time."""
        stages = []
        for side, members in groupby(self._kept, lambda phase: isinstance(phase, SideBySide)):
            if side:
                for member in members:
                    assert isinstance(member, SideBySide)
                    stages.append([Phases([phase]) for phase in member.phases])
            else:
                stages.append([Phases(list(members))])
        return stages

    def run(self, first: int, count: int) -> None:
        """Run all of them on samples first .. first + count - 1, without the interpreter's lock."""
        run_phases(self.address, self.number, first, count)

    def __add__(self, other: "Phases") -> "Phases":
        return Phases([*self._kept, *other._kept])


class Pointers:
    """Places in tables that point to some arrays: they can be made to point to others."""

    def __init__(self, phases: Phases, arrays: Sequence[np.ndarray]) -> None:
        number = {array.ctypes.data: k for k, array in enumerate(arrays)}
        self._found = []
        for entries in phases.tables:
            places = [k for k, entry in enumerate(entries.tolist()) if entry in number]
            if places:
                which = np.array([number[int(entries[k])] for k in places])
                self._found.append((entries, np.array(places), which))

    def point(self, arrays: Sequence[np.ndarray]) -> None:
        """Point to these, which take the place of those given first, in their order."""
        addresses = np.array([_entry(array) for array in arrays], dtype=np.int64)
        for entries, places, which in self._found:
            entries[places] = addresses[which]


@intrinsic
def call_phase(typingctx, address, table, first, count):
    """Call the function at an address with the table at another."""

    def codegen(context, builder, sig, args):
        integer = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [integer.as_pointer(), integer, integer])
        function = builder.inttoptr(args[0], kind.as_pointer())
        pointer = builder.inttoptr(args[1], integer.as_pointer())
        builder.call(function, [pointer, args[2], args[3]])
        return context.get_dummy_value()

    return types.void(address, table, first, count), codegen


@intrinsic
def address_table(typingctx, address):
    """The table, or any whole numbers, at an address."""

    def codegen(context, builder, sig, args):
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return WHOLES(types.int64), codegen


@intrinsic
def table_address(typingctx, table):
    """The address of a table, to hand it on."""

    def codegen(context, builder, sig, args):
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(table), codegen


@inline
def call_phases(address, number, first, count):
    """Call every phase in turn: `number` pairs of function and table at that address."""
    entries = address_table(address)
    for i in range(number):
        call_phase(entries[2 * i], entries[2 * i + 1], first, count)


@entry
def run_phases(address, number, first, count):
    """The same, for calls from Python: four whole numbers are handed over faster than an array."""
    call_phases(address, number, first, count)


def _read(kind: Any, convert: Callable[..., Any]) -> Any:
    @intrinsic
    def read(typingctx, table, place):
        def codegen(context, builder, sig, args):
            index = context.cast(builder, args[1], sig.args[1], types.intp)
            return convert(builder, builder.load(builder.gep(args[0], [index])))

        return kind(table, place), codegen

    return read


_DOUBLE = ir.DoubleType()

singles = _read(
    types.CPointer(types.float32),
    lambda builder, value: builder.inttoptr(value, ir.FloatType().as_pointer()),
)
"""`singles(table, place)`: a pointer to the array of float32 there."""

floats = _read(_FLOATS, lambda builder, value: builder.inttoptr(value, _DOUBLE.as_pointer()))
"""`floats(table, place)`: a pointer to the array of float64 there."""

wholes = _read(WHOLES, lambda builder, value: builder.inttoptr(value, ir.IntType(64).as_pointer()))
"""`wholes(table, place)`: a pointer to the array of int64 there."""

whole = _read(types.int64, lambda builder, value: value)
"""`whole(table, place)`: the whole number there."""

real = _read(types.float64, lambda builder, value: builder.bitcast(value, _DOUBLE))
"""`real(table, place)`: the float there."""

__all__ = [
    "address_table",
    "call_phase",
    "call_phases",
    "Phase",
    "Phases",
    "Pointers",
    "SideBySide",
    "Table",
    "compiled",
    "fields",
    "floats",
    "real",
    "run_phases",
    "singles",
    "table_address",
    "variant",
    "whole",
    "wholes",
]

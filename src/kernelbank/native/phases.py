"""Phases: compiled functions that work on a block of samples.

A phase is one step of the work on a block: learn a group of slots, score them, combine them. Its
compiled function has the signature `phase(args, first, count)`. `first` is the number of the
block's first sample, `count` the number of samples.

`args` points to an array of int64 that is filled once, when the phase is made. Each entry is an
int, the bits of a float, or the address of a C-contiguous array. A block is therefore one call from
Python, whatever the number of arrays behind it. Entries are declared, filled and read by name:

    SCALE = argument_fields("slots", "factor", "values", "out")        # declare

    def scale(args, first, count):                                     # read, in compiled code
        slots = read_int(args, SCALE.slots)
        values = float_array(args, SCALE.values)  # (n, P)
        for i in range(count * slots):
            float_array(args, SCALE.out)[i] = read_float(args, SCALE.factor) * values[i]

    Phase(compiled(scale), SCALE, slots=2, factor=0.5, values=x, out=y)  # fill

| reader           | result                     | filled with                     |
|------------------|----------------------------|---------------------------------|
| `read_int`       | int64                      | an int, a bool, an address      |
| `read_float`     | float64                    | a float                         |
| `float_array`    | pointer to float64         | an array of float64             |
| `float32_array`  | pointer to float32         | an array of float32             |
| `int_array`      | pointer to int64           | an array of int64               |

A pointer knows neither length nor shape: index (t, p) of an (n, P) array is t * P + p. The arrays
must stay at their addresses; `PhaseArguments` keeps them alive.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import groupby
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .arguments import Arguments, Table, ints
from .formulas import C_PHASE, INT_POINTER, Callback, callback_phase, compile_phase

_DTYPES = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64))


def argument_fields(*names: str) -> Any:
    """Declare the arguments of a phase: argument_fields("a", "b").b is 1, the index of "b"."""
    return namedtuple("ArgumentFields", names)(*range(len(names)))


class PhaseArguments:
    """The int64 entries of a phase's arguments, and the arrays that they point to."""

    def __init__(self, fields: Any = (), /, **values: Any) -> None:
        names = getattr(fields, "_fields", ())
        if set(names) != set(values):
            raise TypeError(f"the arguments must be {sorted(names)}; got {sorted(values)}")
        self._values = values  # keeps the arrays alive
        self.entries = np.array([_entry(values[name]) for name in names] or [0], dtype=np.int64)
        self.address: int = self.entries.ctypes.data


def _entry(value: Any) -> int:
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous or value.dtype not in _DTYPES:
            raise TypeError(
                "an array argument must be C-contiguous float64, float32 or int64; got "
                f"{value.dtype} with strides {value.strides}"
            )
        return int(value.ctypes.data)
    if isinstance(value, float):
        return int(np.float64(value).view(np.int64))
    return int(value)


class NativeFunction:
    """A compiled function(a, first, count) of typed arguments; made by `native`."""

    def __init__(self, function: Callable[..., None], arguments: Arguments, name: str) -> None:
        self.function = function
        self.arguments = arguments
        self.__name__ = name
        self.__doc__ = function.__doc__

    @cached_property
    def _compiled(self) -> Any:
        return compile_phase(self.function, self.arguments)

    @property
    def address(self) -> int:
        """The address of the C function, which is compiled when it is first needed."""
        return int(self._compiled.address)

    @cached_property
    def call(self) -> Any:
        """call(address of the table, first, count), without the interpreter's lock."""
        return C_PHASE(self.address)

    def with_arguments(self, arguments: Arguments) -> "NativeFunction":
        """The same function compiled for arguments of other types."""
        name = f"{self.__name__}_{arguments.name}"
        copied = variant(self.function, name)
        return NativeFunction(copied, arguments, name)

    def __call__(self, count: int = 0, /, **values: Any) -> None:
        """Call it once with these arguments, as function(a, 0, count)."""
        self.at(0, count, **values)

    def at(self, first: int, count: int, /, **values: Any) -> None:
        """Call it once with these arguments, as function(a, first, count)."""
        Phases([Phase(self, **values)]).run(first, count)


def native(arguments: Arguments) -> Callable[[Callable[..., None]], NativeFunction]:
    """Compile the decorated function(a, first, count), where `a` has these arguments."""

    def decorate(function: Callable[..., None]) -> NativeFunction:
        return NativeFunction(function, arguments, function.__name__)

    return decorate


class Phase:
    """A compiled function with its arguments."""

    def __init__(self, function: Any, fields: Any = None, /, **values: Any) -> None:
        """`values` are the arguments by name.

        function : a `NativeFunction` or a `Callback`.
        fields : the arguments, if they are more than the function's own, which they begin with.
        """
        self._function = function
        self._arguments: Any
        if isinstance(function, NativeFunction):
            self._arguments = Table(fields or function.arguments, values)
        else:
            self._arguments = PhaseArguments(fields or (), **values)
        self.entry = (function.address, self._arguments.address)

    def run(self, first: int, count: int) -> None:
        """Run the phase alone, without the interpreter's lock."""
        self._function.call(self.entry[1], first, count)

    @classmethod
    def from_python(cls, function: Callable[[int, int], None]) -> "Phase":
        """A phase that calls function(first, count) in Python."""
        return cls(callback_phase(function))

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self._function, "__name__", "callback"))

    @property
    def entries(self) -> np.ndarray:
        """The int64 entries of the arguments."""
        return self._arguments.entries

    @property
    def callback(self) -> Callback | None:
        """The callback, if this phase is a Python function."""
        function = self._function
        return function if isinstance(function, Callback) else None


@cache
def compiled(function: Callable[..., None]) -> Any:
    """The C function of a phase, compiled when it is first needed."""
    return compile_phase(function)


def variant(function: Callable[..., None], name: str, **instead: Any) -> Callable[..., None]:
    """The same function with other globals. `name` keeps it apart in the file cache."""
    result = FunctionType(function.__code__, {**function.__globals__, **instead}, name)
    result.__qualname__ = name
    result.__module__ = function.__module__
    return result


class ParallelPhases:
    """Phases that may run at the same time, because each works on other samples of the block."""

    def __init__(self, phases: list[Phase]) -> None:
        self.phases = phases


class Phases:
    """Phases in the order in which they run."""

    def __init__(self, phases: Sequence[Phase | ParallelPhases]) -> None:
        self._members = tuple(phases)
        flat = [own for p in phases for own in (p.phases if isinstance(p, ParallelPhases) else [p])]
        entries = np.array([phase.entry for phase in flat], dtype=np.int64).reshape(-1, 2)
        self._table = Table(PHASES, {"entries": entries})
        self.address: int = self._table.address
        """Of the table of arguments for `run_phases`."""
        self._run = run_phases.call
        self.names = tuple(phase.name for phase in flat)
        self.callbacks = tuple(p.callback for p in flat if p.callback is not None)
        self.arguments = tuple(phase.entries for phase in flat)

    def stages(self) -> list[list["Phases"]]:
        """The same phases in stages: the members of a stage may run at the same time."""
        stages = []
        for parallel, members in groupby(self._members, lambda p: isinstance(p, ParallelPhases)):
            if parallel:
                for member in members:
                    assert isinstance(member, ParallelPhases)
                    stages.append([Phases([phase]) for phase in member.phases])
            else:
                stages.append([Phases(list(members))])
        return stages

    def run(self, first: int, count: int) -> None:
        """Run all phases on samples first .. first + count - 1, without the interpreter's lock."""
        self._run(self.address, first, count)

    def __add__(self, other: "Phases") -> "Phases":
        return Phases([*self._members, *other._members])


class ArrayBindings:
    """The arguments of some phases that point to given arrays, to exchange these arrays."""

    def __init__(self, phases: Phases, arrays: Sequence[np.ndarray]) -> None:
        number = {array.ctypes.data: k for k, array in enumerate(arrays)}
        self._found = []
        for entries in phases.arguments:
            indices = [k for k, entry in enumerate(entries.tolist()) if entry in number]
            if indices:
                which = np.array([number[int(entries[k])] for k in indices])
                self._found.append((entries, np.array(indices), which))

    def rebind(self, arrays: Sequence[np.ndarray]) -> None:
        """Let the phases use these arrays instead of the first ones, in the same order."""
        addresses = np.array([_entry(array) for array in arrays], dtype=np.int64)
        for entries, indices, which in self._found:
            entries[indices] = addresses[which]


# --- inside compiled code -------------------------------------------------------------------------


@intrinsic
def call_phase(typingctx, address, args, first, count):
    """Call the phase at `address` with the arguments at the address `args`."""

    def codegen(context, builder, sig, values):
        integer = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [integer.as_pointer(), integer, integer])
        function = builder.inttoptr(values[0], kind.as_pointer())
        pointer = builder.inttoptr(values[1], integer.as_pointer())
        builder.call(function, [pointer, values[2], values[3]])
        return context.get_dummy_value()

    return types.void(address, args, first, count), codegen


@intrinsic
def int_array_at(typingctx, address):
    """A pointer to the int64 array, or the arguments, at an address."""

    def codegen(context, builder, sig, values):
        return builder.inttoptr(values[0], ir.IntType(64).as_pointer())

    return INT_POINTER(types.int64), codegen


@intrinsic
def address_of(typingctx, args):
    """The address of arguments, to pass them on."""

    def codegen(context, builder, sig, values):
        return builder.ptrtoint(values[0], ir.IntType(64))

    return types.int64(args), codegen


PHASES = Arguments("phases", entries=ints(None, 2))  # addresses of functions and arguments


@native(PHASES)
def run_phases(a, first, count):
    """Run phases in order."""
    for i in range(len(a.entries)):
        call_phase(a.entries[i, 0], a.entries[i, 1], first, count)


def _reader(kind: Any, convert: Callable[..., Any]) -> Any:
    @intrinsic
    def read(typingctx, args, field):
        def codegen(context, builder, sig, values):
            index = context.cast(builder, values[1], sig.args[1], types.intp)
            return convert(builder, builder.load(builder.gep(values[0], [index])))

        return kind(args, field), codegen

    return read


def _pointer_reader(kind: Any, element: Any) -> Any:
    return _reader(
        types.CPointer(kind), lambda builder, value: builder.inttoptr(value, element.as_pointer())
    )


read_int = _reader(types.int64, lambda builder, value: value)
"""`read_int(args, field)`: the int."""

read_float = _reader(types.float64, lambda builder, value: builder.bitcast(value, ir.DoubleType()))
"""`read_float(args, field)`: the float."""

float_array = _pointer_reader(types.float64, ir.DoubleType())
"""`float_array(args, field)`: a pointer to the float64 array."""

float32_array = _pointer_reader(types.float32, ir.FloatType())
"""`float32_array(args, field)`: a pointer to the float32 array."""

int_array = _pointer_reader(types.int64, ir.IntType(64))
"""`int_array(args, field)`: a pointer to the int64 array."""

"""Phases: compiled functions with their arguments, in the order in which they work on a block.

A phase is one step of the work on a block of samples: learn a group of slots, score them, combine
them. Its arguments are filled once, when it is made. So a block is one call from Python, whatever
the number of phases and arrays behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from .arguments import Arguments, ints
from .callbacks import Callback, callback_phase
from .formulas import call_phase
from .functions import NativeFunction, native
from .table import Table


class Phase:
    """A compiled function with its arguments."""

    def __init__(
        self, function: NativeFunction, arguments: Arguments | None = None, /, **values: Any
    ) -> None:
        """`values` are the arguments by name.

        arguments : if they are more than the function's own, which they begin with.
        """
        self._function: NativeFunction | Callback = function
        self._table = Table(arguments or function.arguments, values)
        self.entry = (function.address, self._table.address)
        """The addresses of function and arguments."""

    @classmethod
    def from_python(cls, function: Callable[[int, int], None]) -> Phase:
        """A phase that calls function(first, count) in Python."""
        phase = cls.__new__(cls)
        phase._function = callback_phase(function)
        phase._table = Table(Arguments("callback"), {})
        phase.entry = (phase._function.address, phase._table.address)
        return phase

    def with_arrays(self, **arrays: np.ndarray) -> Phase:
        """The same phase with other arrays, of the same types and shapes, for some arguments."""
        phase = Phase.__new__(Phase)
        phase._function = self._function
        phase._table = self._table.with_arrays(arrays)
        phase.entry = (self.entry[0], phase._table.address)
        return phase

    def with_function(self, function: NativeFunction) -> Phase:
        """Another function of the same arguments, which are filled and checked once for both."""
        assert isinstance(self._function, NativeFunction)
        if function.arguments is not self._function.arguments:
            raise TypeError(f"{function.__name__} has other arguments than {self.name}")
        phase = Phase.__new__(Phase)
        phase._function = function
        phase._table = self._table
        phase.entry = (function.address, self.entry[1])
        return phase

    def run(self, first: int, count: int) -> None:
        """Run the phase alone, without the interpreter's lock."""
        assert isinstance(self._function, NativeFunction)
        self._function.call(self.entry[1], first, count)

    def bound(self) -> Callable[[], None]:
        """A call of the phase alone, for a function that reads neither first nor count.

        The phase has to be kept as long as the call.
        """
        assert isinstance(self._function, NativeFunction)
        return partial(self._function.call_on_table, self.entry[1])

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self._function, "__name__", "callback"))

    @property
    def callback(self) -> Callback | None:
        """The callback, if this phase is a Python function."""
        return self._function if isinstance(self._function, Callback) else None


class ParallelPhases:
    """Phases that may run at the same time, because each works on other samples of the block."""

    def __init__(self, phases: list[Phase]) -> None:
        self.phases = phases


PHASES = Arguments("phases", entries=ints(None, 2))  # addresses of functions and arguments


@native(PHASES)
def run_phases(a, first, count):  # type: ignore[no-untyped-def]
    """Run phases in order."""
    for i in range(len(a.entries)):
        call_phase(a.entries[i, 0], a.entries[i, 1], first, count)


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

    def stages(self) -> list[list[Phases]]:
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

    def as_phase(self) -> Phase:
        """All of them as one phase of another list."""
        phase = Phase.__new__(Phase)
        phase._function, phase._table = run_phases, self._table
        phase.entry = (run_phases.address, self.address)
        return phase

    def __add__(self, other: Phases) -> Phases:
        return Phases([*self._members, *other._members])

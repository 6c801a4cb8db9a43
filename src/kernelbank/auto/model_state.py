"""What a model of either task holds: scaling, slots, the newest rows, signals of change.

Inputs are added here, and it is saved and restored. `task_model` predicts and learns.
"""

from __future__ import annotations

from abc import ABC
from bisect import insort
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..bank.revision import Selection
from ..bank.slot_history import parse_changes
from ..errors import FileRefused, LargeModel
from ..utils.validation import Floats
from ..utils.whole_steps import warn_after_step
from .change_detection import MAX_CHANGES, Change, new_detector
from .config import AutoConfig
from .model_parts.past_targets import PastTargets
from .model_parts.replay_buffer import ReplayBuffer
from .model_parts.running_slots import RunningSlots
from .scaling.scaling import Scaling

RESTARTS = (5, 32, 128)
"""After these numbers of rows, scaling and banks start anew from all rows so far: what was learned
while the running statistics still moved does not fit the later ones."""

LARGE_MODEL = 500_000_000
"""Bytes of a model's file beyond which it warns, once."""


def under(prefix: str, arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """The arrays whose names begin with the prefix, by the rest of their names."""
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}


def state_of(parts: Mapping[str, Any]) -> dict[str, Floats]:
    """The arrays of parts that the core keeps, by their names in a file."""
    return {f"{p}/{name}": a for p, part in parts.items() for name, a in part.state().items()}


def restore_parts(parts: Mapping[str, Any], state: Mapping[str, Floats]) -> None:
    """Let parts continue from what `state_of` returned; they refuse what cannot be their state."""
    for name, part in parts.items():
        part.restore(under(f"{name}/", state))


class ModelState(PastTargets, RunningSlots, ABC):
    """The state of a model for inputs of a known width."""

    def __init__(
        self, config: AutoConfig, dimension: int, *, scale_target: bool, replay: int | None
    ) -> None:
        """`replay` : how many of the newest rows new banks start from, at any time; None if banks
        are new at restarts only."""
        PastTargets.__init__(self, config, dimension)
        RunningSlots.__init__(self)
        self.dimension = dimension
        self._scale_target = scale_target
        self._replay_rows = replay
        self.buffer = self._make_buffer()
        self.unscored = 0
        """How many predictions were made before the first target was known: they do not count."""
        self.changes: list[Change] = []
        self._large = False
        """Whether there was a warning that the model is large."""
        self.detector = new_detector()
        self.lay_out(dimension)

    def _make_buffer(self) -> ReplayBuffer:
        rows, until = (self._replay_rows, np.inf)
        if rows is None:
            rows = until = RESTARTS[-1]
        return ReplayBuffer(rows, self.dimension, self.past, until, self.target_count)

    def use_previous(self, count: int) -> None:
        """Before anything is learned: let rows know this many inputs of the row before."""
        self.previous = count
        self.remembered = self.remembered_targets()
        self.past = self.past_size(self.config)
        self.lagged = np.full(self.past, np.nan)
        self.buffer = self._make_buffer()

    def is_plausible(self, held: int) -> bool:
        """Whether statistics from a file can be those of a stream with `held` targets held back."""
        return self.scaling.is_plausible(held)

    @property
    def core(self) -> int:
        """How many inputs there were at the start of the banks."""
        return self.scaling.core

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input."""
        return self.scaling.input_ranges()

    def input_statistics(self) -> Floats:
        """(inputs, STATS): the running statistics of every input; see `scaling`."""
        return self.scaling.columns

    @property
    def started(self) -> bool:
        """Whether the first restart is over: scaling has begun, and there may be banks."""
        return self.rows >= RESTARTS[0]

    def note_change(self, what: str, row: int, column: int = -1, period: int = 0) -> None:
        """Add a signal of change. They stay sorted by row, whatever the batches."""
        insort(self.changes, Change(row, what, column, period))
        del self.changes[:-MAX_CHANGES]

    # --- columns and banks ----------------------------------------------------------------------

    def lay_out(self, core: int) -> None:
        """Choose scaling and slots for the present inputs, of which some beyond `core` are new."""
        self.scaling = self._make_scaling(self.dimension, core)
        self.lay_out_slots()

    def _make_scaling(self, dimension: int, core: int) -> Scaling:
        periods = 0 if self.seasons is None else len(self.seasons.periods)
        target = self._scale_target
        past = {"remembered": self.remembered, "previous": self.previous} if self.previous else {}
        return self.config.make_scaling(dimension, core, target=target, periods=periods, **past)

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        dimension = self.dimension + count
        core = self.core if self.banks else dimension
        scaling = self._make_scaling(dimension, core)
        scaling.continue_from(self.scaling)
        pool = self.make_pool(scaling)
        slots = pool.bank_slots(self.members.tolist())
        self.banks = [bank.with_inputs(scaling.width, slots) for bank in self.banks]
        self.dimension = dimension
        self.buffer.add_inputs(count)
        if self.banks:
            self.scaling = scaling
            self._use_pool(pool)
        else:
            self.lay_out(dimension)
        self.warn_if_large()

    def warn_if_large(self) -> None:
        """Warn once when the banks, and so their file, are larger than LARGE_MODEL."""
        if self._large or not self.banks:
            return
        size = len(self.banks) * self.banks[0].state_bytes(self.scaling.width)
        if size > LARGE_MODEL:
            self._large = True
            classes = f"{self.outputs} classes and " if self.outputs > 1 else ""
            inputs = f"{self.dimension} input{'' if self.dimension == 1 else 's'}"
            warn_after_step(
                LargeModel,
                f"the model is large: {size / 1e6:,.0f} MB for {classes}{inputs}, "
                "as a file, and a little more in memory. Fewer classes or inputs, or "
                'size="small", make it smaller.',
            )

    def _drop_banks(self) -> None:
        """Drop all banks before a restart, which takes up all inputs there are by now."""
        self.banks = []
        if self.core < self.dimension:
            self.lay_out(self.dimension)

    # --- saving ---------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        """The arrays that the next prediction depends on, without those of parts and banks."""
        own = {"lagged": self.lagged[: self.remembered * self.target_count]}
        if self.previous:
            own["last_inputs"] = self.last_inputs
        return own | self.buffer.state()

    def parts(self) -> dict[str, Any]:
        """The parts that the core keeps, by the names that those of their arrays begin with."""
        own = {"scaling": self.scaling.statistics, "changes": self.detector}
        return own if self.seasons is None else own | {"seasons": self.seasons.history}

    def state(self) -> dict[str, Floats]:
        """All arrays, by their names in a file."""
        return self.arrays() | state_of(self.parts())

    def counters(self) -> dict[str, Any]:
        """The rest of the state, as plain data."""
        changes = [list(change) for change in self.changes]
        own = {} if self.seasons is None else self.seasons.counters()
        own["selection"] = self.selection.describe()
        own["slot_changes"] = [asdict(change) for change in self.slot_changes]
        return {"rows": self.rows, "unscored": self.unscored, "changes": changes} | own

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        """Continue from what `state` and `counters` returned; shapes have been checked."""
        for name, array in self.arrays().items():
            array[...] = state[name]
        restore_parts(self.parts(), state)
        self._use_pool(self.make_pool(self.scaling))
        selection = Selection.parse(counters["selection"], len(self.pool.groups))
        if not self.pool.can_run(selection.running):
            raise FileRefused("its running slots do not fit its settings.")
        self._select(selection)
        try:
            self.slot_changes = parse_changes(counters["slot_changes"])
        except (TypeError, ValueError) as error:
            raise FileRefused(f"its slot_changes are impossible: {error}.") from None
        self.rows = int(counters["rows"])
        self.unscored = int(counters["unscored"])
        changes = counters["changes"]
        self.changes = [
            Change(int(row), str(what), *map(int, rest)) for row, what, *rest in changes
        ]

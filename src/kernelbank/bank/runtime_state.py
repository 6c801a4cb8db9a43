"""The state of a runtime: copied, restored, undone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..kernels.sample_buffer import ArraySpec
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from .runtime_parts import RuntimeParts
from .shard import Shard


class RuntimeState(RuntimeParts):
    """The part of `Runtime` that is copied and put back."""

    def arrays(self) -> dict[str, Floats]:
        """Copies of all arrays that the next block depends on.

        The leaves of all slots are in one order, so the arrays fit a bank on any engine.
        """
        found = self._shared_arrays()
        if self.is_open:
            found |= {f"slots/{name}": array for name, array in self.executor.state().items()}
        return found

    def slot_arrays(self, index: int) -> list[dict[str, Floats]]:
        """Copies of the arrays of the leaf that a slot is in; of several outputs, one entry each.

        The first output has those that all share.
        """
        group, leaf, _ = self._settings.layout.place(index)
        return [{name: array[leaf] for name, array in self.executor.group_state(group).items()}]

    def changed_arrays(
        self, other: RuntimeState, change: Callable[[Any, Any], dict[str, Floats]]
    ) -> dict[str, Floats]:
        """The arrays of another bank, from those of this one and of the other at its start."""
        return change(self.arrays(), other.arrays())

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Continue from what `arrays` returned. The runtime is open if that one was."""
        self._restore_shared(arrays)
        if self.is_open:
            self.executor.restore(under("slots/", arrays))

    def _shared_arrays(self) -> dict[str, Floats]:
        """The arrays that do not belong to slots."""
        found = {"weights": self.weights.copy()}
        found |= {f"ledger/{name}": array for name, array in self.ledger.state().items()}
        if self.weight_sums is not None:
            found["weight_sums"] = self.weight_sums.copy()
        if self.is_open:
            found["recent"] = self.workspace.recent[: self._objective.window - 1].copy()
            found |= {f"combiner/{name}": a.copy() for name, a in self._combiner_state.items()}
        return found

    def _restore_shared(self, arrays: Mapping[str, Floats]) -> None:
        self.weights[:] = arrays["weights"]
        if self.weight_sums is not None:
            self.weight_sums[:] = arrays["weight_sums"]
        self.ledger.restore(under("ledger/", arrays))
        self.diagnostics.quarantined = len(self.ledger.quarantined)
        if self.is_open:
            self.workspace.recent[: self._objective.window - 1] = arrays["recent"]
            for name, array in under("combiner/", arrays).items():
                self._combiner_state[name][...] = array

    def array_specs(self, dimension: int | None) -> dict[str, ArraySpec]:
        """Shape and dtype of `arrays` for inputs with that many columns, without making any."""
        key = (dimension, self._objective, self._leader is None)
        known = self.leader._known_specs
        if key not in known:
            known[key] = self._array_specs(dimension)
        return known[key]

    def state_bytes(self, dimension: int) -> int:
        """The bytes of all arrays for inputs with that many columns."""
        specs = self.array_specs(dimension).values()
        return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in specs)

    def _array_specs(self, dimension: int | None) -> dict[str, ArraySpec]:
        shapes: dict[str, tuple[int, ...]] = {"weights": self.weights.shape}
        shapes |= {f"ledger/{name}": a.shape for name, a in self.ledger.state().items()}
        if self.weight_sums is not None:
            shapes["weight_sums"] = self.weights.shape
        slots: dict[str, ArraySpec] = {}
        if dimension is not None:
            shapes["recent"] = (self._objective.window - 1,)
            state = self._combiner.shapes(len(self.weights))
            shapes |= {f"combiner/{name}": shape for name, shape in state.items()}
            leader = None if self._leader is None else self._leader._objective
            slots = Shard.array_specs(self._objective, self._layout, dimension, leader)
        found: dict[str, ArraySpec] = {name: (shape, "float64") for name, shape in shapes.items()}
        return found | {f"slots/{name}": spec for name, spec in slots.items()}

    def checkpoint(self) -> tuple[dict[str, Floats], Any]:
        """What `undo` needs to return to this moment."""
        return self._shared_arrays(), self.executor.snapshot(models=self._snapshot_models)

    def undo(self, first: int, before: tuple[dict[str, Floats], Any]) -> None:
        """Return to a checkpoint, after the block since then, from sample `first`, has failed."""
        with defer_signals():
            if first == 0:
                self.dimension = self._single_calls = self._gate = None  # closed again
                self._single_allowed = False
            self._restore_shared(before[0])
            self.executor.rollback(before[1])

    @property
    def warned(self) -> set[str]:
        """The kinds of warnings that have been given."""
        return self.diagnostics.warned

    @warned.setter
    def warned(self, kinds: set[str]) -> None:
        self.diagnostics.warned = set(kinds)

    def copy_models(self) -> dict[int, Any]:
        """Copies of the models behind slots whose state is not arrays, by leaf number."""
        return self.executor.copy_models()

    def restore_models(self, models: Mapping[int, Any]) -> None:
        """Return to what `copy_models` returned."""
        self.executor.restore_models(models)


def under(prefix: str, arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """The arrays whose names begin with the prefix, by the rest of their names."""
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}

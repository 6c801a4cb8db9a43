"""The Ray engine in the processes of the cluster: one shard of slots in each.

A worker learns blocks in the order of the sample numbers and refuses all others. So a worker that
was restarted, or a caller that has lost count, is noticed at once. A block is learned before its
weights are known, and the worker goes on with the next: it holds copies of what the weights will be
multiplied with.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...errors import KernelBankError
from ...losses.objective import Objective
from ...native.aligned import aligned_zeros
from ...native.phases import Phases
from ...native.workspace import SLIDE_PERIOD, Workspace
from ...utils.validation import Floats
from ..layout import Layout
from ..shard import Shard
from .local import LocalExecutor

EVIDENCE = ("curvature", "window_loss", "slot_cost", "slot_loss", "slot_predictions")
"""What a shard hands over for every slot and sample, beside what the combiner `needs`."""

_MIXED = ("values", "norms", "predictions", "losses_before", "effects")
"""The arrays of a shard that the weights are multiplied with."""

Samples = tuple[Floats, Floats]
"""Inputs (n, d) and targets (n,) of a block."""

Snapshot = tuple[dict[str, Floats], dict[int, Any]]
"""The arrays of a shard by name, and what its learners keep besides arrays, by leaf."""


class OutOfOrder(RuntimeError):
    """A worker was sent a block that does not follow what it has learned."""


@cache
def build_fingerprint() -> str:
    """Versions that must be equal on all nodes, so that all compute the same bits."""
    files = sorted(Path(__file__).parents[2].rglob("*.py"))
    sources = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    return f"kernelbank {__version__} ({sources}), numpy {importlib.metadata.version('numpy')}"


class ShardActor:
    """A process of the cluster with a worker, which can be replaced: see `RayExecutor`."""

    def check_build(self, expected: str) -> int:
        """The process id, if the packages here are the driver's."""
        build = build_fingerprint()
        if build != expected:
            raise KernelBankError(
                f"A node of the cluster has {build}, and the driver {expected}. "
                "Install the same versions on all nodes, so that all compute the same bits."
            )
        return os.getpid()

    def open(self, shared: tuple[Any, ...], leaves: list[int], first_input: Floats) -> None:
        """Make a worker that has learned nothing. `shared`: what all shards of the bank have."""
        objective, layout, size, needs = shared
        self._worker = ShardWorker(objective, layout, size, needs, leaves, first_input)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the worker; raise what a function of the user's has raised."""
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        answer = getattr(self._worker, method)(*given)  # arrays from Ray were read-only
        self._worker.raise_errors()
        return answer


class HeldSamples:
    """What phase 2 reads of some samples, copied, so that the shard can go on."""

    def __init__(self, shard: Shard, workspace: Workspace) -> None:
        self._source = {name: getattr(shard.arrays, name) for name in _MIXED}
        self._arrays = {name: aligned_zeros(a.shape) for name, a in self._source.items()}
        self.mix_phases = Phases([shard.mix_phase(workspace).with_arrays(**self._arrays)])
        """As `shard.mix_phases`, on these samples."""

    def copy(self, count: int) -> None:
        """Hold the `count` samples that the shard has just learned."""
        for name, array in self._source.items():  # (leaves, samples, ...)
            self._arrays[name][:, : count + 1] = array[:, : count + 1]


class ShardWorker(LocalExecutor):
    """The slots of some leaves, with everything that they need to work alone."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        size: int,
        needs: frozenset[str],
        leaf_numbers: Sequence[int],
        first_input: Floats,
    ) -> None:
        """`size`: samples learned at a time. `needs`: the combiner's."""
        leaves = [layout.leaves[number] for number in leaf_numbers]
        slots = [layout.slots[index] for leaf in leaves for index in leaf.slots]
        workspace = Workspace(
            objective, size, len(first_input), len(slots), len(leaves), needs=needs, workers=1
        )
        super().__init__(objective, layout, workspace, first_input, 1, only=leaves)
        self._shard = self._shards[0]
        self._learning = Phases([self._buffer.add_samples]) + self._shard.learn_phases
        self._combine_query = Phases([])  # that is for the driver
        parts: list[Any] = [objective.loss, *(slot.kernel for slot in slots)]
        users = [callback for part in parts for callback in part.callbacks]
        self._users = tuple(dict.fromkeys([*users, *self.callbacks]))
        self._held: dict[int, list[tuple[int, int, HeldSamples]]] = {}
        """By the number of its first sample: the rows of a block that waits for its weights."""
        self._free: list[HeldSamples] = []  # fresh memory costs more than used memory
        self._next_sample: int | None = None  # None: whichever comes

    # --- the two phases of a block --------------------------------------------------------------

    def learn(self, first: int, samples: Samples) -> tuple[dict[str, Floats], Floats]:
        """Phase 1: learn a block. Return its evidence, (n, ..., P) by name, and `step_ratio`."""
        names = (*EVIDENCE, *sorted(self._workspace.needs))
        arrays = {name: getattr(self._workspace, name) for name in names}
        evidence = {name: np.empty((len(samples[1]), *a.shape[1:])) for name, a in arrays.items()}
        block: list[tuple[int, int, HeldSamples]] = []
        for start, end in self._learn_steps(first, samples):
            for name, array in arrays.items():
                evidence[name][start:end] = array[: end - start]
            held = self._free.pop() if self._free else HeldSamples(self._shard, self._workspace)
            held.copy(end - start)
            block.append((start, end, held))
        self._held[first] = block
        return evidence, self._shard.step_ratio()

    def replay(self, first: int, samples: Samples) -> None:
        """Learn a block again that the driver has finished."""
        for _ in self._learn_steps(first, samples):
            pass

    def _learn_steps(self, first: int, samples: Samples) -> Iterator[tuple[int, int]]:
        """Learn a block within slide periods; yields the rows of each step, while it is there."""
        if self._next_sample not in (None, first):
            raise OutOfOrder(f"this shard expects sample {self._next_sample}, and got {first}")
        self._next_sample = -1  # until the block is whole
        points, targets = samples
        start = 0
        while start < len(points):
            left = SLIDE_PERIOD - (first + start) % SLIDE_PERIOD
            end = min(start + left, start + self._workspace.size, len(points))
            self._workspace.points[: end - start] = points[start:end]
            self._workspace.new_targets[: end - start] = targets[start:end]
            self._learning.run(first + start, end - start)
            self.raise_errors()
            yield start, end
            self._shard.close(end - start)
            start = end
        self._next_sample = first + len(points)

    def mix(self, first: int, weights: Floats) -> tuple[np.ndarray, np.ndarray, Floats]:
        """Phase 2 of a block: the leaves' parts of the bank's predictions, with weights (n, P).

        Returns those that are not zero, (k, window + 3), after their leaves and samples, (k,) each:
        most leaves have no weight.
        """
        workspace, parts = self._workspace, []
        for start, end, held in self._held.pop(first):
            workspace.proposed[: end - start] = weights[start:end]
            held.mix_phases.run(first + start, end - start)
            leaves, samples = np.nonzero(workspace.sums[:, : end - start].any(axis=2))
            parts.append((leaves, start + samples, workspace.sums[leaves, samples]))
            self._free.append(held)
        leaves, samples, sums = (np.concatenate(some) for some in zip(*parts, strict=True))
        return leaves, samples, sums

    def raise_errors(self) -> None:
        """Raise what a function of the user's has raised."""
        errors = [error for user in self._users if (error := user.take_error()) is not None]
        if errors:
            raise errors[0]

    # --- all else ---------------------------------------------------------------------------------

    def predict_slots(self, seen: int, point: Floats) -> Floats:
        """(P,): the slots' values at a point."""
        self._workspace.query_point[:] = point
        self.predict_query(seen)
        try:
            self.raise_errors()
        except BaseException:
            self.forget_query()
            raise
        return self._workspace.slot_values.copy()

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """As always, with `wanted` of all slots of the bank."""
        return super().evaluate(seen, points, wanted[self._shard.slots])

    def parts(self) -> tuple[dict[str, Floats], dict[str, tuple[np.ndarray, Floats]]]:
        """The arrays of the samples, and those of the slots as in `Shard.state`."""
        return self._buffer.arrays(), self._shard.state()

    def take_snapshot(self) -> Snapshot:
        """Copies of everything that the next block depends on."""
        return self.state(), self.copy_models()

    def continue_from(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot, or from one of the whole bank, at whichever sample comes."""
        state, models = snapshot
        self.restore(state)
        self.restore_models(models)

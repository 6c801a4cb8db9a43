"""Blocks that a shard has learned and that wait for their weights, so that the shard can go on."""

from __future__ import annotations

import copy

import numpy as np

from ....learners.base import LeafArrays
from ....native.phases import ArrayBindings
from ....native.workspace import Workspace
from ....utils.validation import Floats
from ... import slot_metrics
from ...shard import Shard
from .distributed_qp import CandidateSlots
from .evidence import EVIDENCE

_MIXED = ("values", "norms", "predictions", "losses_before", "effects")
_WITH_START = ("values", "norms")  # arrays with a row before the first sample


class MixBuffers:
    """The arrays of all groups that phase 2 reads, for samples of one slide period."""

    def __init__(self, shard: Shard) -> None:
        self.groups = []
        whole = LeafArrays(shard.arrays.leaves, shard.arrays.size, shard.objective.window)
        start = 0
        for group in shard.scored:  # their arrays are consecutive parts of the shard's
            own = copy.copy(group)
            for name in _MIXED:
                setattr(own, name, getattr(whole, name)[start : start + group.leaves])
            self.groups.append(own)
            start += group.leaves
        self.first = 0
        self.count = 0

    @property
    def arrays(self) -> list[Floats]:
        return [getattr(own, name) for own in self.groups for name in _MIXED]

    def mix(self, leaves: np.ndarray, samples: np.ndarray, weights: Floats, sums: Floats) -> None:
        """sums[k] = part of the prediction of leaf leaves[k] before sample samples[k].

        leaves : rows of the shard's workspace. weights : (k, lanes) of the leaves' slots.
        sums : (k, window + 3). Samples of other buffers are left out.
        """
        here = (samples >= self.first) & (samples < self.first + self.count)
        for own in self.groups:  # a group's leaves have consecutive rows
            start, end = own.workspace_numbers[0], own.workspace_numbers[-1]
            rows = np.flatnonzero(here & (leaves >= start) & (leaves <= end))
            some = np.empty((len(rows), sums.shape[1]))
            slot_metrics.mix_some.at(
                self.first,
                len(rows),
                **{name: getattr(own, name) for name in _MIXED},
                leaves=len(own.values),
                steps=own.values.shape[1],
                window=own.values.shape[2],
                chosen_leaves=leaves[rows] - start,
                samples=samples[rows] - self.first,
                weights=weights[rows],
                sums=some,
            )
            sums[rows] = some


class PendingBlock:
    """A block that was learned and waits for its weights."""

    def __init__(self, memory: Floats, count: int, slots: int) -> None:
        """`memory`: 1-d, long enough for the evidence, (5, n, P)."""
        self.memory = memory
        size = len(EVIDENCE) * count * slots
        self.evidence = memory[:size].reshape(len(EVIDENCE), count, slots)
        self.by_name = dict(zip(EVIDENCE, self.evidence, strict=True))
        self.candidates = CandidateSlots(self.by_name["curvature"], self.by_name["window_loss"])
        self.buffers: list[MixBuffers] = []


class PendingBlocks:
    """Memory for the pending blocks of a shard.

    Copying the arrays of phase 2 would cost more than mixing them. So the shard's phases are bound
    to other arrays, and continue there. A learner written in Python may hold the old arrays; with
    such a learner they are copied. Arrays are used again: fresh memory costs more than used memory.
    """

    def __init__(self, shard: Shard, workspace: Workspace) -> None:
        self._shard = shard
        self._workspace = [getattr(workspace, name) for name in EVIDENCE]
        self._free: list[MixBuffers] = []
        self._memory: list[Floats] = []
        self._copies = bool(shard.learn_phases.callbacks or shard.query_phases.callbacks)
        if not self._copies:
            phases = (shard.learn_phases, shard.query_phases)
            arrays = [getattr(group, name) for group in shard.scored for name in _MIXED]
            self._mix_bindings = [ArrayBindings(some, arrays) for some in phases]
            self._evidence_bindings = [ArrayBindings(some, self._workspace) for some in phases]
            self._current = self._unused()
            self._continue_in(self._current, 0)

    def allocate(self, count: int) -> PendingBlock:
        """Return an empty block for `count` samples."""
        slots = self._workspace[0].shape[1]
        size = len(EVIDENCE) * count * slots
        memory = self._memory.pop() if self._memory else np.empty(0)
        return PendingBlock(memory if len(memory) >= size else np.empty(size), count, slots)

    def write_evidence_to(self, evidence: Floats | None) -> None:
        """Let phase 1 write the evidence of the next samples there; None: to the workspace."""
        if not self._copies:
            for bindings in self._evidence_bindings:
                bindings.rebind(self._workspace if evidence is None else list(evidence))

    def append(self, block: PendingBlock, first: int, start: int, count: int) -> None:
        """Add the samples that the shard has just learned to a block, from row `start` on."""
        if self._copies:
            buffers = self._unused()
            for evidence, learned in zip(block.evidence, self._workspace, strict=True):
                evidence[start : start + count] = learned[:count]
            for group, own in zip(self._shard.scored, buffers.groups, strict=True):
                for name in _MIXED:
                    rows = count + (name in _WITH_START)
                    getattr(own, name)[:, :rows] = getattr(group, name)[:, :rows]
            self._shard.close(count)
        else:
            buffers, self._current = self._current, self._unused()
            self._continue_in(self._current, count)
        buffers.first, buffers.count = first, count
        block.buffers.append(buffers)

    def _unused(self) -> MixBuffers:
        return self._free.pop() if self._free else MixBuffers(self._shard)

    def _continue_in(self, buffers: MixBuffers, count: int) -> None:
        """Let the shard continue in other arrays, from its values after `count` samples."""
        for group, own in zip(self._shard.scored, buffers.groups, strict=True):
            for name in _WITH_START:
                getattr(own, name)[:, 0] = getattr(group, name)[:, count]
            for name in _MIXED:
                setattr(group, name, getattr(own, name))
        for bindings in self._mix_bindings:
            bindings.rebind(buffers.arrays)

    def release(self, block: PendingBlock) -> None:
        """Take back the memory of a block that was mixed, or is not wanted any more."""
        self._free += block.buffers
        self._memory.append(block.memory)

"""What a block leaves behind until its weights are known, put aside so that its shard can go on."""

from __future__ import annotations

import copy

import numpy as np

from ....native.phases import ArrayBindings
from ....native.workspace import Workspace
from ....utils.validation import Floats
from ... import slot_metrics as hot
from ...shard import Shard
from .candidate_slots import Below

FIELDS = ("curvature", "window_loss", "slot_cost", "slot_loss", "slot_predictions")
"""What phase 1 leaves of every slot and sample, in this order."""

_OF_MIX = ("values", "norms", "predictions", "losses_before", "effects")
_WITH_START = ("values", "norms")  # those that have a row before the first sample


class Piece:
    """Arrays that phase 2 reads, for samples of one slide_period. Made once, used again."""

    def __init__(self, shard: Shard) -> None:
        self.groups = []
        for _, group in shard.groups:
            own = copy.copy(group)
            for name in _OF_MIX:
                setattr(own, name, np.zeros_like(getattr(group, name)))
            self.groups.append(own)
        self.first = 0
        self.count = 0

    @property
    def arrays(self) -> list[Floats]:
        return [getattr(own, name) for own in self.groups for name in _OF_MIX]

    def mix(self, leaves: np.ndarray, samples: np.ndarray, weights: Floats, sums: Floats) -> None:
        """sums[k] = part of the proposal of a leaf, by its row on the workspace, before a sample.

        `weights[k]` are those of its lanes. Samples of other pieces are left out.
        """
        here = (samples >= self.first) & (samples < self.first + self.count)
        for own in self.groups:  # a group's leaves follow one another
            start, end = own.workspace_numbers[0], own.workspace_numbers[-1]
            rows = np.flatnonzero(here & (leaves >= start) & (leaves <= end))
            some = np.empty((len(rows), sums.shape[1]))
            hot.mix_some(
                *(getattr(own, name) for name in _OF_MIX),
                self.first,
                leaves[rows] - start,
                samples[rows] - self.first,
                weights[rows],
                some,
            )
            sums[rows] = some


class Block:
    """A block that has been learned and waits for its weights."""

    def __init__(self, room: Floats, count: int, slots: int) -> None:
        """`room`: numbers enough for the evidence."""
        self.room = room
        self.evidence = room[: len(FIELDS) * count * slots].reshape(len(FIELDS), count, slots)
        self.told = dict(zip(FIELDS, self.evidence, strict=True))
        self.below = Below(self.told["curvature"], self.told["window_loss"])
        self.pieces: list[Piece] = []


class Aside:
    """The blocks of a shard that have been learned and not mixed yet.

    Copying them would cost more than mixing them. So the shard is given other arrays to go on with:
    its tables are made to point there. A learner written in Python may have the old ones at hand;
    with such a learner they are copied. Arrays are used again: a fresh slide_period costs more than a used
    one.
    """

    def __init__(self, shard: Shard, workspace: Workspace) -> None:
        self._shard = shard
        self._workspace = [getattr(workspace, name) for name in FIELDS]
        self._free: list[Piece] = []
        self._rooms: list[Floats] = []
        self._copies = bool(shard.learning.callbacks or shard.looking.callbacks)
        if not self._copies:
            phases = (shard.learning, shard.looking)
            arrays = [getattr(group, name) for _, group in shard.groups for name in _OF_MIX]
            self._groups = [ArrayBindings(some, arrays) for some in phases]
            self._evidence = [ArrayBindings(some, self._workspace) for some in phases]
            self._now = self._other()
            self._go_on_in(self._now, 0)

    def block(self, count: int) -> Block:
        """Room for a block of so many samples."""
        slots = self._workspace[0].shape[1]
        size = len(FIELDS) * count * slots
        room = self._rooms.pop() if self._rooms else np.empty(0)
        return Block(room if len(room) >= size else np.empty(size), count, slots)

    def aim(self, evidence: Floats | None) -> None:
        """Let the samples that come next leave their evidence there; None for the workspace."""
        if not self._copies:
            for pointers in self._evidence:
                pointers.rebind(self._workspace if evidence is None else list(evidence))

    def keep(self, block: Block, first: int, start: int, count: int) -> None:
        """Put the samples aside that the shard has just learned, from `start` in the block."""
        other = self._other()
        if self._copies:
            piece = other
            for mine, there in zip(block.evidence, self._workspace, strict=True):
                mine[start : start + count] = there[:count]
            for (_, group), own in zip(self._shard.groups, piece.groups, strict=True):
                for name in _OF_MIX:
                    rows = count + (name in _WITH_START)
                    getattr(own, name)[:, :rows] = getattr(group, name)[:, :rows]
            self._shard.close(count)
        else:
            piece, self._now = self._now, other
            self._go_on_in(other, count)
        piece.first, piece.count = first, count
        block.pieces.append(piece)

    def _other(self) -> Piece:
        return self._free.pop() if self._free else Piece(self._shard)

    def _go_on_in(self, other: Piece, count: int) -> None:
        """Let the shard go on in other arrays, from what it has after `count` samples."""
        for (_, group), own in zip(self._shard.groups, other.groups, strict=True):
            for name in _WITH_START:
                getattr(own, name)[:, 0] = getattr(group, name)[:, count]
            for name in _OF_MIX:
                setattr(group, name, getattr(own, name))
        for pointers in self._groups:
            pointers.rebind(other.arrays)

    def release(self, block: Block) -> None:
        """It has been mixed, or is not wanted any more."""
        self._free += block.pieces
        self._rooms.append(block.room)

"""What phase 2 needs of a block, put aside by its number, so that its shard can learn the next."""

from __future__ import annotations

import copy

import numpy as np

from .._hot.table import Phases, Pointers
from .._validate import Floats
from ..learners.base import Group
from ..setting import Board
from ..shard import Shard

_OF_MIX = ("values", "norms", "predictions", "losses_before", "effects")
_WITH_START = ("values", "norms")  # those that have a row before the first sample


class Piece:
    """Arrays that `mix` reads, for samples of one page. Made once, used again."""

    def __init__(self, shard: Shard, board: Board) -> None:
        self._board = copy.copy(board)
        self._board.proposed = np.zeros_like(board.proposed)
        self._board.sums = np.zeros_like(board.sums)
        self.groups: list[Group] = []
        for _, group in shard.groups:
            own = copy.copy(group)
            for name in _OF_MIX:
                setattr(own, name, np.zeros_like(getattr(group, name)))
            self.groups.append(own)
        self._mixing = Phases([shard.mix_phase(own, self._board) for own in self.groups])
        self.first = 0
        self.count = 0

    @property
    def arrays(self) -> list[Floats]:
        return [getattr(own, name) for own in self.groups for name in _OF_MIX]

    def mix(self, weights: Floats) -> Floats:
        """(leaves, count, ...): the leaves' parts of the proposals with these (count, P) weights.

        The result is valid until the next call.
        """
        self._board.proposed[: self.count] = weights
        self._mixing.run(self.first, self.count)
        return self._board.sums[:, : self.count]


class Aside:
    """The blocks of a shard that have been learned and not mixed yet.

    Copying them would cost more than mixing them. So the shard is given other arrays to go on with:
    its tables are made to point there. A learner written in Python may have the old ones at hand;
    with such a learner they are copied.
    """

    def __init__(self, shard: Shard, board: Board) -> None:
        self._shard = shard
        self._board = board
        self._free: list[Piece] = []
        self._pointers: list[Pointers] = []
        self._now: Piece | None = None
        if not (shard.learning.callbacks or shard.looking.callbacks):
            arrays = [getattr(group, name) for _, group in shard.groups for name in _OF_MIX]
            self._pointers = [Pointers(p, arrays) for p in (shard.learning, shard.looking)]
            self._now = self._other()
            self._point(self._now, 0)

    def keep(self, first: int, count: int) -> Piece:
        """Put the samples aside that the shard has just learned, and close them there."""
        other = self._other()
        if self._now is None:
            piece = other
            for (_, group), own in zip(self._shard.groups, piece.groups, strict=True):
                for name in _OF_MIX:
                    rows = count + (name in _WITH_START)
                    getattr(own, name)[:, :rows] = getattr(group, name)[:, :rows]
            self._shard.close(count)
        else:
            piece, self._now = self._now, other
            self._point(other, count)
        piece.first, piece.count = first, count
        return piece

    def _other(self) -> Piece:
        return self._free.pop() if self._free else Piece(self._shard, self._board)

    def _point(self, other: Piece, count: int) -> None:
        """Let the shard go on in other arrays, from what it has after `count` samples."""
        for (_, group), own in zip(self._shard.groups, other.groups, strict=True):
            for name in _WITH_START:
                getattr(own, name)[:, 0] = getattr(group, name)[:, count]
            for name in _OF_MIX:
                setattr(group, name, getattr(own, name))
        for pointers in self._pointers:
            pointers.point(other.arrays)

    def release(self, pieces: list[Piece]) -> None:
        """They have been mixed, or are not wanted any more."""
        self._free += pieces

"""What phase 2 needs of a block, put aside by its number, so that its shard can learn the next."""

from __future__ import annotations

import copy

import numpy as np

from .._hot.table import Phases
from .._validate import Floats
from ..learners.base import Group
from ..setting import Board
from ..shard import Shard

_OF_MIX = ("values", "norms", "predictions", "losses_before", "effects")


class Piece:
    """Copies of the arrays that `mix` reads, for samples of one page. Made once, used again."""

    def __init__(self, shard: Shard, board: Board) -> None:
        self._board = copy.copy(board)
        self._board.proposed = np.zeros_like(board.proposed)
        self._board.sums = np.zeros_like(board.sums)
        self._groups: list[tuple[Group, Group]] = []
        for _, group in shard.groups:
            own = copy.copy(group)
            for name in _OF_MIX:
                setattr(own, name, np.zeros_like(getattr(group, name)))
            self._groups.append((group, own))
        self._mixing = Phases([shard.mix_phase(own, self._board) for _, own in self._groups])
        self.first = 0
        self.count = 0

    def keep(self, first: int, count: int) -> None:
        """Copy what the shard has left behind for the block that it has just learned."""
        self.first, self.count = first, count
        for group, own in self._groups:
            for name in _OF_MIX:
                rows = count + 1 if name in ("values", "norms") else count
                getattr(own, name)[:, :rows] = getattr(group, name)[:, :rows]

    def mix(self, weights: Floats) -> Floats:
        """(leaves, count, ...): the leaves' parts of the proposals with these (count, P) weights.

        The result is valid until the next call.
        """
        self._board.proposed[: self.count] = weights
        self._mixing.run(self.first, self.count)
        return self._board.sums[:, : self.count]


class Aside:
    """The blocks of a shard that have been learned and not mixed yet."""

    def __init__(self, shard: Shard, board: Board) -> None:
        self._shard = shard
        self._board = board
        self._free: list[Piece] = []

    def keep(self, first: int, count: int) -> Piece:
        """Put the samples aside that the shard has just learned."""
        piece = self._free.pop() if self._free else Piece(self._shard, self._board)
        piece.keep(first, count)
        return piece

    def release(self, pieces: list[Piece]) -> None:
        """They have been mixed, or are not wanted any more."""
        self._free += pieces

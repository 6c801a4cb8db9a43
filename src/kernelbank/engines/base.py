"""Engines: where shards live and how blocks reach them. No mathematics here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _validate as check
from .._hot.formulas import CONSTANTS, Callback
from .._hot.table import Phases
from .._validate import Floats
from ..ground import Ground
from ..kernels.base import of_each_shape, sources_of
from ..layout import Layout, Leaf
from ..setting import PAGE, Board, Setting
from ..shard import Shard

_BLOCK_BYTES = 64 * 2**20
_SHORTEST = 8


def bytes_per_sample(layout: Layout, setting: Setting, dimension: int) -> int:
    """What a sample of a block takes: the slots' values on the window, and the statistics."""
    values = len(layout.leaves) * 4 * (setting.window + 4)
    sources = sources_of(layout.row_kernels, dimension)
    return 8 * (values + len(sources) * (layout.reach(setting) + 1))


def block_length(layout: Layout, setting: Setting, dimension: int) -> int:
    """Samples of a block: a page, or fewer where a block would fill the memory.

    Long blocks are good for the caches: a leaf's terms and kernel rows are fetched once and used
    for the whole block. Only what grows with the block sets a limit, and that is read once in
    order (`make bench` draws the time over the block's length).
    """
    sample = bytes_per_sample(layout, setting, dimension)
    return int(min(PAGE, max(_SHORTEST, _BLOCK_BYTES // sample)))


def workspace_bytes(layout: Layout, setting: Setting, dimension: int) -> int:
    """What a bank works with beside its state: about so many bytes."""
    board = 8 * 8 * len(layout.slots)
    sample = bytes_per_sample(layout, setting, dimension) + board
    length = {k.shape: len(k.at(dimension).program()) for k in of_each_shape(layout.row_kernels)}
    programs = 8 * CONSTANTS * sum(length[kernel.shape] for kernel in layout.row_kernels)
    learners = enumerate(layout.learners)
    own = sum(m.workspace(setting, dimension, layout.first_kernel(k)) for k, m in learners)
    return (block_length(layout, setting, dimension) + 1) * sample + programs + 8 * own


def checked_block(block: int | None, owner: str) -> None:
    """Refuse a block length that cannot be."""
    if block is not None:
        remedy = f"Give 1 to {PAGE}, or None to let it be chosen."
        if check.count("block", block, owner, remedy) > PAGE:
            raise check.refuse("block", f"be at most {PAGE}", block, remedy, owner)


def dealt(families: Sequence[Sequence[Leaf]], shards: int) -> list[list[Leaf]]:
    """The leaves of every shard: dealt in turn, since narrow kernels cost less than wide ones.

    Four at a time where there are enough: their columns on the board then fill whole cache lines,
    and two threads seldom write to the same one. A family stays together.
    """
    number = min(shards, len(families))
    run = max(1, min(4, len(families) // (4 * number)))
    hands: list[list[Leaf]] = [[] for _ in range(number)]
    for i, family in enumerate(families):
        hands[i // run % number].extend(family)
    return hands


class Crew:
    """The shards of one bank at work."""

    def prepare(self, weigh: Phases, charge: Phases, blend: Phases) -> None:
        """Be told what the driver does: between the two phases, after them, and after a look."""
        raise NotImplementedError

    def play(self, first: int, count: int) -> None:
        """Work the block on the board: all shards learn, `weigh`, all shards mix, `charge`."""
        raise NotImplementedError

    def single(self) -> tuple[Phases, Phases] | None:
        """The phases of a block of one and of a look, if they run in the calling thread."""
        return None

    def look(self, seen: int) -> None:
        """Write the slots' values at board.look_point to board.slot_values, then blend them."""
        raise NotImplementedError

    def forget_look(self) -> None:
        """What the last look has left behind is not to be used by the next block."""
        raise NotImplementedError

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the points, for leaves with a slot with wanted[p] != 0."""
        raise NotImplementedError

    def variance(self, points: Floats) -> Floats:
        """(n, P): the slots' predictive variances, NaN where there is none."""
        raise NotImplementedError

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """Python functions among the phases."""
        return ()

    def excess(self) -> Floats:
        """(P,): see `Learner.excess`."""
        raise NotImplementedError

    def dropped(self) -> Floats:
        """(P,): see `Learner.dropped`."""
        raise NotImplementedError

    def state(self) -> dict[str, Floats]:
        """Copies of all arrays, in leaf order, whatever the shards."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Go on from what `state` returned."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget everything that was learned; `begin` follows before the next sample."""
        raise NotImplementedError

    def begin(self, first_input: Floats) -> None:
        """Be told the first sample, as when the crew was opened."""
        raise NotImplementedError

    def remember(self) -> dict[int, Any]:
        """Copies of what learners keep beside arrays (see `Learner.remember`), by leaf."""
        return {}

    def recall(self, kept: Mapping[int, Any]) -> None:
        """Go back to what `remember` returned."""


class Engine:
    """Where shards live. Subclasses are frozen dataclasses of their settings."""

    block: int | None = None
    """Samples of a block, at most a page; None for what `block_length` chooses. Changes no bit."""

    @property
    def workers(self) -> int:
        """How many threads may share the driver's work."""
        return 1

    def open(self, setting: Setting, layout: Layout, board: Board, first_input: Floats) -> Crew:
        """Make the shards, once the first sample, and so the width of the inputs, is known."""
        raise NotImplementedError


class LocalCrew(Crew):
    """Shards in this process, one after the other."""

    def __init__(
        self, setting: Setting, layout: Layout, board: Board, first_input: Floats, shards: int
    ) -> None:
        self._layout = layout
        self._size = board.size
        self._ground = Ground(layout.reach(setting), layout.row_kernels, board, first_input)
        self._shards = [
            Shard(setting, layout, leaves, board, self._ground)
            for leaves in dealt(layout.families(layout.leaves), shards)
        ]

    def prepare(self, weigh: Phases, charge: Phases, blend: Phases) -> None:
        looks = Phases([self._ground.look])
        for shard in self._shards:
            looks += shard.looking
        self._looks = looks + blend
        phases = Phases([self._ground.take])
        for shard in self._shards:
            phases += shard.learning
        phases += weigh
        for shard in self._shards:
            phases += shard.mixing
        self._phases = phases + charge

    def play(self, first: int, count: int) -> None:
        self._phases.run(first, count)  # one call: a block is learned whole or not at all

    def single(self) -> tuple[Phases, Phases] | None:
        return self._phases, self._looks

    def look(self, seen: int) -> None:
        self._looks.run(seen, 1)

    def forget_look(self) -> None:
        self._ground.forget_look()

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        out = np.zeros((len(points), len(self._layout.slots)))
        for start in range(0, len(points), self._size):
            some = points[start : start + self._size]
            statistics = self._ground.compare(seen, some)
            for shard in self._shards:
                shard.evaluate(seen, some, statistics, wanted, out[start : start + self._size])
        return out

    def variance(self, points: Floats) -> Floats:
        out = np.full((len(points), len(self._layout.slots)), np.nan)
        for shard in self._shards:
            shard.variance(points, out)
        return out

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        phases = [p for shard in self._shards for p in (shard.learning, shard.looking)]
        return tuple(callback for part in phases for callback in part.callbacks)

    def excess(self) -> Floats:
        return np.asarray(sum(shard.excess() for shard in self._shards))

    def dropped(self) -> Floats:
        return np.asarray(sum(shard.dropped() for shard in self._shards))

    def state(self) -> dict[str, Floats]:
        result = {name: array.copy() for name, array in self._ground.arrays().items()}
        pieces: dict[str, list[tuple[np.ndarray, Floats]]] = {}
        for shard in self._shards:
            for name, (numbers, array) in shard.arrays().items():
                pieces.setdefault(name, []).append((numbers, array))
        for name, parts in pieces.items():
            order = np.argsort(np.concatenate([numbers for numbers, _ in parts]))
            result[name] = np.concatenate([array for _, array in parts])[order]
        return result

    def restore(self, state: Mapping[str, Floats]) -> None:
        for name, array in self._ground.arrays().items():
            array[...] = state[name]
        for shard in self._shards:
            for name, (numbers, array) in shard.arrays().items():
                group = self._layout.leaves[int(numbers[0])].group
                array[...] = state[name][numbers - self._layout.first_leaves[group]]
        self._ground.forget_rows()

    def reset(self) -> None:
        for array in self._ground.arrays().values():
            array[...] = 0.0
        for shard in self._shards:
            shard.reset()
        self._ground.forget_rows()

    def begin(self, first_input: Floats) -> None:
        self._ground.begin(first_input)

    def remember(self) -> dict[int, Any]:
        return {
            int(number): kept
            for shard in self._shards
            for learner, group in shard.groups
            for number, kept in zip(group.numbers, learner.remember(group), strict=True)
        }

    def recall(self, kept: Mapping[int, Any]) -> None:
        for shard in self._shards:
            for learner, group in shard.groups:
                learner.recall(group, [kept[int(number)] for number in group.numbers])

"""Engines: where shards live and how blocks reach them. No mathematics here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .._hot import score as hot
from .._validate import Floats
from ..layout import Layout
from ..setting import PAGE, Evidence, Setting
from ..shard import Shard

_BLOCK_BYTES = 64 * 2**20


def block_length(layout: Layout, setting: Setting) -> int:
    """Samples of a block: a page, or fewer where the slots' values would fill the memory."""
    per_sample = len(layout.leaves) * 4 * 8 * (setting.window + 4)
    return int(min(PAGE, max(8, _BLOCK_BYTES // per_sample)))


class Crew:
    """The shards of one bank at work: ships blocks to them and gathers what they return."""

    block: int
    """The longest block that the shards have room for."""

    def learn(self, first: int, X: Floats, y: Floats, evidence: Evidence) -> None:
        """Phase 1 of a block, in all shards."""
        raise NotImplementedError

    def mix(self, first: int, weights: Floats) -> Floats:
        """Phase 2: (n, window + 3) sums over all leaves, in leaf order."""
        raise NotImplementedError

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the points, for leaves with a slot with wanted[p] != 0."""
        raise NotImplementedError

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


class Engine:
    """Where shards live. Subclasses are frozen dataclasses of their settings."""

    def open(self, setting: Setting, layout: Layout, first_input: Floats) -> Crew:
        """Make the shards, once the first sample, and so the width of the inputs, is known."""
        raise NotImplementedError


class LocalCrew(Crew):
    """Shards in this process. Leaves are dealt in strides: narrow kernels cost less than wide."""

    def __init__(self, setting: Setting, layout: Layout, first_input: Floats, shards: int) -> None:
        self._setting, self._layout = setting, layout
        self.block = block_length(layout, setting)
        number = min(shards, len(layout.leaves))
        self._shards = [
            Shard(setting, layout, layout.leaves[k::number], first_input, self.block)
            for k in range(number)
        ]

    def learn(self, first: int, X: Floats, y: Floats, evidence: Evidence) -> None:
        self._each(lambda shard: shard.learn(first, X, y, evidence))

    def mix(self, first: int, weights: Floats) -> Floats:
        width = self._setting.window + hot.EXTRA
        sums = np.empty((len(self._layout.leaves), len(weights), width))
        self._each(lambda shard: shard.mix(first, weights, sums))
        totals = np.empty((len(weights), width))
        hot.sum_leaves(sums, totals)
        return totals

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        out = np.zeros((len(points), len(self._layout.slots)))
        self._each(lambda shard: shard.evaluate(seen, points, wanted, out))
        return out

    def _each(self, work: Callable[[Shard], None]) -> None:
        """Have every shard do its part; the parts write to different places."""
        for shard in self._shards:
            work(shard)

    def excess(self) -> Floats:
        return np.asarray(sum(shard.excess() for shard in self._shards))

    def dropped(self) -> Floats:
        return np.asarray(sum(shard.dropped() for shard in self._shards))

    def state(self) -> dict[str, Floats]:
        result: dict[str, Floats] = {}
        pieces: dict[str, list[tuple[np.ndarray, Floats]]] = {}
        for shard in self._shards:
            for name, (numbers, array) in shard.arrays().items():
                if numbers is None:
                    result[name] = array.copy()
                else:
                    pieces.setdefault(name, []).append((numbers, array))
        for name, parts in pieces.items():
            order = np.argsort(np.concatenate([numbers for numbers, _ in parts]))
            result[name] = np.concatenate([array for _, array in parts])[order]
        return result

    def restore(self, state: Mapping[str, Floats]) -> None:
        for shard in self._shards:
            for name, (numbers, array) in shard.arrays().items():
                if numbers is None:
                    array[...] = state[name]
                else:
                    group = self._layout.leaves[int(numbers[0])].group
                    array[...] = state[name][numbers - self._layout.first_leaf(group)]

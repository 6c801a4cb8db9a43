"""The default slots beyond those of each scaling: last value, nearest neighbors, and reserves.

- *last value*: the last target again; "last value + ...": with a slot that learns the change from
  one target to the next.
- *nearest neighbors, width w, noise v*: a small Gaussian process on the nearest of many past rows.
  Its capacity grows with the stream. The width is in standard deviations times sqrt(inputs), the
  noise a part of the target's variance. In the standard scaling neighbors are near in the lagged
  targets too; in that by ranks only in the inputs.

- *relevant: random features, wide* (*medium*, *narrow*): kernels of all relevant columns, the
  inputs, last targets and inputs of the row before by their relevance (`relevance`); *relevant:
  random features, medium + nearest neighbors*: neighbors in this metric, on its residual.
- *past: linear, ...*: least squares on the same columns as they are, which is an autoregression.

Reserves do not run from the start; `slot_revision` tries them when others have no weight:

- *... + nearest neighbors, ...*: neighbors on the residual of another slot;
- *... + tree 2 + tree 3*: larger trees on what the trees before them leave, as in boosting;
- *nearest neighbors on some inputs*: near in a random half of the inputs;
- *random features, narrow* and *random features, all inputs*: other widths, and kernels of all
  inputs only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from ...bank.slot import Slot
from ...kernels import ActiveDims, Gaussian, Linear, Matern, NoKernel, TreeKernel
from ...learners import FourierRLS, LastValue, LinearRLS, NearestNeighborGP, PartitionTree
from ...losses import Loss, Squared
from ..scaling.scaling import Scaling
from .default_slots import (
    FAST,
    LINEAR_RIDGE,
    NARROWEST,
    RIDGE,
    SLOW,
    TREE_BASES,
    WIDE,
    Size,
    default_slots,
    mixed_kernel,
)
from .loss_slots import needs_shift
from .season_slots import season_slots
from .slot_pool import NamedSlots, SlotPool

NEIGHBOR_KERNELS = ((0.3, 0.1), (1.0, 0.01), (1.0, 0.1), (3.0, 0.01))
"""Widths and noises of the slots on nearest neighbors."""

NOISE = 0.1
"""The noise in units of their kernels, which are scaled accordingly."""

MOST_SAMPLES = 2**14
"""The most samples among which neighbors are searched."""

LIMIT = 0.7
"""What all slots may cost per row, as a part of what the slots of each scaling would cost."""

LARGER_TREES, LARGEST_TREE = 8, 4_000_000
"""How many times more nodes the trees of reserves have, and roughly how many bytes at most."""

SUBSETS = 3
"""How many random halves of the inputs there are."""

RELEVANT_WIDTHS = {"wide": 2.0, "medium": 1.0, "narrow": 0.5}
"""Of the kernels of all relevant columns: in standard deviations, times sqrt(columns)."""

TRANSFORMED = ("rank: ", "relevant: ")
"""How the names of slots begin that learn the transform of a skewed target (`target_skewness`)."""

_FORGETTING: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}


def default_pool(scaling: Scaling, size: Size, seed: int, loss: Loss, outputs: int = 1) -> SlotPool:
    """All slots that an AutoBank with the default slots may run.

    They are the same for any number of outputs; which of them run first, and what they cost, is
    not.
    """
    pool = SlotPool(scaling.width, outputs)
    added = scaling.dimension - scaling.core
    columns_of = {}
    for name, columns in scaling.columns_of.items():
        columns_of[name], later = columns[: len(columns) - added], columns[len(columns) - added :]
        pool.add(default_slots(name, columns_of[name], later, len(pool), size, seed, loss))
    if needs_shift(loss):  # other slots would aim at the mean, and nothing at what the loss does
        pool.add(season_slots(scaling, size, seed, loss))
        return pool
    pool.first_limit = LIMIT * sum(group.price for group in pool.groups)
    builder = _Builder(pool, scaling, columns_of, size, seed, loss)
    builder.add_last_value()
    builder.add_neighbors()
    builder.add_relevant()
    first = len(pool.groups)
    pool.add(season_slots(scaling, size, seed, loss))
    pool.season_groups = tuple(range(first, len(pool.groups)))
    builder.add_reserves()
    for index, name in enumerate(pool.names):
        if name.startswith(TRANSFORMED):
            slot = pool.slots[index]
            pool.slots[index] = replace(slot, transform=scaling.target_transform)
    return pool


class _Builder:
    """Adds the slots of this module to a pool."""

    def __init__(
        self,
        pool: SlotPool,
        scaling: Scaling,
        columns_of: dict[str, tuple[int, ...]],
        size: Size,
        seed: int,
        loss: Loss,
    ) -> None:
        self.pool, self.scaling, self.columns_of = pool, scaling, columns_of
        self.size, self.seed, self.loss = size, seed, loss
        self.first = scaling.names[0]
        """The scaling whose columns the slots here use."""
        self.columns = columns_of[self.first]
        self.cells = ActiveDims(TreeKernel(decay=0.7, levels=20), self.columns)

    def _add(self, name: str, slot: Slot, *, initial: bool = True) -> int:
        """Add one slot; its index."""
        self._add_group(name, [(name, slot)], initial=initial)
        return len(self.pool) - 1

    def _add_group(self, name: str, named: NamedSlots, *, initial: bool = True) -> None:
        if self.loss != Squared():
            named = [(one, replace(slot, loss=Squared())) for one, slot in named]
        self.pool.add_group(name, named, initial=initial)

    def _tree(self, number: int, nodes: int) -> PartitionTree:
        return PartitionTree(nodes=nodes, noise=0.1, seed=self.seed * 1000 + number)

    def _features(self, columns: Sequence[int], narrowest: float = NARROWEST) -> ActiveDims:
        kernel = mixed_kernel(len(columns), self.size.widths, narrowest)
        return ActiveDims(kernel, tuple(columns))

    def _rls(self, **memory: Any) -> FourierRLS:
        return FourierRLS(features=self.size.features, ridge=RIDGE, seed=self.seed, **memory)

    def add_last_value(self) -> None:
        """The last target, and slots on the change from one target to the next."""
        # A forecast of several rows goes on from its own predictions, which are lagged targets.
        one = self.scaling.lags and self.scaling.outputs <= 1
        column = self.columns[self.scaling.core] if one else None
        last = self._add("last value", Slot(NoKernel(), LastValue(column)))
        line = ActiveDims(Linear(1.0), self.columns[:WIDE])
        linear = LinearRLS(ridge=LINEAR_RIDGE, **_FORGETTING)
        on_line = self._add("last value + linear", Slot(line, linear, residual_of=last))
        features = Slot(self._features(self.columns), self._rls(**_FORGETTING), residual_of=last)
        self._add("last value + random features", features)
        for number in range(self.size.trees):
            tree = self._tree(number, self.size.nodes)
            name = f"last value + tree {number + 1}"
            self._add(name, Slot(self.cells, tree, residual_of=last))
        tree = self._tree(0, self.size.nodes)
        self._add("last value + linear + tree 1", Slot(self.cells, tree, residual_of=on_line))

    def _neighbors(
        self, name: str, columns: Sequence[int], base: int | None, *, initial: bool
    ) -> None:
        """Add four slots on nearest neighbors, which share their search."""
        dimension, count = len(columns), self.size.neighbors
        memory = max(self.size.neighbor_values // dimension, 8 * count)
        learner = NearestNeighborGP(count, min(memory, MOST_SAMPLES), noise=NOISE)
        named = []
        for width, noise in NEIGHBOR_KERNELS:
            kernel = (NOISE / noise) * Matern(width * sqrt(dimension))
            slot = Slot(ActiveDims(kernel, tuple(columns)), learner, residual_of=base)
            named.append((f"{name}, width {width:g}, noise {noise:g}", slot))
        self._add_group(name, named, initial=initial)

    def add_neighbors(self) -> None:
        """Nearest neighbors by all columns, and by the ranks of the inputs alone."""
        self._neighbors(f"{self.first}: nearest neighbors", self.columns, None, initial=True)
        other = "rank" if "rank" in self.columns_of else self.first
        inputs = self.columns_of[other][: self.scaling.core]
        if inputs != self.columns:
            self._neighbors(f"{other}: nearest neighbors", inputs, None, initial=True)

    def add_relevant(self) -> None:
        """Slots on the relevant columns, and lines on the same columns as they are."""
        columns = self.scaling.relevant_columns
        if not columns:
            return
        first = len(self.pool)
        for name, width in RELEVANT_WIDTHS.items():
            kernel = ActiveDims(Gaussian(width * sqrt(len(columns))), columns)
            self._add(f"relevant: random features, {name}", Slot(kernel, self._rls(**_FORGETTING)))
        base = "relevant: random features, medium"
        index = self.pool.index(base)
        self._neighbors(f"{base} + nearest neighbors", columns, index, initial=True)
        self.pool.relevant_slots = tuple(range(first, len(self.pool)))
        self.pool.metric_slot = index
        line = ActiveDims(Linear(1.0), (*self.columns, *self.scaling.past_columns))
        for name, fast in (("forgetting", None), ("adaptive bias", FAST)):
            linear = LinearRLS(ridge=LINEAR_RIDGE, constant_forgetting=fast, **_FORGETTING)
            self._add(f"past: linear, {name}", Slot(line, linear))

    def add_reserves(self) -> None:
        """Slots that do not run from the start."""
        pool, core = self.pool, self.scaling.core
        for base in ("last value", f"{self.first}: random features, adaptive bias"):
            index = pool.index(base)
            if index is not None:
                self._neighbors(f"{base} + nearest neighbors", self.columns, index, initial=False)
        self._add_chains()
        inputs = self.columns[:core]
        for number in range(1, SUBSETS + 1):
            draw = np.random.default_rng([self.seed, number])
            some = np.sort(draw.permutation(core)[: (core + 1) // 2])
            name = f"{self.first}: nearest neighbors on some inputs {number}"
            self._neighbors(name, [inputs[k] for k in some], None, initial=False)
        for scaling, columns in self.columns_of.items():
            narrow = Slot(self._features(columns, 0.4 * NARROWEST), self._rls())
            self._add(f"{scaling}: random features, narrow", narrow, initial=False)
        full = Gaussian(sqrt(len(self.columns)))
        every = Slot(ActiveDims(full, self.columns), self._rls(**_FORGETTING))
        self._add(f"{self.first}: random features, all inputs", every, initial=False)

    def _larger_nodes(self, dimension: int) -> int:
        """How many nodes a larger tree has: an odd number, at least that of the others."""
        split_after = PartitionTree().split_after
        fitting = LARGEST_TREE // (4 * split_after * (dimension + 4))  # half of them store samples
        nodes = min(LARGER_TREES * (self.size.nodes + 1) - 1, fitting - 1 + fitting % 2)
        return max(nodes, self.size.nodes)

    def _add_chains(self) -> None:
        """Larger trees on the residual of the last tree on each base."""
        trees = self.size.trees
        for scaling in self.columns_of:
            for base in TREE_BASES:
                name = f"{scaling}: {base} + tree {trees}"
                index = self.pool.index(name)
                if index is None:
                    continue
                cells = self.pool.slots[index].kernel
                nodes = self._larger_nodes(len(self.columns_of[scaling]))
                for number in (trees + 1, trees + 2):
                    tree = self._tree(number, nodes)
                    name = f"{name} + tree {number}"
                    index = self._add(name, Slot(cells, tree, residual_of=index), initial=False)

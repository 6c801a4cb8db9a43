"""The slots of forecasts at several horizons.

A row is what is known at one moment: the inputs, the last targets, the targets one period before
the moments to be forecast, and the phases of the periods. All horizons share it.

- *mean*; *last value* and *last value of period p*: the target now, and that of the same phase
  before; *iterated*: a line, learned one step ahead, that goes on from its own forecasts.
- *linear*: least squares on everything; *few lags*: on the inputs, the last six targets and the
  phases.
- *random features*, *nearest neighbors*, *tree*: on few lags too; nearest neighbors alone on many.

Those of the last two lines are there alone, and on the residual of each of the first line.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

from ...bank.slot import Slot
from ...kernels import ActiveDims, Linear, Matern, NoKernel, TreeKernel
from ...learners import FourierRLS, LastValue, LinearRLS, NearestNeighborGP, PartitionTree
from ...losses import Loss, Squared
from ..slots.default_pool import MOST_SAMPLES, NEIGHBOR_KERNELS, NOISE
from ..slots.default_slots import LINEAR_RIDGE, RIDGE, SLOW, WIDE, Size, mixed_kernel
from ..slots.slot_pool import NamedSlots, SlotPool
from .forecast_columns import ForecastColumns

FEW, MANY = 6, 24
"""How many of the last targets the slots see that are not linear; and those on nearest neighbors
of whole rows, which find the same course of a series in the past."""

_FLAT = 1e9
"""A ridge that leaves a line no slope: its forecast is the mean."""

_FORGETTING: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}
_FASTER: dict[str, Any] = {"forgetting": 0.998, "forget": "prior"}


def forecast_pool(columns: ForecastColumns, size: Size, seed: int, loss: Loss) -> SlotPool:
    """All slots of the forecasts."""
    pool = SlotPool(columns.width)
    _Builder(pool, columns, size, seed, loss).add_all()
    return pool


class _Builder:
    """Adds slots to a pool."""

    def __init__(
        self, pool: SlotPool, columns: ForecastColumns, size: Size, seed: int, loss: Loss
    ) -> None:
        self.pool, self.columns, self.size, self.seed, self.loss = pool, columns, size, seed, loss
        self.few = (*columns.inputs, *columns.lags[:FEW], *columns.phases)
        self.all_lags = (*columns.inputs, *columns.lags[:MANY], *columns.phases)

    def _add(self, name: str, slot: Slot) -> int:
        self._add_group(name, [(name, slot)])
        return len(self.pool) - 1

    def _add_group(self, name: str, named: NamedSlots) -> None:
        if self.loss != Squared():
            named = [(one, replace(slot, loss=Squared())) for one, slot in named]
        self.pool.add_group(name, named)

    def add_all(self) -> None:
        """The slots, bases before those that need them."""
        columns = self.columns
        constant = LinearRLS(ridge=_FLAT)
        self._add("mean", Slot(ActiveDims(Linear(1.0), columns.lags[:1]), constant))
        last = self._add("last value", Slot(NoKernel(), LastValue(columns.lags[0])))
        iterated = Slot(NoKernel(), LastValue(columns.iterated[0], per_output=True))
        bases = {"": None, "last value + ": last, "iterated + ": self._add("iterated", iterated)}
        for period, own in columns.seasons.items():
            name = f"last value of period {period}"
            season = self._add(name, Slot(NoKernel(), LastValue(own[0], per_output=True)))
            bases[f"{name} + "] = season
        line = ActiveDims(Linear(1.0), columns.everything[:WIDE])
        short = ActiveDims(Linear(1.0), (*self.few, *columns.later)[:WIDE])
        for base, index in bases.items():
            linear = LinearRLS(ridge=LINEAR_RIDGE, **_FORGETTING)
            self._add(f"{base}linear", Slot(line, linear, residual_of=index))
            linear = LinearRLS(ridge=LINEAR_RIDGE, **_FASTER)
            self._add(f"{base}linear, few lags", Slot(short, linear, residual_of=index))
            self._add_features(base, index)
            self._add_neighbors(base, index, self.few if base else self.all_lags)
            if index is not None:
                self._add_tree(base, index)

    def _add_features(self, base: str, index: int | None) -> None:
        kernel = ActiveDims(mixed_kernel(len(self.few), self.size.widths), self.few)
        rls = FourierRLS(features=self.size.features, ridge=RIDGE, seed=self.seed, **_FORGETTING)
        self._add(f"{base}random features", Slot(kernel, rls, residual_of=index))

    def _add_neighbors(self, base: str, index: int | None, columns: tuple[int, ...]) -> None:
        dimension, count = len(columns), self.size.neighbors
        memory = min(max(self.size.neighbor_values // dimension, 8 * count), MOST_SAMPLES)
        learner = NearestNeighborGP(count, memory, noise=NOISE)
        named = []
        for width, noise in NEIGHBOR_KERNELS:
            kernel = ActiveDims((NOISE / noise) * Matern(width * sqrt(dimension)), columns)
            name = f"{base}nearest neighbors, width {width:g}, noise {noise:g}"
            named.append((name, Slot(kernel, learner, residual_of=index)))
        self._add_group(f"{base}nearest neighbors", named)

    def _add_tree(self, base: str, index: int) -> None:
        cells = ActiveDims(TreeKernel(decay=0.7, levels=20), (*self.few, *self.columns.later))
        tree = PartitionTree(nodes=self.size.nodes, noise=0.1, seed=self.seed * 1000)
        self._add(f"{base}tree", Slot(cells, tree, residual_of=index))

"""The model of forecasts at several horizons: one bank, with an output for each horizon.

The rows are `ForecastRows`; the targets of row t are those h rows later. They all have the running
statistics of one series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...bank.engines import Ray, Serial
from ...combiners import Uniform
from ...kernels import NoKernel
from ...losses import Squared
from ...utils.validation import Floats
from ..config import AutoConfig
from ..slots.default_slots import SIZES
from ..slots.slot_pool import SlotPool
from .forecast_columns import ForecastRows
from .forecast_slots import forecast_pool


class HorizonsModel:
    """Learns rows whose targets are known by now, and predicts the newest one.

    After a few rows scaling and bank start anew, from all rows so far, as those of the predictions.
    """

    def __init__(
        self, config: AutoConfig, dimension: int, horizons: Sequence[int], periods: Sequence[int]
    ) -> None:
        self.forecast_rows_of = ForecastRows(max(config.lags, 1), horizons, periods)
        self.stacked = config.combiner is None and config.loss == Squared()
        """Whether the weights are those of a `HorizonStacking`, not of the bank."""
        combiner = Uniform() if self.stacked else config.combiner
        # Rows are learned one by one: processes would only wait.
        engine = Serial() if isinstance(config.engine, Ray) else config.engine
        self.config = replace(config, seasons=None, slots=None, combiner=combiner, engine=engine)
        self.dimension = dimension
        self.rows = 0
        """How many rows have been learned."""
        self.series = np.zeros(0)
        """The targets of the series up to the last restart, the newest last."""
        width, count, most = self.forecast_rows_of.width, len(horizons), config.restarts[-1]
        self.first_inputs = np.zeros((most, dimension))
        self.first_past = np.zeros((most, width))
        self.first_targets = np.zeros((most, count))
        """The first rows, from which scaling and bank start anew."""
        self.bank: KernelBank | None = None
        self.lay_out(dimension)

    @property
    def horizons(self) -> tuple[int, ...]:
        """In rows, ascending."""
        return self.forecast_rows_of.horizons

    @property
    def started(self) -> bool:
        """Whether the first restart is over."""
        return self.rows >= self.config.restarts[0]

    @property
    def names(self) -> list[str]:
        """The names of all slots."""
        return self.pool.names

    def lay_out(self, first_inputs: int) -> None:
        """Choose scaling and slots for the present inputs; those beyond the first ones are new."""
        own = self.forecast_rows_of
        self.scaling = own.make_scaling(self.dimension, first_inputs, self.config.scalings)
        self.pool = self._make_pool()

    def _make_pool(self) -> SlotPool:
        columns = self.forecast_rows_of.columns(self.scaling)
        return forecast_pool(columns, SIZES[self.config.size], self.config.seed, self.config.loss)

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        self.dimension += count
        before, first = self.scaling, self.scaling.core if self.bank else self.dimension
        self.first_inputs = with_missing(self.first_inputs, count)
        self.lay_out(first)
        if self.bank is not None:
            self.scaling.continue_from(before)
            self.bank = self.bank.with_inputs(self.scaling.width, self.bank_slots())

    def bank_slots(self) -> list[Any]:
        """The slots of the bank: all."""
        return self.pool.bank_slots(range(len(self.pool)))

    def new_bank(self) -> KernelBank:
        """A bank that has learned nothing."""
        return self.config.make_bank(self.bank_slots(), len(self.horizons))

    def prices(self) -> Floats:
        """(columns,): what `HorizonStacking` is told of the columns of `forecasts`."""
        if not self.stacked:
            return np.zeros(1)
        read_off = [isinstance(slot.kernel, NoKernel) for slot in self.bank_slots()]
        return np.where(read_off, 0.0, 1.0)

    def weights(self) -> Floats:
        """(H, slots): the weights of the bank."""
        assert self.bank is not None
        return np.reshape(self.bank.weights, (len(self.horizons), -1))

    # --- the newest row -------------------------------------------------------------------------

    def forecasts(self, x: Floats, past: Floats) -> tuple[Floats, Floats, Floats]:
        """What is to be combined (H, columns), scaled forecasts (H,), those of slots (H, slots).

        Columns and slots are in the units of the target. Columns are the slots, or, where the bank
        combines them by itself, its forecast.
        """
        assert self.bank is not None
        count = len(self.horizons)
        center, scale = self.scaling.target_scale()
        first, own = self.bank.predict_slots_one(self.scaling.scale_rows(x[None], past[None])[0])
        scores, slots = np.reshape(first, count), np.reshape(own, (count, -1)) * scale + center
        return slots if self.stacked else scores[:, None] * scale + center, scores, slots

    def observe(self, x: Floats, y: float) -> None:
        """Add the newest row (d,) and its target to the running statistics."""
        if self.rows <= self.config.restarts[-1]:
            self.series = np.append(self.series, y)
        if self.bank is None:
            return
        statistics = self.scaling.statistics
        statistics.add_inputs(x)
        if not self.scaling.outlier_level(y):
            statistics.add_target(y)
        elif statistics.hold_target(y):
            statistics.restart_target()

    # --- learning -------------------------------------------------------------------------------

    def learn(
        self, x: Floats, past: Floats, targets: Floats, made: tuple[Floats, Floats] | None
    ) -> None:
        """Learn a row (d,) with its past and its targets (H,), which are all known now.

        made : scaled forecasts (H,) and those of the slots (H, slots) that were made for it, by
            which the slots are judged; None if they are not, or there was no bank.
        """
        if self.rows < self.config.restarts[-1]:
            rows = (self.first_inputs, self.first_past, self.first_targets)
            for array, values in zip(rows, (x, past, targets), strict=True):
                array[self.rows] = values
        self.rows += 1
        if self.bank is not None:
            judged = None
            if made is not None:
                scores, slots = made
                own = self.scaling.scale_targets(slots.ravel()).reshape(slots.shape)
                judged = self._of_outputs(np.where(np.isnan(slots), scores[:, None], own))
            row = self.scaling.scale_rows(x[None], past[None])[0]
            target = self._of_outputs(self.scaling.scale_targets(targets))
            self.bank.learn_one(row, target, judged)
        if self.rows in self.config.restarts:
            self._restart()

    def _of_outputs(self, values: Floats) -> Any:
        """What a bank takes for values (H, ...): for one output those of the first."""
        return values if len(self.horizons) > 1 else values[0]

    def _restart(self) -> None:
        """Start scaling and bank anew from all rows so far."""
        rows = slice(0, self.rows)
        X, past, targets = self.first_inputs[rows], self.first_past[rows], self.first_targets[rows]
        if self.scaling.core < self.dimension:
            self.lay_out(self.dimension)
        self.scaling.fit(X, self.series[:, None])
        self.bank = self.new_bank()
        scaled = self.scaling.scale_targets(targets.ravel()).reshape(targets.shape)
        known = scaled if len(self.horizons) > 1 else scaled[:, 0]
        self.bank.run(self.scaling.scale_rows(X, past), known, record="light")

    # --- saving ---------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        """The arrays that the next forecast depends on, without those of scaling and bank."""
        return {
            "first_inputs": self.first_inputs,
            "first_past": self.first_past,
            "first_targets": self.first_targets,
        }

    def state(self) -> dict[str, Floats]:
        """All arrays but those of the bank, by their names in a file."""
        own = self.scaling.statistics.state().items()
        return self.arrays() | {f"scaling/{name}": array for name, array in own}

    def restore(self, state: Mapping[str, Floats], rows: int) -> None:
        """Continue from what `state` returned, after so many rows, without the bank."""
        for name, array in self.arrays().items():
            array[...] = state[name]
        own = {n.removeprefix("scaling/"): a for n, a in state.items() if n.startswith("scaling/")}
        self.scaling.statistics.restore(own)
        self.rows = rows


def with_missing(rows: Floats, count: int) -> Floats:
    """Rows with `count` more columns, in which everything is missing (NaN)."""
    return np.hstack([rows, np.full((len(rows), count), np.nan)])

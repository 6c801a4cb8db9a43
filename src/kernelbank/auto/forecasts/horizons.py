"""The model of forecasts at several horizons: one bank, with an output for each horizon.

The rows are `ForecastRows`; the targets of row t are those h rows later. They all have the running
statistics of one series.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...bank.engines import Ray, Serial
from ...combiners import Uniform
from ...kernels import NoKernel
from ...losses import Squared
from ...utils.validation import Floats
from .. import model_state
from ..config import AutoConfig
from ..outputs_model import OutputsModel
from ..prediction import Prediction, Record
from ..scaling.scaling import Scaling
from ..slots.default_slots import SIZES
from ..slots.slot_pool import SlotPool
from .forecast_columns import ForecastRows
from .forecast_slots import forecast_pool


class HorizonsModel(OutputsModel):
    """Learns rows whose targets are known by now, and predicts the newest one."""

    def __init__(
        self, config: AutoConfig, dimension: int, horizons: Sequence[int], periods: Sequence[int]
    ) -> None:
        self.forecast_rows_of = ForecastRows(max(config.lags, 1), horizons, periods)
        self.series = np.zeros(0)
        """The targets of the series up to the last restart, the newest last."""
        self.stacked = config.combiner is None and config.loss == Squared()
        """Whether the weights are those of a `HorizonStacking`, not of the bank."""
        combiner = Uniform() if self.stacked else config.combiner
        # Rows are learned one by one: processes would only wait.
        engine = Serial() if isinstance(config.engine, Ray) else config.engine
        plain = replace(config, seasons=None, slots=None, combiner=combiner, engine=engine)
        super().__init__(plain, dimension, len(horizons), scale_target=True)

    def past_size(self, config: AutoConfig) -> int:
        return self.forecast_rows_of.width

    @property
    def horizons(self) -> tuple[int, ...]:
        """In rows, ascending."""
        return self.forecast_rows_of.horizons

    def _make_scaling(self, dimension: int, core: int) -> Scaling:
        return self.forecast_rows_of.make_scaling(dimension, core, self.config.scalings)

    def make_pool(self, scaling: Scaling) -> SlotPool:
        columns = self.forecast_rows_of.columns(scaling)
        return forecast_pool(columns, SIZES[self.config.size], self.config.seed, self.config.loss)

    def _scaled_rows(self, X: Floats, lagged: Floats) -> Floats:
        return self.scaling.scale_rows(X, lagged)

    def _target_scales(self) -> Floats:
        return np.tile(self.scaling.target_scale, (self.target_count, 1))

    def prices(self) -> Floats:
        """(columns,): what `HorizonStacking` is told of the columns of `forecasts`."""
        if not self.stacked:
            return np.zeros(1)
        read_off = [isinstance(slot.kernel, NoKernel) for slot in self.bank_slots()]
        return np.where(read_off, 0.0, 1.0)

    # --- the newest row -------------------------------------------------------------------------

    def forecasts(self, x: Floats, past: Floats) -> tuple[Floats, Floats, Floats]:
        """What is to be combined (H, columns), scaled forecasts (H,), those of slots (H, slots).

        Columns and slots are in the units of the target. Columns are the slots, or, where the bank
        combines them by itself, its forecast.
        """
        count = self.target_count
        center, scale = self.scaling.target_scale
        first, own = self.banks[0].predict_slots_one(self._scaled_rows(x[None], past[None])[0])
        scores, slots = np.reshape(first, count), np.reshape(own, (count, -1)) * scale + center
        return slots if self.stacked else scores[:, None] * scale + center, scores, slots

    def observe(self, x: Floats, y: float) -> None:
        """Add the newest row (d,) and its target to the running statistics."""
        if self.rows <= model_state.RESTARTS[-1]:
            self.series = np.append(self.series, y)
        if not self.banks:
            return
        self.scaling.update_inputs(x)
        far = self.scaling.outlier_level(y) > 0
        if self.scaling.update_target(y, hold=far):
            self.scaling.restart_target()

    def revise_slots(self, rows: int, *, due: bool | None = None) -> bool:
        """All slots stay."""
        return False

    def _with_intervals(self, scores: Floats, spreads: Floats, tail: float) -> Floats:
        raise NotImplementedError  # see `Forecaster`

    # --- learning -------------------------------------------------------------------------------

    def _chunk_allowed(self, target: Floats) -> bool:
        return False

    def _update_chunk(
        self, X: Floats, targets: Floats, tail: float, fields: Collection[str]
    ) -> Record:
        raise NotImplementedError  # all targets are delayed

    def _update_row(self, x: Floats, target: Floats, prediction: Prediction) -> None:
        row, lagged = x[None], prediction.lagged
        self.rows += 1
        self.buffer.append(self.rows, row, lagged, target[None], [prediction.rows_before])
        if not self.banks:
            return
        past = None
        if prediction.slots.size:
            slots = prediction.slots[:, 0]
            scaled = self.scaling.scale_targets(slots.ravel()).reshape(slots.shape)
            past = self._of_outputs(self.past_slots(scaled, prediction.scores[0]))
        inputs = self._scaled_rows(row, lagged)[0]
        self.banks[0].learn_one(inputs, self._of_outputs(self.scaling.scale_targets(target)), past)

    def _of_outputs(self, values: Floats) -> Any:
        """What a bank takes for values (H, ...): for one output those of the first."""
        return values if self.target_count > 1 else values[0]

    def restart(self) -> None:
        X, lagged, targets = self.buffer.latest(self.rows)
        self._drop_banks()
        self.scaling.fit(X, self.series)
        self.banks = [self.new_bank(self.target_count)]
        scaled = self.scaling.scale_targets(targets.ravel()).reshape(targets.shape)
        self.banks[0].run(self._scaled_rows(X, lagged), scaled, record="light")

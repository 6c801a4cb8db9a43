"""The model of an AutoBank for targets that are numbers: one, or several per row.

All targets are outputs of one bank, each in its standard deviations. Inputs are scaled once for
all, lagged targets are those of all targets. A target may be missing in a row of several: then the
row is not learned for that target only.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from .. import _core
from ..bank.trace import Record
from ..utils.validation import Floats
from .config import AutoConfig
from .model import REPLAY, Model
from .quantiles import Quantiles
from .scaling import EXTREME

REMEMBERED = 3
"""How many of the last targets the slots on relevant columns see, whatever `lags` is."""


class NumberModel(Model):
    """One bank with an output for each target.

    outputs : of the bank, by default one for each target; more if all have the same target.
    """

    def __init__(
        self,
        config: AutoConfig,
        dimension: int,
        targets: int = 1,
        previous: int | None = None,
        *,
        outputs: int | None = None,
    ) -> None:
        self.target_count = targets if outputs is None else outputs
        self.quantile_part: Quantiles | None = None
        """The quantiles beside predictions and intervals, if they are asked for."""
        super().__init__(config, dimension, targets, previous)

    def _make_core(self) -> Any:
        lower, upper = self.config.bounds
        keeps, last = self.config.revises, self.config.restarts[-1]
        return _core.NumberModel(
            **self.core_settings(),
            outputs=self.target_count,
            replay=REPLAY if keeps else last,
            replay_until=2**62 if keeps else last,
            lower=lower,
            upper=upper,
            levels=self.config.quantiles,
        )

    def _sizes(self) -> tuple[int, ...]:
        return (self.core.held,)

    def remembered_targets(self) -> int:
        return max(self.config.lags, REMEMBERED) if self.previous else self.config.lags

    @property
    def knows_previous(self) -> bool:
        return self.config.revises

    @property
    def outputs_per_pool(self) -> int:
        return self.target_count

    def add_inputs(self, count: int) -> None:
        super().add_inputs(count)
        self.forecasting.add_inputs(count)
        if self.quantile_part is not None:
            self.quantile_part.model.add_inputs(count)

    # --- predicting -----------------------------------------------------------------------------

    def predict_next(self, x: Floats, waiting: int, tail: float) -> _core.Prediction:
        found = self.core.predict_next(x, waiting, tail)
        if self.quantile_part is not None:
            more = found.more
            more[: len(more) // 2] = self.quantile_part.predict(x[None])[0]
            found.more = more
        return found

    def _with_idle(self, slots: Floats) -> Floats:
        idle = np.ones(len(self.pool), dtype=np.bool_)
        idle[self.members] = False
        centers = [self.scaling.target_scale(k)[0] for k in range(self.target_count)]
        return np.where(idle, np.array(centers)[:, None], slots)[None]

    def _make_record(self, outputs: Floats, weights: Floats, slots: Floats | None) -> Record:
        count, several = len(outputs), self.target_count > 1
        values = outputs.reshape(count, self.target_count, 3)
        if slots is None:
            slots = np.repeat(values[:, :, :1], len(self.pool), axis=2)
        found = {"weights": weights, "slot_predictions": slots}
        parts = zip(("predictions", "lower", "upper"), np.moveaxis(values, 2, 0), strict=True)
        found |= {name: array.copy() for name, array in parts}
        return found if several else {name: array[:, 0] for name, array in found.items()}

    def record(self, prediction: _core.Prediction) -> Record:
        found = super().record(prediction)
        if self.quantile_part is not None:
            found["quantiles"] = prediction.more[: len(self.quantile_part.levels)][None]
        return found

    def as_target(self, output: Floats) -> Any:
        return output[::3].copy()

    # --- learning -------------------------------------------------------------------------------

    def update(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        fields: Collection[str] = (),
        made: _core.Prediction | None = None,
    ) -> list[Record]:
        part = self.quantile_part
        if part is None:
            return super().update(X, targets, tail, fields, made)
        records = []
        for x, y in zip(X, targets, strict=True):  # compared with ends of intervals, row by row
            own = self.predict_next(x, 0, tail) if made is None else made
            records.append(self.record(own))
            quantiles, ends = own.more.reshape(2, -1)
            part.score(quantiles, ends, float(y))
            part.update(x[None], float(y))
            self._step(x[None], np.array([[y]]), tail, own, slots=False)
        return records if made is None else []

    def _find_seasons(self) -> None:
        super()._find_seasons()
        self.forecasting.use_periods(self.periods)

    def _note_signal(self, row: int, what: str, of: int) -> None:
        if self.target_count > 1 and what != "input level":
            what = f"{what}, target {of}"
        super()._note_signal(row, what, of)

    def restart(self) -> None:
        X, _, targets, *_ = self.core.latest()
        self._drop_banks()
        self.start_groups()
        transform = self.scaling.target_transform
        self.scaling.fit(X, targets)
        if self.scaling.target_transform != transform:  # the target is skewed, or no longer
            self.pool = self.make_pool(self.scaling)
        self.core.release()
        bank = self.new_bank(self.target_count)
        self.replay(bank, *self._usual_rows())
        self.use_banks([bank])

    def _usual_rows(self) -> tuple[Floats, Floats, np.ndarray]:
        """The rows that are kept and their targets, scaled, without extreme targets.

        The last part: their indices among the rows that are kept.
        """
        X, pasts, targets, *_ = self.core.latest()
        scaled = np.empty_like(targets)
        for k in range(self.target_count):
            scaled[:, k] = self.scaling.scale_targets(targets[:, k], k)
            levels = [self.scaling.outlier_level(y, k) for y in targets[:, k].tolist()]
            scaled[np.array(levels) == EXTREME, k] = np.nan
        usual = np.flatnonzero(~np.isnan(scaled).all(axis=1))
        known = scaled[usual, 0] if self.target_count == 1 else scaled[usual]
        return self.scaling.scale_rows(X[usual], pasts[usual]), known, usual

    def replay_samples(self) -> tuple[Floats, Floats] | None:
        return self._usual_rows()[:2] if self.config.revises else None

    # --- what was learned -----------------------------------------------------------------------

    @property
    def unscored(self) -> int:
        return self.core.track(0)[1]

    def long_mean_weights(self) -> Floats:
        return np.mean([self.core.long_mean(k) for k in range(self.target_count)], axis=0)

    def mean_error(self) -> Floats:
        found = []
        for k in range(self.target_count):
            rows, unscored, loss, _, _ = self.core.track(k)
            found.append(loss / (rows - unscored) if rows > unscored else np.nan)
        return np.array(found)

    def baseline_error(self) -> Floats:
        found = []
        for k in range(self.target_count):
            rows, _, _, loss, _ = self.core.track(k)
            found.append(loss / (rows - 1) if rows > 1 else np.nan)
        return np.array(found)

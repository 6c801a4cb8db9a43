"""The model of an AutoBank for targets that are numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..utils.validation import Floats
from .config import AutoConfig
from .forecasts.forecasting import Forecasting
from .model_parts.held_targets import HeldRow, HeldTargets, adapt_scaling, is_extreme
from .model_parts.replay_buffer import REPLAY
from .prediction import Prediction, Record
from .quantiles import Quantiles
from .slots.default_slots import WIDE
from .task_model import TaskModel

REMEMBERED = 3
"""How many of the last targets the slots on relevant columns see, whatever `lags` is."""

UNUSUAL = 3.0
"""Root mean square of the inputs, in standard deviations, beyond which they may explain a far
target."""


class RegressionModel(Forecasting, TaskModel):
    """One bank, on the target in its standard deviations.

    Rows with a usual target are learned at once, in chunks. Rows with a far one are held back; see
    `held_targets`.
    """

    def __init__(self, config: AutoConfig, dimension: int) -> None:
        Forecasting.__init__(self)
        self.quantile_part: Quantiles | None = None
        """The quantiles beside predictions and intervals, if they are asked for."""
        TaskModel.__init__(self, config, dimension, scale_target=True, replay=self._replay(config))
        lower, upper = config.bounds
        self.intervals = _core.Intervals(lower=lower, upper=upper)
        """The calibration of the predictions, with the statistics of their errors."""
        self.held = HeldTargets()
        self.bounds = config.bounds

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: a copy collects no forecasts."""
        return self.__dict__ | self._not_collecting()

    def add_inputs(self, count: int) -> None:
        super().add_inputs(count)
        self.held.add_inputs(count)
        if self.forecaster is not None:
            self.forecaster.add_inputs(count)
        if self.quantile_part is not None:
            self.quantile_part.model.add_inputs(count)

    def _count_rows(self, X: Floats, lagged: Floats, targets: Floats, predicted_at: Any) -> None:
        super()._count_rows(X, lagged, targets, predicted_at)
        self.forecast_after(X, targets)

    def _find_seasons(self) -> None:
        super()._find_seasons()
        if self.forecaster is not None and self.seasons is not None:
            self.forecaster = self.forecaster.with_periods(self.seasons.periods, self._tail)

    # --- predicting -----------------------------------------------------------------------------

    def predict(self, X: Floats, lagged: Floats, tail: float) -> Prediction:
        mean, sd = self.scaling.target_scale
        slots: Floats | None = None
        spreads = np.zeros(len(X))
        if not self.banks:
            mean = float(self.buffer.latest(self.rows)[2].mean()) if self.rows else np.nan
            sd = 0.0
            scores = np.zeros(len(X))
        elif len(X) == 1:
            score, own = self.banks[0].predict_slots_one(self.scaling.scale_rows(X, lagged)[0])
            spreads[0] = self._spread_of_slots(own[None], np.array([score]))[0]
            own = self.spread(own, np.nan).copy()
            own *= sd
            own += mean
            scores, slots = np.array([score]), own[None, None]
        else:
            rows = self.scaling.scale_rows(X, lagged)
            scores = self.banks[0].predict(rows)
            spreads = self._spread_of_slots(self.banks[0].predict_slots(rows), scores)
        output = self._with_intervals(scores, spreads, mean, sd, tail)
        output += self.held.expected_error(self.scaling)
        if self.held:
            np.clip(output, *self.bounds, out=output)
        if slots is None:
            slots = np.zeros((1, 0, len(self.names)))
        if self.quantile_part is not None:
            part = self.quantile_part
            ends = self._conformal(scores, spreads, mean, sd, part.levels)
            output = np.hstack([output, part.predict(X), ends])
        return Prediction(self.rows, lagged.copy(), scores[:, None], slots, output)

    def _conformal(
        self, scores: Floats, spreads: Floats, mean: float, sd: float, levels: Sequence[float]
    ) -> Floats:
        """(n, Q): the ends, at some levels, of the intervals by past errors."""
        found = []
        for level in levels:
            output = self._with_intervals(scores, spreads, mean, sd, min(level, 1.0 - level))
            found.append(output[:, 1] if level < 0.5 else output[:, 2])
        return np.column_stack(found)

    def _spread_of_slots(self, slots: Floats, scores: Floats) -> Floats:
        """(n,): the weighted standard deviation of slots' predictions (n, P) around scores (n,)."""
        return _core.weighted_std(slots, scores, np.tile(self.banks[0].weights, (len(slots), 1)))

    def _with_intervals(
        self, scores: Floats, spreads: Floats, mean: float, sd: float, tail: float
    ) -> Floats:
        """(n, 3): predictions and the ends of their intervals, from scaled predictions (n,)."""
        return self.intervals.predict(scores, spreads, np.tile((mean, sd), (len(scores), 1)), tail)

    # --- traces -----------------------------------------------------------------------------------

    def record(self, prediction: Prediction) -> Record:
        values, lower, upper = prediction.output[:, :3].T.copy()
        slots = np.repeat(values[:, None], len(self.names), axis=1)
        if prediction.slots.size:
            slots = self.with_idle(prediction.slots[0], self.scaling.target_scale[0])
        weights = np.repeat(self.weights()[None], len(values), axis=0)
        own = {"weights": weights, "slot_predictions": slots}
        if self.quantile_part is not None:
            own["quantiles"] = prediction.output[:, 3 : 3 + len(self.quantile_part.levels)].copy()
        return {"predictions": values, "lower": lower, "upper": upper, **own}

    def as_target(self, prediction: Prediction) -> float:
        return float(prediction.output[0, 0])

    # --- learning -------------------------------------------------------------------------------

    def _chunk_allowed(self, target: float) -> bool:
        if self.quantile_part is not None:  # compared with ends of intervals, row by row
            return False
        usual = not self.held and not self.scaling.outlier_level(target)
        return bool(self.banks) and usual

    def _update_chunk(
        self, X: Floats, targets: Floats, tail: float, fields: Collection[str]
    ) -> Record:
        first = self.rows
        lagged = self.past_rows(X, targets)
        rows, scaled, scale, new_levels = self.scaling.scale_and_update(X, lagged, targets)
        count = len(rows)  # up to the first far target
        targets = targets[:count]
        slots = "slot_predictions" in fields
        recorded = ["predictions", "weights", "slot_predictions"]
        trace = self.banks[0].run(rows, scaled, record=recorded)
        spreads = _core.weighted_std(trace.slot_predictions, trace.predictions, trace.weights)
        output, errors = self.intervals.predict_and_score(
            trace.predictions, spreads, scale, targets, tail
        )
        values, lower, upper = output.T.copy()
        weights = self.spread(trace.weights, 0.0)
        self._count_rows(X[:count], lagged[:count], targets, np.arange(first, first + count))
        for t, column in new_levels:
            self.note_change("input level", first + t + 1, column)
        self._detect_changes(first + 1, errors, weights)
        found = {"predictions": values, "lower": lower, "upper": upper, "weights": weights}
        if slots:
            own = self.spread(trace.slot_predictions, 0.0)
            found["slot_predictions"] = scale[:, :1] + scale[:, 1:] * own
        return found

    def _update_row(self, x: Floats, target: float, prediction: Prediction) -> None:
        self._update_quantiles(x, target, prediction)
        mean, sd = self.scaling.target_scale
        if prediction.rows_before:
            error = self.intervals.score(prediction.output[0, 0], target, mean, sd)
        else:  # NaN, before the first target, must not enter the statistics
            error = self.intervals.skip(target, mean, sd)
            self.unscored += 1
        if self.banks:
            self._detect_changes(self.rows + 1, np.array([error]), self.weights()[None])
        delayed = prediction.rows_before < self.rows and prediction.slots.size > 0
        row, lagged, y = x[None], prediction.lagged, np.array([target])
        self._count_rows(row, lagged, y, [prediction.rows_before])
        if not self.banks:
            return
        past = None
        if delayed:
            scaled = self.scaling.scale_targets(prediction.slots[0, 0])
            past = self.past_slots(scaled, float(prediction.scores[0, 0]))
        if not self.held:
            inputs, targets, _, new_levels = self.scaling.scale_and_update(row, lagged, y)
            if len(inputs):
                for _, column in new_levels:
                    self.note_change("input level", self.rows, column)
                self._learn(inputs, targets, past)
                return
        score = mean + sd * float(prediction.scores[0, 0])
        self._learn_or_hold(HeldRow(x.copy(), lagged[0].copy(), target, score), past)

    def _update_quantiles(self, x: Floats, target: float, prediction: Prediction) -> None:
        """Score the quantiles that were predicted for a row, and learn it."""
        part, y = self.quantile_part, np.array([target])
        if part is not None:
            own, ends = np.split(prediction.output[:, 3:], 2, axis=1)
            part.score(own, ends, y)
            part.update(x[None], y)

    def _learn_or_hold(self, row: HeldRow, past: Floats | None) -> None:
        """Learn a far row, or one after such rows, or hold it back.

        past : the slots' predictions, if the target was delayed.
        """
        rows = [*self.held.rows, row]
        inputs, targets = self._scale(rows)
        unusual = np.mean(self.scaling.input_deviations(inputs[-1]) ** 2) > UNUSUAL**2
        far = self.scaling.outlier_level(row.target) > 0 and not unusual
        for column in self.scaling.update_inputs(row.inputs):
            self.note_change("input level", self.rows, column)
        if far:
            self.held.count_streak()
        if self.scaling.update_target(row.target, hold=far):
            self._learn_change(rows)
        elif far:
            self.held.hold(row)
        elif self.held:
            usual = [i for i, one in enumerate(rows) if not is_extreme(one.target, self.scaling)]
            self.held.release()
            self._learn(inputs[usual], targets[usual])
        else:
            self._learn(inputs, targets, past)

    def _learn_change(self, rows: list[HeldRow]) -> None:
        """Learn five far targets in a row, with the statistics that follow from them."""
        if adapt_scaling(rows, self.scaling):
            self.note_change("target level", self.rows)
        mean, sd = self.scaling.target_scale
        seen = [row.target for row in rows]
        low, high = min(*seen, mean - sd), max(*seen, mean + sd)
        self.intervals.set_range(low, high)
        self.held.release()
        self._learn(*self._scale(rows))

    def _scale(self, rows: list[HeldRow]) -> tuple[Floats, Floats]:
        """Inputs (n, width) and targets (n,) of rows, scaled by the present statistics."""
        inputs = np.array([row.inputs for row in rows])
        lagged = np.array([row.lagged for row in rows])
        targets = np.array([row.target for row in rows])
        return self.scaling.scale_rows(inputs, lagged), self.scaling.scale_targets(targets)

    def _learn(self, inputs: Floats, targets: Floats, past: Floats | None = None) -> None:
        if len(inputs) == 1:
            self.banks[0].learn_one(inputs[0], float(targets[0]), past)
        elif len(inputs):
            self.banks[0].run(inputs, targets, record="light")

    def restart(self) -> None:
        X, _, targets = self.buffer.latest(self.rows)
        self._drop_banks()
        self.scaling.fit(X, targets)
        self._use_pool(self.make_pool(self.scaling))  # the target may be skewed
        self.banks = [self.new_bank()]
        self.held.release()
        self.buffer.replay(self.rows, self.banks[0], *self._usual_rows())

    def _usual_rows(self) -> tuple[Floats, Floats, list[int]]:
        """The rows of the replay buffer and their targets, scaled, without extreme targets.

        The last part: their indices among the rows of the buffer.
        """
        X, lagged, targets = self.buffer.latest(self.rows)
        usual = [t for t, y in enumerate(targets) if not is_extreme(y, self.scaling)]
        rows = self.scaling.scale_rows(X[usual], lagged[usual])
        return rows, self.scaling.scale_targets(targets[usual]), usual

    # --- the past ---------------------------------------------------------------------------------

    @staticmethod
    def _replay(config: AutoConfig) -> int | None:
        """How many of the newest rows are kept for slots that start anew."""
        return REPLAY if config.revises else None

    def remembered_targets(self) -> int:
        return max(self.config.lags, REMEMBERED) if self.previous else self.config.lags

    def previous_inputs(self, dimension: int) -> int:
        return dimension if self.config.revises and dimension <= WIDE else 0

    def replay_samples(self) -> tuple[Floats, Floats] | None:
        return self._usual_rows()[:2] if self.config.revises else None

    # --- saving ---------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        return super().arrays() | self.held.state(self.dimension, self.past)

    def parts(self) -> dict[str, Any]:
        return super().parts() | {"intervals": self.intervals}

    def counters(self) -> dict[str, Any]:
        return super().counters() | {"held": len(self.held)}

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        super().restore(state, counters)
        self.held.restore(state, int(counters["held"]))

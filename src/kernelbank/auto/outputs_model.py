"""What the models for several outputs share: one bank, and one `TargetTrack` for each output."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..utils.validation import Floats
from . import calibration, target_track
from .config import AutoConfig
from .prediction import Prediction, Record
from .single_row import SingleRowCalls
from .single_row_steps import spread_of_rows
from .target_track import TargetTrack
from .task_model import ModelBatch, TaskModel


class OutputsModel(TaskModel):
    """One bank with K outputs on the same scaled rows."""

    def __init__(
        self, config: AutoConfig, dimension: int, outputs: int, *, scale_target: bool
    ) -> None:
        self.outputs = outputs
        super().__init__(config, dimension, scale_target=scale_target, replay=None)
        self.tracks = self._make_tracks()

    @abstractmethod
    def _make_tracks(self) -> list[Any]:
        """A track for every output."""

    @abstractmethod
    def _scaled_rows(self, X: Floats, lagged: Floats) -> Floats:
        """(n, width): what the bank sees of rows; changes nothing."""

    @abstractmethod
    def _target_scales(self) -> Floats:
        """(K, 2): the present center and scale of every target."""

    # --- several outputs in the place of several banks --------------------------------------------

    def weights(self, bank: int = 0) -> Floats:
        """(K, slots): the weights of every output; equal ones before there is a bank."""
        if self.banks:
            return self.spread(self.banks[0].weights, 0.0)
        count = len(self.members)
        return self.spread(np.full((self.outputs, count), 1 / count), 0.0)

    def mean_weights_of_banks(self) -> Floats:
        return self.weights().mean(axis=0)

    def slot_losses(self) -> Floats:
        return self.spread(np.mean(self.banks[0].ledger.slot_mean_loss, axis=0), np.nan)

    def past_slots(self, slots: Floats, score: Any) -> Floats:
        """(K, P): what the slots that run now predicted in the past; scores (K,) where unknown."""
        own = slots[:, self.members]
        return np.where(np.isnan(own), np.asarray(score)[:, None], own)

    def lay_out_slots(self) -> None:
        super().lay_out_slots()
        for track in getattr(self, "tracks", []):
            track.use_pool(self.pool)

    def _use_pool(self, pool: Any) -> None:
        super()._use_pool(pool)
        for track in self.tracks:
            track.use_pool(pool)

    def revise_slots(self, rows: int) -> bool:
        self.mean_weights = np.mean([track.mean_weights for track in self.tracks], axis=0)
        return super().revise_slots(rows)

    @cached_property
    def _batch(self) -> ModelBatch:
        raise NotImplementedError  # every track has its own

    def _make_row_calls(self) -> SingleRowCalls:
        raise NotImplementedError

    def row_calls(self) -> SingleRowCalls | None:
        return None

    def one_target(self, target: Any) -> Any:
        return target

    # --- predicting -------------------------------------------------------------------------------

    def predict(self, X: Floats, lagged: Floats, tail: float) -> Prediction:
        count, outputs = len(X), self.outputs
        scores, spreads = np.zeros((count, outputs)), np.zeros((count, outputs))
        slots = np.zeros((outputs, 0, len(self.names)))
        scales = self._target_scales()
        if self.banks:
            rows = self._scaled_rows(X, lagged)
            if count == 1:
                scores[0], own = self.banks[0].predict_slots_one(rows[0])
                values = own[:, None]  # (K, 1, P)
                slots = self.spread(own, np.nan)[:, None] * scales[:, None, 1:]
                slots += scales[:, None, :1]
            else:
                scores = self.banks[0].predict(rows)
                values = np.moveaxis(self.banks[0].predict_slots(rows), 1, 0)
            spreads = self._spreads(values, scores, self.banks[0].weights[:, None])
        output = np.empty((count, outputs, 3))
        for k, track in enumerate(self.tracks):
            scale = np.tile(scales[k], (count, 1))
            output[:, k] = track.predict(scores[:, k], spreads[:, k], scale, tail)
        if not self.rows:
            output[:] = np.nan
        return Prediction(self.rows, lagged.copy(), scores, slots, output.reshape(count, -1))

    def _spreads(self, values: Floats, scores: Floats, weights: Floats) -> Floats:
        """(n, K): the weighted deviations of slots' predictions (K, n, P) around scores (n, K)."""
        shape = values.shape[1:]
        return np.column_stack(
            [
                spread_of_rows(values[k], scores[:, k], np.broadcast_to(weights[k], shape))
                for k in range(self.outputs)
            ]
        )

    # --- traces -----------------------------------------------------------------------------------

    def record(self, prediction: Prediction) -> Record:
        count = len(prediction.output)
        parts = prediction.output.reshape(count, self.outputs, 3)
        values, lower, upper = np.moveaxis(parts, 2, 0).copy()
        slots = np.repeat(values[:, :, None], len(self.names), axis=2)
        if prediction.slots.size:
            idle = ~np.isin(np.arange(len(self.names)), self.members)
            known = np.moveaxis(prediction.slots, 1, 0)  # (n, K, P)
            slots = np.where(idle, self._target_scales()[:, :1], known)
        weights = np.repeat(self.weights()[None], count, axis=0)
        own = {"weights": weights, "slot_predictions": slots}
        return {"predictions": values, "lower": lower, "upper": upper, **own}

    def as_target(self, prediction: Prediction) -> Any:
        return prediction.output[0].reshape(self.outputs, 3)[:, 0].copy()

    # --- learning ---------------------------------------------------------------------------------

    def _score_row(self, target: Floats, prediction: Prediction) -> None:
        """Score the prediction of one row, for each target that is known."""
        self.unscored += not prediction.rows_before
        output = prediction.output[0].reshape(self.outputs, 3)
        scales, weights = self._target_scales(), self.weights()
        for k, track in enumerate(self.tracks):
            y, predicted = float(target[k]), float(output[k, 0])
            if np.isnan(y):
                continue
            if np.isnan(predicted):
                track.score_unpredicted(y)
                continue
            scale = scales[k] if self.banks else np.zeros(2)
            own = weights[k] if self.banks else None
            for what in track.score(predicted, y, scale, own):
                self.note_change(self._named(what, k), self.rows + 1)

    def _named(self, what: str, output: int) -> str:
        """A signal of change with the number of its target."""
        return f"{what}, target {output}"

    # --- saving -----------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        return super().state() | target_track.states(self.tracks)

    def counters(self) -> dict[str, Any]:
        return super().counters() | {"outputs": self.outputs}

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        super().restore(state, counters)
        for track in self.tracks:
            track.use_pool(self.pool)

    def mean_error(self) -> Floats:
        """(K,): the mean squared error of the predictions of every target; NaN before the first."""
        return np.array([_mean(track, calibration.LOSS) for track in self.tracks])

    def baseline_error(self) -> Floats:
        """(K,): the same of the last target as a prediction."""
        return np.array([_mean(track, calibration.BASELINE_LOSS) for track in self.tracks])


def _mean(track: TargetTrack, entry: int) -> float:
    """The mean of squared errors that are summed up in one entry of the statistics."""
    rows = int(track.error_stats[calibration.ROWS])
    count = track.scored if entry == calibration.LOSS else rows - 1
    return float(track.error_stats[entry] / count) if count > 0 else float("nan")

"""The model of an AutoBank for rows with several targets that are numbers.

Inputs are scaled once for all. Lagged targets, of all targets, are further inputs. Each target has
running statistics and a calibration of its own, and may be missing in a row: then the row is not
learned for that target only.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ..utils.validation import Floats
from .config import AutoConfig
from .outputs_model import OutputsModel
from .prediction import Prediction, Record
from .scaling.scaling import Scaling
from .target_track import ScaledTarget


class TargetsModel(OutputsModel):
    """One bank with an output for each target, which is in its standard deviations."""

    tracks: list[ScaledTarget]

    def __init__(self, config: AutoConfig, dimension: int, outputs: int) -> None:
        super().__init__(config, dimension, outputs, scale_target=False)
        self.tracks = [ScaledTarget(len(self.pool), config.bounds) for _ in range(outputs)]

    def lay_out_slots(self) -> None:
        super().lay_out_slots()
        for track in getattr(self, "tracks", []):
            if len(self.pool) != len(track.detector.long_mean):
                track.detector.restart_weights(len(self.pool))

    def long_mean_weights(self) -> Floats:
        return np.mean([track.detector.long_mean for track in self.tracks], axis=0)

    # --- inputs and lagged targets --------------------------------------------------------------

    def _make_scaling(self, dimension: int, core: int) -> Scaling:
        more, names = self.past, self.config.scalings
        return Scaling(dimension + more, 0, names, target=False, core=core + more)

    @property
    def core(self) -> int:
        return self.scaling.core - self.past

    def _columns(self, X: Floats, lagged: Floats) -> Floats:
        """Inputs and lagged targets as inputs of the scaling; inputs added later come last."""
        return np.hstack([X[:, : self.core], lagged, X[:, self.core :]])

    @property
    def _input_columns(self) -> list[int]:
        """The columns of the scaling that are inputs."""
        core, last = self.core, self.scaling.dimension
        return [*range(core), *range(core + self.past, last)]

    def input_ranges(self) -> Floats:
        return self.scaling.input_ranges()[self._input_columns]

    def input_statistics(self) -> Floats:
        return self.scaling.columns[self._input_columns]

    def _note_levels(self, levels: list[tuple[int, int]], first: int) -> None:
        """Note new levels of inputs: (row, column of the scaling), rows counted from `first`."""
        inputs = {column: k for k, column in enumerate(self._input_columns)}
        for row, column in levels:
            if column in inputs:
                self.note_change("input level", first + row, inputs[column])

    def _scaled_rows(self, X: Floats, lagged: Floats) -> Floats:
        return self.scaling.scale_rows(self._columns(X, lagged), np.zeros((len(X), 0)))

    def is_plausible(self, held: int) -> bool:
        own = [track.scaling for track in self.tracks]
        return super().is_plausible(held) and all(one.is_plausible(one.held) for one in own)

    def _target_scales(self) -> Floats:
        if self.banks or not self.rows:
            return np.array([track.scale for track in self.tracks])
        targets = self.buffer.latest(self.rows)[2]
        known = ~np.isnan(targets)
        counts = np.where(known.any(axis=0), known.sum(axis=0), np.nan)
        means = np.where(known, targets, 0.0).sum(axis=0) / counts
        return np.column_stack([means, np.zeros(self.target_count)])

    def _with_intervals(self, scores: Floats, spreads: Floats, tail: float) -> Floats:
        output = np.empty((*scores.shape, 3))
        for k, (track, scale) in enumerate(zip(self.tracks, self._target_scales(), strict=True)):
            rows = np.tile(scale, (len(scores), 1))
            output[:, k] = track.predict(scores[:, k], spreads[:, k], rows, tail)
        return output

    # --- learning -------------------------------------------------------------------------------

    def _score_row(self, target: Floats, prediction: Prediction) -> None:
        """Score the prediction of one row, for each target that is known."""
        self.unscored += not prediction.rows_before
        output = prediction.output[0].reshape(self.target_count, 3)
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

    def _chunk_allowed(self, target: Floats) -> bool:
        return bool(self.banks)

    def _update_chunk(
        self, X: Floats, targets: Floats, tail: float, fields: Collection[str]
    ) -> Record:
        first, count = self.rows, len(X)
        lagged = self.past_rows(X, targets)
        columns, none = self._columns(X, lagged), np.zeros((count, 0))
        rows, _, _, levels = self.scaling.scale_and_update(columns, none, None)
        scaled, scales = np.empty((count, self.target_count)), []
        for k, track in enumerate(self.tracks):
            scaled[:, k], scale, restarts = track.scale_and_update(targets[:, k])
            scales.append(scale)
            for row in restarts:
                self.note_change(self._named("target level", k), first + row + 1)
        trace = self.banks[0].run(
            rows, scaled, record=["predictions", "weights", "slot_predictions"]
        )
        values = np.moveaxis(trace.slot_predictions, 1, 0)
        spreads = self._spreads(values, trace.predictions, np.moveaxis(trace.weights, 1, 0))
        weights = self.spread(trace.weights, 0.0)
        output = np.empty((count, self.target_count, 3))
        for k, track in enumerate(self.tracks):
            parts = (trace.predictions[:, k], spreads[:, k], scales[k], weights[:, k])
            output[:, k], signals = track.predict_and_score(*parts, targets[:, k], tail)
            for row, what in signals:
                self.note_change(self._named(what, k), first + row + 1)
        self._count_rows(X, lagged, targets, np.arange(first, first + count))
        self._note_levels(levels, first + 1)
        predicted, lower, upper = np.moveaxis(output, 2, 0).copy()
        found = {"predictions": predicted, "lower": lower, "upper": upper, "weights": weights}
        if "slot_predictions" in fields:
            scale = np.stack(scales, axis=1)  # (n, K, 2)
            own = self.spread(trace.slot_predictions, 0.0)
            found["slot_predictions"] = scale[:, :, :1] + scale[:, :, 1:] * own
        return found

    def _update_row(self, x: Floats, target: Floats, prediction: Prediction) -> None:
        self._score_row(target, prediction)
        delayed = prediction.rows_before < self.rows and prediction.slots.size > 0
        row, lagged = x[None], prediction.lagged
        self._count_rows(row, lagged, target[None], [prediction.rows_before])
        if not self.banks:
            return
        past = None
        if delayed:
            known = prediction.slots[:, 0]
            scaled = [
                t.scaling.scale_targets(one) for t, one in zip(self.tracks, known, strict=True)
            ]
            past = self.past_slots(np.array(scaled), prediction.scores[0])
        inputs = self._scaled_rows(row, lagged)
        levels = self.scaling.update_inputs(self._columns(row, lagged)[0])
        self._note_levels([(0, column) for column in levels], self.rows)
        scaled_targets = np.empty(self.target_count)
        for k, track in enumerate(self.tracks):
            found, _, restarts = track.scale_and_update(target[k : k + 1])
            scaled_targets[k] = found[0]
            if restarts:
                self.note_change(self._named("target level", k), self.rows)
        self.banks[0].learn_one(inputs[0], scaled_targets, past)

    def restart(self) -> None:
        X, lagged, targets = self.buffer.latest(self.rows)
        self._drop_banks()
        self.start_groups()
        self.scaling.fit(self._columns(X, lagged), None)
        for k, track in enumerate(self.tracks):
            track.fit(targets[:, k])
        self.banks = [self.new_bank(self.target_count)]
        rows = self._scaled_rows(X, lagged)
        scaled = [track.scale_known(targets[:, k]) for k, track in enumerate(self.tracks)]
        self.buffer.replay(self.rows, self.banks[0], rows, np.column_stack(scaled))

    # --- saving ---------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        own = {f"target{k}/unscored": track.unscored for k, track in enumerate(self.tracks)}
        return super().arrays() | own

    def parts(self) -> dict[str, Any]:
        own = {
            f"target{k}/{name}": part
            for k, track in enumerate(self.tracks)
            for name, part in track.parts().items()
        }
        return super().parts() | own

    def mean_error(self) -> Floats:
        """(K,): the mean squared error of the predictions of every target; NaN before the first."""
        return np.array([track.mean_error() for track in self.tracks])

    def baseline_error(self) -> Floats:
        """(K,): the same of the last target as a prediction."""
        return np.array([track.baseline_error() for track in self.tracks])

"""What the models for several outputs share: one bank, and weights and predictions per output."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from .. import _core
from ..utils.validation import Floats
from .config import AutoConfig
from .prediction import Prediction, Record
from .task_model import TaskModel


class OutputsModel(TaskModel):
    """One bank with K outputs on the same scaled rows."""

    def __init__(
        self, config: AutoConfig, dimension: int, outputs: int, *, scale_target: bool
    ) -> None:
        self.target_count = outputs
        super().__init__(config, dimension, scale_target=scale_target, replay=None)

    @abstractmethod
    def _scaled_rows(self, X: Floats, lagged: Floats) -> Floats:
        """(n, width): what the bank sees of rows; changes nothing."""

    @abstractmethod
    def _target_scales(self) -> Floats:
        """(K, 2): the present center and scale of every target."""

    # --- several outputs in the place of several banks --------------------------------------------

    @property
    def outputs_per_pool(self) -> int:
        return self.target_count

    def weights(self, bank: int = 0) -> Floats:
        """(K, slots): the weights of every output; equal ones before there is a bank."""
        if self.banks:
            return self.spread(self.banks[0].weights, 0.0)
        count = len(self.members)
        return self.spread(np.full((self.target_count, count), 1 / count), 0.0)

    def mean_weights_of_outputs(self) -> Floats:
        return self.weights().mean(axis=0)

    def slot_losses(self) -> Floats:
        return self.spread(np.mean(self.banks[0].ledger.slot_mean_loss, axis=0), np.nan)

    def past_slots(self, slots: Floats, score: Any) -> Floats:
        """(K, P): what the slots that run now predicted in the past; scores (K,) where unknown."""
        own = slots[:, self.members]
        return np.where(np.isnan(own), np.asarray(score)[:, None], own)

    def one_target(self, target: Any) -> Any:
        return target

    # --- predicting -------------------------------------------------------------------------------

    def predict(self, X: Floats, lagged: Floats, tail: float) -> Prediction:
        scores, spreads, slots = self.predict_scores(X, lagged)
        output = self._with_intervals(scores, spreads, tail)
        if not self.rows:
            output[:] = np.nan
        return Prediction(self.rows, lagged.copy(), scores, slots, output.reshape(len(X), -1))

    @abstractmethod
    def _with_intervals(self, scores: Floats, spreads: Floats, tail: float) -> Floats:
        """(n, K, 3): predictions and the ends of their intervals, from scaled predictions."""

    def predict_scores(self, X: Floats, lagged: Floats) -> tuple[Floats, Floats, Floats]:
        """Scaled predictions (n, K), the spread of the slots around them, and the slots' own.

        The third, (K, n, slots), is in the targets' units, and empty unless n is 1.
        """
        count, outputs = len(X), self.target_count
        slots = np.zeros((outputs, 0, len(self.names)))
        if not self.banks:
            return np.zeros((count, outputs)), np.zeros((count, outputs)), slots
        bank, rows = self.banks[0], self._scaled_rows(X, lagged)
        if count == 1:
            first, own = bank.predict_slots_one(rows[0])
            scores, values = first[None], own[:, None]  # (1, K), (K, 1, P)
            scales = self._target_scales()
            slots = self.spread(own, np.nan)[:, None] * scales[:, None, 1:] + scales[:, None, :1]
        else:
            scores = bank.predict(rows)
            values = np.moveaxis(bank.predict_slots(rows), 1, 0)
        return scores, self._spreads(values, scores, bank.weights[:, None]), slots

    def _spreads(self, values: Floats, scores: Floats, weights: Floats) -> Floats:
        """(n, K): the weighted deviations of slots' predictions (K, n, P) around scores (n, K)."""
        count, slots = values.shape[1:]
        rows = values.reshape(-1, slots)
        own = np.broadcast_to(weights, values.shape).reshape(-1, slots)
        found = _core.weighted_std(rows, scores.T.ravel(), own)
        return found.reshape(self.target_count, count).T.copy()

    # --- traces -----------------------------------------------------------------------------------

    def record(self, prediction: Prediction) -> Record:
        count = len(prediction.output)
        parts = prediction.output.reshape(count, self.target_count, 3)
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
        return prediction.output[0].reshape(self.target_count, 3)[:, 0].copy()

    def _named(self, what: str, output: int) -> str:
        """A signal of change with the number of its target."""
        return f"{what}, target {output}"

    # --- saving -----------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        return super().counters() | {"outputs": self.target_count}

"""The model of an AutoBank for targets that are classes, numbered from 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ..utils.validation import Floats
from .class_outputs import ClassOutputs, output_labels
from .config import AutoConfig
from .prediction import Prediction, Record, best_class


class ClassificationModel(ClassOutputs):
    """Predicts classes, and learns them, with the outputs of `ClassOutputs`.

    The squared loss on labels of -1 and 1 has the conditional mean as its best function. A logistic
    curve that is fitted online turns the score of two classes into a probability (Platt 1999), a
    softmax that is fitted online the scores of more classes.
    """

    def __init__(self, config: AutoConfig, dimension: int, classes: int) -> None:
        super().__init__(config, dimension, classes)
        self.wrong = np.zeros(2)
        """How many predictions were wrong, and how many of the last label as a prediction."""
        self._last_class = -1

    # --- predicting -----------------------------------------------------------------------------

    def predict(self, X: Floats, lagged: Floats, tail: float) -> Prediction:
        single = len(X) == 1
        scores = np.zeros((len(X), self.outputs))
        slots = np.zeros((self.outputs, int(single), len(self.names)))
        if self.banks:
            rows = self.scaling.scale_rows(X, lagged)
            for outputs, bank in self._numbered_banks():
                own = self._with_lags(rows, lagged, self._positives()[outputs.start])
                if single:
                    scores[0, outputs], values = bank.predict_slots_one(own[0])
                    slots[outputs, 0] = self.spread(values, np.nan)
                else:
                    scores[:, outputs] = bank.predict(own).reshape(len(X), -1)
        return Prediction(self.rows, lagged.copy(), scores, slots, self._probabilities(scores))

    def _probabilities(self, scores: Floats) -> Floats:
        if not self.banks:  # shares of the classes so far, each counted once more
            total = self.class_counts.sum() + self.classes
            return np.tile((self.class_counts + 1.0) / max(total, 1.0), (len(scores), 1))
        return self.probabilities.predict(scores)

    # --- traces -----------------------------------------------------------------------------------

    def record(self, prediction: Prediction) -> Record:
        count = len(prediction.output)
        slots = np.zeros((count, len(self.names)))
        best = best_class(prediction.output).astype(np.float64)
        classes = np.repeat(best[:, None], len(self.names), axis=1)
        if prediction.slots.size:
            known = self.with_idle(prediction.slots, 0.0)
            slots, classes = known[0], _slot_classes(known)
        return {
            "probabilities": prediction.output,
            "weights": np.repeat(self.weights()[None], count, axis=0),
            "slot_predictions": slots,
            "slot_classes": classes,
        }

    def as_target(self, prediction: Prediction) -> float:
        return float(np.argmax(prediction.output[0]))

    # --- learning -------------------------------------------------------------------------------

    def _chunk_allowed(self, target: float) -> bool:
        return bool(self.banks)

    def _update_chunk(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        fields: Collection[str],
    ) -> Record:
        first, count = self.rows, len(X)
        lagged = self.past_rows(X, targets)
        rows, _, _, new_levels = self.scaling.scale_and_update(X, lagged, None)
        scores = np.empty((count, self.outputs))
        wanted = not {"slot_predictions", "slot_classes"}.isdisjoint(fields)
        recorded = ["predictions", "weights", *(["slot_predictions"] if wanted else [])]
        slots = np.zeros((self.outputs, count if wanted else 0, len(self.names)))
        found: Record = {}
        for outputs, bank in self._numbered_banks():
            positives = self._positives()[outputs]
            own = self._with_lags(rows, lagged, positives[0])
            trace = bank.run(own, output_labels(targets, positives), record=recorded)
            scores[:, outputs] = trace.predictions.reshape(count, -1)
            if outputs.start == 0:
                first_weights = trace.weights if bank.outputs == 1 else trace.weights[:, 0]
                found["weights"] = self.spread(first_weights, 0.0)
            if wanted:
                own_slots = trace.slot_predictions.reshape(count, bank.outputs, -1)
                slots[outputs] = self.spread(own_slots.swapaxes(0, 1), 0.0)
        if wanted:
            found |= {"slot_predictions": slots[0], "slot_classes": _slot_classes(slots)}
        probabilities = self.probabilities.predict_and_update(scores, targets)
        predicted = best_class(probabilities)
        self._score(predicted, targets)
        self._count_rows(X, lagged, targets, np.arange(first, first + count))
        for t, column in new_levels:
            self.note_change("input level", first + t + 1, column)
        self._detect_changes(first + 1, (predicted != targets).astype(float), found["weights"])
        return found | {"probabilities": probabilities}

    def _update_row(self, x: Floats, target: float, prediction: Prediction) -> None:
        predicted = best_class(prediction.output)
        wrong = self.wrong[0]
        self._score(predicted, np.array([target]))
        if not prediction.rows_before:
            self.wrong[0] = wrong
            self.unscored += 1
        # Outputs that were added after the prediction have no score of it: NaN, for which the
        # softmax leaves the row out. That of two classes is now the second.
        earlier = prediction.scores.shape[1]
        offset = 1 if earlier == 1 and self.outputs > 1 else 0
        if self.banks:
            scores = np.full((1, self.outputs), 0.0 if self.outputs == 1 else np.nan)
            scores[0, offset : offset + earlier] = prediction.scores[0]
            self.probabilities.update(scores, np.array([target]))
            error = np.array([float(predicted[0] != target)])
            self._detect_changes(self.rows + 1, error, self.weights()[None])
        learns = self.started
        delayed = prediction.rows_before < self.rows
        lagged = prediction.lagged
        self._count_rows(x[None], lagged, np.array([target]), [prediction.rows_before])
        if not learns:
            return
        rows = self.scaling.scale_rows(x[None], lagged)
        for column in self.scaling.update_inputs(x):
            self.note_change("input level", self.rows, column)
        past = self._past_slots(prediction, offset) if delayed else None
        for outputs, bank in self._numbered_banks():
            positives = self._positives()[outputs]
            own = self._with_lags(rows, lagged, positives[0])
            label = output_labels(np.array([target]), positives)[0]
            judged = None if past is None else past[outputs].reshape(bank.weights.shape)
            bank.learn_one(own[0], label, judged)

    def _past_slots(self, prediction: Prediction, offset: int) -> Floats:
        """(outputs, P): what the slots that run now predicted then, NaN where it is not known.

        offset : the output that was the first when the prediction was made.
        """
        past = np.full((self.outputs, len(self.members)), np.nan)
        for k, slots in enumerate(prediction.slots[: self.outputs - offset]):
            past[k + offset] = self.past_slots(slots[0], float(prediction.scores[0, k]))
        return past

    def _score(self, predicted: np.ndarray, targets: Floats) -> None:
        """Count classes and errors, row after row."""
        for guess, target in zip(predicted.tolist(), targets.astype(int).tolist(), strict=True):
            self.class_counts[target] += 1.0
            self.wrong[0] += guess != target
            self.wrong[1] += 0 <= self._last_class != target
            self._last_class = target

    # --- saving ---------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        return super().arrays() | {"class_counts": self.class_counts, "wrong": self.wrong}

    def parts(self) -> dict[str, Any]:
        return super().parts() | {"probabilities": self.probabilities}

    def counters(self) -> dict[str, Any]:
        return super().counters() | {"classes": self.classes, "last_class": self._last_class}

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        super().restore(state, counters)
        self._last_class = int(counters["last_class"])


def _slot_classes(scores: Floats) -> Floats:
    """(n, P): the class that each slot alone predicts, from scores (outputs, n, P).

    One output is that of the second of two classes.
    """
    if len(scores) == 1:
        return (scores[0] > 0.0).astype(np.float64)
    return np.argmax(scores, axis=0).astype(np.float64)

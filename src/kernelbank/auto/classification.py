"""The model of an AutoBank for targets that are classes, numbered from 0."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.output_changes import can_negate
from ..native.phases import Phase, Phases
from ..native.progress import progress
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from . import task_model
from .calibration import calibration, softmax
from .config import AutoConfig
from .model_parts.replay_buffer import REPLAY
from .model_parts.single_row import SingleRowCalls
from .model_parts.single_row_steps import count_class
from .prediction import Prediction, Record, best_class
from .scaling import scaling_steps
from .scaling.scaling_batch import CHUNK
from .season_steps import INPUTS, PAST, RECALLED
from .slots.default_slots import WIDE
from .slots.slot_pool import START
from .task_model import ModelBatch, TaskModel


class ClassificationBatch(ModelBatch):
    """The arrays of a batch with those of scores and probabilities."""

    def __init__(self, model: ClassificationModel) -> None:
        super().__init__(model)
        outputs, classes = len(model.platt), model.classes
        self.scores = np.zeros((CHUNK, outputs))
        self.labels = np.zeros(CHUNK)
        self.out = np.zeros((CHUNK, classes))
        arguments: dict[str, Any] = {
            "banks": outputs,
            "classes": classes,
            "platt": model.platt,
            "common": model.common_slopes,
            "work": np.zeros((outputs, softmax.WORK)),
            "scores": self.scores,
            "labels": self.labels,
            "out": self.out,
        }
        self.predict = Phase(calibration.probability_rows, **arguments)
        self.update_platt = Phase(calibration.update_platt_rows, **arguments)
        self.predict_and_update = Phases(
            [Phase(calibration.probability_and_update_rows, **arguments)]
        )
        self.update_and_detect = Phases([self.update_platt, self.detect_changes])
        self.detect = Phases([self.detect_changes])


class ClassificationModel(TaskModel):
    """Two classes: one output with labels of -1 and 1. More: one per class, against the rest.

    The squared loss on such labels has the conditional mean as its best function. A logistic curve
    that is fitted online turns the score of two classes into a probability (Platt 1999), a softmax
    that is fitted online the scores of more classes (see `softmax`).

    All classes are outputs of one bank, if they see the same row. With lagged targets or seasons
    they do not, since these are labels for the class: then each has a bank with one output.
    """

    def __init__(self, config: AutoConfig, dimension: int, classes: int) -> None:
        self.classes = classes
        super().__init__(config, dimension, scale_target=False, replay=REPLAY)
        self.class_counts = np.zeros(classes)
        self.platt = np.zeros((0, calibration.PLATT))
        """(outputs, PLATT): the logistic curve of two classes, or a class's part of the softmax."""
        self.common_slopes = np.array(softmax.COMMON_START)
        """(PAIR,): the part of the softmax that all classes share."""
        self.wrong = np.zeros(2)
        """How many predictions were wrong, and how many of the last label as a prediction."""
        self._last_class = np.full(1, -1)

    @cached_property
    def _batch(self) -> ClassificationBatch:
        with defer_signals():  # compiling must not be interrupted
            batch = ClassificationBatch(self)
        progress.finished()
        return batch

    @property
    def outputs_needed(self) -> int:
        """How many outputs this many classes need."""
        return {0: 0, 1: 0, 2: 1}.get(self.classes, self.classes)

    @property
    def outputs_per_bank(self) -> tuple[int, ...]:
        """The numbers of outputs of the banks that are needed."""
        needed = self.outputs_needed
        if not needed:
            return ()
        return (needed,) if self._one_bank else (1,) * needed

    @property
    def _one_bank(self) -> bool:
        """Whether all classes see the same row: without labels of the past among its inputs."""
        return not self.config.past

    def _positives(self, first: int = 0, count: int | None = None) -> np.ndarray:
        """The classes whose labels are 1, for `count` outputs from the given one on."""
        needed = self.outputs_needed
        if needed == 1:
            return np.ones(1, dtype=np.int64)
        return np.arange(first, needed if count is None else first + count)

    def _numbered_banks(self) -> Iterator[tuple[slice, KernelBank]]:
        """The banks, each with the numbers of its outputs."""
        first = 0
        for bank in self.banks:
            yield slice(first, first + bank.outputs), bank
            first += bank.outputs

    @property
    def outputs_per_pool(self) -> int:
        return max(self.outputs_per_bank, default=1)

    def add_class(self) -> None:
        """Add a class. Outputs that are now needed start from the replay buffer."""
        self.classes += 1
        self.class_counts = np.append(self.class_counts, 0.0)
        self.pool.outputs = self.outputs_per_pool
        if self.banks and self._one_bank and self.rows < task_model.RESTARTS[-1]:
            self._learn_again()
        else:
            if self.outputs == 1 and self.outputs_needed > 1:
                self._add_first_output()
            self._add_outputs()
            self.revise_slots(self.rows, due=not self.pool.fits(self.units.running, START))
        self._drop_batch()
        self.warn_if_large()

    def _learn_again(self) -> None:
        """Let a bank with all outputs learn all rows so far, which the replay buffer still has."""
        self._spare_banks, self.banks = self.banks, []
        self.start_units(2.0 * START)
        self._add_outputs()
        self._spare_banks = []

    def _add_first_output(self) -> None:
        """Add the output of class 0, whose labels were those of class 1 with another sign."""
        (bank,) = self.banks
        if not self._one_bank:
            self.banks.insert(0, self._trained_bank(0))
        elif can_negate(bank._settings):
            bank._add_first_output(None)
        else:
            bank._add_first_output(self._trained_output(bank, 0))

    def _add_outputs(self) -> None:
        """Add the outputs that are missing."""
        while self.started and self.outputs < self.outputs_needed:
            first = self.outputs
            if not self._one_bank:
                self.banks.append(self._trained_bank(first))
            elif not self.banks:
                self.banks.append(self._trained_bank(0, self.outputs_needed))
            else:
                self.banks[0]._add_output(self._trained_output(self.banks[0], first))
        if len(self.platt) < self.outputs:
            self.platt = calibration.grow_curves(self.platt, self.outputs)

    def _trained_bank(self, first: int, outputs: int = 1) -> KernelBank:
        """A bank for classes that has learned the rows in the replay buffer."""
        bank = self.new_bank(outputs)
        X, lagged, targets = self.buffer.latest(self.rows)
        if len(X):
            positives = self._positives(first, outputs)
            rows = self._with_lags(self.scaling.scale_rows(X, lagged), lagged, positives[0])
            self.buffer.replay(self.rows, bank, rows, _labels(targets, positives))
        return bank

    def _trained_output(self, bank: KernelBank, positive: int) -> KernelBank:
        """What the output of one more class has learned of the rows in the replay buffer."""
        X, lagged, targets = self.buffer.latest(self.rows)
        count = min(len(X), bank.samples)
        chosen = np.arange(len(X) - count, len(X))
        rows = self.scaling.scale_rows(X[chosen], lagged[chosen])
        output = bank._new_output(bank.samples - count, rows[0], -1.0)
        labels = _labels(targets[chosen], np.array([positive]))
        self.buffer.replay(self.rows, output, rows, labels, chosen)
        return output

    # --- the past ---------------------------------------------------------------------------------

    def previous_inputs(self, dimension: int) -> int:
        known = self.config.revises and self._one_bank and dimension <= WIDE
        return dimension if known else 0

    def replay_samples(self) -> tuple[Floats, Floats] | None:
        if not (self.previous and self.banks):
            return None
        X, lagged, targets = self.buffer.latest(self.rows)
        return self.scaling.scale_rows(X, lagged), _labels(targets, self._positives())

    def _with_lags(self, rows: Floats, lagged: Floats, positive: int) -> Floats:
        """Write the lagged classes into scaled rows as labels for a bank: 1, -1, 0 if unknown."""
        lags, scaling = self.config.lags, self.scaling
        if self.config.past:
            labels = np.where(lagged == positive, 1.0, -1.0)
            labels[np.isnan(lagged)] = 0.0
        if lags:
            repeats = len(scaling.lag_columns) // lags
            rows[:, scaling.lag_columns] = np.tile(labels[:, :lags], (1, repeats))
        for place in range(scaling.seasons):
            first, column = lags + place * PAST, scaling.season_columns[place * INPUTS]
            known = labels[:, first : first + RECALLED]
            total, count = np.zeros(len(rows)), np.zeros(len(rows))
            for label in known.T:
                total += label
                count += label != 0.0
            rows[:, column] = known[:, 0]
            rows[:, column + 1] = total / np.maximum(count, 1.0)
        return rows

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
        out = np.empty((len(scores), self.classes))
        batch = self._batch
        for start in range(0, len(scores), CHUNK):
            some = scores[start : start + CHUNK]
            count = len(some)
            batch.scores[:count] = some
            batch.predict.run(0, count)
            out[start : start + CHUNK] = batch.out[:count]
        return out

    # --- single rows ----------------------------------------------------------------------------

    def _make_row_calls(self) -> SingleRowCalls:
        batch, steps = self._batch, self.scaling.batch
        count = Phase(
            count_class,
            classes=self.classes,
            probabilities=batch.out,
            labels=batch.labels,
            errors=batch.errors,
            class_counts=self.class_counts,
            wrong=self.wrong,
            last_class=self._last_class,
        )
        keep = self._keep_row(batch.labels)
        update_scaling = steps.phase(scaling_steps.update_scaled_row)
        learning = [count, keep, batch.copy_weights(self)]
        learning += [batch.update_platt, batch.detect_changes]
        return SingleRowCalls(
            self,
            self._positives().tolist(),
            scores=batch.scores,
            spreads=np.zeros(self.outputs),
            targets=batch.labels,
            output=batch.out,
            scale=None,
            tail=None,
            predicting=[batch.predict],
            before=[*learning, update_scaling],
        )

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
            trace = bank.run(own, _labels(targets, positives), record=recorded)
            scores[:, outputs] = trace.predictions.reshape(count, -1)
            if outputs.start == 0:
                first_weights = trace.weights if bank.outputs == 1 else trace.weights[:, 0]
                found["weights"] = self.spread(first_weights, 0.0)
            if wanted:
                own_slots = trace.slot_predictions.reshape(count, bank.outputs, -1)
                slots[outputs] = self.spread(own_slots.swapaxes(0, 1), 0.0)
        if wanted:
            found |= {"slot_predictions": slots[0], "slot_classes": _slot_classes(slots)}
        batch = self._batch
        batch.scores[:count] = scores
        batch.labels[:count] = targets
        batch.predict_and_update.run(0, count)
        probabilities = batch.out[:count].copy()
        predicted = best_class(probabilities)
        self._score(predicted, targets)
        self._count_rows(X, lagged, targets, np.arange(first, first + count))
        for t, column in new_levels:
            self.note_change("input level", first + t + 1, column)
        batch.errors[:count] = predicted != targets
        batch.weights[:count] = found["weights"]
        batch.detect.run(0, count)
        self._note_signals(first + 1, count)
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
            batch = self._batch
            batch.scores[0] = 0.0 if self.outputs == 1 else np.nan
            batch.scores[0, offset : offset + earlier] = prediction.scores[0]
            batch.labels[0] = target
            batch.errors[0] = predicted[0] != target
            batch.weights[0] = self.weights()
            batch.update_and_detect.run(0, 1)
            self._note_signals(self.rows + 1, 1)
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
            label = _labels(np.array([target]), positives)[0]
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
            self.wrong[1] += 0 <= self._last_class[0] != target
            self._last_class[0] = target

    def restart(self) -> None:
        X, _, _ = self.buffer.latest(self.rows)
        self._drop_banks()
        self.scaling.fit(X, None)
        self.start_units()
        self.platt = np.zeros((0, calibration.PLATT))
        self.common_slopes[:] = softmax.COMMON_START
        self._add_outputs()
        self._drop_batch()
        self._spare_banks = []

    # --- saving ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        own = {"class_counts": self.class_counts, "wrong": self.wrong}
        curves = {"platt": self.platt, "common_slopes": self.common_slopes}
        return super().state() | own | curves

    def counters(self) -> dict[str, Any]:
        return super().counters() | {"classes": self.classes, "last_class": self._last_class.item()}

    def allocate(self, classes: int, outputs: int) -> None:
        """Make the arrays for so many classes and outputs, before `restore`."""
        self.classes = classes
        self.pool.outputs = self.outputs_per_pool
        self.class_counts = np.zeros(classes)
        self.platt = np.zeros((outputs, calibration.PLATT))
        self._drop_batch()

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        super().restore(state, counters)
        self._last_class[0] = int(counters["last_class"])


def _labels(targets: Floats, positives: np.ndarray) -> Floats:
    """Class numbers (n,) as labels (n, K) for outputs: 1 for the positive class of each, else -1.

    (n,) for one output.
    """
    labels = np.where(targets[:, None] == positives, 1.0, -1.0)
    return labels[:, 0] if len(positives) == 1 else labels


def _slot_classes(scores: Floats) -> Floats:
    """(n, P): the class that each slot alone predicts, from scores (outputs, n, P).

    One output is that of the second of two classes.
    """
    if len(scores) == 1:
        return (scores[0] > 0.0).astype(np.float64)
    return np.argmax(scores, axis=0).astype(np.float64)

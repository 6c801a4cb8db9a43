"""The model of an AutoBank for targets that are classes, numbered from 0.

Two classes: one output with labels of -1 and 1. More: one per class, against the rest. All classes
are outputs of one bank, if they see the same row. With lagged targets or seasons they do not, since
these are labels for the class: then each has a bank with one output.

The squared loss on labels of -1 and 1 has the conditional mean as its best function. A logistic
curve that is fitted online turns the score of two classes into a probability (Platt 1999), a
softmax that is fitted online the scores of more classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.trace import Record
from ..utils.validation import Floats
from .config import AutoConfig
from .model import REPLAY, Model
from .slot_pool import START
from .targets import best_class


class ClassModel(Model):
    """Predicts classes, and learns them."""

    target_count = 1

    def __init__(
        self, config: AutoConfig, dimension: int, classes: int, previous: int | None = None
    ) -> None:
        self.classes = classes
        super().__init__(config, dimension, 0, previous)
        self.core.allocate(classes, 0)

    def _make_core(self) -> Any:
        return _core.ClassModel(
            **self.core_settings(),
            outputs=1,
            replay=REPLAY,
            replay_until=2**62,
            lags=self.config.lags,
            first_restart=self.config.restarts[0],
        )

    def _sizes(self) -> tuple[int, ...]:
        return (self.classes, self.core.scores)

    def remembered_targets(self) -> int:
        return self.config.lags

    @property
    def knows_previous(self) -> bool:
        return self.config.revises and self._one_bank

    # --- outputs --------------------------------------------------------------------------------

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

    @property
    def outputs_per_pool(self) -> int:
        return max(self.outputs_per_bank, default=1)

    def _positives(self, first: int = 0, count: int | None = None) -> np.ndarray:
        """The classes whose labels are 1, for `count` outputs from the given one on."""
        needed = self.outputs_needed
        if needed == 1:
            return np.ones(1, dtype=np.int64)
        return np.arange(first, needed if count is None else first + count)

    def add_class(self) -> None:
        """Add a class. Outputs that are now needed start from the rows that are kept."""
        self.classes += 1
        self.core.add_class()
        self.pool.outputs = self.outputs_per_pool
        if self.banks and self._one_bank and self.rows < self.config.restarts[-1]:
            self.use_banks([])  # one with all outputs learns all rows so far
            self.start_groups(2.0 * START)
            self._add_outputs()
        else:
            if self.outputs == 1 and self.outputs_needed > 1:  # so far it was that of class 1
                self._add_output(0)
            self._add_outputs()
            self.revise_slots(self.rows, due=not self.pool.fits(self.selection.running, START))
        self.warn_if_large()

    def _add_outputs(self) -> None:
        """Add the outputs that are missing."""
        while self.started and self.outputs < self.outputs_needed:
            if self._one_bank and not self.banks:
                self.use_banks([self._trained_bank(0, self.outputs_needed)])
            else:
                self._add_output(self.outputs)
        if self.core.scores < self.outputs:
            self.core.grow_scores(self.outputs)

    def _add_output(self, number: int) -> None:
        """Add the output of the class of this number, before those of later classes."""
        banks = list(self.banks)
        if self._one_bank:
            (bank,) = banks
            # A new class was in no row before; where class 0 was, only the kept rows tell.
            past = -1.0 if number == self.outputs else np.nan
            banks[0] = bank.with_output(number, self._trained_output(bank, number), past)
        else:
            banks.insert(number, self._trained_bank(number))
        self.use_banks(banks)

    def _trained_bank(self, first: int, outputs: int = 1) -> KernelBank:
        """A bank for classes that has learned the rows that are kept."""
        bank = self.new_bank(outputs)
        X, pasts, targets, *_ = self.core.latest()
        if len(X):
            positives = self._positives(first, outputs)
            scaled = self.scaling.scale_rows(X, pasts)
            rows = self.core.with_labels(scaled, pasts, int(positives[0]))
            self.replay(bank, rows, output_labels(targets[:, 0], positives))
        return bank

    def _trained_output(self, bank: KernelBank, positive: int) -> KernelBank:
        """What the output of one more class has learned of the rows that are kept."""
        X, pasts, targets, *_ = self.core.latest()
        count = min(len(X), bank.samples)
        chosen = np.arange(len(X) - count, len(X))
        rows = self.scaling.scale_rows(X[chosen], pasts[chosen])
        output = bank.new_output(bank.samples - count)
        labels = output_labels(targets[chosen, 0], np.array([positive]))
        self.replay(output, rows, labels, chosen)
        return output

    # --- predicting and learning ----------------------------------------------------------------

    def _with_idle(self, slots: Floats) -> Floats:
        idle = np.ones(len(self.pool), dtype=np.bool_)
        idle[self.members] = False
        return np.where(idle, 0.0, slots)[None]

    def _make_record(self, outputs: Floats, weights: Floats, slots: Floats | None) -> Record:
        found = {"probabilities": outputs, "weights": weights[:, 0]}
        if slots is not None and slots.shape[1]:
            found |= {"slot_predictions": slots[:, 0].copy(), "slot_classes": _slot_classes(slots)}
        else:
            best = best_class(outputs).astype(np.float64)
            shape = (len(outputs), len(self.pool))
            found["slot_predictions"] = np.zeros(shape)
            found["slot_classes"] = np.repeat(best[:, None], shape[1], axis=1)
        return found

    def as_target(self, output: Floats) -> Any:
        return np.array([float(np.argmax(output))])

    def restart(self) -> None:
        X, *_ = self.core.latest()
        self._drop_banks()
        self.scaling.fit(X, None)
        self.start_groups()
        self.core.start_scores(0)
        self._add_outputs()

    def replay_samples(self) -> tuple[Floats, Floats] | None:
        if not (self.previous and self.banks):
            return None
        X, pasts, targets, *_ = self.core.latest()
        labels = output_labels(targets[:, 0], self._positives())
        return self.scaling.scale_rows(X, pasts), labels

    # --- what was learned -----------------------------------------------------------------------

    @property
    def unscored(self) -> int:
        return self.core.unscored

    def long_mean_weights(self) -> Floats:
        return self.core.long_mean

    def mean_error(self) -> Floats:
        count = self.rows - self.unscored
        return np.array([self.core.wrong[0] / count if count else np.nan])

    def baseline_error(self) -> Floats:
        return np.array([self.core.wrong[1] / (self.rows - 1) if self.rows > 1 else np.nan])


def output_labels(targets: Floats, positives: np.ndarray) -> Floats:
    """Class numbers (n,) as labels (n, K) for outputs: 1 for the positive class of each, else -1.

    (n,) for one output.
    """
    labels = np.where(targets[:, None] == positives, 1.0, -1.0)
    return labels[:, 0] if len(positives) == 1 else labels


def _slot_classes(scores: Floats) -> Floats:
    """(n, P): the class that each slot alone predicts, from scores (n, outputs, P).

    One output is that of the second of two classes.
    """
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.float64)
    return np.argmax(scores, axis=1).astype(np.float64)

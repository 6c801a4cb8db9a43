"""The outputs of a model for classes: how many it needs, and how they begin when a class comes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..utils.validation import Floats
from . import model_state
from .config import AutoConfig
from .model_parts.replay_buffer import REPLAY
from .seasons import INPUTS, PAST, RECALLED
from .slots.default_slots import WIDE
from .slots.slot_pool import START
from .task_model import TaskModel


class ClassOutputs(TaskModel):
    """Two classes: one output with labels of -1 and 1. More: one per class, against the rest.

    All classes are outputs of one bank, if they see the same row. With lagged targets or seasons
    they do not, since these are labels for the class: then each has a bank with one output.
    """

    def __init__(self, config: AutoConfig, dimension: int, classes: int) -> None:
        self.classes = classes
        super().__init__(config, dimension, scale_target=False, replay=REPLAY)
        self.class_counts = np.zeros(classes)
        self.probabilities = _core.Probabilities(scores=0)
        """The calibration of the scores of the outputs: a logistic curve, or a softmax."""

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
        if self.banks and self._one_bank and self.rows < model_state.RESTARTS[-1]:
            self._learn_again()
        else:
            if self.outputs == 1 and self.outputs_needed > 1:  # so far it was that of class 1
                self._add_output(0)
            self._add_outputs()
            self.revise_slots(self.rows, due=not self.pool.fits(self.selection.running, START))
        self.warn_if_large()

    def _learn_again(self) -> None:
        """Let a bank with all outputs learn all rows so far, which the replay buffer still has."""
        self.banks = []
        self.start_groups(2.0 * START)
        self._add_outputs()

    def _add_outputs(self) -> None:
        """Add the outputs that are missing."""
        while self.started and self.outputs < self.outputs_needed:
            if self._one_bank and not self.banks:
                self.banks.append(self._trained_bank(0, self.outputs_needed))
            else:
                self._add_output(self.outputs)
        if self.probabilities.scores < self.outputs:
            self.probabilities.grow(self.outputs)

    def _add_output(self, number: int) -> None:
        """Add the output of the class of this number, before those of later classes."""
        if self._one_bank:
            (bank,) = self.banks
            # A new class was in no row before; where class 0 was, only the buffer tells.
            past = -1.0 if number == self.outputs else np.nan
            self.banks[0] = bank.with_output(number, self._trained_output(bank, number), past)
        else:
            self.banks.insert(number, self._trained_bank(number))

    def _trained_bank(self, first: int, outputs: int = 1) -> KernelBank:
        """A bank for classes that has learned the rows in the replay buffer."""
        bank = self.new_bank(outputs)
        X, lagged, targets = self.buffer.latest(self.rows)
        if len(X):
            positives = self._positives(first, outputs)
            rows = self._with_lags(self.scaling.scale_rows(X, lagged), lagged, positives[0])
            self.buffer.replay(self.rows, bank, rows, output_labels(targets, positives))
        return bank

    def _trained_output(self, bank: KernelBank, positive: int) -> KernelBank:
        """What the output of one more class has learned of the rows in the replay buffer."""
        X, lagged, targets = self.buffer.latest(self.rows)
        count = min(len(X), bank.samples)
        chosen = np.arange(len(X) - count, len(X))
        rows = self.scaling.scale_rows(X[chosen], lagged[chosen])
        output = bank.new_output(bank.samples - count)
        labels = output_labels(targets[chosen], np.array([positive]))
        self.buffer.replay(self.rows, output, rows, labels, chosen)
        return output

    def restart(self) -> None:
        X, _, _ = self.buffer.latest(self.rows)
        self._drop_banks()
        self.scaling.fit(X, None)
        self.start_groups()
        self.probabilities.start(0)
        self._add_outputs()

    def allocate(self, classes: int, outputs: int) -> None:
        """Make the arrays for so many classes and outputs, before `restore`."""
        self.classes = classes
        self.pool.outputs = self.outputs_per_pool
        self.class_counts = np.zeros(classes)
        self.probabilities.start(outputs)

    # --- the past ---------------------------------------------------------------------------------

    def previous_inputs(self, dimension: int) -> int:
        known = self.config.revises and self._one_bank and dimension <= WIDE
        return dimension if known else 0

    def replay_samples(self) -> tuple[Floats, Floats] | None:
        if not (self.previous and self.banks):
            return None
        X, lagged, targets = self.buffer.latest(self.rows)
        return self.scaling.scale_rows(X, lagged), output_labels(targets, self._positives())

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


def output_labels(targets: Floats, positives: np.ndarray) -> Floats:
    """Class numbers (n,) as labels (n, K) for outputs: 1 for the positive class of each, else -1.

    (n,) for one output.
    """
    labels = np.where(targets[:, None] == positives, 1.0, -1.0)
    return labels[:, 0] if len(positives) == 1 else labels

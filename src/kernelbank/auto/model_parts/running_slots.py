"""The slots of a model: those that may run, and those that its banks run now.

Weights and predictions of slots have one entry for every slot of the pool, so that traces and files
have the same columns whatever runs. A slot that does not run has no weight. In a trace its
prediction is the mean of the targets (a score of 0 for labels); in a `Prediction` it is NaN, and
where its target comes after the slot has started, the prediction of the bank stands for its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...bank.revision import Selection, continued_slots
from ...bank.slot import Slot
from ...bank.slot_history import SlotChange, newest_changes
from ...utils.validation import Floats
from ..config import AutoConfig
from ..scaling.scaling import Scaling
from ..slots import slot_revision
from ..slots.relevance import ROWS as RELEVANCE_ROWS
from ..slots.relevance import new_relevance
from ..slots.slot_pool import START, SlotPool


class RunningSlots:
    """The part of a model that knows its slots and banks."""

    config: AutoConfig
    scaling: Scaling
    detector: Any
    """The signals of change, with running means of the weights (slots of the pool)."""

    def __init__(self) -> None:
        self.banks: list[KernelBank] = []

    @property
    def outputs_per_pool(self) -> int:
        """How many outputs each bank has, or will have."""
        return 1

    def lay_out_slots(self) -> None:
        """Start with the initial slots for the present scaling."""
        self.pool: SlotPool = self.make_pool(self.scaling)
        self._start_selection()
        self.detector.restart_weights(len(self.pool))

    def _start_selection(self) -> None:
        """Let the initial slots of the pool run, as if there had been no others."""
        self._select(Selection.first(self.pool.initial_groups, len(self.pool.groups)))
        self.slot_changes: tuple[SlotChange, ...] = ()
        """What revisions have retired and added."""

    def _select(self, selection: Selection) -> None:
        """Let these groups of the pool run; `_change_banks` follows if there are banks."""
        self.selection = selection
        self.members = np.array(self.pool.members(selection.running), dtype=np.int64)
        """(P,): the indices, in the pool, of the slots of the banks."""

    def make_pool(self, scaling: Scaling) -> SlotPool:
        """All slots that may run."""
        return self.config.make_pool(scaling, self.outputs_per_pool)

    @property
    def names(self) -> list[str]:
        """The names of all slots of the pool."""
        return self.pool.names

    def spread(self, values: Floats, others: Floats | float) -> Floats:
        """(..., slots of the pool): values (..., P) of the slots that run, `others` elsewhere."""
        if len(self.members) == len(self.pool):
            return values
        out = np.empty((*values.shape[:-1], len(self.pool)))
        out[...] = others
        out[..., self.members] = values
        return out

    def with_idle(self, slots: Floats, others: float) -> Floats:
        """Predictions (..., slots of the pool), `others` for the slots that do not run."""
        idle = np.ones(len(self.pool), dtype=np.bool_)
        idle[self.members] = False
        return np.where(idle, others, slots)

    def past_slots(self, slots: Floats, score: float) -> Floats:
        """(P,): what the slots that run now predicted in the past, from a prediction's slots.

        score : the prediction of the bank, for those that did not run then.
        """
        own = slots[self.members]
        return np.where(np.isnan(own), score, own)

    @property
    def outputs(self) -> int:
        """How many outputs the banks have together: one, or one per class."""
        return sum(bank.outputs for bank in self.banks)

    def weights(self) -> Floats:
        """The weights of the first output; equal ones before there is a bank."""
        if self.banks:
            return self.spread(np.atleast_2d(self.banks[0].weights)[0], 0.0)
        count = len(self.members)
        return self.spread(np.full(count, 1 / count), 0.0)

    def mean_weights_of_outputs(self) -> Floats:
        """The weights, and their mean over the outputs if there are several."""
        total = np.zeros(len(self.members))
        for bank in self.banks:
            for weights in np.atleast_2d(bank.weights):
                total += weights
        return self.spread(total / self.outputs, 0.0)

    def long_mean_weights(self) -> Floats:
        """The long running mean of the weights."""
        return self.detector.long_mean

    def slot_losses(self) -> Floats:
        """The mean loss of each slot, over all outputs; NaN for those that do not run."""
        losses = np.vstack([bank.ledger.slot_mean_loss for bank in self.banks]).mean(axis=0)
        return self.spread(losses, np.nan)

    def new_bank(self, outputs: int = 1) -> KernelBank:
        """A bank that has learned nothing."""
        return self.config.make_bank(self.bank_slots(), outputs)

    def bank_slots(self) -> list[Slot]:
        """The slots of the banks."""
        return self.pool.bank_slots(self.members.tolist())

    def continue_with_seasons(self) -> None:
        """Let the slots for seasons start anew, with the periods that the scaling knows now."""
        before = self._running_slots()
        self._use_pool(self.make_pool(self.scaling))
        self._select(self.selection.with_new(self.pool.season_groups))
        self._change_banks(before)

    def _use_pool(self, pool: SlotPool) -> None:
        """Go on with a pool of as many slots."""
        self.pool = pool

    def _running_slots(self) -> dict[int, Slot]:
        """The slots of the banks, by their indices in the pool."""
        return dict(zip(self.members.tolist(), self.bank_slots(), strict=True))

    def _change_banks(self, before: dict[int, Slot], anew: Collection[int] = ()) -> None:
        """Let the banks go on with the groups that run now.

        before : the slots so far, by their indices in the pool.
        anew : those that start anew, and are judged like what they were before.
        """
        after = self._running_slots()
        place = {index: i for i, index in enumerate(before)}
        change = (
            list(after.values()),
            continued_slots(before, after, anew),
            [place.get(index) for index in after],
            self.replay_samples(),
        )
        self.banks = [bank.with_slots(*change) for bank in self.banks]

    # --- revisions ------------------------------------------------------------------------------

    def start_groups(self, factor: float = START) -> None:
        """Before a restart: begin with fewer groups, if there are too many for the outputs by now.

        They are too many if they cost more than this factor times the limit.
        """
        self.pool.outputs = self.outputs_per_pool
        several = self.config.revises and self.pool.outputs > 1
        if several and not self.pool.fits(self.selection.running, factor):
            self.pool.outputs += self.pool.outputs // 2  # more may come soon
            self._start_selection()
            self.pool.outputs = self.outputs_per_pool

    def revise_slots(self, rows: int, *, due: bool | None = None) -> bool:
        """Let slots without weight give their time to others, if it is time; whether some did."""
        due = slot_revision.is_due(rows) if due is None else due
        if not (self.config.revises and self.banks and due):
            return False
        weights = np.maximum(self.mean_weights_of_outputs(), self.long_mean_weights())
        before, slots_before = self.selection, self._running_slots()
        anew = self.pool.relevant_slots if self.learn_relevance() else ()
        after, reasons = slot_revision.revise(self.pool, before, rows, weights)
        self._select(after)
        for kind, number in before.changes(after):
            group = self.pool.groups[number]
            change = SlotChange(rows, kind, group.slots[0], group.name, reasons[number])
            self.slot_changes = newest_changes(*self.slot_changes, change)
        if before.running == after.running and not slots_before.keys() & set(anew):
            return False
        self._change_banks(slots_before, anew)
        return True

    # --- relevance ------------------------------------------------------------------------------

    def replay_samples(self) -> tuple[Floats, Floats] | None:
        """Scaled rows and targets that new slots learn first; None for those of the banks."""
        return None

    def learn_relevance(self) -> bool:
        """Compute the relevance of the columns anew, if slots use it; whether it has changed."""
        running = self.members.tolist()
        samples = None
        if self.banks and self.pool.metric_slot in running:
            samples = self.replay_samples()
        if samples is None or not len(samples[0]):
            return False
        rows, relevance = samples[0][-RELEVANCE_ROWS:], self.scaling.relevance
        slot = running.index(self.pool.metric_slot)
        found = new_relevance(self.banks[0], slot, rows, relevance)
        changed = not np.array_equal(found, relevance)
        if changed:
            self.scaling.relevance = found
        return changed

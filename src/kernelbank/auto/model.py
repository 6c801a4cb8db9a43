"""`Model`: predict a row, learn a batch. What the models of both tasks share.

The core has the sequence of a row's steps (`_core.NumberModel`, `_core.ClassModel`), with scaling,
calibration, held targets, the past and the newest rows. Here is what happens after certain numbers
of rows: restarts, revisions of the slots, and the search for seasons. All of it depends on numbers
of rows alone, so that no bit depends on how a stream is cut into batches.

Weights and predictions of slots have one entry for every slot of the pool, so that traces and files
have the same columns whatever runs. A slot that does not run has no weight. In a trace its
prediction is the mean of the targets (a score of 0 for labels).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Collection
from typing import Any

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.revision import Selection, continued_slots
from ..bank.slot import Slot
from ..bank.slot_history import SlotChange, newest_changes
from ..bank.trace import Record
from ..errors import LargeModel
from ..utils.validation import Floats
from ..utils.whole_steps import warn_after_step
from . import slot_pool
from .config import AutoConfig
from .default_slots import RELEVANCE_ROWS, WIDE, new_relevance
from .forecaster import Forecasting
from .scaling import Scaling
from .seasons import AUTO, find_new_periods, history_size, is_due, rows_to_look, season_places
from .slot_pool import START, SlotPool
from .status import FALSE_ALARM_ROWS, MAX_CHANGES, RECENT_ERRORS, Change

REPLAY = 512
"""How many of the newest rows are kept for outputs and slots that start later."""

CHUNK = 256
"""Rows that are scaled and learned in one call."""

LARGE_MODEL = 500_000_000
"""Bytes of a model's file beyond which it warns, once."""


class Model(ABC):
    """Predicts, and learns from targets, for inputs of a known width.

    Parameters
    ----------
    config : the settings of the AutoBank.
    dimension : number of inputs.
    targets : how many targets a row has that are numbers; 0 for classes.
    previous : how many inputs of the row before a row knows; None for the number that fits.
    """

    target_count: int
    """How many numbers a target has: the outputs of numbers, 1 for classes."""
    core: Any
    """The sequence of a row's steps, with the state of everything but the slots."""

    def __init__(
        self, config: AutoConfig, dimension: int, targets: int, previous: int | None = None
    ) -> None:
        self.config, self.dimension, self.targets = config, dimension, targets
        known = dimension if self.knows_previous and dimension <= WIDE else 0
        self.previous = known if previous is None else previous
        """How many inputs of the last row a row knows: the first ones, or none."""
        self.banks: list[KernelBank] = []
        self.forecasting = Forecasting()
        """Forecasts beside predictions; none without horizons."""
        self.changes: list[Change] = []
        self._due_at = 0
        """After how many rows there may be something to do; 0 if that is not known."""
        self._large = False
        """Whether there was a warning that the model is large."""
        self.core = self._make_core()
        if isinstance(config.seasons, tuple):
            self.core.set_periods(config.seasons)
        self.lay_out(dimension)

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: the core as arrays."""
        return self.__dict__ | {"core": self.core.state(), "_sizes": self._sizes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        sizes = state.pop("_sizes")
        self.__dict__.update(state)
        arrays, self.core = self.core, self._make_core()
        self.core.use_scaling(self.scaling.statistics)
        self.core.use_slots(len(self.pool), self.members.tolist())
        self.core.allocate(*sizes)
        self.core.restore(arrays)
        self.core.use_banks(self.banks)

    # --- what the tasks do differently ----------------------------------------------------------

    @abstractmethod
    def _sizes(self) -> tuple[int, ...]:
        """What `allocate` of the core is told, for arrays of the lengths that they have now."""

    @abstractmethod
    def _make_core(self) -> Any:
        """The part of the core, which has learned nothing."""

    @property
    @abstractmethod
    def knows_previous(self) -> bool:
        """Whether a row knows the inputs of the last one, unless they are many."""

    @abstractmethod
    def remembered_targets(self) -> int:
        """Of how many of the last rows a row knows the targets."""

    @abstractmethod
    def _make_record(self, outputs: Floats, weights: Floats, slots: Floats | None) -> Record:
        """What a step leaves of n rows as rows of a trace."""

    @abstractmethod
    def as_target(self, output: Floats) -> Any:
        """The prediction of one row as its target, for forecasts that go on from it."""

    @abstractmethod
    def restart(self) -> None:
        """Start scaling and banks anew from the rows that are kept."""

    @property
    @abstractmethod
    def outputs_per_pool(self) -> int:
        """How many outputs each bank has, or will have."""

    @property
    @abstractmethod
    def unscored(self) -> int:
        """How many predictions were made before the first target was known: they do not count."""

    @abstractmethod
    def mean_error(self) -> Floats:
        """(K,): the mean squared error of the predictions of every target, or the share of wrong
        labels (1,); NaN before the first."""

    @abstractmethod
    def baseline_error(self) -> Floats:
        """The same of the last target as a prediction."""

    @abstractmethod
    def long_mean_weights(self) -> Floats:
        """The long running mean of the weights of the slots of the pool."""

    @abstractmethod
    def replay_samples(self) -> tuple[Floats, Floats] | None:
        """Scaled rows and targets that new slots learn first; None for those of the banks."""

    # --- predicting and learning ----------------------------------------------------------------

    @property
    def rows(self) -> int:
        """How many rows have been learned."""
        return self.core.rows

    @property
    def started(self) -> bool:
        """Whether the first restart is over: scaling has begun, and there may be banks."""
        return self.rows >= self.config.restarts[0]

    def past_row(self, waiting: int = 0) -> Floats:
        """(past,): what the next row knows of those before it.

        waiting : how many rows before it were predicted and still wait for their targets.
        """
        return self.core.past_row(waiting)

    def predict_next(self, x: Floats, waiting: int, tail: float) -> _core.Prediction:
        """Predict a row (d,) after those that wait for their targets; changes nothing.

        tail : probability beyond each end of the intervals.
        """
        return self.core.predict_next(x, waiting, tail)

    def predict_rows(self, X: Floats, pasts: Floats, tail: float) -> Floats:
        """(n, 3 K) or (n, classes): the same for rows (n, d) that know pasts (n, past)."""
        return self.core.predict_rows(X, pasts, tail)[0]

    def record(self, prediction: _core.Prediction) -> Record:
        """A prediction as a row of a trace."""
        weights = np.atleast_2d(self.core.weights())[None]
        slots = self._with_idle(prediction.slots) if len(prediction.slots) else None
        return self._make_record(prediction.output[None], weights, slots)

    @abstractmethod
    def _with_idle(self, slots: Floats) -> Floats:
        """(1, K, slots): predictions (K, slots) with what a trace has for idle slots."""

    def update(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        fields: Collection[str] = (),
        made: _core.Prediction | None = None,
    ) -> list[Record]:
        """Predict and learn the rows of a batch in their order; the predictions, in pieces.

        Parameters
        ----------
        X, targets : (n, d) and (n,); (n, K) for several targets.
        tail : probability beyond each end of the intervals.
        fields : which arrays of a trace will be read.
        made : for a batch of one, the prediction that was made for it some rows ago (its target is
            delayed) or before its class was known. It is scored, and slots are judged by it; the
            result is empty.
        """
        rows = targets.reshape(len(X), -1)
        if made is not None:
            self._step(X, rows, tail, made, slots=False)
            return []
        records, done = [], 0
        slots = not {"slot_predictions", "slot_classes"}.isdisjoint(fields)
        while done < len(X):
            end = done + min(CHUNK, max(self._due_at - self.rows, 1))
            count, record = self._step(X[done:end], rows[done:end], tail, None, slots=slots)
            records.append(record)
            done += count
        return records

    def _step(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        made: _core.Prediction | None,
        *,
        slots: bool,
    ) -> tuple[int, Record]:
        """Predict and learn the first rows; how many, and what a trace has of them."""
        count, outputs, weights, own, signals = self.core.step(X, targets, tail, made, slots)
        record = {}
        if made is None:
            own = None if own is None else own[:count]
            record = self._make_record(outputs[:count], weights[:count], own)
        for row, what, of in signals:
            self._note_signal(row, what, of)
        if self.forecasting.forecaster is not None:
            self.forecasting.forecast_after(X[:count], targets[:count, 0], self.core.readings)
        if self.rows >= self._due_at:
            self._do_what_is_due()
            self._due_at = self.rows + self._rows_to_event()
        return count, record

    def _do_what_is_due(self) -> None:
        if self.rows in self.config.restarts:
            self.learn_relevance()
            self.restart()
            self.warn_if_large()
        if self.config.seasons == AUTO and is_due(self.rows):
            self._find_seasons()
        if self.revise_slots(self.rows):
            self.warn_if_large()

    def _rows_to_event(self) -> int:
        """How many rows may be learned at most before something is due."""
        ends = [n - self.rows for n in self.config.restarts if n > self.rows]
        if self.config.seasons == AUTO:
            ends.append(rows_to_look(self.rows))
        return min([*ends, slot_pool.rows_to_revision(self.rows)])

    # --- signals of change ----------------------------------------------------------------------

    def _note_signal(self, row: int, what: str, of: int) -> None:
        """Note a signal of the core, of target or input `of`."""
        self.note_change(what, row, of if what == "input level" else -1)

    def note_change(self, what: str, row: int, column: int = -1, period: int = 0) -> None:
        """Add a signal of change. They stay sorted by row, whatever the batches."""
        insort(self.changes, Change(row, what, column, period))
        del self.changes[:-MAX_CHANGES]

    # --- columns --------------------------------------------------------------------------------

    def core_settings(self) -> dict[str, Any]:
        """What both parts of the core are made of."""
        config = self.config
        return {
            "inputs": self.dimension,
            "targets": max(self.targets, 1),
            "remembered": self.remembered_targets(),
            "previous": self.previous,
            "places": season_places(config.seasons),
            "season_size": history_size(config.seasons),
            "recent": RECENT_ERRORS,
            "limit": FALSE_ALARM_ROWS,
        }

    def lay_out(self, first_inputs: int) -> None:
        """Choose scaling and slots for the present inputs; those beyond the first ones are new."""
        self._use_scaling(self._make_scaling(self.dimension, first_inputs))
        self.pool: SlotPool = self.make_pool(self.scaling)
        self._start_selection()
        self.core.restart_weights()

    def _make_scaling(self, dimension: int, first_inputs: int) -> Scaling:
        past: dict[str, Any] = {}
        if self.previous:
            past = {"remembered": self.remembered_targets(), "previous": self.previous}
        periods = len(self.core.periods)
        return self.config.make_scaling(
            dimension,
            first_inputs,
            targets=self.targets,
            outputs=self.target_count if self.targets else 0,
            periods=periods,
            **past,
        )

    def _use_scaling(self, scaling: Scaling) -> None:
        self.scaling = scaling
        self.core.use_scaling(scaling.statistics)

    @property
    def first_inputs(self) -> int:
        """How many inputs there were at the start of the banks."""
        return self.scaling.core

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        dimension = self.dimension + count
        scaling = self._make_scaling(dimension, self.first_inputs if self.banks else dimension)
        scaling.continue_from(self.scaling)
        pool = self.make_pool(scaling)
        slots = pool.bank_slots(self.members.tolist())
        banks = [bank.with_inputs(scaling.width, slots) for bank in self.banks]
        self.dimension = dimension
        self.core.add_inputs(count)
        if banks:
            self._use_scaling(scaling)
            self.pool = pool
            self.use_banks(banks)
        else:
            self.lay_out(dimension)
        self.warn_if_large()

    def warn_if_large(self) -> None:
        """Warn once when the banks, and so their file, are larger than LARGE_MODEL."""
        if self._large or not self.banks:
            return
        size = len(self.banks) * self.banks[0].state_bytes(self.scaling.width)
        if size > LARGE_MODEL:
            self._large = True
            what = "targets" if self.targets else "classes"
            outputs = f"{self.outputs} {what} and " if self.outputs > 1 else ""
            inputs = f"{self.dimension} input{'' if self.dimension == 1 else 's'}"
            warn_after_step(
                LargeModel,
                f"the model is large: {size / 1e6:,.0f} MB for {outputs}{inputs}, "
                f"as a file, and a little more in memory. Fewer {what} or inputs, or "
                'size="small", make it smaller.',
            )

    # --- seasons --------------------------------------------------------------------------------

    @property
    def periods(self) -> tuple[int, ...]:
        """The periods in use, in their order."""
        return tuple(self.core.periods)

    def _find_seasons(self) -> None:
        """Look for periods; if there are new ones, the slots for seasons start anew with them."""
        found = find_new_periods(self.core, self.rows, self.targets, self.periods)
        if not found:
            return
        for period in found:
            if period not in self.periods:
                self.note_change("season", self.rows, period=period)
        self.core.set_periods(found)
        if not self.banks:
            self.lay_out(self.dimension)
            return
        scaling = self._make_scaling(self.dimension, self.first_inputs)
        scaling.continue_from(self.scaling)
        self._use_scaling(scaling)
        before = self._running_slots()
        self.pool = self.make_pool(scaling)
        self._select(self.selection.with_new(self.pool.season_groups))
        self._change_banks(before)

    # --- slots and banks ------------------------------------------------------------------------

    def make_pool(self, scaling: Scaling) -> SlotPool:
        """All slots that may run."""
        return self.config.make_pool(scaling, self.outputs_per_pool)

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
        self.core.use_slots(len(self.pool), self.members.tolist())

    def use_banks(self, banks: list[KernelBank]) -> None:
        """Go on with these banks."""
        self.banks = banks
        self.core.use_banks(banks)

    @property
    def names(self) -> list[str]:
        """The names of all slots of the pool."""
        return self.pool.names

    def spread(self, values: Floats, others: float) -> Floats:
        """(..., slots of the pool): values (..., P) of the slots that run, `others` elsewhere."""
        out = np.full((*values.shape[:-1], len(self.pool)), others)
        out[..., self.members] = values
        return out

    @property
    def outputs(self) -> int:
        """How many outputs the banks have together."""
        return sum(bank.outputs for bank in self.banks)

    def mean_weights_of_outputs(self) -> Floats:
        """The weights, and their mean over the outputs if there are several."""
        total = np.zeros(len(self.members))
        for bank in self.banks:
            for weights in np.atleast_2d(bank.weights):
                total += weights
        return self.spread(total / self.outputs, 0.0)

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
        self.use_banks([bank.with_slots(*change) for bank in self.banks])

    def _drop_banks(self) -> None:
        """Drop all banks before a restart, which takes up all inputs there are by now."""
        self.use_banks([])
        if self.first_inputs < self.dimension:
            self.lay_out(self.dimension)

    def replay(self, bank: KernelBank, inputs: Floats, targets: Floats, chosen: Any = None) -> None:
        """Let a new bank learn rows that are kept, in the order of predictions and targets.

        A row with a delayed target is judged by the slots' predictions of the moment at which it
        was predicted.

        Parameters
        ----------
        inputs, targets : of the chosen rows, scaled for the bank; targets (n,), or (n, K) for K
            outputs.
        chosen : indices of the rows among those that are kept; all of them by default.
        """
        if not len(inputs):
            return
        _, _, _, numbers, predicted_at = self.core.latest()
        if chosen is not None:
            numbers, predicted_at = numbers[chosen], predicted_at[chosen]
        if (predicted_at >= numbers).all():  # no target was delayed
            bank.run(inputs, targets, record="light")
            return
        past: dict[int, Floats] = {}
        for turn, number in enumerate(numbers):
            for later in range(turn + 1, len(numbers)):
                if later not in past and predicted_at[later] <= number:
                    past[later] = bank.predict_slots_one(inputs[later])[1]
            bank.learn_one(inputs[turn], targets[turn], past.pop(turn, None))

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
        due = slot_pool.is_due(rows) if due is None else due
        if not (self.config.revises and self.banks and due):
            return False
        weights = np.maximum(self.mean_weights_of_outputs(), self.long_mean_weights())
        before, slots_before = self.selection, self._running_slots()
        anew = self.pool.relevant_slots if self.learn_relevance() else ()
        after, reasons = slot_pool.revise(self.pool, before, rows, weights)
        self._select(after)
        for kind, number in before.changes(after):
            group = self.pool.groups[number]
            change = SlotChange(rows, kind, group.slots[0], group.name, reasons[number])
            self.slot_changes = newest_changes(*self.slot_changes, change)
        if before.running == after.running and not slots_before.keys() & set(anew):
            return False
        self._change_banks(slots_before, anew)
        return True

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

"""`Model`: predict a row, learn a batch; `NumberModel` for numbers and `ClassModel` for classes.

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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.serialization import under
from ..bank.slot import Slot
from ..bank.slot_history import (
    Selection,
    SlotChange,
    continued_slots,
    newest_changes,
    parse_changes,
)
from ..bank.trace import BY_SLOT, Record, Trace, chosen_fields
from ..errors import FileRefused, LargeModel
from ..losses import Pinball
from ..utils import validation as check
from ..utils.validation import Floats
from ..utils.whole_steps import warn_after_step
from .config import AutoConfig, restored_periods
from .forecaster import BY_HORIZON, Forecaster
from .scaling import EXTREME, Scaling
from .seasons import AUTO, LOOKS, find_new_periods, history_size, season_places
from .slots import (
    RELEVANCE_ROWS,
    REVISIONS,
    START,
    WIDE,
    SlotPool,
    new_relevance,
    revise,
)
from .state import Arrays, Json, Reading, check_finite, describe_parts, whole_number
from .status import FALSE_ALARM_ROWS, MAX_CHANGES, RECENT_ERRORS, Change
from .targets import ClassLabels, best_class

REPLAY = 512  # how many of the newest rows are kept for outputs and slots that start later
CHUNK = 256  # rows that are scaled and learned in one call
LARGE_MODEL = 500_000_000  # bytes of a model's file beyond which it warns, once

SPREAD = 16
"""Over how many rows the last restart is spread: after each of them a share of the rows so far is
learned again, so that no row takes long."""

REMEMBERED = 3  # how many of the last targets the slots on relevant columns see, whatever `lags` is


class Model(ABC):
    """Predicts, and learns from targets, for inputs of a known width.

    Parameters
    ----------
    config : the settings of the AutoBank.
    dimension : number of inputs.
    targets : how many targets a row has that are numbers; 0 for classes.
    previous : how many inputs of the row before a row knows; None for the number that fits.
    """

    classes = 0
    """How many classes there are, which are numbered."""
    target_count: int
    """How many numbers a target has: the outputs of numbers, 1 for classes."""
    core: _core.NumberModel | _core.ClassModel
    """The sequence of a row's steps, with the state of everything but the slots."""
    core_type: type[_core.NumberModel] | type[_core.ClassModel]

    def __init__(
        self, config: AutoConfig, dimension: int, targets: int, previous: int | None = None
    ) -> None:
        self.config, self.dimension, self.targets = config, dimension, targets
        fitting_inputs = dimension if config.knows_previous and dimension <= WIDE else 0
        self.previous = fitting_inputs if previous is None else previous
        """How many inputs of the last row a row knows: the first ones, or none."""
        self.banks: list[KernelBank] = []
        self.forecaster: Forecaster | None = None
        """Forecasts beside predictions, with horizons."""
        self.quantile_part: Quantiles | None = None
        """The quantiles beside predictions and intervals, if they are asked for."""
        self._changes: list[Change] = []
        self._large = False
        """Whether there was a warning that the model is large."""
        self.core = self._make_core()
        if isinstance(config.seasons, tuple):
            self.core.set_periods(config.seasons)
        self.lay_out(dimension)

    def __getstate__(self) -> dict[str, object]:
        """For copy and pickle: the core as arrays."""
        self._collect_changes()
        return self.__dict__ | {"core": self.core.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("core")
        self.__dict__.update(state)
        self.core = self._make_core()
        self.core.use_scaling(self.scaling.statistics)
        self.core.use_slots(len(self.pool), self.members.tolist())
        self.core.restore(arrays)
        self.core.use_banks(self.banks)

    def _make_core(self) -> Any:
        """The part of the core, which has learned nothing."""
        config, (lower, upper) = self.config, self.config.bounds
        last = config.restarts[-1]
        return self.core_type(
            inputs=self.dimension,
            targets=max(self.targets, 1),
            outputs=self.target_count,
            classes=self.classes,
            lags=config.lags,
            remembered=self.remembered_targets(),
            previous=self.previous,
            places=season_places(config.seasons),
            season_size=history_size(config.seasons),
            replay=REPLAY if config.keeps_rows else last,
            replay_until=2**62 if config.keeps_rows else last,
            first_restart=config.restarts[0],
            lower=lower,
            upper=upper,
            levels=config.quantiles,
            recent=RECENT_ERRORS,
            limit=FALSE_ALARM_ROWS,
        )

    # --- what the tasks do differently ----------------------------------------------------------

    @property
    @abstractmethod
    def outputs_per_bank(self) -> tuple[int, ...]:
        """The numbers of outputs of the banks that are needed."""

    @abstractmethod
    def _make_record(self, outputs: Floats, weights: Floats, slots: Floats | None) -> Record:
        """What a step leaves of n rows as rows of a trace."""

    @abstractmethod
    def _start_banks(self) -> None:
        """Make banks that have learned the rows that are kept, which are scaled anew."""

    def finish_restart(self) -> None:  # noqa: B027
        """End a restart that is spread over rows, before columns or slots change."""

    @abstractmethod
    def replay_samples(self, most: int = REPLAY) -> tuple[Floats, Floats] | None:
        """Scaled rows and targets that new slots learn first; None for those of the banks.

        most : only so many of the newest.
        """

    # --- predicting and learning ----------------------------------------------------------------

    @property
    def extra_parts(self) -> dict[str, Any]:
        """Forecasts and quantiles beside the predictions, by their names in a file."""
        parts = {"forecaster": self.forecaster, "quantile_part": self.quantile_part}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def rows(self) -> int:
        """How many rows have been learned."""
        return self.core.rows

    @property
    def started(self) -> bool:
        """Whether the first restart is over: scaling has begun, and there may be banks."""
        return self.rows >= self.config.restarts[0]

    @property
    def scored(self) -> int:
        """How many predictions of the first target count: not those before any was known."""
        return int(self.core.totals()[0, 0])

    def mean_errors(self) -> tuple[Floats, Floats]:
        """(K,) each: the mean squared error of the predictions of every target, and of the last
        target as a prediction; or the shares of wrong labels (1,). NaN before the first."""
        counts, sums = self.core.totals().reshape(-1, 2, 2).T  # (2, K) each
        errors, baseline = np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)
        return errors, baseline

    def remembered_targets(self) -> int:
        """Of how many of the last rows a row knows the targets."""
        lags = self.config.lags
        return max(lags, REMEMBERED) if self.targets and self.previous else lags

    def predict_next(self, x: Floats, waiting: int, tail: float) -> _core.Prediction:
        """Predict a row (d,) after those that wait for their targets; changes nothing.

        tail : probability beyond each end of the intervals.
        """
        prediction = self.core.predict_next(x, waiting, tail)
        if self.quantile_part is not None:
            more = prediction.more
            more[: len(more) // 2] = self.quantile_part.predict(x[None]).ravel()
            prediction.more = more
        return prediction

    def predict_rows(self, X: Floats, pasts: Floats, tail: float, late: bool = False) -> Floats:
        """(n, 3 K) or (n, classes): the same for rows (n, d) that know pasts (n, past).

        late : whether rows before them wait for their targets.
        """
        return self.core.predict_rows(X, pasts, late, tail)

    def record(self, prediction: _core.Prediction) -> Record:
        """A prediction as a row of a trace."""
        record = self._make_record(*self.core.record(prediction))
        if self.quantile_part is not None:
            quantiles = prediction.more.reshape(2, 1, self.target_count, -1)[0]
            record["quantiles"] = quantiles if self.target_count > 1 else quantiles[:, 0]
        return record

    def update(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        fields: Collection[str] = (),
        earlier: _core.Prediction | None = None,
    ) -> list[Record]:
        """Predict and learn the rows of a batch in their order; the predictions, in pieces.

        Parameters
        ----------
        X, targets : (n, d) and (n,); (n, K) for several targets.
        tail : probability beyond each end of the intervals.
        fields : which arrays of a trace will be read.
        earlier : for a batch of one, the prediction that was made for it some rows ago (its target
            is delayed) or before its class was known. It is scored, and slots are judged by it; the
            result is empty.
        """
        rows, part = targets.reshape(len(X), -1), self.quantile_part
        records: list[Record] = []
        done = 0
        slots = not {"slot_predictions", "slot_classes"}.isdisjoint(fields)
        while done < len(X):
            size = CHUNK if part is None else 1  # quantiles are compared with ends of intervals
            X_next, y_next, prediction = X[done:][:size], rows[done:][:size], earlier
            if part is not None:
                if prediction is None:
                    prediction = self.predict_next(X_next[0], 0, tail)
                    records.append(self.record(prediction))
                part.learn(X_next, y_next, *prediction.more.reshape(2, self.target_count, -1))
            count, arrays = self.core.step(X_next, y_next, tail, prediction, slots)
            if prediction is None:
                outputs, weights, by_slot = arrays
                by_slot = None if by_slot is None else by_slot[:count]
                records.append(self._make_record(outputs[:count], weights[:count], by_slot))
            if self.forecaster is not None and isinstance(self.core, _core.NumberModel):
                self.forecaster.learn_rows(X_next[:count], y_next[:count, 0], self.core.readings)
            if self.rows >= self.core.due_at:
                self._do_what_is_due()
            done += count
        return records

    def _do_what_is_due(self) -> None:
        """Restart, look for seasons and revise slots, if it is time; note when it will be next."""
        restarts, rows = self.config.restarts, self.rows
        if rows in restarts:
            self.restart()
            self.warn_if_large()
        if self.config.seasons == AUTO and LOOKS.is_due(rows):
            self._find_seasons()
        if REVISIONS.is_due(rows) and self.revise_slots():
            self.warn_if_large()
        due = [REVISIONS.rows_left(rows), *(at - rows for at in restarts if at > rows)]
        due += [LOOKS.rows_left(rows)] if self.config.seasons == AUTO else []
        self.core.due_at = rows + min(due)
        self._collect_changes()

    @property
    def changes(self) -> list[Change]:
        """The last signals of change, by row."""
        self._collect_changes()
        return self._changes

    def _collect_changes(self) -> None:
        """Take over the signals of the core."""
        for row, what, of in self.core.take_signals():  # of target or input `of`
            is_input = what == "input level"
            where = f", target {of}" if self.target_count > 1 and not is_input else ""
            self._note_change(Change(row, what + where, of if is_input else -1))

    def _note_change(self, change: Change) -> None:
        """Add a signal of change. They stay sorted by row, whatever the batches."""
        insort(self._changes, change)
        del self._changes[:-MAX_CHANGES]

    # --- columns --------------------------------------------------------------------------------

    def lay_out(self, first_inputs: int) -> None:
        """Choose scaling and slots for the present inputs; those beyond the first ones are new."""
        self._use_scaling(self._make_scaling(self.dimension, first_inputs))
        self.pool = self._make_pool(self.scaling)
        self._start_selection()
        self.core.restart_weights()

    def _make_scaling(self, dimension: int, first_inputs: int) -> Scaling:
        return self.config.make_scaling(
            dimension,
            core=first_inputs,
            targets=self.targets,
            outputs=self.target_count if self.targets else 0,
            periods=len(self.core.periods),
            remembered=self.remembered_targets(),
            previous=self.previous,
        )

    def _use_scaling(self, scaling: Scaling) -> None:
        self.scaling = scaling
        self.core.use_scaling(scaling.statistics)

    def _continued_scaling(self, dimension: int) -> Scaling:
        """The scaling for so many inputs and the present periods, which goes on from this one."""
        scaling = self._make_scaling(dimension, self.scaling.core if self.banks else dimension)
        scaling.statistics.continue_from(self.scaling.statistics)
        return scaling

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        self.finish_restart()
        dimension = self.dimension + count
        scaling = self._continued_scaling(dimension)
        pool = self._make_pool(scaling)
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
        if self.forecaster is not None:
            self.forecaster.add_inputs(count)
        if self.quantile_part is not None:
            self.quantile_part.model.add_inputs(count)
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
        periods = find_new_periods(self.core.season_targets, self.rows, self.targets, self.periods)
        if periods:
            for period in periods:
                if period not in self.periods:
                    self._note_change(Change(self.rows, "season", period=period))
            self.core.set_periods(periods)
            self._restart_season_slots()
        if self.forecaster is not None:
            self.forecaster = self.forecaster.with_periods(self.periods)

    def _restart_season_slots(self) -> None:
        """Let the slots for seasons start anew with the present periods."""
        if not self.banks:
            self.lay_out(self.dimension)
            return
        self.finish_restart()
        before = self._running_slots()
        self._use_scaling(self._continued_scaling(self.dimension))
        self.pool = self._make_pool(self.scaling)
        self._select(self.selection.with_new(self.pool.season_groups))
        self._change_banks(before)

    # --- slots and banks ------------------------------------------------------------------------

    def _make_pool(self, scaling: Scaling) -> SlotPool:
        """All slots that may run."""
        return self.config.make_pool(scaling, self.outputs_per_pool)

    @property
    def outputs_per_pool(self) -> int:
        """How many outputs each bank has, or will have."""
        return max(self.outputs_per_bank, default=1)

    def _start_selection(self) -> None:
        """Let the groups run that run first, and have tried no others."""
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

    def _scatter(self, values: Floats, others: float) -> Floats:
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
        return self._scatter(total / self.outputs, 0.0)

    def slot_losses(self) -> Floats:
        """The mean loss of each slot, over all outputs; NaN for those that do not run."""
        losses = np.vstack([bank.ledger.slot_mean_loss for bank in self.banks]).mean(axis=0)
        return self._scatter(losses, np.nan)

    def new_bank(self, outputs: int = 1) -> KernelBank:
        """A bank that has learned nothing."""
        return self.config.make_bank([*self._running_slots().values()], outputs)

    def _running_slots(self) -> dict[int, Slot]:
        """The slots of the banks, by their indices in the pool."""
        members = self.members.tolist()
        return dict(zip(members, self.pool.bank_slots(members), strict=True))

    def _change_banks(self, before: dict[int, Slot], anew: Collection[int] = ()) -> None:
        """Let the banks go on with the groups that run now.

        before : the slots so far, by their indices in the pool.
        anew : those that start anew, and are judged like what they were before.
        """
        after = self._running_slots()
        place = {index: i for i, index in enumerate(before)}
        sources = continued_slots(before, after, anew)
        places = [place.get(index) for index in after]
        samples = self.replay_samples() if None in sources else None  # what new slots begin with
        change = (list(after.values()), sources, places, samples)
        self.use_banks([bank.with_slots(*change) for bank in self.banks])

    def restart(self) -> None:
        """Start scaling and banks anew from the rows that are kept, with all inputs by now."""
        if self.rows == self.config.restarts[-1]:  # of fewer rows it follows chance
            self.learn_relevance()
        X, _, targets, *_ = self.core.latest()
        self.use_banks([])
        if self.scaling.core < self.dimension:
            self.lay_out(self.dimension)
        self.start_groups()
        transform = self.scaling.target_transform
        self.scaling.fit(X, targets if self.targets else None)
        if self.scaling.target_transform != transform:  # the target is skewed, or no longer
            self.pool = self.pool.with_transform(self.scaling.target_transform)
        self._start_banks()

    def replay(
        self, bank: KernelBank, inputs: Floats, targets: Floats, chosen: np.ndarray | None = None
    ) -> None:
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

    def revise_slots(self) -> bool:
        """Let slots without weight give their time to others; whether some did."""
        if not (self.config.revises and self.banks):
            return False
        self.finish_restart()
        rows = self.rows
        weights = np.maximum(self.mean_weights_of_outputs(), self.core.long_mean())
        before, slots_before = self.selection, self._running_slots()
        anew = self.pool.relevant_slots if self.learn_relevance() else ()
        after, reasons = revise(self.pool, before, rows, weights, self.slot_losses())
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
        after = self.new_relevance()
        changed = not np.array_equal(after, self.scaling.relevance)
        if changed:
            self.scaling.relevance = after
        return changed

    def new_relevance(self) -> Floats:
        """The relevance of the columns by what slots have learned so far, if they use it."""
        running, before = self.members.tolist(), self.scaling.relevance
        samples = None
        if self.banks and self.pool.metric_slot in running:
            samples = self.replay_samples(RELEVANCE_ROWS)
        if samples is None or not len(samples[0]):
            return before
        slot = running.index(self.pool.metric_slot)
        return new_relevance(self.banks[0], slot, samples[0], before)

    # --- saving ---------------------------------------------------------------------------------

    def describe(self) -> tuple[Json, Arrays]:
        """Everything with its banks as JSON data and arrays, without forecasts and quantiles."""
        banks = {f"bank{number}": bank for number, bank in enumerate(self.banks)}
        header, arrays = describe_parts({"core": self.core, **banks})
        header |= {
            "first_inputs": self.scaling.core,
            "previous": self.previous,
            "periods": list(self.periods),
            "selection": asdict(self.selection),
            "slot_changes": [asdict(change) for change in self.slot_changes],
            "changes": [list(change) for change in self.changes],
            "outputs": [bank.outputs for bank in self.banks],
        }
        return header, arrays

    def restore(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        """Continue, with nothing learned so far, from what `describe` returned."""
        periods = restored_periods(self.config.seasons, header["periods"])
        first = whole_number(header["first_inputs"], 1, self.dimension, "the first inputs")
        outputs = [whole_number(n, 1, 10**6, "the outputs of a bank") for n in header["outputs"]]
        self.core.set_periods(periods)
        self.lay_out(first)
        self.core.restore(under("core/", arrays))
        if self.periods != periods:
            raise FileRefused("its seasons have other periods.")
        if isinstance(self.core, _core.ClassModel) and self.core.scores != sum(outputs):
            raise FileRefused("its probabilities do not fit its outputs.")
        self.pool = self._make_pool(self.scaling)  # a target may be skewed
        selection = Selection.parse(header["selection"], len(self.pool.groups))
        if not self.pool.can_run(selection.running):
            raise FileRefused("its running slots do not fit its settings.")
        self._select(selection)
        self.slot_changes = parse_changes(header["slot_changes"])
        self._changes = [
            Change(int(row), str(what), *map(int, rest)) for row, what, *rest in header["changes"]
        ]
        if outputs != list(self.outputs_per_bank if self.started else ()):
            raise FileRefused("it has the wrong number of banks or outputs.")
        new = {f"bank{number}": self.new_bank(count) for number, count in enumerate(outputs)}
        self.use_banks([*reading.restore(new, header, arrays).values()])


# --- numbers --------------------------------------------------------------------------------------


@dataclass
class UpcomingBank:
    """A bank that takes the place of a model's bank once it has learned all rows again.

    Parameters
    ----------
    scaling : of its rows, fitted to the first `fitted` rows of the stream.
    pool : the slots that it may run.
    bank : it has learned the first `learned` rows.
    """

    scaling: Scaling
    pool: SlotPool
    bank: KernelBank
    fitted: int
    learned: int = 0


class NumberModel(Model):
    """The model for targets that are numbers: one, or several per row.

    All targets are outputs of one bank, each in its standard deviations. Inputs are scaled once for
    all, lagged targets are those of all targets. A target may be missing in a row of several: then
    the row is not learned for that target only.

    outputs : of the bank, by default one for each target; more if all have the same target.
    """

    core: _core.NumberModel
    core_type = _core.NumberModel

    def __init__(
        self,
        config: AutoConfig,
        dimension: int,
        targets: int = 1,
        previous: int | None = None,
        *,
        outputs: int | None = None,
    ) -> None:
        self.target_count = targets if outputs is None else outputs
        self.upcoming: UpcomingBank | None = None
        """With what the model goes on when the last restart is over."""
        super().__init__(config, dimension, targets, previous)

    @property
    def outputs_per_bank(self) -> tuple[int, ...]:
        return (self.target_count,)

    def _make_record(self, outputs: Floats, weights: Floats, slots: Floats | None) -> Record:
        count, several = len(outputs), self.target_count > 1
        values = outputs.reshape(count, self.target_count, 3)
        record = {"weights": weights} | ({} if slots is None else {"slot_predictions": slots})
        parts = zip(("predictions", "lower", "upper"), np.moveaxis(values, 2, 0), strict=True)
        record |= {name: array.copy() for name, array in parts}
        return record if several else {name: array[:, 0] for name, array in record.items()}

    def _start_banks(self) -> None:
        self.core.release()
        bank = self.new_bank(self.target_count)
        self.replay(bank, *self._usual_rows())
        self.use_banks([bank])

    # --- the last restart, which is spread over rows ----------------------------------------------

    def restart(self) -> None:
        if self.rows == self.config.restarts[-1] and self._can_spread():
            X, _, targets, *_ = self.core.latest()
            scaling, relevance = self._new_scaling(), self.new_relevance()
            if len(relevance):
                scaling.relevance = relevance
            scaling.fit(X, targets)
            self.upcoming = self._upcoming_with(scaling, self.rows)
        else:
            super().restart()

    def _can_spread(self) -> bool:
        """Whether the restart may be spread: with no new inputs, and no delayed targets so far."""
        _, _, _, numbers, predicted_at = self.core.latest()
        usual = self.scaling.core == self.dimension and bool((predicted_at >= numbers).all())
        return self.config.revises and bool(self.banks) and usual

    def _new_scaling(self) -> Scaling:
        return self._make_scaling(self.dimension, self.scaling.core)

    def finish_restart(self) -> None:
        upcoming = self.upcoming
        if upcoming is None:
            return
        self._learn_until(upcoming, self.rows)
        self.upcoming = None
        self.use_banks([])
        self._use_scaling(upcoming.scaling)
        self.pool = upcoming.pool
        self.core.release()
        self.use_banks([upcoming.bank])
        self.core.add_newest(self.rows - upcoming.fitted)

    def _upcoming_with(self, scaling: Scaling, fitted: int) -> UpcomingBank:
        """A bank that has learned nothing so far, by a scaling that was fitted to so many rows."""
        pool, transform = self.pool, scaling.target_transform
        if transform != self.scaling.target_transform:  # the target is skewed, or no longer
            pool = pool.with_transform(transform)
        slots = pool.bank_slots(self.members.tolist())
        return UpcomingBank(scaling, pool, self.config.make_bank(slots, self.target_count), fitted)

    def _learn_until(self, upcoming: UpcomingBank, rows: int) -> None:
        """Let an upcoming bank learn the rows of the stream up to this number."""
        samples = self._usual_rows(upcoming.scaling, upcoming.learned, rows)
        self.replay(upcoming.bank, *samples)
        upcoming.learned = rows

    def _learn_share(self, upcoming: UpcomingBank, rows: int) -> None:
        """The same up to what is due after so many rows: in the end these are all of them."""
        end = upcoming.fitted + SPREAD
        self._learn_until(upcoming, end * (rows - upcoming.fitted) // SPREAD)

    def _do_what_is_due(self) -> None:
        upcoming = self.upcoming
        if upcoming is not None:
            self._learn_share(upcoming, self.rows)
            if self.rows == upcoming.fitted + SPREAD:
                self.finish_restart()
        super()._do_what_is_due()
        if self.upcoming is not None:
            self.core.due_at = self.rows + 1

    def _usual_rows(
        self,
        scaling: Scaling | None = None,
        first: int = 0,
        until: int | None = None,
        most: int = REPLAY,
    ) -> tuple[Floats, Floats, np.ndarray]:
        """The rows that are kept and their targets, scaled, without extreme targets.

        The last part: their indices among the rows that are kept.

        scaling : the present one by default.
        first, until : only rows of the stream from this number on, and before that one.
        most : only so many of the newest of these.
        """
        X, pasts, targets, numbers, _ = self.core.latest()
        statistics = (self.scaling if scaling is None else scaling).statistics
        chosen = (numbers >= first) & (numbers < (self.rows if until is None else until))
        scaled = np.full_like(targets, np.nan)
        for k in range(self.target_count):
            column = targets[chosen, k]
            levels = [statistics.outlier_level(y, k) for y in column.tolist()]
            numbers_k = statistics.scale_targets(column, k)
            numbers_k[np.array(levels) == EXTREME] = np.nan
            scaled[chosen, k] = numbers_k
        usual = np.flatnonzero(~np.isnan(scaled).all(axis=1))[-most:]
        values = scaled[usual, 0] if self.target_count == 1 else scaled[usual]
        return statistics.scale_rows(X[usual], pasts[usual]), values, usual

    def replay_samples(self, most: int = REPLAY) -> tuple[Floats, Floats] | None:
        return self._usual_rows(most=most)[:2] if self.config.revises else None

    # --- saving ---------------------------------------------------------------------------------

    def describe(self) -> tuple[Json, Arrays]:
        """The same as for all models; of an upcoming bank the scaling, from which it follows."""
        header, arrays = super().describe()
        if self.upcoming is None:
            return header | {"upcoming": None}, arrays
        _, state = describe_parts({"upcoming": self.upcoming.scaling.statistics})
        return header | {"upcoming": self.upcoming.fitted}, arrays | state

    def restore(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        super().restore(header, arrays, reading)
        if header.get("upcoming") is None:
            return
        last = self.config.restarts[-1]
        fitted = whole_number(header["upcoming"], last, last, "rows at a restart")
        whole_number(self.rows, fitted, fitted + SPREAD - 1, "rows of a restart")
        scaling = self._new_scaling()
        reading.restore({"upcoming": scaling.statistics}, header, arrays)
        if not self.banks:
            raise FileRefused("no restart can go on with this.")
        self.upcoming = upcoming = self._upcoming_with(scaling, fitted)
        for rows in range(fitted + 1, self.rows + 1):
            self._learn_share(upcoming, rows)


# --- quantiles of the targets ---------------------------------------------------------------------


class QuantileScore(NamedTuple):
    """How good the quantiles of one level were.

    level : the share of targets that should lie below.
    scored : how many.
    pinball : mean pinball loss.
    conformal : the same of the end, at this level, of the interval that is calibrated by past
        errors (`predict_interval`).
    below : the share of targets below.

    For several targets all but the level are arrays (K,).
    """

    level: float
    scored: int | Floats
    pinball: float | Floats
    conformal: float | Floats
    below: float | Floats


class Quantiles:
    """Q quantiles of each of K targets as K Q outputs of one bank, each with its pinball loss.

    The outputs of a target are side by side. The slots learn its mean by squares, which they share;
    some are shifted by gradient steps on the pinball loss of their output, and every output has its
    own weights. Those of a row are put in order, so that no quantiles cross; this never raises
    the sum of their losses (Chernozhukov, Fernandez-Val and Galichon 2010).

    Parameters
    ----------
    config : the settings of an AutoBank, with levels of quantiles.
    dimension : number of inputs.
    targets : K.
    """

    def __init__(self, config: AutoConfig, dimension: int, targets: int) -> None:
        self.levels = config.quantiles
        losses = tuple(Pinball(level) for level in self.levels)
        config = replace(config, loss=losses[len(losses) // 2], losses=targets * losses)
        config = replace(config, seasons=None, horizons=(), known=(), quantiles=())
        self.model = NumberModel(config, dimension, targets, outputs=targets * len(losses))
        self.totals = np.zeros((targets, len(losses), 4))
        """Sums of pinball losses, of those of calibrated ends, how many targets lay below, how many
        there were."""

    def predict(self, X: Floats) -> Floats:
        """(n, Q): quantiles of rows (n, d), each as the next one; changes nothing."""
        pasts = np.tile(self.model.core.past_row(), (len(X), 1))
        outputs = self.model.predict_rows(X, pasts, 0.05)[:, ::3]
        return np.sort(outputs.reshape(len(X), *self.totals.shape[:2]), axis=2)

    def learn(self, X: Floats, targets: Floats, quantiles: Floats, conformal: Floats) -> None:
        """Learn a row (1, d), (1, K); score its quantiles and calibrated ends (K, Q)."""
        y, levels = targets.T, np.array(self.levels)
        scored = ~np.isnan(quantiles + y)
        for column, ends in enumerate((quantiles, conformal)):
            # level * (y - q) above a quantile q, (1 - level) * (q - y) below
            losses = np.maximum(levels * (y - ends), (levels - 1.0) * (y - ends))
            self.totals[..., column] += np.where(scored, losses, 0.0)
        self.totals[..., 2] += scored & (y <= quantiles)
        self.totals[..., 3] += scored
        self.model.update(X, np.repeat(targets, len(self.levels), axis=1), 0.05)

    def scores(self) -> tuple[QuantileScore, ...]:
        """How good the quantiles were, by level."""
        sums, counts = self.totals[..., :3], self.totals[..., 3:]
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        scores = []
        for i, level in enumerate(self.levels):
            parts = (counts[:, i, 0].astype(int), *means[:, i].T)
            scores.append(
                QuantileScore(level, *(part if len(part) > 1 else part[0].item() for part in parts))
            )
        return tuple(scores)

    def describe(self) -> tuple[Json, Arrays]:
        """The model and the totals, as JSON data and arrays."""
        return describe_parts({"model": self.model, "totals": self.totals})

    def restore(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        """Continue, with nothing learned so far, from what `describe` returned."""
        reading.restore({"model": self.model, "totals": self.totals}, header, arrays)
        check_finite({"totals": self.totals}, ())
        for count in self.totals[..., 3].flat:
            whole_number(count, 0, self.model.rows, "quantiles")


# --- classes --------------------------------------------------------------------------------------


class ClassModel(Model):
    """The model for targets that are classes, numbered from 0.

    Two classes: one output with labels of -1 and 1. More: one per class, against the rest. All
    classes are outputs of one bank, if they see the same row. With lagged targets or seasons they
    do not, since these are labels for the class: then each has a bank with one output.

    The squared loss on labels of -1 and 1 has the conditional mean as its best function. A logistic
    curve that is fitted online turns the score of two classes into a probability (Platt 1999), a
    softmax that is fitted online the scores of more classes.
    """

    target_count = 1
    core: _core.ClassModel
    core_type = _core.ClassModel

    def __init__(
        self, config: AutoConfig, dimension: int, classes: int, previous: int | None = None
    ) -> None:
        self.classes = classes
        super().__init__(config, dimension, 0, previous)

    # --- outputs --------------------------------------------------------------------------------

    @property
    def outputs_needed(self) -> int:
        """How many outputs this many classes need."""
        return {0: 0, 1: 0, 2: 1}.get(self.classes, self.classes)

    @property
    def outputs_per_bank(self) -> tuple[int, ...]:
        needed = self.outputs_needed
        if not needed:
            return ()
        return (needed,) if self.config.one_bank else (1,) * needed

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
        if self.banks and self.config.one_bank and self.rows < self.config.restarts[-1]:
            self.use_banks([])  # one with all outputs learns all rows so far
            self.start_groups(2.0 * START)
            self._add_outputs()
        else:
            if self.outputs == 1 and self.outputs_needed > 1:  # so far it was that of class 1
                self._add_output(0)
            self._add_outputs()
            if not self.pool.fits(self.selection.running, START):
                self.revise_slots()
        self.warn_if_large()

    def _add_outputs(self) -> None:
        """Add the outputs that are missing."""
        while self.started and self.outputs < self.outputs_needed:
            if self.config.one_bank and not self.banks:
                self.use_banks([self._trained_bank(0, self.outputs_needed)])
            else:
                self._add_output(self.outputs)
        if self.core.scores < self.outputs:
            self.core.grow_scores(self.outputs)

    def _add_output(self, number: int) -> None:
        """Add the output of the class of this number, before those of later classes."""
        banks = list(self.banks)
        if self.config.one_bank:
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
            scaled = self.scaling.statistics.scale_rows(X, pasts)
            rows = self.core.with_labels(scaled, pasts, int(positives[0]))
            self.replay(bank, rows, output_labels(targets[:, 0], positives))
        return bank

    def _trained_output(self, bank: KernelBank, positive: int) -> KernelBank:
        """What the output of one more class has learned of the rows that are kept."""
        X, pasts, targets, *_ = self.core.latest()
        count = min(len(X), bank.samples)
        chosen = np.arange(len(X) - count, len(X))
        rows = self.scaling.statistics.scale_rows(X[chosen], pasts[chosen])
        output = bank.new_output(bank.samples - count)
        labels = output_labels(targets[chosen, 0], np.array([positive]))
        self.replay(output, rows, labels, chosen)
        return output

    # --- predicting and learning ----------------------------------------------------------------

    def _make_record(self, outputs: Floats, weights: Floats, slots: Floats | None) -> Record:
        record = {"probabilities": outputs, "weights": weights[:, 0]}
        if slots is not None and slots.shape[1]:
            record |= {"slot_predictions": slots[:, 0].copy(), "slot_classes": _slot_classes(slots)}
        elif slots is not None:  # there is no bank yet
            best = best_class(outputs).astype(np.float64)
            zeros = np.zeros((len(outputs), slots.shape[-1]))
            record |= {"slot_predictions": zeros, "slot_classes": zeros + best[:, None]}
        return record

    def _start_banks(self) -> None:
        self.core.start_scores(0)
        self._add_outputs()

    def replay_samples(self, most: int = REPLAY) -> tuple[Floats, Floats] | None:
        if not (self.previous and self.banks):
            return None
        X, pasts, targets = (array[-most:] for array in self.core.latest()[:3])
        labels = output_labels(targets[:, 0], self._positives())
        return self.scaling.statistics.scale_rows(X, pasts), labels


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
    return np.asarray(np.argmax(scores, axis=1), dtype=np.float64)


# --- the record of a run --------------------------------------------------------------------------

FIELDS: dict[str, tuple[str, ...]] = {
    "regression": (
        *("predictions", "lower", "upper"),
        *BY_HORIZON,
        *("quantiles", "weights", "slot_predictions"),
    ),
    "classification": (
        *("predictions", "probabilities"),
        *("weights", "slot_predictions", "slot_classes"),
    ),
}
"""The arrays that a run can record, by task."""


class AutoTrace(Trace):
    """The record of a run of an `AutoBank`: beside the arrays of `Trace`, without costs, these.

    Arrays of length n:

    - predictions: of a number made before it was known; for classes, their labels
    - lower, upper: the interval of the coverage given to `run`, for regression

    Arrays (n, H), one column per horizon (`AutoBank(horizons=...)`):

    - forecasts, forecast_lower, forecast_upper: row n holds those made after sample n was learned;
      `horizons` says how many rows ahead. NaN where known inputs of later rows were not given

    Arrays (n, Q), one column per level (`AutoBank(quantiles=...)`):

    - quantiles: of the target, made before it was known; (n, K, Q) for several targets

    Arrays (n, classes):

    - probabilities, columns in the order of `classes`

    Arrays (n, P), one column per slot, in the order of `names`:

    - weights; with more than two classes, those of the first class
    - slot_predictions: of every slot alone, in the target's units; for classes the scores of the
      first class, or of the second of two: positive for it
    - slot_classes: the index in `classes` that every slot alone would have predicted, -1 before the
      first label was known

    >>> import numpy as np, kernelbank as kb
    >>> X = np.arange(40.0)
    >>> bank = kb.AutoBank("classification", size="small")
    >>> trace = bank.run(X, np.where(X % 2, "odd", "even"))
    >>> list(trace.to_frame())
    ['predictions', 'probabilities: even', 'probabilities: odd']
    """

    lower: Floats
    upper: Floats
    forecasts: Floats
    forecast_lower: Floats
    forecast_upper: Floats
    quantiles: Floats
    probabilities: Floats
    slot_classes: Floats
    by_slot = (*BY_SLOT, "slot_classes")
    _output = "target"

    def __init__(
        self,
        model: Model,
        records: Sequence[Record],
        fields: tuple[str, ...],
        labels: ClassLabels,
        target_names: Sequence[str],
        forecasts: Mapping[str, Floats] | None = None,
    ) -> None:
        """The trace of consecutive records.

        forecasts : of a run, not of a single row.

        Where no class was known yet, the predicted label is None, and probabilities are NaN.
        """
        self.task = "regression" if model.targets else "classification"
        self.possible = FIELDS[self.task]
        self.classes: tuple[Any, ...] = tuple(labels.labels)
        """The labels, in the order of the columns of `probabilities`."""
        self.horizons = () if forecasts is None else model.config.horizons
        """Of the columns of `forecasts`, in rows."""
        self.levels = () if forecasts is None else model.config.quantiles
        """Of the columns of `quantiles`."""
        arrays: dict[str, np.ndarray] = {
            name: _stack(record[name] for record in records)
            for name in fields
            if name in records[0]
        }
        samples = sum(len(next(iter(record.values()))) for record in records)
        if not model.targets and "predictions" in fields:
            numbers = np.concatenate([best_class(record["probabilities"]) for record in records])
            arrays["predictions"] = labels.array(numbers)
        arrays |= {name: array for name, array in (forecasts or {}).items() if name in fields}
        super().__init__(
            samples,
            tuple(model.names),
            fields,
            arrays=arrays,
            outputs=max(len(target_names), 1),
            target_names=target_names if len(target_names) > 1 else (),
        )

    def _columns(self) -> dict[str, list[tuple[str, ...]]]:
        columns = super()._columns()
        columns["probabilities"] = [tuple(map(str, self.classes))]
        levels = tuple(f"{level:g}" for level in self.levels)
        columns["quantiles"] = [*columns.get("quantiles", []), levels]
        ahead = [tuple(f"+{horizon}" for horizon in self.horizons)]
        return columns | dict.fromkeys(BY_HORIZON, ahead)


def trace_fields(record: object, config: AutoConfig) -> tuple[str, ...]:
    """The fields that `record` asks for, in their usual order, of those that a bank has."""
    unused = [
        *(() if config.horizons else BY_HORIZON),
        *(() if config.quantiles else ["quantiles"]),
    ]
    possible = tuple(name for name in FIELDS[config.task] if name not in unused)
    fields = chosen_fields(record, possible, AutoTrace.by_slot)
    if not fields:
        remedy = 'Use "all", "light" (no array with one column per slot), or a list of names.'
        raise check.refuse("record", "name at least one field", record, remedy)
    return fields


def _stack(records: Iterable[Floats]) -> Floats:
    """Parts one after the other; classes that appear later have probability 0 before.

    Where no class was known, there are no probabilities: NaN.
    """
    parts = list(records)
    if parts[0].ndim != 2:
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    wide = [np.full((len(part), width), 0.0 if part.shape[1] else np.nan) for part in parts]
    for rows, part in zip(wide, parts, strict=True):
        rows[:, : part.shape[1]] = part
    return np.concatenate(wide)

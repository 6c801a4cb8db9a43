"""`TaskModel`: predict a batch, update with a batch. What both tasks of an AutoBank share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import LargeModel
from ..native.phases import Phase
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from ..utils.whole_steps import warn_after_step
from . import change_detection as detection
from .change_detection import Change
from .config import AutoConfig
from .model_parts.past_targets import PastTargets
from .model_parts.replay_buffer import ReplayBuffer
from .model_parts.running_slots import RunningSlots
from .model_parts.single_row import SingleRowCalls
from .model_parts.single_row_steps import copy_weights, keep_row
from .prediction import Prediction, Record
from .scaling.scaling import Scaling
from .scaling.scaling_batch import CHUNK

RESTARTS = (5, 32, 128)
"""After these numbers of rows, scaling and banks start anew from all rows so far: what was learned
while the running statistics still moved does not fit the later ones."""

LARGE_MODEL = 500_000_000
"""Bytes of a model's file beyond which it warns, once."""


class ModelBatch:
    """Arrays for up to CHUNK rows, and compiled phases on them and on the state of a model.

    The phases get the addresses of all arrays once. Rows are copied in, a phase runs, and the
    results are copied out.
    """

    def __init__(self, model: Any) -> None:
        self.errors = np.zeros(CHUNK)
        self.weights = np.zeros((CHUNK, len(model.pool)))
        self.error_signals = np.zeros(CHUNK, dtype=np.int64)
        self.weight_signals = np.zeros(CHUNK, dtype=np.int64)
        self.detect_changes = Phase(
            detection.detect_rows,
            slots=len(model.pool),
            limit=detection.FALSE_ALARM_ROWS,
            stats=model.detection_stats,
            ring=model.recent_errors,
            mean_weights=model.mean_weights,
            errors=self.errors,
            weights=self.weights,
            error_signals=self.error_signals,
            weight_signals=self.weight_signals,
        )

    def copy_weights(self, model: TaskModel) -> Phase:
        """A phase that writes the weights of the first output to row 0."""
        source = model.banks[0]._runtime.leader.weights
        return Phase(
            copy_weights,
            running=len(source),
            slots=len(model.pool),
            source=source,
            members=model.members,
            out=self.weights,
        )


class TaskModel(PastTargets, RunningSlots, ABC):
    """Predicts, and learns from targets, for inputs of a known width.

    There is one path: `predict` a batch, which changes nothing, and `update` with a batch, which
    predicts each row before it learns the row. A single row is a batch of one. The result does not
    depend, in any bit, on how a stream is cut into batches.
    """

    def __init__(
        self, config: AutoConfig, dimension: int, *, scale_target: bool, replay: int | None
    ) -> None:
        """`replay` : how many of the newest rows new banks start from, at any time; None if banks
        are new at restarts only."""
        PastTargets.__init__(self, config, dimension)
        RunningSlots.__init__(self)
        self.dimension = dimension
        self._scale_target = scale_target
        self._replay_rows = replay
        self.buffer = self._make_buffer()
        self.unscored = 0
        """How many predictions were made before the first target was known: they do not count."""
        self.changes: list[Change] = []
        self._calls: SingleRowCalls | None = None
        self._large = False
        """Whether there was a warning that the model is large."""
        self.detection_stats = np.zeros(detection.STATS)
        self.recent_errors = np.zeros(detection.RECENT_ERRORS)
        self.lay_out(dimension)

    def _make_buffer(self) -> ReplayBuffer:
        rows, until = (self._replay_rows, np.inf)
        if rows is None:
            rows = until = RESTARTS[-1]
        return ReplayBuffer(rows, self.dimension, self.past, until, self.target_count)

    def use_previous(self, count: int) -> None:
        """Before anything is learned: let rows know this many inputs of the row before."""
        self.previous = count
        self.past = self.past_size(self.config)
        self.lagged = np.full(self.past, np.nan)
        self.buffer = self._make_buffer()

    @cached_property
    @abstractmethod
    def _batch(self) -> ModelBatch:
        """The arrays of a batch; made when first needed, and anew after `_drop_batch`."""

    def _drop_batch(self) -> None:
        """To be called when an array of the state, whose address the phases know, is a new one."""
        self.__dict__.pop("_batch", None)
        self._calls = None

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but what holds the addresses of arrays."""
        kept = {name: value for name, value in self.__dict__.items() if name != "_batch"}
        return kept | {"_calls": None}

    # --- what the tasks do differently ----------------------------------------------------------

    @abstractmethod
    def predict(self, X: Floats, lagged: Floats, tail: float) -> Prediction:
        """Predict rows (n, d) with their lagged targets (n, lags); changes nothing.

        tail : probability beyond each end of the intervals.
        """

    @abstractmethod
    def record(self, prediction: Prediction) -> Record:
        """A prediction as rows of a trace."""

    @abstractmethod
    def as_target(self, prediction: Prediction) -> float:
        """The prediction of a batch of one as a target, for forecasts that go on from it."""

    @abstractmethod
    def _chunk_allowed(self, target: Any) -> bool:
        """Whether the next row, which has this target, may be learned together with others."""

    @abstractmethod
    def _update_chunk(
        self, X: Floats, targets: Floats, tail: float, fields: Collection[str]
    ) -> Record:
        """Predict and learn the first rows, at least one; the predictions of as many as were."""

    @abstractmethod
    def _update_row(self, x: Floats, target: Any, prediction: Prediction) -> None:
        """Learn one row, whose prediction was made now or some rows ago."""

    def one_target(self, target: Any) -> Any:
        """The target of one row: a number."""
        return float(target)

    def is_plausible(self, held: int) -> bool:
        """Whether statistics from a file can be those of a stream with `held` targets held back."""
        return self.scaling.is_plausible(held)

    @property
    def core(self) -> int:
        """How many inputs there were at the start of the banks."""
        return self.scaling.core

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input."""
        return self.scaling.input_ranges()

    def input_statistics(self) -> Floats:
        """(inputs, STATS): the running statistics of every input; see `running_stats`."""
        return self.scaling.columns

    @abstractmethod
    def restart(self) -> None:
        """Start scaling and banks anew from the rows in the replay buffer."""

    # --- learning -------------------------------------------------------------------------------

    def update(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        fields: Collection[str] = (),
        past: Prediction | None = None,
    ) -> list[Record]:
        """Predict and learn the rows of a batch in their order; the predictions, in pieces.

        Parameters
        ----------
        X, targets : (n, d) and (n,); (n, K) for several targets.
        tail : probability beyond each end of the intervals.
        fields : which arrays of a trace will be read.
        past : for a batch of one, the prediction that was made for it some rows ago (its target is
            delayed) or before its class was known. It is scored, and slots are judged by it; the
            result is empty.
        """
        if past is not None:
            self._update_row(X[0], self.one_target(targets[0]), past)
            self._restart_if_due()
            return []
        records: list[Record] = []
        done = 0
        while done < len(X):
            if self._chunk_allowed(targets[done]):
                end = done + min(CHUNK, self._rows_to_restart())
                found = self._update_chunk(X[done:end], targets[done:end], tail, fields)
            else:
                row = X[done : done + 1]
                prediction = self.predict(row, self.past_row(), tail)
                found = self.record(prediction)
                self._update_row(row[0], self.one_target(targets[done]), prediction)
            records.append(found)
            done += len(found["weights"])
            self._restart_if_due()
        return records

    def _restart_if_due(self) -> None:
        if self.rows in RESTARTS:
            self.learn_relevance()
            self.restart()
            self.warn_if_large()
        if self.seasons is not None and self.seasons.is_due(self.rows):
            self._find_seasons()
        self._revise_if_due()

    def _revise_if_due(self) -> None:
        if self.revise_slots(self.rows):
            self._drop_batch()
            self.warn_if_large()

    def _rows_to_restart(self) -> int:
        """How many rows may be learned at most before a restart may be due."""
        ends = [n - self.rows for n in RESTARTS if n > self.rows]
        if self.seasons is not None and self.seasons.automatic:
            ends.append(self.seasons.rows_to_look(self.rows))
        return min([*ends, self.rows_to_revision(self.rows)])

    def _count_rows(self, X: Floats, lagged: Floats, targets: Floats, predicted_at: Any) -> None:
        """Count learned rows, keep them for restarts, and let their targets be the lagged ones."""
        self.rows += len(X)
        self.buffer.append(self.rows, X, lagged, targets, predicted_at)
        self.add_rows(X, targets)

    def collect_forecasts(self, rows: Floats, tail: float) -> None:
        """Begin to collect forecasts; see `Forecasting`."""

    def collected_forecasts(self) -> dict[str, Floats]:
        """The forecasts since, as arrays of a trace."""
        return {}

    # --- seasons --------------------------------------------------------------------------------

    def _find_seasons(self) -> None:
        """Look for periods; if there are new ones, the slots for seasons start anew with them."""
        assert self.seasons is not None
        new = self.seasons.find(self.rows, classes=not self._scale_target)
        if not new:
            return
        for period in new:
            self.note_change("season", self.rows, period=period)
        if self.banks:
            scaling = self._make_scaling(self.dimension, self.core)
            scaling.continue_from(self.scaling)
            self.scaling = scaling
            self.continue_with_seasons()
            self._drop_batch()
        else:
            self.lay_out(self.dimension)

    def finish_plain_row(self, calls: SingleRowCalls, target: float) -> None:
        """What seasons and revisions need after a row was learned by a compiled call."""
        if self.seasons is not None:
            self.seasons.append_one(self.rows, target)
            if self.seasons.is_due(self.rows):
                self._find_seasons()
        self._revise_if_due()

    @property
    def started(self) -> bool:
        """Whether the first restart is over: scaling has begun, and there may be banks."""
        return self.rows >= RESTARTS[0]

    # --- single rows ----------------------------------------------------------------------------

    @abstractmethod
    def _make_row_calls(self) -> SingleRowCalls:
        """The compiled calls for one row."""

    def row_calls(self) -> SingleRowCalls | None:
        """The compiled calls for one row; None before all restarts are over, or if there are none.

        They belong to the batch, and are made anew with it.
        """
        if self._calls is None and self.rows >= RESTARTS[-1] and self.banks:
            runtimes = [bank._runtime for bank in self.banks]
            if all(runtime.single_sample_calls is not None for runtime in runtimes):
                with defer_signals():
                    self._calls = self._make_row_calls()
        return self._calls

    def _keep_row(self, targets: Floats) -> Phase:
        """A phase that puts row 0 of a batch with these targets into the replay buffer."""
        rows, buffer = self.scaling.batch, self.buffer
        return Phase(
            keep_row,
            inputs=self.dimension,
            past=self.past,
            size=buffer.size,
            rows=self.row_count,
            x=rows.X,
            lagged=rows.lagged,
            targets=targets,
            **buffer.state(),
        )

    def finish_row(self, calls: SingleRowCalls) -> None:
        """What Python has to do after a row was learned by a compiled call."""
        if calls.has_signals:
            self._note_signals(self.rows, 1)
            for _, column in self.scaling.new_levels(1):
                self.note_change("input level", self.rows, column)
        for bank in self.banks:
            bank._runtime.check_diagnostics()

    def last_prediction(self) -> tuple[Floats, Prediction]:
        """The row that a compiled call predicted last, and its prediction."""
        calls = self._calls
        assert calls is not None
        slots = self.spread(calls.last_slots[:, None], np.nan).copy()  # (banks, 1, slots)
        if self._scale_target:
            mean, sd = calls.last_scale
            slots *= sd
            slots += mean
        prediction = Prediction(
            self.rows,
            calls.last_lagged[None].copy(),
            calls.last_scores[None].copy(),
            slots,
            calls.last_output[None].copy(),
        )
        return calls.last.copy(), prediction

    # --- signals of change ----------------------------------------------------------------------

    def note_change(self, what: str, row: int, column: int = -1, period: int = 0) -> None:
        """Add a signal of change. They stay sorted by row, whatever the batches."""
        insort(self.changes, Change(row, what, column, period))
        del self.changes[: -detection.MAX_CHANGES]

    def _note_signals(self, first: int, count: int) -> None:
        """Note what `detect_rows` has found in the batch.

        first : the number of the first of its rows, from 1 on.
        """
        batch = self._batch
        signals = (batch.error_signals[:count].tolist(), batch.weight_signals[:count].tolist())
        for row, (error, weights) in enumerate(zip(*signals, strict=True), first):
            if error:
                self.note_change("error grew" if error > 0 else "error fell", row)
            if weights:
                self.note_change("weights", row)

    # --- columns and banks ----------------------------------------------------------------------

    def lay_out(self, core: int) -> None:
        """Choose scaling and slots for the present inputs, of which some beyond `core` are new."""
        self.scaling = self._make_scaling(self.dimension, core)
        self.lay_out_slots()
        self._drop_batch()

    def _make_scaling(self, dimension: int, core: int) -> Scaling:
        periods = 0 if self.seasons is None else len(self.seasons.periods)
        target = self._scale_target
        past = {"remembered": self.remembered, "previous": self.previous} if self.previous else {}
        return self.config.make_scaling(dimension, core, target=target, periods=periods, **past)

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        dimension = self.dimension + count
        core = self.core if self.banks else dimension
        scaling = self._make_scaling(dimension, core)
        scaling.continue_from(self.scaling)
        pool = self.make_pool(scaling)
        slots = pool.bank_slots(self.members.tolist())
        self.banks = [bank.with_inputs(scaling.width, slots) for bank in self.banks]
        self._spare_banks = []
        self.dimension = dimension
        self.buffer.add_inputs(count)
        if self.banks:
            self.scaling = scaling
            self._use_pool(pool)
            self._drop_batch()
        else:
            self.lay_out(dimension)
        self.warn_if_large()

    def warn_if_large(self) -> None:
        """Warn once when the banks, and so their file, are larger than LARGE_MODEL."""
        if self._large or not self.banks:
            return
        size = len(self.banks) * self.banks[0]._runtime.state_bytes(self.scaling.width)
        if size > LARGE_MODEL:
            self._large = True
            classes = f"{self.outputs} classes and " if self.outputs > 1 else ""
            inputs = f"{self.dimension} input{'' if self.dimension == 1 else 's'}"
            warn_after_step(
                LargeModel,
                f"the model is large: {size / 1e6:,.0f} MB for {classes}{inputs}, "
                "as a file, and a little more in memory. Fewer classes or inputs, or "
                'size="small", make it smaller.',
            )

    def _drop_banks(self) -> None:
        """Drop all banks before a restart, which takes up all inputs there are by now."""
        self._drop_batch()
        self._spare_banks, self.banks = self.banks, []
        if self.core < self.dimension:
            self._spare_banks = []
            self.lay_out(self.dimension)

    # --- saving ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """The arrays that the next prediction depends on, without those of the banks."""
        own = {
            "lagged": self.lagged[: self.remembered * self.target_count],
            "detection_stats": self.detection_stats,
            "recent_errors": self.recent_errors,
            "mean_weights": self.mean_weights,
        }
        if self.previous:
            own["last_inputs"] = self.last_inputs
        own |= self.buffer.state()
        if self.seasons is not None:
            own |= self.seasons.state()
        return own | {f"scaling/{name}": a for name, a in self.scaling.state().items()}

    def counters(self) -> dict[str, Any]:
        """The rest of the state, as plain data."""
        changes = [list(change) for change in self.changes]
        own = {} if self.seasons is None else self.seasons.counters()
        own["units"] = self.units.counters()
        return {"rows": self.rows, "unscored": self.unscored, "changes": changes} | own

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        """Continue from what `state` and `counters` returned; shapes have been checked."""
        for name, array in self.state().items():
            array[...] = state[name]
        self.units.restore(counters["units"])
        self._use_members()
        self.rows = int(counters["rows"])
        self.unscored = int(counters["unscored"])
        changes = counters["changes"]
        self.changes = [
            Change(int(row), str(what), *map(int, rest)) for row, what, *rest in changes
        ]

"""The runtime of a bank: opens with the first sample, runs blocks, undoes failed ones, predicts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from ..kernels.sample_buffer import ArraySpec, SampleBlock
from ..learners import Learner
from ..native.phases import Phase, Phases
from ..native.progress import progress
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from . import bank_cost, slot_metrics
from .delayed import past_predictions_phase
from .diagnostics import Diagnostics
from .engines.base import CombineStage, Executor, output_block_length
from .gating import Gate
from .ledger import Ledger
from .settings import BankSettings
from .shard import Shard
from .single_sample import DECLINED, DIAGNOSE, SingleSampleCalls
from .trace import Trace

_LARGEST_SUM = 1e300
"""Sums of weights beyond this count as this."""


class Runtime:
    """Everything that changes while a bank learns, and the code that changes it.

    It is closed until the first sample, which says how many columns the inputs have. Then it makes
    the workspace and, by the engine, an executor with the state of the slots.
    """

    def __init__(
        self, settings: BankSettings, leader: Runtime | None = None, output: int = 0
    ) -> None:
        """`leader`: the runtime of the bank's first output, for another output.

        It is opened first, and works first on each block and query.
        """
        self._leader = leader
        self._output = output
        self._objective = settings.objective
        self._layout = settings.layout
        self._combiner = settings.combiner
        self._engine = settings.engine
        self._settings = settings
        self._columns = self._layout.columns(list(self._layout.leaves))
        self.weights = settings.first_weights()
        """(P,): the weights of the next prediction; written in place."""
        self.ledger = Ledger(
            settings.objective,
            len(settings.slots),
            settings.combiner.on_simplex,
            self.dropped,
            settings.history,
        )
        self.weight_sums = None if settings.dictionary is None else np.zeros(len(settings.slots))
        """(P,), for a bank whose slots are revised: sums of |weight| since the last revision."""
        self.diagnostics = Diagnostics(settings.slots, settings.loss)
        self.dimension: int | None = None
        """Columns of the inputs; None while the runtime is closed."""
        self.busy = False
        """Whether a block or query that may call a user's function is running."""
        self.workspace: Workspace
        self.executor: Executor
        self._was_reset = False
        self._known_specs: dict[Any, dict[str, ArraySpec]] = {}
        """What `array_specs` has found before, for the outputs that this one leads too."""
        self._single: SingleSampleCalls | None = None
        self._gate: Gate | None = None

    @property
    def leader(self) -> Runtime:
        """The runtime of the bank's first output."""
        return self if self._leader is None else self._leader

    @property
    def is_open(self) -> bool:
        """Whether a sample has been learned, or a state restored."""
        return self.dimension is not None

    @property
    def is_ready(self) -> bool:
        """Whether it is open, and no reset was the last that happened to it."""
        return self.is_open and not self._was_reset

    # --- opening --------------------------------------------------------------------------------

    def open(self, first_input: Floats) -> None:
        """Make workspace and executor, unless they exist; start again after a reset.

        With an initial function the state at the start must not depend on who opens: its first
        point takes the place of the first input.
        """
        if self._settings.initial is not None:
            first_input = self._settings.initial.points[0]
        if not self.is_open:
            with defer_signals():  # compiling must not be interrupted: LLVM does not survive it
                Phases([]).run(0, 0)
                self._make(first_input)
                self.dimension = len(first_input)
            progress.finished()
        elif self._was_reset:
            self.executor.start(first_input)
            self._was_reset = False

    def _make(self, first_input: Floats) -> None:
        objective, layout, combiner = self._objective, self._layout, self._combiner
        slots, dimension = len(layout.slots), len(first_input)
        leader, outputs = self._leader, self._settings.outputs
        self.workspace = Workspace(
            objective,
            self.block_length(dimension, outputs) if leader is None else leader.workspace.size,
            dimension,
            slots,
            len(layout.leaves),
            needs=combiner.needs,
            workers=self._engine.workers,
            outputs=outputs,
            output=self._output,
            leader=None if leader is None else leader.workspace,
        )
        self._combiner_state = {n: np.zeros(s) for n, s in combiner.shapes(slots).items()}
        self._query_prediction = np.zeros(1)
        self._was_reset = False
        shared = leader.executor if leader is not None and self._engine.shares_outputs else None
        self.executor = self._engine.open(objective, layout, self.workspace, first_input, shared)
        stage = self._combine_stage()
        self.executor.connect(stage)
        parts: list[Any] = [objective.loss, *(slot.kernel for slot in layout.slots)]
        own = [callback for part in parts for callback in part.callbacks]
        choosing = (*stage.choose_weights.callbacks, *stage.combine_query.callbacks)
        self._callbacks = (*dict.fromkeys(own), *self.executor.callbacks, *choosing)
        in_python = any(
            type(group.learner).learn is not Learner.learn and group.learner.saveable
            for group in layout.groups
        )
        # Models behind an Adapter raise into it, and never make a block fail.
        self._snapshot_models = bool(own or choosing or in_python)
        self._single = None
        phases = self.executor.single_sample_phases()
        plain_checks = not self._settings.restricted_kernels  # which compiled code can do
        if plain_checks and phases is not None and not self._callbacks and outputs == 1:
            self._single = SingleSampleCalls(
                *phases, objective, self.ledger, self.workspace, self._query_prediction
            )

    def plain_phases(self) -> tuple[Phases, Phases] | None:
        """The phases of a block and of a query, if nothing but these phases has to run."""
        found = self.executor.single_sample_phases()
        return None if found is None or self._callbacks else (found[0], found[2])

    def block_length(self, dimension: int, outputs: int) -> int:
        """The longest block with that many columns of inputs and outputs."""
        length = self._engine.length(self._layout, self._objective, dimension)
        if outputs == 1:
            return length
        parts = (self._layout, self._objective, dimension, outputs)
        return min(length, output_block_length(*parts))

    def _combine_stage(self) -> CombineStage:
        """The phases that run once for all slots."""
        workspace, combiner, ledger = self.workspace, self._combiner, self.ledger
        state, weights = self._combiner_state, self.weights
        slots, leaves = len(self._layout.slots), len(self._layout.leaves)
        append_targets, add_slot_costs, charge_bank = ledger.phases(workspace, leaves)
        propose_weights = Phase(
            bank_cost.propose_weights,
            slots=slots,
            on_simplex=int(combiner.on_simplex),
            weights=weights,
            chosen=workspace.chosen,
            gates=int(combiner.gates),
            slot_predictions=workspace.slot_predictions,
            proposed=workspace.proposed,
        )
        combine_query = Phase(
            slot_metrics.combine_query,
            slots=slots,
            columns=self._columns,
            on_simplex=int(combiner.on_simplex),
            weights=workspace.query_weights if combiner.gates else weights,
            scratch=np.zeros(slots),
            slot_values=workspace.slot_values,
            out=self._query_prediction,
        )
        self._gate = None
        gating: list[Phase] = []
        if combiner.gates:
            self._gate = Gate(combiner, state, workspace, self._query_variance)
            gating.append(self._gate.phase())
        summed = copy.copy(workspace)  # as if there were one leaf, which holds the sums of all
        summed.sums = np.zeros((1, *workspace.sums.shape[1:]))
        return CombineStage(
            prepare=Phases([past_predictions_phase(self._objective, workspace), append_targets]),
            choose_weights=Phases(combiner.phases(self._objective, workspace, state, weights)),
            propose_weights=Phases([propose_weights]),
            add_slot_costs=Phases([add_slot_costs]),
            charge_bank=Phases([charge_bank]),
            charge_bank_from_totals=Phases([ledger.phases(summed, 1)[2]]),
            combine_query=Phases([*gating, combine_query]),
            leaf_totals=summed.sums[0],
            weights=weights,
            slot_totals=ledger.totals,
            qp_terms=state["qp_terms"] if combiner.supports_distributed_qp else None,
        )

    def open_for_queries(self) -> None:
        """Open before the first sample if there is something to predict with."""
        if self._settings.initial is not None:
            self.open(self._settings.initial.points[0])

    # --- learning -------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any) -> bool:
        """Learn (x, y) by one compiled call if they are plain floats; False if they are not."""
        if self._single is None or self._was_reset:
            return False
        result = self._single.learn(x, y)
        if self.weight_sums is not None and result != DECLINED:
            self._add_weights(1)
        if result == DIAGNOSE:
            self.check_diagnostics()
        return result != DECLINED

    def iter_blocks(self, X: Floats, y: Floats, recorded: tuple[str, ...]) -> Iterator[SampleBlock]:
        """The samples in blocks. The executor gets them all in advance, so that it may prefetch."""
        self.open(X[0])
        blocks: list[SampleBlock] = []
        size, seen, done = self.workspace.size, self.ledger.samples, 0
        while done < len(X):
            length = size
            if self._engine.slide_aligned:
                length = min(size, SLIDE_PERIOD - (seen + done) % SLIDE_PERIOD)
            end = min(done + length, len(X))
            blocks.append(SampleBlock(seen + done, X[done:end], y[done:end]))
            done = end
        if self.weight_sums is not None:
            recorded = (*recorded, "weights")
        self.executor.prefetch(blocks, recorded)
        yield from blocks

    @property
    def calls_users_functions(self) -> bool:
        """Whether a block may call a user's function; unknown, so true, before the first one."""
        return not self.is_open or bool(self._callbacks)

    @property
    def undoes_blocks(self) -> bool:
        """Whether a block may be interrupted anywhere, and is undone then."""
        return self.is_open and self.executor.fallible and not self._callbacks

    @property
    def is_cut_off(self) -> bool:
        """Whether a block has ended in its middle."""
        return self.is_open and self.executor.is_cut_off

    def run_block(self, X: Floats, y: Floats, past_predictions: Floats | None = None) -> None:
        """Learn a block; one that fails, by a user's function or for another reason, is undone.

        past_predictions : (n, P), what the slots predicted earlier, for delayed targets.
        """
        self.open(X[0])
        first, count = self.ledger.samples, len(X)
        self.workspace.points[:count] = X
        before = self.checkpoint() if self.may_fail else None
        try:
            self.run_targets(first, y, past_predictions)
        except BaseException:
            if before is not None:
                self.undo(first, before)
            raise
        self.finish_block(first, count)

    def run_targets(
        self, first: int, targets: Floats, past_predictions: Floats | None = None
    ) -> None:
        """Learn the block whose inputs are on the workspace."""
        workspace, count = self.workspace, len(targets)
        workspace.new_targets[:count] = targets
        self.busy = bool(self._callbacks)
        try:
            if past_predictions is not None:
                workspace.past_predictions[:count] = past_predictions
                workspace.has_past_predictions[:count] = 1.0
            self.executor.run_block(first, count)
            self._raise_callback_error()
        finally:
            self.busy = False
            if past_predictions is not None:
                workspace.has_past_predictions[:count] = 0.0

    def skip_target(self, first: int) -> None:
        """Take the sample on the workspace, whose target is missing: it is not learned.

        What the slots know of the inputs alone may change, and they decay or forget as always.
        """
        workspace = self.workspace
        workspace.new_targets[0] = nan
        self.executor.skip_sample(first)
        self.ledger.skip_sample()
        values, weights = workspace.slot_predictions[:1].copy(), self.weights[None].copy()
        prediction = self._combine(weights, values)
        workspace.proposed[0] = weights[0]
        for array in (workspace.slot_cost, workspace.slot_loss, workspace.window_loss):
            array[0] = nan
        workspace.curvature[0] = nan
        self.ledger.write_skipped(workspace, float(prediction[0]))

    def finish_block(self, first: int, count: int) -> None:
        """What follows a block that was learned."""
        self._add_weights(count)
        self._diagnose(first)

    def _add_weights(self, count: int) -> None:
        """Add up the weights of a block, sample by sample: the same bits for any blocks."""
        sums = self.weight_sums
        if sums is None:
            return
        rows = np.abs(self.workspace.proposed[:count])
        if count == 1:
            sums += rows[0]
        else:
            sums[:] = np.cumsum(np.vstack([sums, rows]), axis=0)[-1]
        np.minimum(sums, _LARGEST_SUM, out=sums)

    @property
    def may_fail(self) -> bool:
        """Whether a block may fail, by a user's function or for another reason."""
        return bool(self._callbacks) or self.executor.fallible

    def checkpoint(self) -> tuple[dict[str, Floats], Any]:
        """What `undo` needs to return to this moment."""
        return self._shared_arrays(), self.executor.snapshot(models=self._snapshot_models)

    def undo(self, first: int, before: tuple[dict[str, Floats], Any]) -> None:
        """Return to a checkpoint, after the block since then, from sample `first`, has failed."""
        with defer_signals():
            if first == 0:
                self.dimension = self._single = self._gate = None  # closed again
            self._restore_shared(before[0])
            self.executor.rollback(before[1])

    def clear_weight_sums(self) -> None:
        """Begin to sum weights anew, after a revision."""
        if self.weight_sums is not None:
            self.weight_sums[:] = 0.0

    @property
    def warned(self) -> set[str]:
        """The kinds of warnings that have been given."""
        return self.diagnostics.warned

    @warned.setter
    def warned(self, kinds: set[str]) -> None:
        self.diagnostics.warned = set(kinds)

    def copy_models(self) -> dict[int, Any]:
        """Copies of the models behind slots whose state is not arrays, by leaf number."""
        return self.executor.copy_models()

    def restore_models(self, models: Mapping[int, Any]) -> None:
        """Return to what `copy_models` returned."""
        self.executor.restore_models(models)

    @property
    def query_slots(self) -> Floats:
        """(P,): the slots' predictions at the point of the last `predict_one`."""
        return self.workspace.slot_values.copy()

    def record(self, trace: Trace, row: int, count: int) -> None:
        """Write what the trace keeps of the last block, from this row on."""
        trace.write(row, self.rows(count, trace.fields))

    def rows(self, count: int, fields: Sequence[str]) -> dict[str, Floats]:
        """What a trace of these fields keeps of the last block."""
        workspace = self.workspace
        rows = self.ledger.rows(workspace, count)
        slot_rows = {
            "weights": workspace.proposed,
            "slot_cost": workspace.slot_cost,
            "slot_loss": workspace.slot_loss,
            "slot_predictions": workspace.slot_predictions,
            "curvature": workspace.curvature,
            "window_loss": workspace.window_loss,
        }
        return {name: rows[name] if name in rows else slot_rows[name][:count] for name in fields}

    @property
    def single_sample_calls(self) -> SingleSampleCalls | None:
        """The compiled calls for one sample, if there are any and nothing is in their way."""
        return None if self._was_reset else self._single

    def check_diagnostics(self) -> None:
        """Check the diagnostics after the last sample."""
        self._diagnose(self.ledger.samples - 1)

    def _diagnose(self, first: int) -> None:
        step = self.workspace.combiner_step
        self.diagnostics.check(self.ledger, self.executor, first, step)

    # --- predicting -----------------------------------------------------------------------------

    def predict_plain(self, x: Any) -> float:
        """The prediction at x by one compiled call if x is plain floats; NaN if it is not."""
        return nan if self._single is None else self._single.predict(x)

    @property
    def last_prediction(self) -> float:
        """What the last query has predicted."""
        return self._query_prediction.item()

    def predict_one(self, x: Floats) -> float:
        """The prediction at (d,) x of an open runtime. Leaves (P,) workspace.slot_values.

        What it computes about x is used again if x is learned next.
        """
        self.workspace.query_point[:] = x
        if not self._callbacks:
            self.executor.predict_query(self.ledger.samples)
            return float(self._query_prediction[0])
        self.busy = True
        try:
            with defer_signals():
                self.executor.predict_query(self.ledger.samples)
                self._raise_callback_error()
        except BaseException:
            self.executor.forget_query()
            raise
        finally:
            self.busy = False
        return float(self._query_prediction[0])

    def predict(self, X: Floats) -> Floats:
        """(n,): the predictions at the rows of X."""
        out = np.empty(len(X))
        for start in range(0, len(X), SLIDE_PERIOD):  # so that (n, P) arrays stay small
            some = X[start : start + SLIDE_PERIOD]
            wanted = self.weights if self._gate is None else np.ones(len(self.weights))
            values = self.evaluate(some, wanted)
            weights = np.repeat(self.weights[None, :], len(some), axis=0)
            if self._gate is not None:
                weights = self._gate.weights_at(some, values)
            if not np.isfinite(values[weights != 0]).all():
                values = self.evaluate(some, np.ones(len(self.weights)))
            out[start : start + SLIDE_PERIOD] = self._combine(weights, values)
        return out

    def _combine(self, weights: Floats, values: Floats) -> Floats:
        """(n,): sum_p w_p f_p; weights (n, P) of values (n, P) that are not finite become 0."""
        count, out = len(values), np.empty(len(values))
        if not np.isfinite(values[weights != 0]).all():
            slot_metrics.mask_nonfinite(
                count,
                slots=len(self.weights),
                on_simplex=self._combiner.on_simplex,
                weights=weights,
                predictions=values,
            )
        slot_metrics.combine_rows(
            count, weights=weights, values=values, columns=self._columns, out=out
        )
        return out

    def evaluate(self, X: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the rows of X, for leaves that have wanted[p] != 0."""
        self.open_for_queries()
        if not self.is_open:
            return np.zeros((len(X), len(self.weights)))
        values = self.executor.evaluate(self.ledger.samples, X, wanted)
        self._raise_callback_error()
        return values

    def variance(self, X: Floats) -> Floats:
        """(n, P): the slots' predictive variances, NaN where there is none."""
        if not self.is_open:
            return np.full((len(X), len(self.weights)), np.nan)
        variances = self.executor.variance(self.ledger.samples, X)
        self._raise_callback_error()
        return variances

    def _query_variance(self, X: Floats) -> Floats:
        return self.executor.variance(self.ledger.samples, X)

    def dropped(self) -> Floats:
        """(P,): norm^2 of all terms that each slot has dropped."""
        return self.executor.dropped() if self.is_open else np.zeros(len(self.weights))

    def evidence(self) -> dict[str, Floats]:
        """The combiner's diagnostics after the last sample."""
        shapes = self._combiner.shapes(len(self.weights))
        state = (
            self._combiner_state if self.is_open else {n: np.zeros(s) for n, s in shapes.items()}
        )
        return self._combiner.diagnostics(state, self.weights.copy())

    def _raise_callback_error(self) -> None:
        """Raise what a user's function has raised."""
        errors = [e for callback in self._callbacks if (e := callback.take_error()) is not None]
        if errors:
            raise errors[0]

    # --- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        """Copies of all arrays that the next block depends on.

        The leaves of all slots are in one order, so the arrays fit a bank on any engine.
        """
        found = self._shared_arrays()
        if self.is_open:
            found |= {f"slots/{name}": array for name, array in self.executor.state().items()}
        return found

    def changed_arrays(
        self, other: Runtime, change: Callable[[Any, Any], dict[str, Floats]]
    ) -> dict[str, Floats]:
        """The arrays of another bank, from those of this one and of the other at its start."""
        return change(self.arrays(), other.arrays())

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Continue from what `arrays` returned. The runtime is open if that one was."""
        self._restore_shared(arrays)
        if self.is_open:
            self.executor.restore(under("slots/", arrays))

    def _shared_arrays(self) -> dict[str, Floats]:
        """The arrays that do not belong to slots."""
        found = {"weights": self.weights.copy()}
        found |= {f"ledger/{name}": array for name, array in self.ledger.state().items()}
        if self.weight_sums is not None:
            found["weight_sums"] = self.weight_sums.copy()
        if self.is_open:
            found["recent"] = self.workspace.recent[: self._objective.window - 1].copy()
            found |= {f"combiner/{name}": a.copy() for name, a in self._combiner_state.items()}
        return found

    def _restore_shared(self, arrays: Mapping[str, Floats]) -> None:
        self.weights[:] = arrays["weights"]
        if self.weight_sums is not None:
            self.weight_sums[:] = arrays["weight_sums"]
        self.ledger.restore(under("ledger/", arrays))
        self.diagnostics.quarantined = len(self.ledger.quarantined)
        if self.is_open:
            self.workspace.recent[: self._objective.window - 1] = arrays["recent"]
            for name, array in under("combiner/", arrays).items():
                self._combiner_state[name][...] = array

    def array_specs(self, dimension: int | None) -> dict[str, ArraySpec]:
        """Shape and dtype of `arrays` for inputs with that many columns, without making any."""
        key = (dimension, self._objective, self._leader is None)
        known = self.leader._known_specs
        if key not in known:
            known[key] = self._array_specs(dimension)
        return known[key]

    def state_bytes(self, dimension: int) -> int:
        """The bytes of all arrays for inputs with that many columns."""
        specs = self.array_specs(dimension).values()
        return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in specs)

    def _array_specs(self, dimension: int | None) -> dict[str, ArraySpec]:
        shapes: dict[str, tuple[int, ...]] = {"weights": self.weights.shape}
        shapes |= {f"ledger/{name}": a.shape for name, a in self.ledger.state().items()}
        if self.weight_sums is not None:
            shapes["weight_sums"] = self.weights.shape
        slots: dict[str, ArraySpec] = {}
        if dimension is not None:
            shapes["recent"] = (self._objective.window - 1,)
            state = self._combiner.shapes(len(self.weights))
            shapes |= {f"combiner/{name}": shape for name, shape in state.items()}
            leader = None if self._leader is None else self._leader._objective
            slots = Shard.array_specs(self._objective, self._layout, dimension, leader)
        found: dict[str, ArraySpec] = {name: (shape, "float64") for name, shape in shapes.items()}
        return found | {f"slots/{name}": spec for name, spec in slots.items()}

    def reset(self) -> None:
        """Forget everything that was learned; the arrays stay in use."""
        self.weights[:] = self._settings.first_weights()
        self.ledger.reset()
        self.diagnostics = Diagnostics(self._layout.slots, self._objective.loss)
        if self.is_open:
            self.workspace.recent[:] = 0.0
            self.workspace.combiner_step[:] = 0.0
            for array in self._combiner_state.values():
                array[...] = 0.0
            self.executor.reset()
            self._was_reset = True
            self.open_for_queries()


def under(prefix: str, arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """The arrays whose names begin with the prefix, by the rest of their names."""
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}

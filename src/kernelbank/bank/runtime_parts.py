"""What a runtime is made of: it opens with the first sample, and fills the phases of a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.sample_buffer import ArraySpec
from ..learners import Learner
from ..native.phases import Phase, Phases
from ..native.progress import progress
from ..native.workspace import Workspace
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from . import bank_cost, slot_metrics
from .delayed import past_predictions_phase
from .diagnostics import Diagnostics
from .engines.base import CombineStage, Executor, output_block_length
from .ledger import Ledger
from .settings import BankSettings
from .single_sample import SingleSampleCalls


class RuntimeParts:
    """Everything that changes while a bank learns, and the code that changes it.

    It is closed until the first sample, which says how many columns the inputs have. Then it makes
    the workspace and, by the engine, an executor with the state of the slots.
    """

    def __init__(
        self, settings: BankSettings, leader: RuntimeParts | None = None, output: int = 0
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
        self._known_specs: dict[Any, dict[str, ArraySpec]] = {}
        """What `array_specs` has found before, for the outputs that this one leads too."""
        self._single_calls: SingleSampleCalls | None = None
        self._single_allowed = False

    @property
    def leader(self) -> RuntimeParts:
        """The runtime of the bank's first output."""
        return self if self._leader is None else self._leader

    @property
    def is_open(self) -> bool:
        """Whether a sample has been learned, or a state restored."""
        return self.dimension is not None

    # --- opening --------------------------------------------------------------------------------

    def open(self, first_input: Floats) -> None:
        """Make workspace and executor, unless they exist.

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
        shared = leader.executor if leader is not None and self._engine.shares_outputs else None
        self.executor = self._engine.open(objective, layout, self.workspace, first_input, shared)
        stage = self._combine_stage()
        self.executor.connect(stage)
        parts: list[Any] = [objective.loss, *(slot.kernel for slot in layout.slots)]
        own = [callback for part in parts for callback in part.callbacks]
        choosing = (*stage.weight_phases.callbacks, *stage.combine_query.callbacks)
        self._callbacks = (*dict.fromkeys(own), *self.executor.callbacks, *choosing)
        in_python = any(
            type(group.learner).learn is not Learner.learn and group.learner.saveable
            for group in layout.groups
        )
        # Models behind an Adapter raise into it, and never make a block fail.
        self._snapshot_models = bool(own or choosing or in_python)
        self._single_calls = None
        plain_checks = not self._settings.restricted_kernels  # which compiled code can do
        self._single_allowed = plain_checks and not self._callbacks and outputs == 1

    @property
    def single_sample_calls(self) -> SingleSampleCalls | None:
        """The compiled calls for one sample, made when first needed; None if there are none."""
        if self._single_calls is None and self._single_allowed:
            with defer_signals():
                phases = self.executor.single_sample_phases()
                self._single_allowed = phases is not None
                if phases is not None:
                    self._single_calls = SingleSampleCalls(
                        *phases,
                        self._objective,
                        self.ledger,
                        self.workspace,
                        self._query_prediction,
                    )
        return self._single_calls

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
            slot_predictions=workspace.slot_predictions,
            proposed=workspace.proposed,
        )
        combine_query = Phase(
            slot_metrics.combine_query,
            slots=slots,
            columns=self._columns,
            on_simplex=int(combiner.on_simplex),
            weights=weights,
            scratch=np.zeros(slots),
            slot_values=workspace.slot_values,
            out=self._query_prediction,
        )
        return CombineStage(
            weight_phases=Phases(
                [
                    past_predictions_phase(self._objective, workspace),
                    append_targets,
                    *combiner.phases(self._objective, workspace, state, weights),
                    propose_weights,
                ]
            ),
            cost_phases=Phases([add_slot_costs, charge_bank]),
            combine_query=Phases([combine_query]),
        )

    def dropped(self) -> Floats:
        """(P,): norm^2 of all terms that each slot has dropped."""
        return self.executor.dropped() if self.is_open else np.zeros(len(self.weights))

    def open_for_queries(self) -> None:
        """Open before the first sample if there is something to predict with."""
        if self._settings.initial is not None:
            self.open(self._settings.initial.points[0])

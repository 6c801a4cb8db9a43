"""What a bank works with from its first sample on: the workspace, the executor, and the driver's phases."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..combiners import Combiner
from ..learners import Learner
from ..losses.objective import Objective
from ..native.phases import Phase, Phases, compiled
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils.validation import Floats
from . import bank_cost as hot
from . import delayed as late
from . import slot_metrics as score
from .door import Door
from .engines import Engine
from .engines.base import CombineStage
from .layout import Layout
from .ledger import Ledger


class Work:
    """What a bank works with from its first sample on: the workspace, the executor, and the phases."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        combiner: Combiner,
        engine: Engine,
        ledger: Ledger,
        weights: Floats,
        first_input: Floats,
        *,
        plain: bool,
    ) -> None:
        slots, leaves = len(layout.slots), len(layout.leaves)
        dimension = len(first_input)
        size = engine.length(layout, objective, dimension)
        self.workspace = Workspace(
            objective,
            size,
            dimension,
            slots,
            leaves,
            values=combiner.needs_values,
            workers=engine.workers,
        )
        self.was_reset = False
        self.executor = engine.open(objective, layout, self.workspace, first_input)
        shapes = combiner.shapes(slots)
        self.memory = {name: np.zeros(shape) for name, shape in shapes.items()}
        recall, tally, charge = ledger.phases(self.workspace, leaves)
        chosen = combiner.phases(objective, self.workspace, self.memory, weights)
        propose = Phase(
            compiled(hot.propose),
            hot.PROPOSE,
            slots=slots,
            on_simplex=int(combiner.on_simplex),
            weights=weights,
            chosen=self.workspace.chosen,
            slot_predictions=self.workspace.slot_predictions,
            proposed=self.workspace.proposed,
        )
        hear = Phase(
            compiled(late.hear),
            late.HEAR,
            slots=slots,
            loss=objective.loss.value_address,
            parameters=objective.loss.parameters,
            has_past_predictions=self.workspace.has_past_predictions,
            past_predictions=self.workspace.past_predictions,
            new_targets=self.workspace.new_targets,
            slot_predictions=self.workspace.slot_predictions,
            slot_loss=self.workspace.slot_loss,
            scratch=np.zeros((3, WIDTH)),
        )
        self.blended = np.zeros(1)
        blend_one = Phase(
            compiled(score.blend_one),
            score.BLEND,
            slots=slots,
            leaves=leaves,
            columns=layout.columns(list(layout.leaves)),
            on_simplex=int(combiner.on_simplex),
            weights=weights,
            own=np.zeros(slots),
            slot_values=self.workspace.slot_values,
            out=self.blended,
        )
        whole = copy.copy(self.workspace)  # one leaf: where an engine adds the leaves up by itself
        whole.sums = np.zeros((1, *self.workspace.sums.shape[1:]))
        choose = Phases(chosen)
        driver = CombineStage(
            prepare=Phases([hear, recall]),
            choose_weights=choose,
            propose_weights=Phases([propose]),
            add_slot_costs=Phases([tally]),
            charge_bank=Phases([charge]),
            charge_bank_from_totals=Phases([ledger.phases(whole, 1)[2]]),
            combine_query=Phases([blend_one]),
            leaf_totals=whole.sums[0],
            weights=weights,
            slot_totals=ledger.totals,
            qp_terms=self.memory["qp_terms"] if combiner.supports_distributed_qp else None,
        )
        self.executor.connect(driver)
        parts: list[Any] = [objective.loss, *(slot.kernel for slot in layout.slots)]
        own = [callback for part in parts for callback in part.callbacks]
        self.callbacks = (*dict.fromkeys(own), *self.executor.callbacks, *choose.callbacks)
        in_python = [
            group.learner
            for group in layout.groups
            if type(group.learner).learn is not Learner.learn and group.learner.saveable
        ]
        # Models behind an Adapter raise into it, and never fail a block.
        self.may_fail = bool(own or choose.callbacks or in_python)
        self.guarded = bool(self.callbacks) or self.executor.fallible
        single = self.executor.single_sample_phases()
        self.door: Door | None = None
        if plain and single is not None and not self.callbacks:
            self.door = Door(*single, objective, ledger, self.workspace, self.blended)

    def check(self) -> None:
        """Raise what a user's own function has raised."""
        errors = [
            error for callback in self.callbacks if (error := callback.take_error()) is not None
        ]
        if errors:
            raise errors[0]

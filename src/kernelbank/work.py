"""What a bank works with from its first sample on: the board, the crew, and the driver's phases."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ._hot import charge as hot
from ._hot import hear as late
from ._hot import score
from ._hot.lanes import WIDTH
from ._hot.table import Phase, Phases, compiled
from ._validate import Floats
from .combiners import Combiner
from .door import Door
from .engines import Engine
from .engines.base import Driver
from .layout import Layout
from .learners import Learner
from .ledger import Ledger
from .setting import Board, Setting


class Work:
    """What a bank works with from its first sample on: the board, the crew, and the phases."""

    def __init__(
        self,
        setting: Setting,
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
        size = engine.length(layout, setting, dimension)
        self.board = Board(
            setting,
            size,
            dimension,
            slots,
            leaves,
            values=combiner.needs_values,
            workers=engine.workers,
        )
        self.was_reset = False
        self.crew = engine.open(setting, layout, self.board, first_input)
        shapes = combiner.shapes(slots)
        self.memory = {name: np.zeros(shape) for name, shape in shapes.items()}
        recall, tally, charge = ledger.phases(self.board, leaves)
        chosen = combiner.phases(setting, self.board, self.memory, weights)
        propose = Phase(
            compiled(hot.propose),
            hot.PROPOSE,
            slots=slots,
            on_simplex=int(combiner.on_simplex),
            weights=weights,
            chosen=self.board.chosen,
            slot_predictions=self.board.slot_predictions,
            proposed=self.board.proposed,
        )
        hear = Phase(
            compiled(late.hear),
            late.HEAR,
            slots=slots,
            loss=setting.loss.value_address,
            parameters=setting.loss.parameters,
            heard=self.board.heard,
            said=self.board.said,
            new_targets=self.board.new_targets,
            slot_predictions=self.board.slot_predictions,
            slot_loss=self.board.slot_loss,
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
            slot_values=self.board.slot_values,
            out=self.blended,
        )
        whole = copy.copy(self.board)  # one leaf: where an engine adds the leaves up by itself
        whole.sums = np.zeros((1, *self.board.sums.shape[1:]))
        choose = Phases(chosen)
        driver = Driver(
            prepare=Phases([hear, recall]),
            choose=choose,
            propose=Phases([propose]),
            tally=Phases([tally]),
            charge=Phases([charge]),
            charge_whole=Phases([ledger.phases(whole, 1)[2]]),
            blend=Phases([blend_one]),
            whole=whole.sums[0],
            weights=weights,
            totals=ledger.totals,
            figures=self.memory["figures"] if combiner.by_sums else None,
        )
        self.crew.prepare(driver)
        parts: list[Any] = [setting.loss, *(slot.kernel for slot in layout.slots)]
        own = [callback for part in parts for callback in part.callbacks]
        self.callbacks = (*dict.fromkeys(own), *self.crew.callbacks, *choose.callbacks)
        in_python = [
            m for m in layout.learners if type(m).learn is not Learner.learn and m.saveable
        ]
        # Models behind an Adapter raise into it, and never fail a block.
        self.may_fail = bool(own or choose.callbacks or in_python)
        self.guarded = bool(self.callbacks) or self.crew.guarded
        single = self.crew.single()
        self.door: Door | None = None
        if plain and single is not None and not self.callbacks:
            self.door = Door(*single, setting, ledger, self.board, self.blended)

    def check(self) -> None:
        """Raise what a user's own function has raised."""
        errors = [error for callback in self.callbacks if (error := callback.take()) is not None]
        if errors:
            raise errors[0]

"""What a combiner is: from the evidence of a block to the weights after each of its samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.phases import ParallelPhases, Phase, compiled
from ..native.workspace import Evidence, Workspace
from ..utils import validation as check
from ..utils.validation import Floats

State = dict[str, Floats]
Steps = list[Phase | ParallelPhases]

_ON_BOARD = (
    "new_targets",
    "recent",
    "curvature",
    "window_loss",
    "slot_cost",
    "slot_loss",
    "slot_predictions",
    "values",
    "chosen",
)


def combiner_phase(
    function: Callable[..., None], places: Any, workspace: Workspace, weights: Floats, /, **own: Any
) -> Phase:
    """A compiled phase of a rule: `own` values, and of what rules share whatever it has places for.

    Shared are the number of `slots`, the `weights` before the block, and the arrays of the workspace
    that hold targets, evidence and the `chosen` weights, by their names there.
    """
    shared = {name: getattr(workspace, name) for name in _ON_BOARD}
    shared |= {"slots": len(weights), "weights": weights}
    asked = {name: shared[name] for name in places._fields if name in shared}
    return Phase(compiled(function), places, **(asked | own))


class Combiner:
    """A rule for the weights. Subclasses are frozen dataclasses of their settings.

    The state is arrays only and belongs to the bank, so one combiner may serve many banks.
    """

    on_simplex: ClassVar[bool] = True
    """Whether the weights are non-negative and add up to one."""

    needs_values: ClassVar[bool] = False
    """Whether the rule needs every slot's values on the window (P * window numbers a sample)."""

    @property
    def supports_distributed_qp(self) -> bool:
        """Whether the weights are those of the program of `simplex_qp` on the workspace's evidence.

        Then an engine far away may find them from sums over its slots. Such a rule has `figures`,
        the program's two parts after the last sample, as all of its state.
        """
        return False

    def first_weights(self, slots: int) -> Floats:
        """The weights before any sample."""
        return np.full(slots, 1.0 / slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        """The arrays that the rule carries from block to block; all start at zero."""
        return {}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        """The work on a block: workspace.chosen from the workspace's evidence and from `weights`.

        Samples that do not depend on each other may be shared by workspace.workers phases side by side.
        By default `combine`, called back in Python.
        """

        def combine(first: int, count: int) -> None:
            evidence = workspace.evidence(first, count)
            chosen = np.asarray(self.combine(objective, evidence, state, weights.copy()))
            if chosen.shape != (count, len(weights)):
                remedy = "Give the weights after each sample of the block."
                rule = f"return weights of shape {(count, len(weights))} from combine"
                raise check.refuse("combiner", rule, chosen.shape, remedy, type(self).__name__)
            workspace.chosen[:count] = chosen

        return [Phase.from_python(combine)]

    def combine(
        self, objective: Objective, evidence: Evidence, state: State, weights: Floats
    ) -> Floats:
        """(n, P): the weights after each sample of the block, from those before it.

        A slot with infinite window_loss is out and must get no weight. The result must not
        depend on how the stream is cut into blocks.
        """
        raise NotImplementedError

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """By which figures the rule has weighed the slots last, for `KernelBank.evidence`.

        Small arrays by name, made from the state (all zero before the first sample) and the weights
        of the next proposal; new ones, so that a caller may change them. By default the state.
        """
        return {name: array.copy() for name, array in state.items()}

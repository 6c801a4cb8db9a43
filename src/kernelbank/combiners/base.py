"""What a combiner is: a rule from the evidence of a block to the weights after each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..losses.objective import Objective
from ..native.functions import NativeFunction
from ..native.phases import ParallelPhases, Phase
from ..native.workspace import Evidence, Workspace
from ..utils import validation as check
from ..utils.validation import Floats

State = dict[str, Floats]
PhaseList = list[Phase | ParallelPhases]

_WORKSPACE_ARRAYS = (
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
    function: NativeFunction, workspace: Workspace, weights: Floats, /, **own: Any
) -> Phase:
    """A compiled phase of a combiner, with its `own` arguments and the common ones it declares.

    Common arguments are the number of `slots`, the `weights` before the block, and the arrays of
    the workspace that hold targets, evidence and the `chosen` weights, under their names there.
    """
    common = {name: getattr(workspace, name) for name in _WORKSPACE_ARRAYS}
    common |= {"slots": len(weights), "weights": weights}
    declared = {name: common[name] for name in function.arguments.fields if name in common}
    return Phase(function, **(declared | own))


class Combiner:
    """A rule for the weights. Subclasses are frozen dataclasses of their settings.

    The state is arrays only and belongs to the bank, so one combiner may serve many banks.
    Subclasses override `combine`, or `phases` for a compiled rule.
    """

    on_simplex: ClassVar[bool] = True
    """Whether the weights are non-negative with sum 1."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """The extra evidence that the rule reads: "values", the slots' values on the window (window * P
    numbers per sample)."""

    accepts_missing: ClassVar[bool] = False
    """Whether samples without a target may be left out: the rule does not read sample numbers."""

    fixed_slots: ClassVar[str] = ""
    """Why a bank with this rule cannot continue with other slots, if it cannot."""

    def first_weights(self, slots: int) -> Floats:
        """The weights before the first sample."""
        return np.full(slots, 1.0 / slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        """The arrays of the state, by name. All are zero before the first sample."""
        return {}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        """The work on a block: from the workspace's evidence and `weights` to workspace.chosen.

        Independent samples may be divided among workspace.workers parallel phases. By default the
        phase calls `combine` in Python.
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
        """(n, P): the weights after each sample of the block; `weights` are those before it.

        A slot with infinite window_loss has failed and must get weight 0. The result must not
        depend on the lengths of the blocks.
        """
        raise NotImplementedError

    def change_slots(
        self, old: State, new: State, kept: Sequence[int | None], previous: Sequence[int]
    ) -> None:
        """Write the state of a bank to that of one which continues it with other slots.

        Slot i of the new bank continues slot kept[i] of the old one, or is new if that is None.
        A new slot is at first judged like slot previous[i] of the old bank. By default the axes
        over the slots, which grow by one with a slot more in `shapes`, are indexed accordingly.

        `new` has the shapes for the new slots and is all zero.
        """
        source = np.array([p if k is None else k for k, p in zip(kept, previous, strict=True)])
        slots = len(kept)
        larger = self.shapes(slots + 1)
        for name, shape in self.shapes(slots).items():
            array = old[name]
            for axis, (length, longer) in enumerate(zip(shape, larger[name], strict=True)):
                if length == longer:
                    continue
                if length != slots:
                    self._refuse_changes(f"its {name} are not one number per slot")
                array = np.take(array, source, axis=axis)
            new[name][...] = array

    def check_slot_changes(self) -> None:
        """Refuse to be the rule of a bank that continues with other slots, if it cannot."""
        if self.fixed_slots:
            self._refuse_changes(self.fixed_slots)

    def _refuse_changes(self, why: str) -> NoReturn:
        rule = f"be one that can continue with other slots ({why})"
        remedy = "Use another combiner, such as kb.combiners.Simplex or Stacking, or a new bank."
        raise check.refuse("combiner", rule, self, remedy)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """The numbers behind the last weights, for `KernelBank.evidence`.

        Small new arrays by name, made from the state (all zero before the first sample) and the
        weights of the next prediction. By default copies of the state.
        """
        return {name: array.copy() for name, array in state.items()}

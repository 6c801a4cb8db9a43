"""What a combiner is: a rule from the evidence of a block to the weights after each sample."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..losses.objective import Objective
from ..native.functions import NativeFunction
from ..native.phases import ParallelPhases, Phase
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.functions import quiet
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


@dataclass(frozen=True)
class Evidence:
    """What a combiner gets from the P slots for a block of n samples.

    Arrays are (n, P) unless stated. A slot that has become non-finite has infinite losses and costs
    from then on, and curvature 0. The arrays are read-only, and valid until the block is done.
    `values` is empty unless the combiner names it in `needs`.
    """

    first: int
    """Number of the block's first sample, counted from 0."""
    curvature: Floats
    """a_p: regularization / 2 * norm^2 after each sample."""
    window_loss: Floats
    """b_p: loss on the window after each sample is learned."""
    slot_cost: Floats
    """Cost of the slot alone, before it learns the sample."""
    slot_loss: Floats
    """Loss of the slot's prediction of the sample."""
    slot_predictions: Floats
    """f_p(x) before the sample is learned."""
    targets: Floats
    """(window - 1 + n,): the last window - 1 targets before the block, then the block's targets."""
    values: Floats
    """(n, window, P): f_p on the window after each sample."""


class Combiner:
    """A rule for the weights. Subclasses are frozen dataclasses of their settings.

    The state is arrays only and belongs to the bank, so one combiner may serve many banks.
    Subclasses override `combine`, or `phases` for a compiled rule.
    """

    core_name: ClassVar[str] = ""
    """Its name in the core; empty for a rule in Python."""

    on_simplex: ClassVar[bool] = True
    """Whether the weights are non-negative with sum 1."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """The extra evidence that the rule reads: "values", the slots' values on the window (window * P
    numbers per sample)."""

    accepts_missing: ClassVar[bool] = False
    """Whether samples without a target may be left out: the rule does not read sample numbers."""

    fixed_slots: ClassVar[str] = ""
    """Why a bank with this rule cannot continue with other slots, if it cannot."""

    def core_spec(self, objectives: Sequence[Objective], slots: int) -> tuple[Any, Any]:
        """What the core makes the rule of, for the objective of each output.

        (name, settings) of a rule that the core has; (None, an object for each output) for one in
        Python: with choose(evidence, weights), copy() and `arrays`.
        """
        if self.core_name and type(self).combine is Combiner.combine:
            return (self.core_name, self.core_settings(objectives[0]))
        states = [_State(self, objective, slots) for objective in objectives]
        return (None, states)

    def core_settings(self, objective: Objective) -> dict[str, Any]:
        """Numbers, words and arrays by name, of which the core makes the rule: the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

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
            workspace.chosen[:count] = self._checked(objective, evidence, state, weights.copy())

        return [Phase.from_python(combine)]

    def _checked(
        self, objective: Objective, evidence: Evidence, state: State, weights: Floats
    ) -> np.ndarray:
        """What `combine` returns, if it is weights of every slot after every sample."""
        chosen = np.asarray(self.combine(objective, evidence, state, weights))
        if chosen.shape != evidence.curvature.shape:
            remedy = "Give the weights after each sample of the block."
            rule = f"return weights of shape {evidence.curvature.shape} from combine"
            raise check.refuse("combiner", rule, chosen.shape, remedy, type(self).__name__)
        return chosen

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


class _State:
    """The state of a combiner in Python for one output; `arrays` are the core's to save."""

    def __init__(self, combiner: Combiner, objective: Objective, slots: int) -> None:
        self._combiner, self._objective = combiner, objective
        self.arrays = {name: np.zeros(shape) for name, shape in combiner.shapes(slots).items()}

    @quiet
    def choose(self, evidence: dict[str, Any], weights: Floats) -> Floats:
        """(n, P): the weights after each sample. evidence : the fields of `Evidence`."""
        for array in evidence.values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        seen = Evidence(**evidence)
        chosen = self._combiner._checked(self._objective, seen, self.arrays, weights)
        return np.ascontiguousarray(chosen, dtype=float)

    def change_slots(
        self, before: _State, kept: Sequence[int | None], previous: Sequence[int]
    ) -> None:
        """Go on from the state of a bank with other slots."""
        self._combiner.change_slots(before.arrays, self.arrays, kept, previous)

    def copy(self) -> _State:
        other = copy.copy(self)
        other.arrays = {name: array.copy() for name, array in self.arrays.items()}
        return other

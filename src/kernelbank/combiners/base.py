"""What a combiner is: a rule from the evidence of a block to the weights after each sample."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..losses import Objective
from ..utils import validation as check
from ..utils.validation import Floats, quiet

State = dict[str, Floats]


@dataclass(frozen=True)
class Evidence:
    """What a combiner gets from the P slots for a block of n samples.

    Arrays are (n, P) unless stated. A slot that has become non-finite has infinite losses and costs
    from then on, and curvature 0. The arrays are read-only. `values` is empty unless the combiner
    names it in `needs`.
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


class Combiner(check.Settings):
    """A rule for the weights. Subclasses are frozen dataclasses of their settings.

    A rule in Python overrides `combine`; the core has the rules that are built in. The state is
    arrays only and belongs to the bank, so one combiner may serve many banks.
    """

    core_name: ClassVar[str] = ""
    on_simplex: ClassVar[bool] = True
    """Whether the weights are non-negative with sum 1."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """The extra evidence that the rule reads: "values", the slots' values on the window."""
    accepts_missing: ClassVar[bool] = False
    """Whether samples without a target may be left out: the rule does not read sample numbers."""
    fixed_slots: ClassVar[str] = ""
    """Why a bank with this rule cannot continue with other slots, if it cannot."""

    @property
    def in_python(self) -> bool:
        """Whether `combine`, in Python, is the rule."""
        return not self.core_name or type(self).combine is not Combiner.combine

    def core_spec(self, objectives: Sequence[Objective], slots: int) -> tuple[object, object]:
        """What the core makes the rule of, for the objective of each output.

        (name, settings) of a rule that the core has; (None, an object for each output) for one in
        Python: with choose(evidence, weights), copy() and `arrays`.
        """
        if self.in_python:
            return (None, [_State(self, objective, slots) for objective in objectives])
        return (self.core_name, self.core_settings(objectives[0]))

    def core_settings(self, objective: Objective) -> dict[str, object]:
        """What the core makes the rule of, by name: the fields."""
        return self.values()

    def first_weights(self, slots: int) -> Floats:
        """The weights before the first sample."""
        return np.full(slots, 1.0 / slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        """The arrays of the state of `combine`, by name. All are zero before the first sample."""
        return {}

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
        """Write the state of a bank to `new`, all zero, of one that continues it with other slots.

        Slot i of the new bank continues slot kept[i] of the old one, or is new if that is None.
        A new slot is at first judged like slot previous[i] of the old bank. By default the axes
        over the slots, which grow by one with a slot more in `shapes`, are indexed accordingly.
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
        """The numbers behind the last weights, by name, for `KernelBank.evidence`.

        state : a copy, all 0 before the first sample. weights : of the next prediction.
        """
        return dict(state)


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
        chosen = np.asarray(self._combiner.combine(self._objective, seen, self.arrays, weights))
        if chosen.shape != seen.curvature.shape:
            owner, remedy = type(self._combiner).__name__, "Give the weights after each sample."
            rule = f"return weights of shape {seen.curvature.shape} from combine"
            raise check.refuse("combiner", rule, chosen.shape, remedy, owner)
        return np.ascontiguousarray(chosen, dtype=float)

    def change_slots(
        self, before: _State, kept: Sequence[int | None], previous: Sequence[int]
    ) -> None:
        self._combiner.change_slots(before.arrays, self.arrays, kept, previous)

    def copy(self) -> _State:
        other = copy.copy(self)
        other.arrays = {name: array.copy() for name, array in self.arrays.items()}
        return other


def certificate(figures: Floats) -> dict[str, Floats]:
    """The diagnostics of rules that solve for their weights up to a certificate."""
    names = ("gap", "cost", "scale", "steps")
    return {name: np.array(x) for name, x in zip(names, figures, strict=True)}

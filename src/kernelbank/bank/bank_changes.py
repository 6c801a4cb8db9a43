"""Banks that continue from another one, with other inputs, slots or outputs; and starting again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from ..utils.whole_steps import whole_step
from .bank_state import BankState
from .exclusive import exclusive
from .layout import Slot, given_slots
from .output_changes import (
    finished_output,
    has_room,
    output_sources,
    start_output,
    with_outputs,
)
from .outputs import make_runtime
from .revision import Selection, continued_slots
from .settings import BankSettings
from .slot_changes import Samples, continue_with
from .slot_plan import changed_settings, plan_change
from .widening import check_wider, widened_arrays

_NO_SLOTS: dict[str, Any] = {"dictionary": None, "learner": None, "slots": None}


class ChangingBank(BankState):
    """The part of `KernelBank` that makes other banks of it."""

    def fresh(self) -> Self:
        """A bank with the same settings that has learned nothing."""
        return type(self)(**self._settings.arguments())

    @exclusive
    def with_inputs(self, dimension: int, slots: Iterable[Slot] | None = None) -> Self:
        """A bank on inputs with more columns that continues from this one.

        The new columns come after the others, and count as 0 until now. They are seen by slots
        that can use them: those with a learner that is not on random features, and a kernel that
        does not change by columns of zeros. Other slots must have a kernel `ActiveDims` on the
        columns that they know.

        Parameters
        ----------
        dimension : the number of columns from now on.
        slots : as many as there are, each with its kernel from now on; by default the present
            ones, which see the new columns unless their kernels are `ActiveDims`.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
        >>> for n in range(20):
        ...     bank.learn_one([n / 10], n / 5)
        >>> wider = bank.with_inputs(2)
        >>> wider.predict_one([1.0, 0.0]) == bank.predict_one([1.0])
        True
        """
        known = self._runtime.dimension
        remedy = "Give how many columns inputs have from now on."
        width = check.count(
            "dimension", dimension, "with_inputs", remedy, least=self._dimension or 1
        )
        self._refuse_revised("with_inputs")
        given = self.slots if slots is None else tuple(slots)
        arguments = {**self._settings.arguments(), "slots": given}
        if self._settings.initial is not None:
            arguments["initial"] = self._settings.initial.with_columns(width).argument()
        wider = type(self)(**arguments)
        wider._use_history(self._settings.history, None)
        if known is not None:
            wider._settings.check_width(width, "dimension")
            layout = wider._settings.layout
            check_wider(self._settings.layout, known, layout, width)
            wider._runtime.open(np.zeros(width))
            arrays = self._runtime.changed_arrays(
                wider._runtime, lambda old, new: widened_arrays(layout, old, new)
            )
            models = self._runtime.copy_models()
            wider._continue_from(width, self._runtime.warned, arrays, models)
        return wider

    @exclusive
    def with_slots(
        self,
        slots: Iterable[Slot],
        kept: Iterable[int | None],
        previous: Iterable[int | None] | None = None,
        replay: tuple[Any, Any] | None = None,
    ) -> Self:
        """A bank with other slots that continues from this one.

        A slot that is kept goes on bit for bit, whatever its index. A new slot on the residual of
        one that is kept starts at the function of its base. Every other new slot first learns the
        samples that the bank still holds, as if the stream had begun with the oldest of them: those
        since the last multiple of 256, and before them as many as the slots need (`budget` of
        Norma) or a window.

        New slots have weight 0 until the next sample, and the weights of the others are scaled to
        sum 1, if the combiner keeps them on the simplex; without any weight left, all weights are
        those of a new bank. At first the combiner judges a new slot like a previous one, in whose
        place it comes, and its totals in the ledger go on from those of the previous one, so that
        all totals are over all samples; `ledger.slot_since` tells when each slot was added.

        Parameters
        ----------
        slots : all slots from now on, with `residual_of` in their new order. A slot cannot be
            retired while another learns its residual.
        kept : for each of them the index, in this bank, of the slot that it continues, or None if
            it is new.
        previous : for each of them the index, in this bank, of the slot in whose place it comes;
            only those of new slots count. None, for one or all: the base for a slot with
            `residual_of`, else the slot of the highest cumulative cost, so that a new slot has to
            earn its weight. That one also counts instead of a slot that is quarantined.
        replay : the newest samples of the stream, inputs (m, d) and targets, which new slots learn
            instead of those that the bank holds.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank([kb.kernels.Gaussian(w) for w in (0.1, 1.0, 10.0)])
        >>> for n in range(100):
        ...     bank.learn_one(n / 10, n % 20 < 10)
        >>> finer = kb.Slot(kb.kernels.Gaussian(0.5), kb.learners.Norma())
        >>> other = bank.with_slots([bank.slots[0], finer, bank.slots[1]], kept=[0, None, 1])
        >>> other.samples, other.ledger.slot_since
        (100, (0, 100, 0))
        >>> other.predict_slots_one(3.0)[1][2] == bank.predict_slots_one(3.0)[1][1]
        np.True_
        """
        self._refuse_revised("with_slots")
        given = given_slots(slots, "with_slots", "Give a list of kb.Slot, such as bank.slots.")
        samples = None if replay is None else self._checked_replay(*replay)
        continued = self._continued(given, kept, previous, samples)
        other = type(self)(**self._settings.arguments() | {"slots": given})
        other._use(*continued)
        return other

    def _checked_replay(self, X: Any, y: Any) -> Samples:
        """(m, d) and (m, outputs): the newest samples, for new slots to begin with."""
        points, targets = self._checked_inputs(X), np.asarray(y, dtype=np.float64)
        targets = targets.reshape(len(targets), -1)
        if targets.shape != (len(points), self.outputs):
            remedy = "Give as many targets as inputs."
            rule = f"have {len(points)} rows of {self.outputs}"
            raise check.refuse("replay", rule, targets.shape, remedy, "with_slots")
        return points, targets

    def _revise_if_due(self) -> None:
        """Exchange slots at the sample numbers that an adaptive dictionary has for it.

        A revision that fails leaves the slots as they are; it is made before the next sample.
        """
        settings = self._settings
        dictionary, before = settings.dictionary, settings.selection
        if dictionary is None or before is None or not dictionary.is_due(before, self.samples):
            return
        with whole_step(self):
            sums = self._runtime.weight_sums
            after, why = dictionary.revise(before, sums, self.quarantined, self.samples)
            if after.running == before.running:
                self._settings = replace(settings, selection=after)
                self._runtime.clear_weight_sums()
                return
            slots = settings.selected_slots(after)
            kept = continued_slots(settings.selected_slots(before), slots)
            reasons = {
                kind: {place: why.get(kernel, "") for place, kernel in enumerate(own.running)}
                for kind, own in (("retired", before), ("added", after))
            }
            places = range(len(slots))  # a new slot is judged like the one in whose place it comes
            chosen = (list(slots.values()), kept, places)
            self._use(*self._continued(*chosen, reasons=reasons, selection=after))

    def _slot_costs(self) -> Floats:
        """(P,): the slots' cumulative costs, summed over the outputs."""
        costs: Floats = self.ledger.slot_cumulative_cost
        return costs if self.outputs == 1 else costs.sum(axis=0)

    @exclusive
    def _new_output(self, first: int, first_input: Floats) -> Self:
        """A bank for one more output with targets (n,), alone; see `_add_output`.

        first : the number of the first sample that it learns, up to the present one.
        """
        bank = type(self)(**self._settings.arguments() | {"outputs": 1, "loss": self.loss})
        bank._use(*start_output(self._settings, first, first_input))
        return bank

    @exclusive
    def _add_output(self, other: Self, number: int, past_target: float) -> None:
        """Have one more output, that of a bank which has learned its targets up to now.

        number : of the new output; those from this number on get the next one.
        past_target : the target of the samples before those, NaN if it is not known.
        """
        source = finished_output(self._settings, self._runtime, other._runtime, past_target)
        settings = replace(self._settings, outputs=self.outputs + 1)
        if number == self.outputs and has_room(self._runtime):
            source.restore(self._runtime.add(settings))
            self._use(settings, self._runtime)
        else:
            sources = output_sources(self._runtime)
            sources.insert(number, source)
            self._use(*with_outputs(self._settings, self._runtime, sources))

    def _refuse_revised(self, method: str) -> None:
        if self._settings.dictionary is not None:
            remedy = "Give all columns from the start, and a pool with all kernels."
            rule = "be a plain one for a bank whose inputs or slots are changed from outside"
            raise check.refuse("dictionary", rule, self._settings.dictionary, remedy, method)

    def _continued(
        self,
        slots: Sequence[Slot],
        kept: Iterable[int | None],
        previous: Iterable[int | None] | None,
        replay: Samples | None = None,
        reasons: Mapping[str, Mapping[int, str]] | None = None,
        selection: Selection | None = None,
    ) -> tuple[BankSettings, Any]:
        """Settings and runtime that continue with other slots; see `with_slots`.

        reasons : why slots are "retired" and "added", by their indices.
        selection : the kernels of the adaptive dictionary from now on, if there is one.
        """
        plan = plan_change(self._settings, self._slot_costs(), slots, kept, previous)
        new = changed_settings(self._settings, self.samples, slots, plan, reasons or {}, selection)
        return new, continue_with(self._runtime, self._settings, new, plan, replay)

    @exclusive
    def reset(self) -> None:
        """Forget everything that was learned: the bank is then as `fresh` would make it.

        A bank with models behind an `Adapter` cannot reset them, and refuses.
        """
        self._settings.check_saveable("reset", "Make a new one: bank.fresh().")
        settings = BankSettings.checked(**_NO_SLOTS | self._settings.arguments())
        self._use(settings, make_runtime(settings))

"""The settings of a `KernelBank`: the checked arguments of its constructor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..combiners import Combiner, Simplex
from ..errors import KernelBankError
from ..io.specs import own_copy
from ..kernels import Kernel
from ..kernels.dictionary import Dictionary
from ..losses import Loss, as_loss
from ..losses.objective import Objective
from ..utils import validation as check
from ..utils.validation import Floats
from .adaptive_dictionary import AdaptiveDictionary, DictionaryState
from .engines import Engine, as_engine
from .initial import InitialFunction
from .layout import Layout, Slot, bank_slots
from .slot_history import SlotHistory

_OWNER = "KernelBank"


@dataclass(frozen=True)
class BankSettings:
    """What a bank is, apart from what it has learned."""

    objective: Objective
    layout: Layout
    combiner: Combiner
    engine: Engine
    _history: SlotHistory | None = None
    dictionary: AdaptiveDictionary | None = None
    """What chooses the slots in the course of the stream, if anything."""
    dictionary_state: DictionaryState | None = None

    @classmethod
    def checked(
        cls,
        dictionary: Any,
        learner: Any,
        combiner: Any,
        loss: Any,
        window: Any,
        regularization: Any,
        engine: Any,
        slots: Iterable[Slot] | None,
        dtype: Any,
        initial: Any = None,
    ) -> BankSettings:
        """Settings from the arguments of `KernelBank`; raises `InvalidArgument` for wrong ones."""
        remedy = "Give how many recent samples a cost is taken over, such as 10."
        length = check.count("window", window, _OWNER, remedy)
        remedy = "Give 0 or a small positive number, such as 0.01."
        ridge = check.number("regularization", regularization, _OWNER, remedy, least=0)
        check.choice("dtype", dtype, _OWNER, ("float64", "float32"))
        objective = Objective(own_copy(as_loss(loss)), length, ridge, dtype)
        rule = Simplex() if combiner is None else combiner
        if not isinstance(rule, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Simplex()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, _OWNER)
        adaptive = dictionary if isinstance(dictionary, AdaptiveDictionary) else None
        state = None if adaptive is None else adaptive.first_members()
        if adaptive is not None and state is not None:
            dictionary = Dictionary(adaptive.kernels[k] for k in state.members)
        given = bank_slots(dictionary, learner, slots)
        if adaptive is not None:
            rule.check_slot_changes()
            for kernel in adaptive.kernels:
                given[0].learner.check_kernel(kernel)
        layout = Layout.of(replace(slot, kernel=own_copy(slot.kernel)) for slot in given)
        for slot in layout.slots:
            slot.learner.check_kernel(slot.kernel)
        for group in layout.groups:
            group.check(objective)
        layout = replace(layout, initial=InitialFunction.checked(initial, len(layout.slots)))
        layout.check_initial(objective)
        where = as_engine(engine)
        where.check(rule)
        settings = cls(objective, layout, rule, where, None, adaptive, state)
        settings.first_weights()
        if layout.initial is not None:
            settings.check_inputs(layout.initial.points, "initial", first=True)
        return settings

    @property
    def history(self) -> SlotHistory:
        """Since when the bank has had its slots."""
        return SlotHistory.of(len(self.slots)) if self._history is None else self._history

    def with_history(self, history: SlotHistory) -> BankSettings:
        """The same settings for a bank whose slots have changed."""
        layout = replace(self.layout, identities=history.identities)
        return replace(self, layout=layout, _history=history)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots."""
        return self.layout.slots

    @property
    def loss(self) -> Loss:
        """The loss by which the bank and its slots are judged."""
        return self.objective.loss

    def arguments(self) -> dict[str, Any]:
        """Arguments with which `KernelBank` makes an equal bank, at its start."""
        given: dict[str, Any] = {"slots": self.slots}
        if self.dictionary is not None:
            given = {"dictionary": self.dictionary, "learner": self.slots[0].learner}
        return given | self._other_arguments()

    def _other_arguments(self) -> dict[str, Any]:
        return {
            "combiner": self.combiner,
            "loss": self.loss,
            "window": self.objective.window,
            "regularization": self.objective.regularization,
            "engine": self.engine,
            "dtype": self.objective.dtype,
            "initial": None if self.initial is None else self.initial.argument(),
        }

    def with_slots(self, slots: Iterable[Slot]) -> BankSettings:
        """The same settings for other slots, without a history."""
        return self.checked(None, None, **self._other_arguments(), slots=slots)

    def with_members(self, state: DictionaryState) -> BankSettings:
        """The same settings with these kernels of the adaptive dictionary, without a history."""
        made = self.with_slots(self.member_slots(state))
        return replace(made, dictionary=self.dictionary, dictionary_state=state)

    def member_slots(self, state: DictionaryState) -> list[Slot]:
        """The slots of these kernels of the adaptive dictionary; present ones where they stay."""
        assert self.dictionary is not None
        assert self.dictionary_state is not None
        learner, pool = self.slots[0].learner, self.dictionary.kernels
        before = self.dictionary_state.members
        return [
            slot if member == known else Slot(pool[member], learner)
            for member, known, slot in zip(state.members, before, self.slots, strict=True)
        ]

    @property
    def initial(self) -> InitialFunction | None:
        """Where the slots start, if not at 0."""
        return self.layout.initial

    def first_weights(self) -> Floats:
        """(P,): the weights before the first sample."""
        count = len(self.slots)
        weights = np.array(self.combiner.first_weights(count), dtype=np.float64)
        if weights.shape != (count,):
            rule, remedy = f"start with {count} weights", "Let first_weights return one per slot."
            raise check.refuse("combiner", rule, self.combiner, remedy, _OWNER)
        return weights

    @cached_property
    def restricted_kernels(self) -> list[Kernel]:
        """The kernels that do not take all finite inputs."""
        return [kernel for kernel in self._all_kernels if kernel.domains != {"real"}]

    @property
    def _all_kernels(self) -> Iterable[Kernel]:
        """The kernels of the slots, now and later."""
        if self.dictionary is not None:
            return self.dictionary.kernels
        return dict.fromkeys(slot.kernel for slot in self.slots)

    def check_inputs(self, X: Floats, name: str, *, first: bool) -> None:
        """Refuse inputs outside a kernel's domain; `first`: or, as all later ones, of its width."""
        if first:
            self.check_width(X.shape[1], name)
        for kernel in self.restricted_kernels:
            kernel.check_inputs(X, name)

    def check_width(self, width: int, name: str) -> None:
        """Refuse a number of columns that a kernel does not take."""
        for kernel in self._all_kernels:
            kernel.check_width(width, name)

    def check_past_predictions(self, past_predictions: Any) -> Floats:
        """(P,): what the slots predicted earlier, as `KernelBank.learn_one` takes it."""
        name = "past_predictions"
        remedy = "Give the second value that predict_slots_one returned."
        values = check.floats(name, past_predictions, remedy)
        if values.shape != (len(self.slots),):
            raise check.refuse(name, f"hold {len(self.slots)} values", values.shape, remedy)
        check.within_range(name, np.where(np.isfinite(values), values, 0.0))
        return values

    def check_saveable(self, done: str, remedy: str) -> None:
        """Refuse what cannot be done with slots whose state is not arrays."""
        for index, slot in enumerate(self.slots):
            if not slot.learner.saveable:
                raise KernelBankError(
                    f"This bank cannot be {done}: slot {index} is {slot.learner!r}, whose state "
                    f"is not arrays. {remedy}"
                )

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
from ..losses import Loss, as_loss
from ..losses.objective import Objective
from ..utils import validation as check
from ..utils.validation import Floats
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
        given = bank_slots(dictionary, learner, slots)
        layout = Layout.of(replace(slot, kernel=own_copy(slot.kernel)) for slot in given)
        for slot in layout.slots:
            slot.learner.check_kernel(slot.kernel)
        for group in layout.groups:
            group.check(objective)
        layout = replace(layout, initial=InitialFunction.checked(initial, len(layout.slots)))
        layout.check_initial(objective)
        where = as_engine(engine)
        where.check(rule)
        settings = cls(objective, layout, rule, where)
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
        """Arguments with which `KernelBank` makes an equal bank."""
        return {
            "slots": self.slots,
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
        return self.checked(None, None, **self.arguments() | {"slots": slots})

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
        kernels = dict.fromkeys(slot.kernel for slot in self.slots)
        return [kernel for kernel in kernels if kernel.domains != {"real"}]

    def check_inputs(self, X: Floats, name: str, *, first: bool) -> None:
        """Refuse inputs outside a kernel's domain; `first`: or, as all later ones, of its width."""
        if first:
            self.check_width(X.shape[1], name)
        for kernel in self.restricted_kernels:
            kernel.check_inputs(X, name)

    def check_width(self, width: int, name: str) -> None:
        """Refuse a number of columns that a kernel does not take."""
        for slot in self.slots:
            slot.kernel.check_width(width, name)

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

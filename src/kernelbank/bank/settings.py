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
from .adaptive_dictionary import AdaptiveDictionary
from .engines import Engine, as_engine
from .initial import InitialFunction
from .layout import Layout, Slot, bank_slots
from .revision import Selection
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
    selection: Selection | None = None
    """Which kernels of the dictionary run."""
    outputs: int = 1
    losses: tuple[Loss, ...] = ()
    """Of the outputs, if they differ; `objective` is that of the first."""

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
        initial: Any = None,
        outputs: Any = 1,
    ) -> BankSettings:
        """Settings from the arguments of `KernelBank`; raises `InvalidArgument` for wrong ones."""
        remedy = "Give how many recent samples a cost is taken over, such as 10."
        length = check.count("window", window, _OWNER, remedy)
        remedy = "Give 0 or a small positive number, such as 0.01."
        ridge = check.number("regularization", regularization, _OWNER, remedy, least=0)
        remedy = "Give how many targets a sample has, 1 or more."
        number = check.count("outputs", outputs, _OWNER, remedy, most=10**6)
        given_losses = _checked_losses(loss, number)
        objective = Objective(given_losses[0], length, ridge)
        rule = Simplex() if combiner is None else combiner
        if not isinstance(rule, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Simplex()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, _OWNER)
        adaptive = dictionary if isinstance(dictionary, AdaptiveDictionary) else None
        selection = None if adaptive is None else adaptive.first_selection()
        if adaptive is not None and selection is not None:
            dictionary = Dictionary(adaptive.kernels[k] for k in selection.running)
        given = bank_slots(dictionary, learner, slots)
        if adaptive is not None:
            rule.check_slot_changes()
            for kernel in adaptive.kernels:
                given[0].learner.check_kernel(kernel)
        layout = Layout.of(replace(slot, kernel=own_copy(slot.kernel)) for slot in given)
        for slot in layout.slots:
            slot.learner.check_kernel(slot.kernel)
        for group in layout.groups:
            for own in dict.fromkeys(given_losses):
                group.check(replace(objective, loss=own))
        layout = replace(layout, initial=InitialFunction.checked(initial, len(layout.slots)))
        layout.check_initial(objective)
        where = as_engine(engine)
        differ = len(dict.fromkeys(given_losses)) > 1
        losses = given_losses if differ else ()
        settings = cls(objective, layout, rule, where, None, adaptive, selection, number, losses)
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

    def of_output(self, output: int) -> BankSettings:
        """The settings for one of several outputs."""
        if not self.losses:
            return self
        return replace(self, objective=replace(self.objective, loss=self.losses[output]))

    def arguments(self) -> dict[str, Any]:
        """Arguments with which `KernelBank` makes an equal bank, at its start."""
        given: dict[str, Any] = {"slots": self.slots}
        if self.dictionary is not None:
            given = {"dictionary": self.dictionary, "learner": self.slots[0].learner}
        return given | self._other_arguments()

    def _other_arguments(self) -> dict[str, Any]:
        return {
            "combiner": self.combiner,
            "loss": list(self.losses) or self.loss,
            "outputs": self.outputs,
            "window": self.objective.window,
            "regularization": self.objective.regularization,
            "engine": self.engine,
            "initial": None if self.initial is None else self.initial.argument(),
        }

    def with_slots(self, slots: Iterable[Slot]) -> BankSettings:
        """The same settings for other slots, without a history."""
        return self.checked(None, None, **self._other_arguments(), slots=slots)

    def with_selection(self, selection: Selection) -> BankSettings:
        """The same settings with these kernels of the adaptive dictionary, without a history."""
        made = self.with_slots(self.selected_slots(selection).values())
        return replace(made, dictionary=self.dictionary, selection=selection)

    def selected_slots(self, selection: Selection) -> dict[int, Slot]:
        """The slots of these kernels of the adaptive dictionary, by their indices in it."""
        assert self.dictionary is not None
        learner, kernels = self.slots[0].learner, self.dictionary.kernels
        return {k: Slot(kernels[k], learner) for k in selection.running}

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
        shape = (len(self.slots),) if self.outputs == 1 else (self.outputs, len(self.slots))
        if values.shape != shape:
            raise check.refuse(name, f"have the shape {shape}", values.shape, remedy)
        check.within_range(name, np.where(np.isfinite(values), values, 0.0))
        return values

    def check_output_targets(self, y: Any, count: int, *, one: bool) -> Floats:
        """(n, K): targets of several outputs; NaN is a missing one, if that is possible."""
        outputs = self.outputs
        remedy = f"Give {outputs} numbers for each row of X, NaN where a target is missing."
        values = check.floats("y", y, remedy)
        if one and values.ndim == 1:
            values = values[None]
        if values.shape != (count, outputs):
            shape = (outputs,) if one else (count, outputs)
            raise check.refuse("y", f"have the shape {shape}", values.shape, remedy)
        missing = np.isnan(values)
        if missing.any():
            self._check_missing()
        check.within_range("y", np.where(missing, 0.0, values))
        if not self.losses:
            self.loss.check_targets(values[~missing])
        for output, loss in enumerate(self.losses):
            loss.check_targets(values[~missing[:, output], output])
        return np.ascontiguousarray(values)

    @property
    def no_missing_because(self) -> str:
        """Why missing targets are not possible; empty if they are."""
        if self.objective.window > 1:
            return f"unless window is 1 (it is {self.objective.window})"
        if not self.combiner.accepts_missing:
            return (
                f"with the combiner {type(self.combiner).__name__}; Stacking and Hedge allow them"
            )
        if not self.engine.shares_outputs:
            return f"on the engine {type(self.engine).__name__}"
        learners = [slot.learner for slot in self.slots]
        refusing = next((one for one in learners if not one.accepts_missing), None)
        return "" if refusing is None else f"with the learner {type(refusing).__name__}"

    def _check_missing(self) -> None:
        """Refuse missing targets where a part of the bank cannot leave them out."""
        if self.no_missing_because:
            remedy = "Leave such samples out, or use a bank for each output."
            rule = f"have no missing targets {self.no_missing_because}"
            raise check.refuse("y", rule, "NaN", remedy)

    def check_saveable(self, done: str, remedy: str) -> None:
        """Refuse what cannot be done with slots whose state is not arrays."""
        for index, slot in enumerate(self.slots):
            if not slot.learner.saveable:
                raise KernelBankError(
                    f"This bank cannot be {done}: slot {index} is {slot.learner!r}, whose state "
                    f"is not arrays. {remedy}"
                )


def _checked_losses(loss: Any, outputs: int) -> tuple[Loss, ...]:
    """The loss of every output: one for all, or a list with one for each."""
    if not isinstance(loss, (list, tuple)):
        return (own_copy(as_loss(loss)),) * outputs
    if len(loss) != outputs:
        remedy = "Give one loss for all outputs, or a list with one for each."
        raise check.refuse("loss", f"be one, or a list of {outputs}", loss, remedy, _OWNER)
    return tuple(own_copy(as_loss(own)) for own in loss)

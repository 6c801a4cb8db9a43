"""The settings of a `KernelBank`: the checked arguments of its constructor.

They also say how the bank of the core is made. Slots of one method and kernel structure go, in
their order, into *packs* of up to four that run side by side. Packs depend on the slots alone, and
every sum over slots is taken inside its pack and then in the order of the packs: it has the same
bits wherever the packs run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from ..combiners import Combiner, Simplex
from ..errors import KernelBankError
from ..kernels import Kernel
from ..losses import Loss, Objective, as_loss
from ..utils import validation as check
from ..utils.validation import Floats
from .adaptive_dictionary import AdaptiveDictionary
from .engines import Engine, as_engine
from .engines.base import Description
from .slot import Method, Slot, bank_slots, late_prices
from .slot_history import Selection, SlotHistory

_OWNER = "KernelBank"
_BLOCK_BYTES = 64 * 2**20
_SHORTEST = 8
_WIDEST = 2**20
_SPEC_BYTES = 500
"""About what an elementary kernel, or an output, takes in the description of a bank."""
_OUTPUT_BYTES = 100
"""What a slot has at least for each output."""
_OUTPUT_SAMPLES = 8 * _core.SLIDE_PERIOD
"""Samples of a block times outputs, at most: with more than eight outputs blocks are shorter."""


@dataclass(frozen=True, eq=False)
class InitialFunction:
    """Where the slots start, if not at 0: f_p = sum_j coefficients[j, p] k_p(points[j], .)."""

    points: Floats
    """(m, d)."""
    coefficients: Floats
    """(m, P)."""

    @classmethod
    def checked(cls, initial: object, slots: int) -> InitialFunction | None:
        """From the argument of `KernelBank`; None for none."""
        if initial is None:
            return None
        remedy = "Give (points, coefficients): arrays of shape (m, d), and (m,) or (m, P)."
        if not (isinstance(initial, (tuple, list)) and len(initial) == 2):
            raise check.refuse("initial", "be points and coefficients", initial, remedy)
        points = check.samples(initial[0], None).copy()
        coefficients = check.floats("initial", initial[1], remedy)
        if coefficients.shape not in ((len(points),), (len(points), slots)):
            rule = f"have coefficients of shape {(len(points),)} or {(len(points), slots)}"
            raise check.refuse("initial", rule, coefficients.shape, remedy)
        if coefficients.ndim == 1:
            coefficients = np.repeat(coefficients[:, None], slots, axis=1)
        check.within_range("initial", coefficients)
        return cls(points, coefficients.copy())


@dataclass(frozen=True)
class BankSettings:
    """What a bank is, apart from what it has learned."""

    slots: tuple[Slot, ...]
    losses: tuple[Loss, ...]
    """Of the outputs, one for each."""
    window: int
    regularization: float
    combiner: Combiner
    engine: Engine
    history: SlotHistory
    """Since when the bank has had its slots, and their identities."""
    initial: InitialFunction | None = None
    dictionary: AdaptiveDictionary | None = None
    """What chooses the slots in the course of the stream, if anything."""
    selection: Selection | None = None
    """Which kernels of the dictionary run."""
    first_sample: int = 0
    """The number of the first sample that is learned. Not 0 only where new slots or outputs learn
    samples that their bank has learned before."""

    @classmethod
    def checked(
        cls,
        dictionary: object = None,
        learner: object = None,
        combiner: object = None,
        loss: object = "squared",
        window: object = 10,
        regularization: object = 0.01,
        engine: object = "serial",
        slots: Iterable[Slot] | None = None,
        initial: object = None,
        outputs: object = 1,
    ) -> BankSettings:
        """Settings from the arguments of `KernelBank`; raises `InvalidArgument` for wrong ones."""
        remedy = "Give how many recent samples a cost is taken over, such as 10."
        length = check.count("window", window, _OWNER, remedy, most=10**6)
        remedy = "Give 0 or a small positive number, such as 0.01."
        ridge = check.number("regularization", regularization, _OWNER, remedy, least=0)
        losses = _checked_losses(loss, outputs)
        rule = Simplex() if combiner is None else combiner
        if not isinstance(rule, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Simplex()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, _OWNER)
        adaptive, selection = None, None
        if isinstance(dictionary, AdaptiveDictionary):
            adaptive, selection = dictionary, dictionary.first_selection()
            dictionary = [adaptive.kernels[k] for k in selection.running]
        members = bank_slots(dictionary, learner, slots)
        if adaptive is not None:
            rule.check_slot_changes()
            for kernel in adaptive.kernels:
                members[0].learner.check_kernel(kernel)
        start = InitialFunction.checked(initial, len(members))
        for index, slot in enumerate(members):
            _check_place(slot, index)
        history, where = SlotHistory.of(len(members)), as_engine(engine)
        more = (history, start, adaptive, selection)
        settings = cls(members, losses, length, ridge, rule, where, *more)
        for method in dict.fromkeys(slot.method for slot in members):  # many have the same one
            settings.check_method(method)
        settings.first_weights()
        if start is not None:
            settings.check_width(start.points.shape[1], "initial")
        return settings

    @property
    def outputs(self) -> int:
        """How many targets a sample has, K."""
        return len(self.losses)

    @cached_property
    def objective(self) -> Objective:
        """What the slots of the first output minimise."""
        return Objective(self.losses[0], self.window, self.regularization)

    def arguments(self) -> dict[str, Any]:
        """Arguments with which `KernelBank` makes an equal bank, at its start."""
        start, adaptive = self.initial, self.dictionary
        same = ("combiner", "outputs", "window", "regularization", "engine")
        return {name: getattr(self, name) for name in same} | {
            "dictionary": adaptive,
            "learner": None if adaptive is None else self.slots[0].learner,
            "slots": self.slots if adaptive is None else None,
            "loss": list(self.losses) if len(set(self.losses)) > 1 else self.losses[0],
            "initial": None if start is None else (start.points, start.coefficients),
        }

    def with_slots(
        self, slots: Iterable[Slot], history: SlotHistory, selection: Selection | None = None
    ) -> BankSettings:
        """The same settings for other slots."""
        alone = {"slots": slots, "dictionary": None, "learner": None}
        settings = self.checked(**{**self.arguments(), **alone})
        return replace(settings, history=history, dictionary=self.dictionary, selection=selection)

    def selected_slots(self, selection: Selection) -> dict[int, Slot]:
        """The slots of these kernels of the adaptive dictionary, by their indices in it."""
        assert self.dictionary is not None
        learner, kernels = self.slots[0].learner, self.dictionary.kernels
        return {k: Slot(kernels[k], learner) for k in selection.running}

    def first_weights(self) -> Floats:
        """(P,): the weights before the first sample."""
        count = len(self.slots)
        weights = np.array(self.combiner.first_weights(count), dtype=np.float64)
        if weights.shape != (count,):
            rule, remedy = f"start with {count} weights", "Let first_weights return one per slot."
            raise check.refuse("combiner", rule, self.combiner, remedy, _OWNER)
        return weights

    # --- the bank of the core ---------------------------------------------------------------------

    @cached_property
    def packs(self) -> tuple[tuple[int, ...], ...]:
        """The slots of every pack, by their indices."""
        members: dict[object, list[int]] = {}
        for index, slot in enumerate(self.slots):
            members.setdefault((slot.kernel.structure_key, slot.method), []).append(index)
        packs: list[tuple[int, ...]] = []
        for indices in members.values():
            width = self.slots[indices[0]].learner.pack_width
            packs += [tuple(indices[i : i + width]) for i in range(0, len(indices), width)]
        return tuple(packs)

    @cached_property
    def history_length(self) -> int:
        """How many past inputs the slots need."""
        learners = dict.fromkeys(slot.learner for slot in self.slots)
        return max(self.window, *(learner.history_length() for learner in learners))

    def describe(self, dimension: int) -> Description:
        """What a bank of the core is made from, for inputs with that many columns."""
        options = self.engine.local_options()
        objectives = [replace(self.objective, loss=loss) for loss in self.losses]
        packs: list[Description] = []
        place: dict[int, list[int]] = {}
        for number, indices in enumerate(self.packs):
            place |= {slot: [number, lane] for lane, slot in enumerate(indices)}
            slot, kernels = self.slots[indices[0]], [self.slots[i].kernel for i in indices]
            learner, of_kernels = slot.learner, kernels if slot.learner.uses_values else []
            pack: Description = {
                "slots": list(indices),
                "learner": learner.core_name,
                "loss": None if slot.loss is None else slot.loss.core_spec(),
                "base": None if slot.residual_of is None else place[slot.residual_of],
                "transform": None if slot.transform is None else slot.transform.core_spec(),
                "settings": {},
                "kernels": [],
            }
            if learner.core_name:
                identity = self.history.identities[indices[0]]
                pack["settings"] = learner.core_settings(kernels, dimension, identity)
                pack["kernels"] = [kernel.core_spec(dimension) for kernel in of_kernels]
            else:
                pack["models"] = [learner.core_model(slot.kernel, dimension) for _ in self.losses]
            packs.append(pack)
        return {
            "window": self.window,
            "regularization": float(self.regularization),
            "losses": [loss.core_spec() for loss in self.losses],
            "target_rules": [(*loss.targets, loss.labels) for loss in self.losses],
            "dimension": dimension,
            "slots": len(self.slots),
            "block": options.get("block") or self._block_length(),
            "threads": options.get("threads", 1),
            "on_simplex": self.combiner.on_simplex,
            "needs_values": "values" in self.combiner.needs,
            "sums_weights": self.dictionary is not None,
            "first_sample": self.first_sample,
            "late_prices": late_prices(self.slots),
            "packs": packs,
            "combiner": self.combiner.core_spec(objectives, len(self.slots)),
            "history": self.history_length,
            "first_weights": self.first_weights().tolist(),
        }

    def empty_state(self) -> dict[str, np.ndarray]:
        """The arrays of a bank that has learned nothing, for the fewest columns of inputs."""
        return _core.Bank(self.describe(self.fewest_columns())).state()

    def _block_length(self) -> int:
        """Samples of the longest block: a slide period, or fewer where it would fill the caches.

        Long blocks are good for the caches: the terms and kernel rows of a pack are loaded once and
        used for the whole block. Only the arrays that grow with the block set a limit.
        """
        values = self.outputs * len(self.packs) * 4 * (self.window + 5)
        most = _BLOCK_BYTES // (8 * (values + self.history_length))
        if self.outputs > 1:
            most = min(most, _OUTPUT_SAMPLES // self.outputs)
        return max(_SHORTEST, min(_core.SLIDE_PERIOD, most))

    # --- checks -----------------------------------------------------------------------------------

    @property
    def _all_kernels(self) -> Iterable[Kernel]:
        """The kernels of the slots, now and later."""
        if self.dictionary is not None:
            return self.dictionary.kernels
        return dict.fromkeys(slot.kernel for slot in self.slots)

    def check_width(self, width: int, name: str) -> None:
        """Refuse a number of columns that a kernel or a learner does not take."""
        for kernel in self._all_kernels:
            kernel.check_width(width, name)
        for learner in dict.fromkeys(slot.learner for slot in self.slots):
            learner.check_width(width)

    def fewest_columns(self) -> int:
        """The fewest columns of inputs that all kernels and learners take."""
        learners = dict.fromkeys(slot.learner for slot in self.slots)
        columns = [kernel.fewest_columns() for kernel in self._all_kernels]
        width = max([*columns, *(learner.fewest_columns() for learner in learners)])
        self.check_width(min(width, _WIDEST), "X")
        return width

    def check_size(self, dimension: int, most_bytes: int) -> None:
        """Refuse to describe a bank to the core whose description alone needs too much memory."""
        needed = self.outputs * (_SPEC_BYTES + _OUTPUT_BYTES * len(self.slots))
        for slot in self.slots:
            needed += _SPEC_BYTES * slot.kernel.term_count(dimension)
            needed += 8 * slot.learner.described_numbers(slot.kernel, dimension)
            if needed > most_bytes:
                raise OverflowError("the settings of the slots need more memory than is allowed")

    def check_past_predictions(self, past_predictions: object) -> Floats:
        """(K, P): what the slots predicted earlier, as `KernelBank.learn_one` takes it."""
        name, slots = "past_predictions", len(self.slots)
        remedy = "Give the second value that predict_slots_one returned."
        values = check.floats(name, past_predictions, remedy)
        shape = (slots,) if self.outputs == 1 else (self.outputs, slots)
        if values.shape != shape:
            raise check.refuse(name, f"have the shape {shape}", values.shape, remedy)
        check.within_range(name, np.where(np.isfinite(values), values, 0.0))
        return values.reshape(self.outputs, slots)

    def check_targets(self, y: object, count: int, *, single: bool = False) -> Floats:
        """(n, K): targets; with several outputs NaN is a missing one, if that is possible."""
        if self.outputs == 1:
            targets = check.one_target(y) if single else check.targets(y, count)
            self.losses[0].check_targets(targets)
            return targets[:, None]
        outputs = self.outputs
        remedy = f"Give {outputs} numbers for each row of X, NaN where a target is missing."
        values = check.floats("y", y, remedy)
        if single and values.ndim == 1:
            values = values[None]
        if values.shape != (count, outputs):
            shape = (outputs,) if single else (count, outputs)
            raise check.refuse("y", f"have the shape {shape}", values.shape, remedy)
        missing = np.isnan(values)
        if missing.any() and self.no_missing_because:
            remedy = "Leave such samples out, or use a bank for each output."
            rule = f"have no missing targets {self.no_missing_because}"
            raise check.refuse("y", rule, "NaN", remedy)
        check.within_range("y", np.where(missing, 0.0, values))
        for output, loss in enumerate(self.losses):
            loss.check_targets(values[~missing[:, output], output])
        return np.ascontiguousarray(values)

    @property
    def no_missing_because(self) -> str:
        """Why missing targets are not possible; empty if they are."""
        if self.window > 1:
            return f"unless window is 1 (it is {self.window})"
        if not self.combiner.accepts_missing:
            rule = type(self.combiner).__name__
            return f"with the combiner {rule}; Stacking and Hedge allow them"
        return ""

    def check_method(self, method: Method) -> None:
        """Refuse a way of learning that cannot work in a bank with these settings."""
        for loss in dict.fromkeys(self.losses):
            objective = method.objective(replace(self.objective, loss=loss))
            method.learner.check(objective)
            if method.changes_target and not objective.loss.any_target:
                remedy = (
                    'Use a loss for regression, or kb.Slot(..., loss="squared") for these slots.'
                )
                rule = "be one for all numbers where slots learn a residual or have a transform"
                raise check.refuse("loss", rule, objective.loss, remedy)
        if self.initial is not None:
            terms = len(self.initial.points)
            if method.changes_target:
                remedy = "Leave it out, or use slots without residual_of and transform."
                rule = "be left out for slots that learn a residual or have a transform"
                raise check.refuse("initial", rule, terms, remedy)
            method.learner.check_initial(method.objective(self.objective), terms)

    def check_saveable(self, done: str, remedy: str) -> None:
        """Refuse what cannot be done with slots whose state is not arrays."""
        for index, slot in enumerate(self.slots):
            if not slot.learner.saveable:
                raise KernelBankError(
                    f"This bank cannot be {done}: slot {index} is {slot.learner!r}, whose state "
                    f"is not arrays. {remedy}"
                )


def _checked_losses(loss: object, outputs: object) -> tuple[Loss, ...]:
    """The loss of every output: one for all, or a list with one for each."""
    remedy = "Give how many targets a sample has, 1 or more."
    count = check.count("outputs", outputs, _OWNER, remedy, most=10**6)
    if not isinstance(loss, (list, tuple)):
        return (as_loss(loss),) * count
    if len(loss) != count:
        remedy = "Give one loss for all outputs, or a list with one for each."
        raise check.refuse("loss", f"be one, or a list of {count}", loss, remedy, _OWNER)
    return tuple(as_loss(output_loss) for output_loss in loss)


def _check_place(slot: Slot, index: int) -> None:
    """Refuse a base that comes later, or a kernel that the learner cannot work with."""
    if slot.residual_of is not None and slot.residual_of >= index:
        rule = "be the index of an earlier slot"
        remedy = f"This is slot {index}: give the index of one before it."
        raise check.refuse("residual_of", rule, slot.residual_of, remedy)
    slot.learner.check_kernel(slot.kernel)

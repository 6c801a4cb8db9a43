"""Continuing a bank with other slots: some go on bit for bit, some are retired, some are new.

A new slot that learns the residual of one that goes on starts at 0 beside it, so its function is
that of its base. Any other new slot first learns some samples, together with its base if it has
one, as if the stream had begun with the oldest of them: those that are given, or those that the
sample buffer still holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..combiners import Uniform
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD
from ..utils import validation as check
from ..utils.validation import Floats
from . import bank_cost
from .engines import Serial
from .layout import Layout, Slot
from .outputs import OutputRuntime, make_runtime
from .runtime import Runtime
from .runtime_state import under
from .settings import BankSettings
from .slot_plan import OWNER, SlotPlan, oldest_held
from .slot_targets import combined_function

Samples = tuple[Floats, Floats]
"""Inputs (m, d) and targets (m, outputs): the newest ones of a stream."""


def continue_with(
    runtime: Any,
    settings: BankSettings,
    new: BankSettings,
    plan: SlotPlan,
    replay: Samples | None = None,
) -> Any:
    """A runtime with other slots that continues from another; `settings` are those of that one.

    replay : what new slots begin with; by default the samples that the buffer holds.
    """
    result = make_runtime(new)
    result.warned = runtime.warned
    samples = runtime.ledger.samples
    if not samples:
        return result
    assert runtime.dimension is not None
    new.check_width(runtime.dimension, "slots")
    result.open(np.zeros(runtime.dimension))
    runtimes, others = _runtimes(runtime), _runtimes(result)
    if replay is None:
        replay = _held_samples(settings, runtimes)
    begun = _begin_slots(samples, new, plan, *(part[-samples:] for part in replay))
    leader, fresh = runtimes[0].arrays(), others[0].arrays()
    for k, (before, after) in enumerate(zip(runtimes, others, strict=True)):
        old, start = (before.arrays(), after.arrays()) if k else (leader, fresh)
        shared = frozenset(fresh.keys() - start.keys())
        parts = (settings.of_output(k), new.of_output(k), plan, leader | old, fresh | start)
        change = _Change(*parts, shared)
        change.copy_shared()
        change.copy_slots(before, after)
        for part in begun:
            change.copy_begun(part, k)
        change.start_beside()
        after.restore_models(change.models)
        after.ledger.missing = before.ledger.missing
        after.restore(change.new)
    return result


def _runtimes(runtime: Any) -> list[Runtime]:
    return runtime.runtimes if isinstance(runtime, OutputRuntime) else [runtime]


@dataclass(frozen=True)
class _Begun:
    """New slots that have learned samples: their indices, and the runtimes of all outputs."""

    indices: Sequence[int]
    layout: Layout
    runtimes: Sequence[Runtime]


def _begin_slots(
    samples: int, new: BankSettings, plan: SlotPlan, X: Floats, y: Floats
) -> list[_Begun]:
    """Let the new slots of all outputs begin with the newest of `samples` samples.

    A slot beside a base that goes on has to begin at 0. If it reads the whole window in each step,
    it learns the inputs with targets 0; if not, it learns none.
    """
    fresh = [index for index, source in enumerate(plan.kept) if source is None]
    beside = _beside(new.slots, plan)
    reading = [index for index in beside if new.slots[index].learner.learns_window]
    parts = (
        ([index for index in fresh if index not in beside], X, y),
        (reading, X, np.zeros_like(y)),
        ([index for index in beside if index not in reading], X[:0], y[:0]),
    )
    return [_begin(new, indices, samples, *own) for indices, *own in parts if indices]


def _beside(slots: Sequence[Slot], plan: SlotPlan) -> list[int]:
    """The new slots on the residual of one that goes on."""
    return [
        index
        for index, (slot, source) in enumerate(zip(slots, plan.kept, strict=True))
        if source is None
        and slot.residual_of is not None
        and plan.kept[slot.residual_of] is not None
    ]


def _held_samples(settings: BankSettings, runtimes: Sequence[Runtime]) -> Samples:
    """The samples that the buffers still hold."""
    samples = runtimes[0].ledger.samples
    length = settings.layout.history_length(settings.objective)
    first = oldest_held(settings.history, length, samples)
    end = length + (samples - 1) % SLIDE_PERIOD + 1
    held = slice(end - (samples - first), end)
    inputs = runtimes[0].arrays()["slots/inputs"][:, held]
    targets = [runtime.arrays()["slots/targets"][held, 0] for runtime in runtimes]
    return np.ascontiguousarray(inputs.T), np.column_stack(targets)


def _begin(new: BankSettings, indices: Sequence[int], samples: int, X: Floats, y: Floats) -> _Begun:
    """Let new slots learn these samples, the last of the `samples` so far; y : (m, outputs)."""
    place: dict[int | None, int] = {index: i for i, index in enumerate(indices)}
    chosen = [new.slots[index] for index in indices]
    slots = [_on_begun(slot, place) for slot in chosen]
    identities = tuple(new.layout.identities[index] for index in indices)
    first = samples - len(X)
    layout = replace(Layout.of(slots), identities=identities, first_sample=first)
    alone = replace(new, layout=layout, combiner=Uniform(), engine=Serial(), _history=None)
    alone = replace(alone, dictionary=None, selection=None)
    alone.check_inputs(X, "the samples so far", first=False)
    runtime = make_runtime(alone)
    runtimes = _runtimes(runtime)
    for one in runtimes:
        one.diagnostics.silence()
        one.open(X[0] if len(X) else np.zeros(X.shape[1]))
        one.ledger.running[bank_cost.SAMPLES] = first
    targets = y if new.outputs > 1 else y[:, 0]
    if len(X):
        for block in runtime.iter_blocks(X, targets):
            runtime.run_block(block.points, block.targets)
    return _Begun(indices, layout, runtimes)


def _on_begun(slot: Slot, place: Mapping[int | None, int]) -> Slot:
    """The slot with its base among those that begin; without one its learner is on its own."""
    if slot.residual_of is None:
        return slot
    if slot.residual_of not in place:
        return replace(slot, residual_of=None, transform=None)
    return replace(slot, residual_of=place[slot.residual_of])


class _Change:
    """The arrays of two runtimes, and the copying of one slot after the other."""

    def __init__(
        self,
        settings: BankSettings,
        new_settings: BankSettings,
        plan: SlotPlan,
        old: Mapping[str, Floats],
        new: dict[str, Floats],
        shared: frozenset[str] = frozenset(),
    ) -> None:
        """`shared`: the new arrays of another output, which copies them."""
        self.settings, self.new_settings, self.plan = settings, new_settings, plan
        self.old, self.new, self._shared = old, new, shared
        self.models: dict[int, Any] = {}
        """Those of slots whose state is not arrays, by leaf."""
        self.layout, self.new_layout = settings.layout, new_settings.layout
        objective = settings.objective
        self._filled: dict[Any, int] = {}
        """The arrays of leaves that have been copied, for all slots of a leaf: from which leaf."""
        self.length = self.layout.history_length(objective)
        self.new_length = self.new_layout.history_length(objective)

    # --- what does not belong to one slot ---------------------------------------------------------

    def copy_shared(self) -> None:
        """Sample buffer, ledger, weights and combiner."""
        old, new, sources = self.old, self.new, self.plan.sources
        new["recent"] = old["recent"]
        if "slots/inputs" not in self._shared:
            inputs = old["slots/inputs"]
            new["slots/inputs"][...] = inputs[:, :1]  # terms before the buffer need finite values
            self._align(inputs.T, new["slots/inputs"].T)
        self._align(old["slots/targets"], new["slots/targets"])
        running = new["ledger/running"]
        running[:] = old["ledger/running"]
        for name, entry in (("slot_cost", bank_cost.COST), ("slot_loss", bank_cost.LOSS)):
            totals = old[f"ledger/{name}"][sources]
            fresh = np.array([slot is None for slot in self.plan.kept])
            lost = fresh & ~np.isfinite(totals)  # all slots were out
            new[f"ledger/{name}"] = np.where(lost, running[entry], totals)
        running[bank_cost.QUARANTINED] = np.isinf(new["ledger/slot_cost"]).sum()
        new["weights"] = self._weights(old["weights"])
        state = under("combiner/", new)
        combiner = self.settings.combiner
        combiner.change_slots(under("combiner/", old), state, self.plan.kept, self.plan.previous)
        new |= {f"combiner/{name}": array for name, array in state.items()}

    def _align(self, old: Floats, new: Floats, length: int | None = None) -> None:
        """Copy the newest entries of a sliding array to one for another history length.

        length : the history length of the old one; by default that of the bank before.
        """
        count = min(self.length if length is None else length, self.new_length) + SLIDE_PERIOD
        new[len(new) - count :] = old[len(old) - count :]

    def _weights(self, old: Floats) -> Floats:
        """Those of the slots that go on, on the simplex again; 0 for new slots."""
        weights = np.array([0.0 if slot is None else old[slot] for slot in self.plan.kept])
        lost = old[self.plan.retired(len(old))]
        if not self.settings.combiner.on_simplex or not lost.any():
            return weights
        total = float(np.cumsum(weights)[-1])
        if total > 0:
            return weights / total
        return self.new_settings.first_weights()

    # --- slots ------------------------------------------------------------------------------------

    def copy_slots(self, runtime: Runtime, result: Runtime) -> None:
        """The arrays and models of all slots that are kept."""
        self.models = result.copy_models()
        before = runtime.copy_models()
        self._copy_own_targets()
        for index, source in enumerate(self.plan.kept):
            if source is not None:
                self.copy(index, self.layout, source, self.old, before)

    def copy(
        self,
        index: int,
        layout: Layout,
        source: int,
        arrays: Mapping[str, Floats],
        before: Mapping[int, Any],
    ) -> None:
        """Let a slot go on from another of that layout, with those arrays and models."""
        group, leaf, lane = self.new_layout.place(index)
        old_group, old_leaf, old_lane = layout.place(source)
        learner = self.new_layout.groups[group].learner
        for name, array in under(f"slots/group{old_group}/", arrays).items():
            if name == "own_targets" or f"slots/group{group}/{name}" in self._shared:
                continue
            target = self.new[f"slots/group{group}/{name}"]
            if learner.leaf_width == 1:
                target[leaf, ...] = array[old_leaf]
                continue
            if name in learner.leaf_arrays:
                own, kept = target[leaf, ...], layout is self.layout
                self._copy_of_leaf(own, array, old_leaf, (group, leaf, name), kept)
                continue
            if array.shape[-1] != WIDTH:
                rule = f"have arrays whose last axis is the slot's lane (its {name} have not)"
                remedy = "Add it, or let leaf_width be 1."
                raise check.refuse("learner", rule, learner, remedy, OWNER)
            target[leaf, ..., lane] = array[old_leaf, ..., old_lane]
        number = layout.first_leaves[old_group] + old_leaf
        if number in before:
            self.models[self.new_layout.first_leaves[group] + leaf] = before[number]

    def _copy_of_leaf(
        self, target: Floats, array: Floats, leaf: int, place: Any, kept: bool
    ) -> None:
        """Copy an array that the slots of a leaf share; a new slot takes that of the others."""
        if place not in self._filled:
            self._filled[place] = leaf
            target[...] = array[leaf]
            return
        same = not kept or self._filled[place] == leaf  # they were together before
        if not same and not np.array_equal(target, array[leaf], equal_nan=True):
            rule = "keep slots together that share what they have learned"
            remedy = "Keep the order of the slots, or retire all that share it."
            raise check.refuse("slots", rule, place[2], remedy, OWNER)

    def _copy_own_targets(self) -> None:
        """The learners' targets of the past, the same for all slots of one base and transform.

        They are 0 if no slot has had this base and transform before.
        """
        known: dict[Any, Floats] = {}  # by base in the old bank, and transform
        for number, settings in enumerate(self.layout.groups):
            if settings.has_own_targets:
                array = self.old[f"slots/group{number}/own_targets"]
                known.setdefault((settings.residual_of, settings.transform), array[0])
        for number, settings in enumerate(self.new_layout.groups):
            if not settings.has_own_targets:
                continue
            base = settings.residual_of
            before = None if base is None else self.plan.kept[base]
            if base is not None and before is None:
                continue
            past = known.get((before, settings.transform))
            if past is not None:
                for targets in self.new[f"slots/group{number}/own_targets"]:
                    self._align(past, targets)

    def copy_begun(self, begun: _Begun, output: int) -> None:
        """The arrays and models of new slots."""
        runtime = begun.runtimes[output]
        arrays, models = runtime.arrays(), runtime.copy_models()
        length = begun.layout.history_length(self.settings.objective)
        for source, index in enumerate(begun.indices):
            self.copy(index, begun.layout, source, arrays, models)
            group, old_group = self.new_layout.place(index)[0], begun.layout.place(source)[0]
            known = arrays.get(f"slots/group{old_group}/own_targets")
            if known is not None:
                for targets in self.new[f"slots/group{group}/own_targets"]:
                    self._align(known[0], targets, length)

    def start_beside(self) -> None:
        """Let new residual slots of bases that go on start beside them."""
        for index in _beside(self.new_settings.slots, self.plan):
            self._start_beside(index)

    def _start_beside(self, index: int) -> None:
        """Let a new residual slot, which has the values of its learner, have those of base + it."""
        slot = self.new_settings.slots[index]
        base = slot.residual_of
        assert base is not None
        group, leaf, lane = self.new_layout.place(index)
        base_group, base_leaf, base_lane = self.new_layout.place(base)
        for name in ("values", "norms"):
            target = self.new[f"slots/group{group}/{name}"]
            own = target[leaf, ..., lane].copy()
            known = self.new[f"slots/group{base_group}/{name}"][base_leaf, ..., base_lane]
            self.new[f"slots/group{group}/own_{name}"][leaf, ..., lane] = own
            transform = slot.transform if name == "values" else None
            target[leaf, ..., lane] = combined_function(transform, own, known)

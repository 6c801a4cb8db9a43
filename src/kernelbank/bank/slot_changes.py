"""A bank that goes on with other slots (`KernelBank.with_slots`) or on more columns of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .. import _core
from ..combiners import Uniform
from ..errors import InvalidArgument
from ..kernels import active_coordinates, without_active_dims
from ..utils import validation as check
from ..utils.validation import Floats
from .ledger import Ledger
from .settings import BankSettings
from .slot import Slot, SlotNames
from .slot_history import Selection, SlotChange, SlotHistory

Samples = tuple[Floats, Floats]
"""Inputs (m, d) and targets (m, K): the newest ones of a stream."""

_OWNER = "with_slots"
"""What errors name as the one that refuses."""

_REMEDY = "Give for each slot the index of the one that it continues, or None for a new one."


def continue_with_slots(
    settings: BankSettings,
    bank: _core.Bank | None,
    dimension: int | None,
    slots: Sequence[Slot],
    kept: Iterable[int | None],
    previous: Iterable[int | None] | None,
    *,
    replay: Samples | None = None,
    reasons: Mapping[tuple[str, int], str] | None = None,
    selection: Selection | None = None,
) -> tuple[BankSettings, _core.Bank | None]:
    """The settings and the bank of `KernelBank.with_slots`; the bank is None without samples.

    replay : what new slots begin with; by default the samples that the bank still has. reasons :
    why slots were ("retired" or "added", their index). selection : the kernels of the adaptive
    dictionary from now on, if there is one.
    """
    sources = _checked_sources(settings, slots, kept)
    judged_like = _judged_like(settings, bank, slots, sources, previous)
    samples = 0 if bank is None else bank.samples
    added = [index for index, source in enumerate(sources) if source is None]
    retired = sorted(set(range(len(settings.slots))).difference(sources))
    names = {"retired": SlotNames(settings.slots), "added": SlotNames(slots)}
    changes = []
    for kind, index in [*(("retired", i) for i in retired), *(("added", i) for i in added)]:
        name, reason = names[kind][index].partition("] ")[2], (reasons or {}).get((kind, index), "")
        changes.append(SlotChange(samples, kind, index, name, reason))
    first = oldest_buffered(settings, samples)
    history = settings.history.changed(sources, samples, first, changes)
    new = settings.with_slots(slots, history, selection)
    if bank is None or dimension is None:
        return new, None
    new.check_width(dimension, "slots")
    X, y = _buffered_samples(bank, settings) if replay is None else replay
    X, y = X[-samples:], y[-samples:]
    # A slot on a base that goes on has to begin at 0. If it reads the whole window in each step, it
    # learns the inputs with targets 0; if not, it learns none.
    beginnings = {"learn": (X, y), "zeros": (X, np.zeros_like(y)), "nothing": (X[:0], y[:0])}
    begins: dict[str, list[int]] = {how: [] for how in beginnings}
    for index in added:
        slot = slots[index]
        on_base = slot.residual_of is not None and sources[slot.residual_of] is not None
        how = "learn" if not on_base else "zeros" if slot.learner.learns_window else "nothing"
        begins[how].append(index)
    new_slots = [
        (_first_bank(new, indices, samples, *beginnings[how]), indices, how != "learn")
        for how, indices in begins.items()
        if indices
    ]
    result = _core.Bank(new.describe(dimension))
    continued = [-1 if source is None else source for source in sources]
    try:
        result.continue_with(bank, continued, judged_like, new_slots)
    except ValueError as error:
        rule = f"keep slots together that share what they have learned ({error})"
        remedy = "Keep the order of the slots, or retire all that share it."
        raise check.refuse("slots", rule, continued, remedy, _OWNER) from None
    return new, result


def _checked_sources(
    settings: BankSettings, slots: Sequence[Slot], kept: Iterable[int | None]
) -> tuple[int | None, ...]:
    """`kept`, for a bank with other slots."""
    old = settings.slots
    if settings.initial is not None:
        remedy = "Make the bank without it, or a new bank."
        rule = "be left out for a bank that changes its slots"
        raise check.refuse("initial", rule, len(settings.initial.points), remedy, _OWNER)
    settings.combiner.check_slot_changes()
    sources = _indices("kept", kept, len(slots), len(old))
    position = {source: index for index, source in enumerate(sources) if source is not None}
    if len(position) < len(slots) - sources.count(None):
        raise check.refuse("kept", "name no slot twice", sources, _REMEDY, _OWNER)
    for source, index in position.items():
        base = old[source].residual_of
        if base is not None and base not in position:
            rule = f"keep slot {base}, whose residual slot {source} learns"
            remedy = "Keep both, or retire both."
            raise check.refuse("kept", rule, f"no {base}", remedy, _OWNER)
        expected = replace(old[source], residual_of=None if base is None else position[base])
        if slots[index] != expected:
            rule = f"continue slot {source} at {index}, which is {expected!r}"
            remedy = "Give an equal slot, with residual_of in the new order, or None in kept."
            raise check.refuse("slots", rule, slots[index], remedy, _OWNER)
    return sources


def _judged_like(
    settings: BankSettings,
    bank: _core.Bank | None,
    slots: Sequence[Slot],
    sources: Sequence[int | None],
    previous: Iterable[int | None] | None,
) -> list[int]:
    """For each slot the one before whose totals it continues, and like which it is judged."""
    chosen = [None] * len(slots) if previous is None else previous
    before_each = _indices("previous", chosen, len(slots), len(settings.slots))
    costs = Ledger.of(settings, bank).slot_costs()
    finite = np.isfinite(costs)
    highest = int(np.argmax(np.where(finite, costs, -np.inf)))
    result: list[int] = []
    for index, slot in enumerate(slots):
        before = before_each[index] if sources[index] is None else sources[index]
        if before is None and slot.residual_of is not None and slot.residual_of < index:
            before = result[slot.residual_of]
        # One that is out does not count: the one of highest cost among the others does.
        result.append(highest if before is None or not finite[before] else before)
    return result


def _indices(name: str, entries: object, count: int, slots: int) -> tuple[int | None, ...]:
    """For each of so many slots the index of one of the slots before, or None."""
    listed = tuple(entries) if isinstance(entries, Iterable) else ()
    if len(listed) != count:
        raise check.refuse(name, f"have one entry per slot ({count})", entries, _REMEDY, _OWNER)
    return tuple(
        None if e is None else check.count(name, e, _OWNER, _REMEDY, least=0, most=slots - 1)
        for e in listed
    )


def oldest_buffered(settings: BankSettings, samples: int) -> int:
    """The number of the oldest of `samples` samples that a bank still has."""
    filled = 0 if samples == 0 else (samples - 1) % _core.SLIDE_PERIOD + 1
    return max(settings.history.held_from, samples - filled - settings.history_length, 0)


def _buffered_samples(bank: _core.Bank, settings: BankSettings) -> Samples:
    """The samples that a bank still has."""
    samples, state = bank.samples, bank.state("samples/")
    end = settings.history_length + (samples - 1) % _core.SLIDE_PERIOD + 1
    rows = slice(end - (samples - oldest_buffered(settings, samples)), end)
    targets = [state[f"samples/output{k}/targets"][rows, 0] for k in range(settings.outputs)]
    return np.ascontiguousarray(state["samples/inputs"][:, rows].T), np.column_stack(targets)


def _first_bank(
    new: BankSettings, indices: Sequence[int], samples: int, X: Floats, y: Floats
) -> _core.Bank:
    """A bank of new slots that have learned these samples, the last of the `samples` so far."""
    place = {index: i for i, index in enumerate(indices)}
    slots = []
    for slot in (new.slots[index] for index in indices):
        base = slot.residual_of
        if base is not None and base not in place:  # that base goes on: the learner is on its own
            slots.append(replace(slot, residual_of=None, transform=None))
        else:
            slots.append(replace(slot, residual_of=None if base is None else place[base]))
    identities = tuple(new.history.identities[index] for index in indices)
    alone = replace(
        new,
        slots=tuple(slots),
        combiner=Uniform(),
        history=replace(SlotHistory.of(len(slots)), identities=identities),
        initial=None,
        dictionary=None,
        selection=None,
        first_sample=samples - len(X),
    )
    bank = _core.Bank(alone.describe(X.shape[1]))
    if len(X):
        bank.learn(X, y, None, {})
    else:
        bank.begin(np.zeros(X.shape[1]))
    return bank


# --- more inputs --------------------------------------------------------------------------------


def accepts_columns(slot: Slot, before: int, width: int) -> bool:
    """Whether a slot on `before` columns can use all of `width`, where the new ones were 0 so far.

    Its learner must know how, and the values of a pairwise kernel must not change by zeros.
    """
    if not slot.learner.accepts_new_inputs or not slot.kernel.pairwise:
        return slot.learner.accepts_new_inputs
    wide = np.zeros((5, width))
    wide[:, :before] = np.sin(np.arange(5.0 * before)).reshape(5, before)
    narrow = wide[:, :before].copy()
    try:
        return np.array_equal(slot.kernel(wide, wide), slot.kernel(narrow, narrow))
    except InvalidArgument:  # not for every width, or not for every number
        return False


def check_wider(old: BankSettings, old_dimension: int, new: BankSettings, dimension: int) -> None:
    """Refuse slots that cannot continue those of another bank on wider inputs."""
    remedy = "Give it a kernel on the columns that it knows."
    if len(old.slots) != len(new.slots):
        rule = f"be as many as there are ({len(old.slots)})"
        raise check.refuse("slots", rule, len(new.slots), "Give one slot for each.", "with_inputs")
    for index, (before, after) in enumerate(zip(old.slots, new.slots, strict=True)):
        columns = active_coordinates(after.kernel, dimension)
        old_columns = active_coordinates(before.kernel, old_dimension)
        base = replace(after, kernel=without_active_dims(after.kernel))
        more = columns[: len(old_columns)] == old_columns and accepts_columns(
            base, len(old_columns), len(columns)
        )
        alike = base == replace(before, kernel=without_active_dims(before.kernel))
        if not alike or not (columns == old_columns or more):
            rule = f"continue slot {index}, which is {before!r}"
            raise check.refuse("slots", rule, after, remedy, "with_inputs")
    if old.packs != new.packs:
        rule = "form the same groups as before"
        raise check.refuse("slots", rule, new.slots, remedy, "with_inputs")

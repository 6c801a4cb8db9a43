"""A change of slots, planned and checked: which go on, and the settings with the others.

`slot_changes` then makes the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..native.workspace import SLIDE_PERIOD
from ..utils import validation as check
from ..utils.validation import Floats
from .layout import Slot
from .naming import SlotNames
from .revision import Selection
from .settings import BankSettings
from .slot_history import SlotChange, SlotHistory

OWNER = "with_slots"
"""What errors name as the one that refuses."""

_REMEDY = "Give for each slot the index of the one that it continues, or None for a new one."


@dataclass(frozen=True)
class SlotPlan:
    """How the slots of a bank follow from those of the bank before it.

    kept[i] is the index of the slot that slot i continues, or None if slot i is new. previous[i] is
    the index of a slot of the bank before, which the totals of a new slot i start from and by which
    the combiner judges it at first.
    """

    kept: tuple[int | None, ...]
    previous: tuple[int, ...]

    @property
    def sources(self) -> np.ndarray:
        """(P,): the slot that is continued, or the previous one."""
        pairs = zip(self.kept, self.previous, strict=True)
        return np.array(
            [before if slot is None else slot for slot, before in pairs], dtype=np.int64
        )

    def retired(self, before: int) -> list[int]:
        """The slots, of so many before, that are not continued."""
        return sorted(set(range(before)) - set(self.kept))


def plan_change(
    settings: BankSettings,
    costs: Floats,
    slots: Sequence[Slot],
    kept: Iterable[int | None],
    previous: Iterable[int | None] | None,
) -> SlotPlan:
    """Check the arguments of `KernelBank.with_slots`. costs : (P,), the slots' cumulative costs."""
    old = settings.slots
    if settings.initial is not None:
        remedy = "Make the bank without it, or a new bank."
        rule = "be left out for a bank that changes its slots"
        raise check.refuse("initial", rule, len(settings.initial.points), remedy, OWNER)
    settings.combiner.check_slot_changes()
    known = _indices("kept", kept, len(slots), len(old))
    given = [i for i in known if i is not None]
    if len(set(given)) < len(given):
        raise check.refuse("kept", "name no slot twice", known, _REMEDY, OWNER)
    position = {before: index for index, before in enumerate(known) if before is not None}
    for index, before in enumerate(known):
        if before is not None:
            _check_continues(index, slots[index], before, old, position)
    chosen = (
        (None,) * len(slots)
        if previous is None
        else _indices("previous", previous, len(slots), len(old))
    )
    return SlotPlan(known, _previous(slots, known, chosen, costs))


def _indices(name: str, given: Any, count: int, slots: int) -> tuple[int | None, ...]:
    listed = tuple(given) if isinstance(given, Iterable) else ()
    if len(listed) != count:
        shown = len(listed) if isinstance(given, Iterable) else given
        raise check.refuse(name, f"have one entry per slot ({count})", shown, _REMEDY, OWNER)
    result: list[int | None] = []
    for entry in listed:
        index = None if entry is None else check.count(name, entry, OWNER, _REMEDY, least=0)
        if index is not None and index >= slots:
            rule = f"hold indices of the bank's slots, 0 to {slots - 1}"
            raise check.refuse(name, rule, entry, _REMEDY, OWNER)
        result.append(index)
    return tuple(result)


def _check_continues(
    index: int, slot: Slot, before: int, old: Sequence[Slot], position: Mapping[int, int]
) -> None:
    """Refuse a slot that is not the one it should continue."""
    base = old[before].residual_of
    if base is not None and base not in position:
        rule = f"keep slot {base}, whose residual slot {before} learns"
        remedy = "Keep both, or retire both."
        raise check.refuse("kept", rule, f"no {base}", remedy, OWNER)
    expected = replace(old[before], residual_of=None if base is None else position[base])
    if slot != expected:
        rule = f"continue slot {before} at {index}, which is {expected!r}"
        remedy = "Give an equal slot, with residual_of in the new order, or None in kept."
        raise check.refuse("slots", rule, slot, remedy, OWNER)


def _previous(
    slots: Sequence[Slot],
    kept: Sequence[int | None],
    chosen: Sequence[int | None],
    costs: Floats,
) -> tuple[int, ...]:
    """The previous slot of each: the given one, or that of its base, or the one of highest cost.

    One that is out does not count: the one of highest cost among the others does.
    """
    finite = np.isfinite(costs)
    highest = int(np.argmax(np.where(finite, costs, -np.inf)))
    result: list[int] = []
    for index, slot in enumerate(slots):
        before = chosen[index] if kept[index] is None else kept[index]
        base = slot.residual_of
        if before is None and base is not None and base < index:
            before = result[base]
        result.append(highest if before is None or not finite[before] else before)
    return tuple(result)


def changed_settings(
    settings: BankSettings,
    samples: int,
    slots: Iterable[Slot],
    plan: SlotPlan,
    reasons: Mapping[str, Mapping[int, str]],
    selection: Selection | None = None,
) -> BankSettings:
    """The settings of the new bank, with its history.

    reasons : why slots were "retired" and "added", by their indices.
    """
    made = settings.with_slots(slots)
    made = replace(made, dictionary=settings.dictionary, selection=selection)
    changes: list[SlotChange] = []
    added = [index for index, slot in enumerate(plan.kept) if slot is None]
    parts = (
        ("retired", plan.retired(len(settings.slots)), SlotNames(settings.slots)),
        ("added", added, SlotNames(made.slots)),
    )
    for kind, indices, names in parts:
        for index in indices:
            name = names[index].partition("] ")[2]
            reason = reasons.get(kind, {}).get(index, "")
            changes.append(SlotChange(samples, kind, index, name, reason))
    length = settings.layout.history_length(settings.objective)
    held = oldest_held(settings.history, length, samples)
    return made.with_history(settings.history.changed(plan.kept, samples, held, changes))


def oldest_held(history: SlotHistory, history_length: int, samples: int) -> int:
    """The number of the oldest sample in the buffer of a bank that has learned `samples`."""
    filled = 0 if samples == 0 else (samples - 1) % SLIDE_PERIOD + 1
    return max(history.held_from, samples - filled - history_length, 0)

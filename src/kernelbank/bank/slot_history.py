"""Which slots a bank has had: their identities, since when they count, and what has changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from ..errors import FileRefused
from .slot import Slot

MOST_CHANGES = 1000
"""How many changes are kept: the newest. A bank may change its slots without end."""


@dataclass(frozen=True)
class SlotChange:
    """A slot, or a group of slots of an AutoBank, that was added to a bank or retired from it.

    Parameters
    ----------
    sample : after how many samples.
    kind : "added" or "retired".
    index : of the slot: in the bank after the change if it was added, else in the one before it; in
        an AutoBank the index of the group's first slot in `names`, which are those of all slots.
    name : its kernel, and its method where methods differ; in an AutoBank the name of the group.
    reason : why, in a few words; may be empty.
    """

    sample: int
    kind: str
    index: int
    name: str
    reason: str = ""


def newest_changes(*changes: SlotChange) -> tuple[SlotChange, ...]:
    """The changes to keep, of all changes, oldest first."""
    return changes[-MOST_CHANGES:]


def parse_changes(specs: Any) -> tuple[SlotChange, ...]:
    """Changes from JSON data, of which each was made by `asdict`; ValueError if they cannot be."""
    changes = tuple(SlotChange(**spec) for spec in specs)
    check_counts(number for c in changes for number in (c.sample, c.index))
    if not all(isinstance(text, str) for c in changes for text in (c.kind, c.name, c.reason)):
        raise ValueError("a name in it is not a text")
    if len(changes) > MOST_CHANGES:
        raise ValueError("it has too many changes")
    return changes


@dataclass(frozen=True)
class SlotHistory:
    """What has happened to the slots of a bank. The slots that it starts with are 0, 1, ...

    Parameters
    ----------
    identities : of every slot, a number that no other slot of the bank has ever had. Random draws
        of a slot follow from it, so that it goes on as before when its index changes.
    since : for every slot, the number of samples after which it was added.
    next_identity : of the next slot that is added.
    held_from : the number of the oldest sample that the sample buffer can hold.
    changes : the newest changes, oldest first.
    change_count : how many changes there have been.
    """

    identities: tuple[int, ...]
    since: tuple[int, ...]
    next_identity: int
    held_from: int = 0
    changes: tuple[SlotChange, ...] = ()
    change_count: int = 0

    @classmethod
    def of(cls, slots: int) -> SlotHistory:
        """The history of a bank that has always had these slots."""
        return cls(tuple(range(slots)), (0,) * slots, slots)

    def changed(
        self,
        sources: Sequence[int | None],
        samples: int,
        held_from: int,
        changes: Sequence[SlotChange],
    ) -> SlotHistory:
        """The history after a change: new slot i continues slot sources[i], or is new."""
        fresh = count(self.next_identity)
        return SlotHistory(
            tuple(next(fresh) if p is None else self.identities[p] for p in sources),
            tuple(samples if p is None else self.since[p] for p in sources),
            next(fresh),
            held_from,
            newest_changes(*self.changes, *changes),
            self.change_count + len(changes),
        )

    def describe(self) -> dict[str, object]:
        """As JSON data; empty for a bank whose slots have never changed."""
        return {} if self == SlotHistory.of(len(self.since)) else {"slot_history": asdict(self)}

    @classmethod
    def parse(cls, header: Mapping[str, Any], slots: int) -> SlotHistory:
        """From a header with what `describe` returned, checked."""
        spec = header.get("slot_history")
        if spec is None:
            return cls.of(slots)
        try:
            result = cls(**{**tuples(spec), "changes": parse_changes(spec["changes"])})
            counts = (result.next_identity, result.held_from, result.change_count)
            check_counts([*result.identities, *result.since, *counts])
            if not len(result.identities) == len(result.since) == slots:
                raise ValueError("it does not fit the slots")
            identities = {*result.identities}
            if len(identities) < slots or result.next_identity <= max(identities):
                raise ValueError("two slots have the same identity")
        except (TypeError, ValueError, KeyError) as error:
            raise FileRefused(f"its slot_history is impossible: {error}.") from None
        return result

    def check(self, samples: int) -> None:
        """Refuse the history of a file that has learned only so many samples."""
        latest = max(*self.since, self.held_from, *(change.sample for change in self.changes))
        if latest > samples:
            raise FileRefused("its slot_history tells of samples that it has not learned.")


def tuples(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, with tuples for the lists of JSON."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in spec.items()}


def check_counts(numbers: Iterable[object], least: int = 0) -> None:
    """Refuse numbers of a file that are not whole numbers from `least` on."""
    if not all(type(number) is int and least <= number < 2**53 for number in numbers):
        raise ValueError(f"a number in it is not a whole number from {least} on")


@dataclass(frozen=True)
class Selection:
    """The groups of a pool that run, and what is remembered of all groups.

    Parameters
    ----------
    running : the groups that run, in the order of their slots in the bank.
    tries : for every group of the pool, how often it was started.
    retired : after how many samples it was retired last; 0 if never.
    idle : at how many revisions in a row, up to the last, it had too little weight; negative as
        long as it is too new to be judged.
    revised : after how many samples the last revision was.
    """

    running: tuple[int, ...]
    tries: tuple[int, ...]
    retired: tuple[int, ...]
    idle: tuple[int, ...]
    revised: int = 0

    @classmethod
    def first(cls, running: Sequence[int], pool: int) -> Selection:
        """The groups that run at the start, of so many in the pool."""
        tries = tuple(int(group in running) for group in range(pool))
        return cls(tuple(running), tries, (0,) * pool, (0,) * pool)

    def with_new(self, groups: Collection[int]) -> Selection:
        """The same with these groups too, sorted; they are not judged at the next revision."""
        idle = tuple(-1 if group in groups else count for group, count in enumerate(self.idle))
        return replace(self, running=tuple(sorted({*self.running, *groups})), idle=idle)

    def judge(self, samples: int, idle: Collection[int]) -> Selection:
        """The same at a revision after `samples`, where these of the running groups are idle."""
        counts = list(self.idle)
        for group in self.running:
            counts[group] = counts[group] + 1 if group in idle else 0
        return replace(self, idle=tuple(counts), revised=samples)

    def change(self, running: Sequence[int], grace: int = 0) -> Selection:
        """The selection of other groups, from now on.

        grace : at how many revisions the groups that are added are not judged.
        """
        tries, retired, idle = list(self.tries), list(self.retired), list(self.idle)
        following = replace(self, running=tuple(running))
        for kind, group in self.changes(following):
            if kind == "added":
                tries[group] += 1
                idle[group] = -grace
            else:
                retired[group], idle[group] = self.revised, 0
        return replace(following, tries=tuple(tries), retired=tuple(retired), idle=tuple(idle))

    def changes(self, following: Selection) -> list[tuple[str, int]]:
        """Which groups another selection has "retired" and "added"."""
        before, after = set(self.running), set(following.running)
        retired = [("retired", group) for group in sorted(before - after)]
        return retired + [("added", group) for group in sorted(after - before)]

    @classmethod
    def parse(cls, spec: Any, pool: int) -> Selection:
        """From what `asdict` returned, which may come from anybody, for a pool of that size."""
        try:
            result = cls(**tuples(spec))
            check_counts([*result.running, *result.tries, *result.retired, result.revised])
            check_counts(result.idle, least=-1)
            if {len(result.tries), len(result.retired), len(result.idle)} != {pool}:
                raise ValueError("it does not fit the pool")
            distinct = set(result.running)
            if not distinct or max(distinct) >= pool or len(distinct) < len(result.running):
                raise ValueError("these slots cannot run")
        except (AttributeError, TypeError, ValueError) as error:
            raise FileRefused(f"its selection of slots is impossible: {error}.") from None
        return result


def continued_slots(
    before: Mapping[int, Slot], after: Mapping[int, Slot], anew: Collection[int] = ()
) -> list[int | None]:
    """For each slot of a bank after a revision its index before it, or None if it starts.

    before, after : the slots of the bank in their order, by their indices in the pool. A slot goes
        on if it is the same but for the index of its base.
    anew : slots that start again in any case.
    """
    index = {member: place for place, member in enumerate(before) if member not in anew}
    return [
        index[member]
        if member in index and replace(before[member], residual_of=slot.residual_of) == slot
        else None
        for member, slot in after.items()
    ]

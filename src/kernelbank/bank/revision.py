"""Which slots of a pool run: what `AdaptiveDictionary` and the revisions of an AutoBank share.

A *pool* has more slots than a bank can run at a time. They come in *groups*, which start and stop
together: one slot, or several that share most of their work. With c_g the cost of a group and C the
limit of the pool, groups R run as long as

    sum of c_g over g in R <= C.

After fixed numbers of samples a rule *revises* R: from the weights since the last revision it says
which running groups have too little weight, which of them stay, and which others are tried. There
are two rules: that of an `AdaptiveDictionary`, whose groups are kernels, with c_g = 1 and C = size;
and that of an AutoBank (`auto.slots`), where c_g is a time. A `Selection` is what a
rule starts from and what it returns. Rules depend on weights and on numbers of samples alone, so
that no bit depends on how a stream is cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import FileRefused
from .slot import Slot
from .slot_history import check_counts, tuples


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

    def describe(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @classmethod
    def parse(cls, spec: Any, pool: int) -> Selection:
        """From what `describe` returned, which may come from anybody, for a pool of that size."""
        try:
            found = cls(**tuples(spec))
            check_counts([*found.running, *found.tries, *found.retired, found.revised])
            check_counts(found.idle, least=-1)
            if {len(found.tries), len(found.retired), len(found.idle)} != {pool}:
                raise ValueError("it does not fit the pool")
            distinct = set(found.running)
            if not distinct or max(distinct) >= pool or len(distinct) < len(found.running):
                raise ValueError("these slots cannot run")
        except (AttributeError, TypeError, ValueError) as error:
            raise FileRefused(f"its selection of slots is impossible: {error}.") from None
        return found


def continued_slots(
    before: Mapping[int, Slot], after: Mapping[int, Slot], anew: Collection[int] = ()
) -> list[int | None]:
    """For each slot of a bank after a revision its index before it, or None if it starts.

    before, after : the slots of the bank in their order, by their indices in the pool. A slot goes
        on if it is the same but for the index of its base.
    anew : slots that start again in any case.
    """
    indices = {member: index for index, member in enumerate(before)}
    return [
        indices[member]
        if member in before
        and member not in anew
        and replace(before[member], residual_of=slot.residual_of) == slot
        else None
        for member, slot in after.items()
    ]

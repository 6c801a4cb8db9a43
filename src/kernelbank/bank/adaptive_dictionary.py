"""`AdaptiveDictionary`: a few kernels of a large pool run at a time; some are exchanged regularly.

Everything is decided from the weights since the last revision, at fixed sample numbers. So the
result does not depend on how the stream is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import floor
from typing import Any

import numpy as np

from ..errors import FileRefused
from ..kernels import Kernel
from ..kernels.dictionary import Dictionary
from ..utils import validation as check
from ..utils.validation import Floats

_OWNER = "AdaptiveDictionary"


@dataclass(frozen=True)
class AdaptiveDictionary:
    """A pool of kernels of which `size` run at a time: those without weight give way to others.

    A large dictionary costs time in proportion to its kernels, and most of them have no weight.
    This one costs about as much as `size` kernels, and in the course of the stream tries the whole
    pool. Give it to `KernelBank` in the place of a dictionary.

    The first kernels are `size` of the pool, evenly spaced in its order. After every `every`
    samples the bank is revised:

    1. With s_p the mean of |w_p| over the samples since the last revision, divided by its sum over
       all slots, a slot is idle if s_p < threshold / size. A slot that has been idle at `patience`
       revisions in a row, or is quarantined, is retired; the least s_p first, equal ones by index;
       at most retire * size slots (rounded down, but one at least), and no more than the pool can
       replace.
    2. In the place of each comes another kernel of the pool that is not running, in turn by

       - refinement: near a kernel of the highest s_p; the next refinement of this revision goes
         by the second highest, and so on. Of kernels at the distance d in the order of the pool
         that have been run r times, it is the one of least d (1 + r);
       - exploration: the one that has been run the fewest times. Among those that have never been
         run, it is the farthest from all that have; else the one that was retired longest ago.

       Equal ones by their order in the pool. So order the pool such that neighbours are alike.
    3. A new slot learns the samples that the bank still holds, at most 256 and the budget or the
       window, before it takes part; it counts in the combiner and the ledger like the slot in whose
       place it comes (see `KernelBank.with_slots`).

    `bank.ledger.slot_changes` lists what was retired and added, and why.

    Parameters
    ----------
    kernels : the pool, a `Dictionary` or a list of kernels, of at least `size`; kept as a tuple.
    size : how many run at a time.
    every : samples between revisions. A multiple of 256 lets new slots learn most samples at once.
        A revision takes some milliseconds; on Ray, where it starts new processes, seconds.
    threshold : a slot is idle below this part of an equal share of the weight; 0 to 1.
    retire : the largest part of the slots to retire at once, above 0 and at most 1.
    patience : at how many revisions in a row a slot must be idle.

    >>> import kernelbank as kb
    >>> pool = kb.gaussian_grid(0.01, 100, 200)
    >>> bank = kb.KernelBank(kb.AdaptiveDictionary(pool, size=10, every=256))
    >>> x, y = kb.datasets.ar1(seed=0, samples=1000)
    >>> trace = bank.run(x, y)
    >>> len(bank.slots), bank.ledger.slot_changes[0].sample, bank.ledger.slot_change_count
    (10, 512, 4)
    """

    kernels: tuple[Kernel, ...]
    size: int
    every: int = 1024
    threshold: float = 0.1
    retire: float = 0.25
    patience: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(Dictionary(self.kernels)))
        check.settings(
            self,
            size=check.whole("Give how many kernels run at a time."),
            every=check.whole("Give the samples between revisions, such as 1024."),
            threshold=check.fraction(0.1),
            retire=check.fraction(0.25, positive=True),
            patience=check.whole("Give 1, or more to keep idle slots for longer."),
        )
        if self.size > len(self.kernels):
            rule = f"be at most the number of kernels in the pool ({len(self.kernels)})"
            remedy = "Give more kernels, or a smaller size."
            raise check.refuse("size", rule, self.size, remedy, _OWNER)

    def __repr__(self) -> str:
        pool = len(self.kernels)
        return f"AdaptiveDictionary({pool} kernels, size={self.size}, every={self.every})"

    def first_members(self) -> DictionaryState:
        """The kernels that run at the start."""
        pool, size = len(self.kernels), self.size
        if size == 1:
            members = [(pool - 1) // 2]
        else:
            members = [(2 * i * (pool - 1) + size - 1) // (2 * (size - 1)) for i in range(size)]
        runs = tuple(int(k in members) for k in range(pool))
        return DictionaryState(tuple(members), runs, (0,) * pool, (0,) * size)

    def is_due(self, state: DictionaryState, samples: int) -> bool:
        """Whether a revision has to follow this number of samples."""
        return samples > state.revised and samples % self.every == 0

    def until_revision(self, samples: int) -> int:
        """How many samples there are until the next revision."""
        return self.every - samples % self.every

    def revise(
        self, state: DictionaryState, weight_sums: Floats, out: tuple[int, ...], samples: int
    ) -> Revision:
        """Decide what is retired and what comes in its place.

        weight_sums : (size,), sums of |w_p| since the last revision. out : the slots that are
        quarantined. samples : how many have been learned.
        """
        total = float(np.cumsum(weight_sums)[-1])
        shares = weight_sums / total if total > 0 else np.full(self.size, 1.0 / self.size)
        idle = [s < self.threshold / self.size for s in shares.tolist()]
        counts = tuple(n + 1 if quiet else 0 for n, quiet in zip(state.idle, idle, strict=True))
        order = sorted(range(self.size), key=lambda p: (p not in out, shares[p], p))
        most = min(max(1, floor(self.retire * self.size)), len(self.kernels) - self.size)
        places = [p for p in order if p in out or counts[p] >= self.patience][:most]
        revision = _Exchange(self, state, shares, counts, samples)
        for place in places:
            revision.retire(place, "quarantined" if place in out else "idle")
        for place in places:
            revision.replace(place)
        return revision.result()


@dataclass(frozen=True)
class DictionaryState:
    """Which kernels of the pool run, and which have been tried.

    members: for every slot its kernel's index in the pool; runs: how often each kernel of the pool
    was started; retired: after how many samples each was last retired; idle: at how many revisions
    in a row each slot was idle; revised: the sample number of the last revision; replaced: how many
    kernels have been exchanged so far.
    """

    members: tuple[int, ...]
    runs: tuple[int, ...]
    retired: tuple[int, ...]
    idle: tuple[int, ...]
    revised: int = 0
    replaced: int = 0

    def describe(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @classmethod
    def parse(cls, spec: Mapping[str, Any], dictionary: AdaptiveDictionary) -> DictionaryState:
        """From what `describe` returned, checked."""
        try:
            lists: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()
            }
            found = cls(**lists)
            numbers = [*found.members, *found.runs, *found.retired, *found.idle]
            numbers += [found.revised, found.replaced]
            if not all(type(number) is int and 0 <= number < 2**53 for number in numbers):
                raise ValueError("a number in it is not a whole number from 0 on")
            pool, size = len(dictionary.kernels), dictionary.size
            lengths = [len(v) for v in (found.members, found.runs, found.retired, found.idle)]
            if lengths != [size, pool, pool, size]:
                raise ValueError("it does not fit the pool")
            if len(set(found.members)) < size or max(found.members) >= pool:
                raise ValueError("its members are not in the pool")
        except (AttributeError, TypeError, ValueError) as error:
            raise FileRefused(f"its dictionary_state is impossible: {error}.") from None
        return found


@dataclass(frozen=True)
class Revision:
    """What a revision changes: the state after it, and the reasons by slot."""

    state: DictionaryState
    retired: dict[int, str]
    added: dict[int, str]


class _Exchange:
    """A revision while it is made."""

    def __init__(
        self,
        dictionary: AdaptiveDictionary,
        state: DictionaryState,
        shares: Floats,
        idle: tuple[int, ...],
        samples: int,
    ) -> None:
        self._state, self._shares, self._samples = state, shares, samples
        self._pool = len(dictionary.kernels)
        self._members: list[int | None] = list(state.members)
        self._left: set[int] = set()
        self._runs, self._retired, self._idle = list(state.runs), list(state.retired), list(idle)
        self._replaced, self._refined = state.replaced, 0
        self._reasons: tuple[dict[int, str], dict[int, str]] = {}, {}

    def retire(self, place: int, why: str) -> None:
        """Let the kernel of a slot go."""
        member = self._state.members[place]
        self._members[place] = None
        self._left.add(member)
        self._retired[member] = self._samples
        share = f"{why}: {self._shares[place]:.2%} of the weight"
        self._reasons[0][place] = share if why == "idle" else why

    def replace(self, place: int) -> None:
        """Give a free slot another kernel of the pool, not one that has just been retired."""
        running = {member for member in self._members if member is not None}
        free = [k for k in range(self._pool) if k not in running and k not in self._left]
        refines = self._replaced % 2 == 0 and self._parents()
        chosen, why = self._refine(free) if refines else self._explore(free)
        self._members[place] = chosen
        self._runs[chosen] += 1
        self._idle[place] = 0
        self._replaced += 1
        self._reasons[1][place] = why

    def _parents(self) -> list[int]:
        """The slots that go on and have weight, the highest share first."""
        known = [p for p, m in enumerate(self._members) if m == self._state.members[p]]
        known = [p for p in known if self._shares[p] > 0]
        return sorted(known, key=lambda p: (-self._shares[p], p))

    def _refine(self, free: list[int]) -> tuple[int, str]:
        parents = self._parents()
        slot = parents[self._refined % len(parents)]
        self._refined += 1
        member = self._state.members[slot]
        chosen = min(free, key=lambda k: (abs(k - member) * (1 + self._runs[k]), k))
        return chosen, f"refinement near slot {slot}"

    def _explore(self, free: list[int]) -> tuple[int, str]:
        fewest = min(self._runs[k] for k in free)
        rarest = [k for k in free if self._runs[k] == fewest]
        if fewest:
            return min(rarest, key=lambda k: (self._retired[k], k)), "exploration"
        tried = np.flatnonzero(self._runs)
        return min(rarest, key=lambda k: (-int(np.abs(tried - k).min()), k)), "exploration"

    def result(self) -> Revision:
        members = tuple(m for m in self._members if m is not None)
        state = DictionaryState(
            members,
            tuple(self._runs),
            tuple(self._retired),
            tuple(self._idle),
            self._samples,
            self._replaced,
        )
        return Revision(state, *self._reasons)

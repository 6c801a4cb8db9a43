"""`AdaptiveDictionary`: a few kernels of a large pool run at a time, and some are exchanged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, dataclass
from math import floor

import numpy as np

from ..kernels import Kernel, kernel_list
from ..utils import validation as check
from ..utils.validation import Floats
from .slot_history import Selection

_OWNER = "AdaptiveDictionary"


@dataclass(frozen=True)
class AdaptiveDictionary(check.Settings):
    """A pool of kernels of which `size` run at a time: those without weight give way to others.

    A large dictionary costs time in proportion to its kernels, and most of them have no weight.
    This one costs about as much as `size` kernels, and in the course of the stream tries the whole
    pool. Give it to `KernelBank` in the place of a dictionary.

    The first kernels are `size` of the pool, evenly spaced in its order. After every `every`
    samples slots without weight are retired, and other kernels come in their place: in turn one
    near a kernel with much weight, and one that has been run least. So order the pool such that
    neighbours are alike. docs/adaptive-dictionary.md has the rule; `bank.ledger.slot_changes` lists
    what was retired and added, and why.

    Parameters
    ----------
    kernels : the pool, a list of kernels, of at least `size`; kept as a tuple.
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
    size: int = check.count_field(MISSING, "Give how many kernels run at a time.")
    every: int = check.count_field(1024, "Give the samples between revisions, such as 1024.")
    threshold: float = check.number_field(0.1, least=0, most=1)
    retire: float = check.number_field(0.25, above=0, most=1)
    patience: int = check.count_field(1, "Give 1, or more to keep idle slots for longer.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(kernel_list(self.kernels, "kernels", _OWNER)))
        super().__post_init__()
        if self.size > len(self.kernels):
            rule = f"be at most the number of kernels in the pool ({len(self.kernels)})"
            raise self._refuse("size", rule, "Give more kernels, or a smaller size.")

    def __repr__(self) -> str:
        pool = len(self.kernels)
        return f"AdaptiveDictionary({pool} kernels, size={self.size}, every={self.every})"

    def first_selection(self) -> Selection:
        """The kernels that run at the start."""
        pool, size = len(self.kernels), self.size
        if size == 1:
            return Selection.first([(pool - 1) // 2], pool)
        slots = range(size)
        evenly = [(2 * i * (pool - 1) + size - 1) // (2 * (size - 1)) for i in slots]
        return Selection.first(evenly, pool)

    def is_due(self, selection: Selection, samples: int) -> bool:
        """Whether a revision has to follow this number of samples."""
        return samples > selection.revised and samples % self.every == 0

    def until_revision(self, samples: int) -> int:
        """How many samples there are until the next revision."""
        return self.every - samples % self.every

    def note(self, selection: Selection | None) -> str:
        """How many kernels of the pool run, have run and have been exchanged."""
        tries = () if selection is None else selection.tries
        return (
            f"{self.size} of {len(self.kernels):,} kernels; {sum(n > 0 for n in tries):,} tried, "
            f"{sum(tries) - self.size:,} exchanged"
        )

    def revise(
        self, before: Selection, weight_sums: Floats, out: Collection[int], samples: int
    ) -> tuple[Selection, dict[int, str]]:
        """The selection after a revision, and by kernel why it was retired or added.

        weight_sums : (size,), sums of |w_p| since the last revision. out : the slots that are
        quarantined. samples : how many have been learned.
        """
        total = float(np.cumsum(weight_sums)[-1])
        shares = (weight_sums / total if total > 0 else np.full(self.size, 1 / self.size)).tolist()
        running, slots = list(before.running), range(self.size)
        least = self.threshold / self.size
        judged = before.judge(samples, [running[p] for p in slots if shares[p] < least])
        tired = [p for p in slots if p in out or judged.idle[running[p]] >= self.patience]
        tired.sort(key=lambda p: (p not in out, shares[p], p))
        most = min(max(1, floor(self.retire * self.size)), len(self.kernels) - self.size)
        places = tired[:most]
        parents = [p for p in slots if p not in places and shares[p] > 0]
        parents.sort(key=lambda p: (-shares[p], p))
        reasons, refined = {}, 0
        for exchanged, p in enumerate(places, sum(before.tries) - self.size):
            share = f"idle: {shares[p]:.2%} of the weight"
            reasons[running[p]] = "quarantined" if p in out else share
            taken = {*before.running, *running}
            free = [k for k in range(len(self.kernels)) if k not in taken]
            if exchanged % 2 == 0 and parents:
                parent = parents[refined % len(parents)]
                refined += 1
                running[p] = _nearest(before, free, before.running[parent])
                reasons[running[p]] = f"refinement near slot {parent}"
            else:
                running[p] = _least_tried(before, free, taken)
                reasons[running[p]] = "exploration"
        return judged.change(running), reasons


def _nearest(before: Selection, free: Collection[int], kernel: int) -> int:
    """The kernel of least d (1 + r), at the distance d from another, that was run r times."""
    return min(free, key=lambda k: (abs(k - kernel) * (1 + before.tries[k]), k))


def _least_tried(before: Selection, free: Collection[int], taken: Collection[int]) -> int:
    """The kernel that was run least often: the farthest of new ones, the longest retired of old."""
    fewest = min(before.tries[k] for k in free)
    rarest = [k for k in free if before.tries[k] == fewest]
    if fewest:
        return min(rarest, key=lambda k: (before.retired[k], k))
    tried = np.array([k for k, tries in enumerate(before.tries) if tries or k in taken])
    return min(rarest, key=lambda k: (-int(np.abs(tried - k).min()), k))

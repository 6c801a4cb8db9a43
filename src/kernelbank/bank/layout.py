"""How slots are laid out: groups of one kind, cut into leaves of up to four.

The layout depends on the slots alone, not on engines or shards. Every sum over slots is taken
inside its leaf and then in the order of the leaves, so it has the same bits however the leaves are
spread over shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..kernels.dictionary import Dictionary, gaussian_grid
from ..learners import Learner, Norma, Residual
from ..losses.objective import Objective
from ..native.simd import WIDTH
from ..utils import validation as check


@dataclass(frozen=True)
class Slot:
    """One function estimate: a kernel and the single-kernel method that learns with it.

    >>> import kernelbank as kb
    >>> slot = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma(learning_rate=0.1))
    >>> slot.kernel
    Gaussian(width=1.0)
    """

    kernel: Kernel
    learner: Learner

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            remedy = "Use one of kb.kernels, or kb.kernels.Custom for your own."
            raise check.refuse("kernel", "be a kernel", self.kernel, remedy, "Slot")
        if not isinstance(self.learner, Learner):
            remedy = "Use one of kb.learners, such as kb.learners.Norma()."
            raise check.refuse("learner", "be a learner", self.learner, remedy, "Slot")


def given_slots(slots: Any, owner: str, remedy: str) -> tuple[Slot, ...]:
    """Slots of the user's own, checked."""
    listed = tuple(slots) if isinstance(slots, Iterable) else ()
    if not listed or not all(isinstance(slot, Slot) for slot in listed):
        raise check.refuse("slots", "be a list of at least one Slot", slots, remedy, owner)
    return listed


def bank_slots(dictionary: Any, learner: Any, slots: Any) -> tuple[Slot, ...]:
    """The slots of a bank, given one by one or as kernels with a learner for all."""
    remedy = "Give a list of kb.Slot(kernel, learner), without dictionary and learner."
    if slots is not None:
        if dictionary is not None or learner is not None:
            raise check.refuse("slots", "stand alone", slots, remedy, "KernelBank")
        return given_slots(slots, "KernelBank", remedy)
    chosen = gaussian_grid(0.1, 10, 20) if dictionary is None else dictionary
    if not isinstance(chosen, Dictionary):
        chosen = Dictionary([chosen] if isinstance(chosen, Kernel) else chosen)
    method = Norma() if learner is None else learner
    return tuple(Slot(kernel, method) for kernel in chosen)


@dataclass(frozen=True)
class Leaf:
    """Up to four slots that run side by side, by their places in the bank."""

    group: int
    number: int
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Slots in groups and leaves."""

    slots: tuple[Slot, ...]
    learners: tuple[Learner, ...]
    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, slots: Iterable[Slot]) -> Layout:
        """Group slots of equal kernel shape and learner, in order of first appearance."""
        members: dict[tuple[Any, ...], list[int]] = {}
        ordered = tuple(slots)
        for place, slot in enumerate(ordered):
            if isinstance(slot.learner, Residual) and slot.learner.base >= place:
                remedy = f"This is slot {place}: give the place of one before it."
                base = slot.learner.base
                raise check.refuse("base", "be the place of an earlier slot", base, remedy)
        for place, slot in enumerate(ordered):
            members.setdefault((slot.kernel.structure_key, slot.learner), []).append(place)
        leaves: list[Leaf] = []
        learners: list[Learner] = []
        for number, ((_, learner), places) in enumerate(members.items()):
            learners.append(learner)
            width = learner.leaf_width
            for start in range(0, len(places), width):
                leaves.append(Leaf(number, len(leaves), tuple(places[start : start + width])))
        return cls(ordered, tuple(learners), tuple(leaves))

    def history_length(self, objective: Objective) -> int:
        """How many past inputs the slots need."""
        return max(
            objective.window, *(learner.history_length(objective) for learner in self.learners)
        )

    def columns(self, leaves: list[Leaf]) -> np.ndarray:
        """(leaves, 4): the place of every lane's slot, -1 for an empty lane."""
        columns = np.full((len(leaves), WIDTH), -1, dtype=np.int64)
        for row, leaf in enumerate(leaves):
            columns[row, : len(leaf.slots)] = leaf.slots
        return columns

    def kernels(self, leaves: list[Leaf]) -> list[list[Kernel]]:
        return [[self.slots[place].kernel for place in leaf.slots] for leaf in leaves]

    def dependency_groups(self, leaves: Iterable[Leaf]) -> list[list[Leaf]]:
        """The leaves in bunches that must stay together: one, and those that stand on its slots."""
        leaf_of = {place: leaf for leaf in self.leaves for place in leaf.slots}
        root_of: dict[int, int] = {}
        bunches: dict[int, list[Leaf]] = {}
        for leaf in leaves:
            learner = self.learners[leaf.group]
            root = leaf.number
            if isinstance(learner, Residual):
                root = root_of[leaf_of[learner.base].number]
            root_of[leaf.number] = root
            bunches.setdefault(root, []).append(leaf)
        return list(bunches.values())

    def first_kernel(self, group: int) -> Kernel:
        """The kernel of the group's first slot; the others have the same shape."""
        return self.slots[self.leaves[self.first_leaves[group]].slots[0]].kernel

    @property
    def row_kernels(self) -> list[Kernel]:
        """The kernels of slots whose learners use rows of kernel values."""
        return [slot.kernel for slot in self.slots if slot.learner.uses_kernel_rows]

    @cached_property
    def first_leaves(self) -> dict[int, int]:
        """The number of every group's first leaf; its others follow it."""
        return {leaf.group: leaf.number for leaf in reversed(self.leaves)}

"""How slots are laid out: groups of one kind, cut into leaves of up to four.

The layout depends on the slots alone, not on engines or shards. Every sum over slots is taken
inside its leaf and then in the order of the leaves, so it has the same bits however the leaves are
spread over shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..kernels.dictionary import Dictionary, gaussian_grid
from ..learners import Learner, Norma
from ..losses import Loss, as_loss
from ..losses.objective import Objective
from ..native.simd import WIDTH
from ..transforms import TargetTransform
from ..utils import validation as check
from ..utils.validation import Floats
from .initial import InitialFunction


@dataclass(frozen=True)
class Slot:
    """One function estimate of a bank: a kernel and the online method that learns with it.

    Parameters
    ----------
    kernel : one of `kb.kernels`.
    learner : one of `kb.learners`.
    loss : the loss by which this slot learns, or its name; by default the bank's. A built-in loss
        for all numbers. The bank still judges the slot by its own loss: a second-order learner,
        which needs a curvature, can so be a slot of a bank for the absolute loss. It then aims
        at what its own loss aims at (the mean, not the median).
    residual_of : index, from 0, of an earlier slot of the bank. With b the function of that slot
        before it learned the sample, this slot learns y - b(x), and its function is b + its own.
        norm^2 is the sum of both. Cost and memory: those of the learner; the base runs only once.
    transform : one of `kb.transforms`, T. The slot learns T(y), and its function is T^-1 of what it
        has found; with a base b it learns T(y) - T(b(x)). The bank judges it by its predictions of
        y. T^-1 of a mean is not the mean, but near it where errors are small beside the bend of T.

    >>> import numpy as np
    >>> import kernelbank as kb
    >>> line = kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
    >>> rest = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.KRLS(), residual_of=0)
    >>> bank = kb.KernelBank(slots=[line, rest])
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, n / 10 + (n % 20 < 10))
    >>> bool(bank.ledger.slot_loss[1] < bank.ledger.slot_loss[0])
    True

    >>> growth = kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS(),
    ...                  transform=kb.transforms.ShiftedLog(1.0))
    >>> bank = kb.KernelBank(slots=[line, growth])
    >>> for n in range(100):
    ...     bank.learn_one(n / 50, np.expm1(n / 50))
    >>> bool(bank.ledger.slot_loss[1] < 0.1 * bank.ledger.slot_loss[0])
    True

    >>> slow = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierSGD())
    >>> quick = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.KRLS(), loss="squared")
    >>> bank = kb.KernelBank(slots=[slow, quick], loss="absolute")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, n % 20 < 10)
    >>> bool(bank.ledger.slot_loss[1] < bank.ledger.slot_loss[0])
    True
    """

    kernel: Kernel
    learner: Learner
    loss: Loss | None = None
    residual_of: int | None = None
    transform: TargetTransform | None = None

    def __post_init__(self) -> None:
        owner = "Slot"
        if not isinstance(self.kernel, Kernel):
            remedy = "Use one of kb.kernels, or kb.kernels.Custom for your own."
            raise check.refuse("kernel", "be a kernel", self.kernel, remedy, owner)
        if not isinstance(self.learner, Learner):
            remedy = "Use one of kb.learners, such as kb.learners.Norma()."
            raise check.refuse("learner", "be a learner", self.learner, remedy, owner)
        if self.loss is not None:
            loss = as_loss(self.loss)
            if not loss.any_target or loss.callbacks:
                # Targets may be any numbers; and only the bank's own functions report errors.
                remedy = 'Use "squared" or another loss for all numbers; Custom is for the bank.'
                rule = "be a built-in loss for all numbers"
                raise check.refuse("loss", rule, loss, remedy, owner)
            object.__setattr__(self, "loss", loss)
        if self.residual_of is not None:
            remedy = "Give the index, from 0, of an earlier slot of the bank, or None."
            base = check.count("residual_of", self.residual_of, owner, remedy, least=0)
            object.__setattr__(self, "residual_of", base)
        if self.transform is not None and not isinstance(self.transform, TargetTransform):
            remedy = "Use one of kb.transforms, such as kb.transforms.ShiftedLog(2.0), or None."
            rule = "be a transform of the target"
            raise check.refuse("transform", rule, self.transform, remedy, owner)


def given_slots(slots: Any, owner: str, remedy: str) -> tuple[Slot, ...]:
    """The slots that a user gives, checked."""
    listed = tuple(slots) if isinstance(slots, Iterable) else ()
    if not listed or not all(isinstance(slot, Slot) for slot in listed):
        raise check.refuse("slots", "be a list of at least one Slot", slots, remedy, owner)
    return listed


def bank_slots(dictionary: Any, learner: Any, slots: Any) -> tuple[Slot, ...]:
    """The slots of a bank, given one by one or as kernels with a learner for all."""
    remedy = "Give a list of kb.Slot(kernel, learner), without dictionary and learner."
    if slots is not None:
        if dictionary is not None or learner is not None:
            raise check.refuse("slots", "be given alone", slots, remedy, "KernelBank")
        return given_slots(slots, "KernelBank", remedy)
    chosen = gaussian_grid(0.1, 10, 20) if dictionary is None else dictionary
    if not isinstance(chosen, Dictionary):
        chosen = Dictionary([chosen] if isinstance(chosen, Kernel) else chosen)
    method = Norma() if learner is None else learner
    return tuple(Slot(kernel, method) for kernel in chosen)


@dataclass(frozen=True)
class Leaf:
    """Up to four slots that run side by side, by their indices in the bank."""

    group: int
    number: int
    slots: tuple[int, ...]


@dataclass(frozen=True)
class GroupSettings:
    """What the slots of a group share, beside the structure of their kernels."""

    learner: Learner
    loss: Loss | None
    residual_of: int | None
    transform: TargetTransform | None = None

    @property
    def has_own_targets(self) -> bool:
        """Whether the learner has another target than the bank: see `slot_targets`."""
        return self.residual_of is not None or self.transform is not None

    def objective(self, objective: Objective) -> Objective:
        """The objective by which these slots learn, in a bank with that objective."""
        return objective if self.loss is None else replace(objective, loss=self.loss)

    def check(self, objective: Objective) -> None:
        """Refuse an objective of the bank that these slots cannot work with."""
        own = self.objective(objective)
        self.learner.check(own)
        if self.has_own_targets and not own.loss.any_target:
            remedy = 'Use a loss for regression, or kb.Slot(..., loss="squared") for these slots.'
            rule = "be one for all numbers where slots learn a residual or have a transform"
            raise check.refuse("loss", rule, own.loss, remedy)


@dataclass(frozen=True)
class Layout:
    """Slots in groups and leaves."""

    slots: tuple[Slot, ...]
    groups: tuple[GroupSettings, ...]
    leaves: tuple[Leaf, ...]
    initial: InitialFunction | None = None
    identities: tuple[int, ...] = ()
    """Of every slot: random draws follow from it; see `SlotHistory`. Empty: the slots' indices."""
    first_sample: int = 0
    """Number of the first sample that the slots learn. Not 0 only where new slots learn samples
    that their bank has learned before."""

    @property
    def initial_points(self) -> Floats | None:
        """(m, d): the points of the initial function, if there is one."""
        return None if self.initial is None else self.initial.points

    def check_initial(self, objective: Objective) -> None:
        """Refuse an initial function that a slot cannot start from."""
        if self.initial is None:
            return
        for group in self.groups:
            if group.has_own_targets:
                remedy = "Leave it out, or use slots without residual_of and transform."
                rule = "be left out for slots that learn a residual or have a transform"
                raise check.refuse("initial", rule, len(self.initial.points), remedy)
            group.learner.check_initial(group.objective(objective), len(self.initial.points))

    @classmethod
    def of(cls, slots: Iterable[Slot]) -> Layout:
        """Group slots of equal settings and kernel structure, in order of first appearance."""
        members: dict[tuple[Any, GroupSettings], list[int]] = {}
        ordered = tuple(slots)
        for index, slot in enumerate(ordered):
            if slot.residual_of is not None and slot.residual_of >= index:
                rule = "be the index of an earlier slot"
                remedy = f"This is slot {index}: give the index of one before it."
                raise check.refuse("residual_of", rule, slot.residual_of, remedy)
            settings = GroupSettings(slot.learner, slot.loss, slot.residual_of, slot.transform)
            members.setdefault((slot.kernel.structure_key, settings), []).append(index)
        leaves: list[Leaf] = []
        for number, ((_, settings), indices) in enumerate(members.items()):
            width = settings.learner.leaf_width
            for start in range(0, len(indices), width):
                leaves.append(Leaf(number, len(leaves), tuple(indices[start : start + width])))
        return cls(ordered, tuple(settings for _, settings in members), tuple(leaves))

    def history_length(self, objective: Objective) -> int:
        """How many past inputs the slots need."""
        lengths = (g.learner.history_length(g.objective(objective)) for g in self.groups)
        return max(objective.window, *lengths)

    def columns(self, leaves: list[Leaf]) -> np.ndarray:
        """(leaves, 4): the index of every lane's slot, -1 for an empty lane."""
        columns = np.full((len(leaves), WIDTH), -1, dtype=np.int64)
        for row, leaf in enumerate(leaves):
            columns[row, : len(leaf.slots)] = leaf.slots
        return columns

    def identity_columns(self, leaves: list[Leaf]) -> np.ndarray:
        """(leaves, 4): the identity of every lane's slot, -1 for an empty lane."""
        columns = self.columns(leaves)
        if not self.identities:
            return columns
        return np.where(columns >= 0, np.array(self.identities, dtype=np.int64)[columns], -1)

    def place(self, index: int) -> tuple[int, int, int]:
        """Group of a slot, number of its leaf in the group, and lane."""
        leaf = self._leaf_of[index]
        return leaf.group, leaf.number - self.first_leaves[leaf.group], leaf.slots.index(index)

    def kernels(self, leaves: list[Leaf]) -> list[list[Kernel]]:
        """The kernels of the slots of every leaf."""
        return [[self.slots[index].kernel for index in leaf.slots] for leaf in leaves]

    def dependency_groups(self, leaves: Iterable[Leaf]) -> list[list[Leaf]]:
        """The leaves in lists that must stay in one shard: a leaf, and those on its residuals."""
        leaf_of = self._leaf_of
        root_of: dict[int, int] = {}
        found: dict[int, list[Leaf]] = {}
        for leaf in leaves:
            base = self.groups[leaf.group].residual_of
            root = leaf.number if base is None else root_of[leaf_of[base].number]
            root_of[leaf.number] = root
            found.setdefault(root, []).append(leaf)
        return list(found.values())

    def first_kernel(self, group: int) -> Kernel:
        """The kernel of the group's first slot; the others have the same structure."""
        return self.slots[self.leaves[self.first_leaves[group]].slots[0]].kernel

    @property
    def row_kernels(self) -> list[Kernel]:
        """The kernels of slots whose learners use rows of kernel values."""
        return [slot.kernel for slot in self.slots if slot.learner.uses_kernel_rows]

    @cached_property
    def _leaf_of(self) -> dict[int, Leaf]:
        """The leaf of every slot."""
        return {index: leaf for leaf in self.leaves for index in leaf.slots}

    @cached_property
    def first_leaves(self) -> dict[int, int]:
        """The number of every group's first leaf; its others follow it."""
        return {leaf.group: leaf.number for leaf in reversed(self.leaves)}

"""`Slot`: one function estimate of a bank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..kernels import Kernel
from ..kernels.dictionary import Dictionary, gaussian_grid
from ..learners import Learner, Norma
from ..losses import Custom, Loss, as_loss
from ..losses.objective import Objective
from ..transforms import TargetTransform
from ..utils import validation as check


class Method(NamedTuple):
    """How a slot learns: all of it but the kernel."""

    learner: Learner
    loss: Loss | None
    residual_of: int | None
    transform: TargetTransform | None

    @property
    def has_own_target(self) -> bool:
        """Whether the learner has another target than the bank."""
        return self.residual_of is not None or self.transform is not None

    def objective(self, objective: Objective) -> Objective:
        """The objective by which the slot learns, in a bank with that one."""
        return objective if self.loss is None else replace(objective, loss=self.loss)


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

    @property
    def method(self) -> Method:
        """How the slot learns."""
        return Method(self.learner, self.loss, self.residual_of, self.transform)

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
            if not loss.any_target or isinstance(loss, Custom):  # targets may be any numbers
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

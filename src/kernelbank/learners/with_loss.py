"""WithLoss: a slot that learns by a loss of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import _validate as check
from .._hot.table import Phase
from .._validate import Floats
from ..ground import Ground
from ..kernels.base import Kernel
from ..losses import Loss, Squared, as_loss
from ..setting import Board, Setting
from .around import Around
from .base import Group, Learner
from .residual import Residual


@dataclass(frozen=True)
class WithLoss(Around):
    """A slot that learns by a loss of its own, and is judged by the bank's.

    The inner learner sees l = `loss` wherever it would see the bank's loss: a second-order learner,
    which knows the squared loss only, can stand in a bank for the absolute one. The slot then aims
    at what its own loss aims at (the mean, not the median); what the bank charges, and what the
    combiner weighs by, is the bank's loss. Cost and memory: those of the inner learner.

    Parameters
    ----------
    learner : the inner learner; none on another slot: there, use Residual(base, WithLoss(...)).
    loss : a loss or its name, "squared" if there is none; none for labels, and no Custom one.

    >>> import kernelbank as kb
    >>> slow = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierSGD())
    >>> quick = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.WithLoss(kb.learners.KRLS()))
    >>> bank = kb.KernelBank(slots=[slow, quick], loss="absolute")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, n % 20 < 10)
    >>> bool(bank.ledger.slot_loss[1] < bank.ledger.slot_loss[0])
    True
    """

    learner: Learner
    loss: Loss = field(default_factory=Squared)

    def __post_init__(self) -> None:
        owner = "WithLoss"
        if not isinstance(self.learner, Learner) or isinstance(self.learner, (Residual, WithLoss)):
            remedy = "Use one of kb.learners; on another slot, Residual(base, WithLoss(...))."
            raise check.refuse("learner", "be a plain learner", self.learner, remedy, owner)
        loss = as_loss(self.loss)
        if loss.labels or loss.callbacks:
            # Targets may be any numbers; and only the bank's own functions are asked for errors.
            remedy = 'Use "squared" or another one for numbers, and Custom losses for the bank.'
            raise check.refuse("loss", "be a built-in loss for numbers", loss, remedy, owner)
        object.__setattr__(self, "loss", loss)

    def told(self, setting: Setting) -> Setting:
        return replace(setting, loss=self.loss)

    def _seen(self, group: Group) -> Group:
        """The same group with the rules as told: all arrays are shared."""
        seen = copy.copy(group)
        seen.setting = self.told(group.setting)
        return seen

    def check(self, setting: Setting) -> None:
        self.learner.check(self.told(setting))

    def reach(self, setting: Setting) -> int:
        return self.learner.reach(self.told(setting))

    def shapes(
        self, setting: Setting, leaves: int, dimension: int, kernel: Kernel, reach: int
    ) -> dict[str, tuple[int, ...]]:
        return self.learner.shapes(self.told(setting), leaves, dimension, kernel, reach)

    def workspace(self, setting: Setting, dimension: int, kernel: Kernel) -> int:
        return self.learner.workspace(self.told(setting), dimension, kernel)

    def prepare(self, group: Group) -> None:
        self.learner.prepare(self._seen(group))

    def phases(self, group: Group, ground: Ground, board: Board) -> list[Phase]:
        return self.learner.phases(self._seen(group), ground, board)

    def glances(self, group: Group, ground: Ground, board: Board) -> list[Phase]:
        return self.learner.glances(self._seen(group), ground, board)

    def evaluate(
        self, group: Group, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        return self.learner.evaluate(self._seen(group), seen, points, statistics, wanted)

    def variance(self, group: Group, points: Floats) -> Floats:
        return self.learner.variance(self._seen(group), points)

    def widen(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        self.learner.widen(old, new)

    def remember(self, group: Group) -> list[Any]:
        return self.learner.remember(self._seen(group))

    def recall(self, group: Group, kept: list[Any]) -> None:
        self.learner.recall(self._seen(group), kept)

    def dropped(self, group: Group) -> Floats:
        return self.learner.dropped(self._seen(group))

    def excess(self, group: Group) -> Floats:
        return self.learner.excess(self._seen(group))

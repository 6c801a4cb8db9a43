"""WithLoss: a slot that learns by a loss of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses import Loss, Squared, as_loss
from ..losses.objective import Objective
from ..native.phases import Phase
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup
from .residual import Residual
from .wrapper import Around


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

    def told(self, objective: Objective) -> Objective:
        return replace(objective, loss=self.loss)

    def _seen(self, group: SlotGroup) -> SlotGroup:
        """The same group with the rules as told: all arrays are shared."""
        seen = copy.copy(group)
        seen.objective = self.told(group.objective)
        return seen

    def check(self, objective: Objective) -> None:
        self.learner.check(self.told(objective))

    def history_length(self, objective: Objective) -> int:
        return self.learner.history_length(self.told(objective))

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        return self.learner.shapes(self.told(objective), leaves, dimension, kernel, history_length)

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        return self.learner.scratch_size(self.told(objective), dimension, kernel)

    def prepare(self, group: SlotGroup) -> None:
        self.learner.prepare(self._seen(group))

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        return self.learner.phases(self._seen(group), buffer, workspace)

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        return self.learner.predict_phases(self._seen(group), buffer, workspace)

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        return self.learner.evaluate(self._seen(group), seen, points, statistics, wanted)

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        return self.learner.variance(self._seen(group), points)

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        self.learner.extend_inputs(old, new)

    def step_ratio(self, group: SlotGroup) -> Floats:
        return self.learner.step_ratio(self._seen(group))

"""FixedShare: exponential weights that can follow a change of the best slot."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.scalar_math import exp
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .exponential_weights import least_finite


@dataclass(frozen=True)
class FixedShare(Combiner):
    """Exponential weights for a stream whose best slot changes.

    v_p proportional to w_p exp(-learning_rate * loss of the prediction of slot p), and then
    w_p = (1 - share) v_p + share / P, over the P slots that have not failed: each slot gives
    a share of its weight, which is divided equally. So no weight falls below share / P, and a slot
    that becomes the best recovers after about log(P / share) / (rate * its lead) samples.
    (Herbster and Warmuth divide it among the other slots only: the same with another share.)

    Parameters
    ----------
    learning_rate : positive, per unit of loss.
    share : above 0, at most 1: about how often the best slot changes, per sample.

    Cost per sample: O(P), one exponential per slot. Memory: P numbers.

    Reference: Herbster and Warmuth, Tracking the best expert, Machine Learning 1998.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.FixedShare(share=0.2))
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.weights.min() >= 0.05)
    True
    """

    core_name: ClassVar[str] = "FixedShare"
    accepts_missing: ClassVar[bool] = True
    learning_rate: float = 1.0
    share: float = 0.01

    def __post_init__(self) -> None:
        remedy = "Give a positive rate per unit of loss."
        rate = check.number("learning_rate", self.learning_rate, "FixedShare", remedy, above=0)
        remedy = "Give how often the best slot changes, such as 0.01; for never, use Hedge."
        share = check.number("share", self.share, "FixedShare", remedy, above=0, most=1)
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "share", share)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"posterior": (slots,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        phase = combiner_phase(
            _fixed_share,
            workspace,
            weights,
            rate=self.learning_rate,
            share=self.share,
            **state,
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """posterior: v, the weights of the last sample before sharing."""
        return {"posterior": state["posterior"].copy()}


_FIXED_SHARE = Arguments(
    "fixed_share",
    slots=int,
    rate=float,
    share=float,
    slot_loss=floats(None, "slots"),
    weights=floats("slots"),
    posterior=floats("slots"),
    chosen=floats(None, "slots"),
)


@native(_FIXED_SHARE)
def _fixed_share(a, first, count):
    """chosen[t] = the weights after sample t."""
    posterior = a.posterior
    for t in range(count):
        losses, chosen = a.slot_loss[t], a.chosen[t]
        before = a.chosen[t - 1] if t > 0 else a.weights
        least = least_finite(losses, losses)
        finite = 0
        size = 0.0
        for p in range(a.slots):  # v_p = w_p exp(-rate loss_p), times a constant
            posterior[p] = 0.0
            if losses[p] < np.inf:
                finite += 1
                posterior[p] = before[p] * exp(-a.rate * (losses[p] - least))
                size += posterior[p]
        for p in range(a.slots):  # w_p = (1 - share) v_p + share / P
            posterior[p] = posterior[p] / size if size > 0.0 else 0.0
            chosen[p] = 0.0
            if losses[p] < np.inf:
                chosen[p] = (1.0 - a.share) * posterior[p] + a.share / finite

"""FixedShare: exponential weights that can follow a change of the best slot."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
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
            _FIXED_SHARE,
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


_FIXED_SHARE = argument_fields(
    "slots", "rate", "share", "slot_loss", "weights", "posterior", "chosen"
)


def _fixed_share(args, first, count):
    """chosen[t] = the weights after sample t. slot_loss, chosen: (n, P); posterior: (P,)."""
    slots = read_int(args, _FIXED_SHARE.slots)
    rate = read_float(args, _FIXED_SHARE.rate)
    share = read_float(args, _FIXED_SHARE.share)
    posterior = float_array(args, _FIXED_SHARE.posterior)
    for t in range(count):
        losses = pointer(float_array(args, _FIXED_SHARE.slot_loss), t * slots)
        chosen = pointer(float_array(args, _FIXED_SHARE.chosen), t * slots)
        before = float_array(args, _FIXED_SHARE.weights)
        if t > 0:
            before = pointer(float_array(args, _FIXED_SHARE.chosen), (t - 1) * slots)
        least = least_finite(losses, losses, slots)
        finite = 0
        size = 0.0
        for p in range(slots):
            posterior[p] = 0.0
            if losses[p] < np.inf:
                finite += 1
                posterior[p] = before[p] * math.exp(-rate * (losses[p] - least))
                size += posterior[p]
        for p in range(slots):
            posterior[p] = posterior[p] / size if size > 0.0 else 0.0
            chosen[p] = 0.0
            if losses[p] < np.inf:
                chosen[p] = (1.0 - share) * posterior[p] + share / finite

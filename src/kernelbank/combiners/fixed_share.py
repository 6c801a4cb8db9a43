"""Exponential weights that never give a slot up: fixed share."""

from __future__ import annotations

from dataclasses import dataclass

from ..losses.objective import Objective
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import hedge_steps as hot
from .base import Combiner, State, Steps, combiner_phase


@dataclass(frozen=True)
class FixedShare(Combiner):
    """Exponential weights for a stream whose best slot changes.

    v_p proportional to w_p exp(-learning_rate * loss of slot p one step ahead), and then
    w_p = (1 - share) v_p + share / P, over the P slots that are not out: every slot gives a share
    of its weight, which is spread equally. So no slot falls below share / P, and one that becomes
    the best is back after about log(P / share) / (rate * its lead a sample) samples. (Herbster and
    Warmuth spread over the others only, which is this with another share.)

    Parameters
    ----------
    learning_rate : positive, per unit of loss.
    share : above 0, at most 1: about how often the best slot changes, per sample.

    Cost: O(P) a sample, one exponential a slot. Memory: P numbers.

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
    ) -> Steps:
        switch = combiner_phase(
            hot.switch,
            hot.SWITCH,
            workspace,
            weights,
            rate=self.learning_rate,
            share=self.share,
            **state,
        )
        return [switch]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """posterior: the weights of the last sample's exponential step, before sharing."""
        return {"posterior": state["posterior"].copy()}

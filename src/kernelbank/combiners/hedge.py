"""Exponential weights by the losses one step ahead: Hedge, and AdaHedge where no rate is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import hedge_steps as hot
from .base import Combiner, State, Steps, combiner_phase


@dataclass(frozen=True)
class Hedge(Combiner):
    """Weights w_p proportional to exp(-rate * sum of the losses of slot p one step ahead).

    With learning_rate=None the rate is AdaHedge's, log(P) / D, where D is the sum over the samples
    of w'l + log(w'exp(-rate l)) / rate, what mixing has lost beyond the mix loss. It is infinite at
    first (equal weights for the leaders), never accepts_new_inputs, and needs no knowledge of the losses' size:
    multiplying all losses by a constant changes no weight. If the losses of a sample lie within an
    interval of length S, the weighted loss exceeds that of the best slot by at most
    S sqrt(log(P) n) + S (16/3 log(P) + 2) after n samples, by a constant if one slot stays best.

    Parameters
    ----------
    learning_rate : positive, per unit of loss; None for AdaHedge.

    Cost: O(P) a sample, one exponential a slot (two more for AdaHedge). Memory: P + 2 numbers.

    Reference: Freund and Schapire (1997); de Rooij, van Erven, Grünwald and Koolen, Follow the
    leader if you can, hedge if you must, JMLR 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), combiner=kb.combiners.Hedge())
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())
    ['learning_rate', 'loss_above_best']
    """

    learning_rate: float | None = None

    def __post_init__(self) -> None:
        if self.learning_rate is not None:
            remedy = "Give a positive rate per unit of loss, or None to let it adapt."
            rate = check.number("learning_rate", self.learning_rate, "Hedge", remedy, above=0)
            object.__setattr__(self, "learning_rate", rate)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (slots,), "figures": (2,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        slots = len(weights)
        hedge = combiner_phase(
            hot.hedge,
            hot.HEDGE,
            workspace,
            weights,
            rate=0.0 if self.learning_rate is None else self.learning_rate,
            **state,
            scratch=np.zeros((2, slots)),
        )
        return [hedge]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """loss_above_best: each slot's sum of losses minus the best one's; learning_rate.

        AdaHedge's rate is 0 before the first sample.
        """
        return {
            "loss_above_best": state["totals"].copy(),
            "learning_rate": state["figures"][:1].copy(),
        }

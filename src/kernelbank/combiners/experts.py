"""Rules that treat slots as experts: equal weights, the best so far, and exponential weights.

Only differences of losses matter to exponential weights, so every sum is kept relative to that of
the best slot. A slot with infinite loss has failed: its weight is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, State


@dataclass(frozen=True)
class Uniform(Combiner):
    """Equal weights: w_p = 1 / P, over the P slots that have not failed.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Uniform())
    >>> bank.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    accepts_missing: ClassVar[bool] = True

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """active: 1 for a slot with weight, 0 for one that has failed."""
        return {"active": np.where(weights > 0, 1.0, 0.0)}


@dataclass(frozen=True)
class Best(Combiner):
    """All weight on the slot with the least cumulative cost so far (follow the leader).

    If several are equal, the first. Before the first sample the weights are equal.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Best())
    >>> bank.learn_one(0.0, 1.0)
    >>> bank.weights.tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """cumulative_cost: of each slot alone."""
        return {"cumulative_cost": state["totals"]}


@dataclass(frozen=True)
class Hedge(Combiner):
    """Weights w_p proportional to exp(-rate * sum of the losses of slot p one step ahead).

    With evidence="cost" the sums are of the slots' costs instead: the loss on the window plus
    regularization / 2 * norm^2 before the sample is learned. In a bank with window=1 this is the
    regularised loss by which Raker weights its kernels.

    With learning_rate=None the rate is AdaHedge's, log(P) / D. D is the sum of the mixability gaps
    w'l + log(w'exp(-rate l)) / rate over the samples. This rate is infinite at first (the best
    slots share the weight), never grows, and needs no knowledge of the scale of the losses. If
    these lie within an interval of length S, the weighted loss exceeds the loss of the best slot by
    at most S sqrt(log(P) n) + S (16/3 log(P) + 2) after n samples.

    Parameters
    ----------
    learning_rate : positive, per unit of loss; None for AdaHedge.
    evidence : "loss", of the prediction alone, or "cost", with the norm.

    Reference: Freund and Schapire (1997); de Rooij, van Erven, Grünwald and Koolen, Follow the
    leader if you can, hedge if you must, JMLR 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), combiner=kb.combiners.Hedge())
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())
    ['learning_rate', 'loss_above_best']
    """

    accepts_missing: ClassVar[bool] = True
    learning_rate: float | None = check.number_field(
        None, "Give a positive rate per unit of loss, or None to let it adapt.", above=0
    )
    evidence: str = check.choice_field("loss", "cost")

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """loss_above_best: each slot's sum of losses (or costs) minus the least; learning_rate.

        AdaHedge's rate is 0 before the first sample.
        """
        return {"loss_above_best": state["totals"], "learning_rate": state["rate_and_gap"][:1]}


@dataclass(frozen=True)
class FixedShare(Combiner):
    """Exponential weights for a stream whose best slot changes.

    v_p proportional to w_p exp(-learning_rate * loss of the prediction of slot p), and then
    w_p = (1 - share) v_p + share / P, over the P slots that have not failed: each slot gives
    a share of its weight, which is divided equally. So no weight falls below share / P, and a slot
    that becomes the best recovers after about log(P / share) / (rate * its lead) samples.
    (Herbster and Warmuth divide it among the other slots only: the same with another share.)
    `bank.evidence()` shows the posterior v of the last sample.

    Parameters
    ----------
    learning_rate : positive, per unit of loss.
    share : above 0, at most 1: about how often the best slot changes, per sample.

    Reference: Herbster and Warmuth, Machine Learning 1998.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.FixedShare(share=0.2))
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.weights.min() >= 0.05)
    True
    """

    accepts_missing: ClassVar[bool] = True
    learning_rate: float = check.number_field(1.0, above=0)
    share: float = check.number_field(
        0.01,
        "Give how often the best slot changes, such as 0.01; for never, use Hedge.",
        above=0,
        most=1,
    )

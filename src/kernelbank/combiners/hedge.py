"""Hedge: exponential weights by the losses of the predictions, and AdaHedge if no rate is given."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import exp, expm1, log, log1p
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .exponential_weights import (
    EVIDENCE,
    LARGEST_SUM,
    add_losses,
    exponential_weights,
    least_finite,
    slot_losses,
)


@dataclass(frozen=True)
class Hedge(Combiner):
    """Weights w_p proportional to exp(-rate * sum of the losses of slot p one step ahead).

    With evidence="cost" the sums are of the slots' costs instead: the loss on the window plus
    regularization / 2 * norm^2 before the sample is learned. In a bank with window=1 this is the
    regularised loss by which Raker weights its kernels.

    With learning_rate=None the rate is AdaHedge's, log(P) / D. D is the sum of the mixability gaps
    w'l + log(w'exp(-rate l)) / rate over the samples. This rate is infinite at first (the best
    slots share the weight), never grows, and needs no knowledge of the scale of the losses:
    multiplying all losses by a constant changes no weight. If the losses of a sample lie within an
    interval of length S, the weighted loss exceeds the loss of the best slot by at most
    S sqrt(log(P) n) + S (16/3 log(P) + 2) after n samples, by a constant if one slot stays best.

    Parameters
    ----------
    learning_rate : positive, per unit of loss; None for AdaHedge.
    evidence : "loss", of the prediction alone, or "cost", with the norm.

    Cost per sample: O(P), one exponential per slot (two more for AdaHedge). Memory: P + 2 numbers.

    Reference: Freund and Schapire (1997); de Rooij, van Erven, Grünwald and Koolen, Follow the
    leader if you can, hedge if you must, JMLR 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), combiner=kb.combiners.Hedge())
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())
    ['learning_rate', 'loss_above_best']
    """

    core_name: ClassVar[str] = "Hedge"
    accepts_missing: ClassVar[bool] = True
    learning_rate: float | None = None
    evidence: str = "loss"

    def __post_init__(self) -> None:
        check.choice("evidence", self.evidence, "Hedge", EVIDENCE)
        if self.learning_rate is not None:
            remedy = "Give a positive rate per unit of loss, or None to let it adapt."
            rate = check.number("learning_rate", self.learning_rate, "Hedge", remedy, above=0)
            object.__setattr__(self, "learning_rate", rate)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (slots,), "rate_and_gap": (2,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        phase = combiner_phase(
            _hedge,
            workspace,
            weights,
            rate=0.0 if self.learning_rate is None else self.learning_rate,
            slot_loss=slot_losses(workspace, self.evidence),
            **state,
            scratch=np.zeros((2, len(weights))),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """loss_above_best: each slot's sum of losses (or costs) minus the least; learning_rate.

        AdaHedge's rate is 0 before the first sample.
        """
        return {
            "loss_above_best": state["totals"].copy(),
            "learning_rate": state["rate_and_gap"][:1].copy(),
        }


@inline
def _mixability_gap(rate, weights, totals, after, excess, losses):
    """w'l + log(w'exp(-rate l)) / rate >= 0, for l = excess. All arrays are (P,).

    `after` is the least of totals + excess, relative to the least of totals.
    """
    slots = len(losses)
    mean = 0.0  # w'l
    shrunk = 0.0  # w'exp(-rate l) - 1
    for p in range(slots):
        if losses[p] < np.inf:
            mean += weights[p] * excess[p]
    if rate == np.inf:
        return max(0.0, mean - after)
    for p in range(slots):
        if losses[p] < np.inf:
            shrunk += weights[p] * expm1(-rate * excess[p])
    if shrunk > -0.5:  # the usual case: small losses, where the difference would cancel
        return max(0.0, mean + log1p(shrunk) / rate)
    before = 0.0
    later = 0.0
    lowest = least_finite(totals, losses)
    for p in range(slots):
        if losses[p] < np.inf:
            before += exp(-rate * (totals[p] - lowest))
            later += exp(-rate * (totals[p] - lowest + excess[p] - after))
    return max(0.0, mean - (after + (log(before) - log(later)) / rate))


_HEDGE = Arguments(
    "hedge",
    slots=int,
    rate=float,  # 0: AdaHedge
    slot_loss=floats(None, "slots"),
    totals=floats("slots"),
    rate_and_gap=floats(2),  # the present rate; AdaHedge's sum of mixability gaps
    scratch=floats(2, "slots"),
    chosen=floats(None, "slots"),
)


@native(_HEDGE)
def _hedge(a, first, count):
    """chosen[t] = the weights after sample t."""
    totals, rate_and_gap = a.totals, a.rate_and_gap
    excess, weights = a.scratch[0], a.scratch[1]  # (P,): losses minus the least one; w
    for t in range(count):
        losses = a.slot_loss[t]
        least = least_finite(losses, losses)
        for p in range(a.slots):
            excess[p] = min(losses[p] - least, LARGEST_SUM)
        if a.rate > 0.0:
            add_losses(totals, excess, losses)
            rate_and_gap[0] = a.rate
        elif least < np.inf:  # rate = log(P) / sum of the gaps
            size = log(float(max(a.slots, 2)))
            rate = size / rate_and_gap[1] if rate_and_gap[1] > 0.0 else np.inf
            exponential_weights(rate, totals, losses, weights)
            lowest = least_finite(totals, losses)
            after = np.inf
            for p in range(a.slots):
                if losses[p] < np.inf:
                    after = min(after, totals[p] - lowest + excess[p])
            gap = _mixability_gap(rate, weights, totals, after, excess, losses)
            rate_and_gap[1] = min(rate_and_gap[1] + gap, LARGEST_SUM)
            rate_and_gap[0] = size / rate_and_gap[1] if rate_and_gap[1] > 0.0 else np.inf
            add_losses(totals, excess, losses)
        exponential_weights(rate_and_gap[0], totals, losses, a.chosen[t])

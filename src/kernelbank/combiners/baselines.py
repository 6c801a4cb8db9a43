"""Baselines, which every other rule should beat: equal weights, and the best slot so far."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.workspace import Workspace
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase


@dataclass(frozen=True)
class Uniform(Combiner):
    """Equal weights: w_p = 1 / P, over the P slots that have not failed.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Uniform())
    >>> bank.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    core_name: ClassVar[str] = "Uniform"
    accepts_missing: ClassVar[bool] = True

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        return [combiner_phase(_uniform, workspace, weights)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """active: 1 for a slot with weight, 0 for one that has failed."""
        return {"active": np.where(weights > 0, 1.0, 0.0)}


_UNIFORM = Arguments(
    "uniform",
    slots=int,
    window_loss=floats(None, "slots"),
    chosen=floats(None, "slots"),
)


@native(_UNIFORM)
def _uniform(a, first, count):
    """chosen[t, p] = 1 / P, over the P slots of finite loss."""
    for t in range(count):
        losses, chosen = a.window_loss[t], a.chosen[t]
        finite = 0
        for p in range(a.slots):
            if losses[p] < np.inf:
                finite += 1
        for p in range(a.slots):
            chosen[p] = 1.0 / finite if losses[p] < np.inf else 0.0


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

    core_name: ClassVar[str] = "Best"

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (slots,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        return [combiner_phase(_best, workspace, weights, **state)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """cumulative_cost: of each slot alone."""
        return {"cumulative_cost": state["totals"].copy()}


_BEST = Arguments(
    "best",
    slots=int,
    slot_cost=floats(None, "slots"),
    totals=floats("slots"),
    chosen=floats(None, "slots"),
)


@native(_BEST)
def _best(a, first, count):
    """chosen[t] = e_p for the p of least totals_p, the cumulative cost."""
    totals = a.totals
    for t in range(count):
        best = 0
        for p in range(a.slots):
            totals[p] += a.slot_cost[t, p]
            a.chosen[t, p] = 0.0
            if totals[p] < totals[best]:
                best = p
        if totals[best] < np.inf:
            a.chosen[t, best] = 1.0

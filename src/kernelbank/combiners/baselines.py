"""Rules that every other rule should beat: equal weights, and the best slot so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.workspace import Workspace
from ..utils.validation import Floats
from . import simplex_steps as hot
from .base import Combiner, State, Steps, combiner_phase


@dataclass(frozen=True)
class Uniform(Combiner):
    """Equal weights: w_p = 1 / P for ever (over the slots that are still finite).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Uniform())
    >>> bank.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        return [combiner_phase(hot.share, hot.SHARE, workspace, weights)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """in_play: 1 for a slot that takes part, 0 for one that is out."""
        return {"in_play": np.where(weights > 0, 1.0, 0.0)}


@dataclass(frozen=True)
class Best(Combiner):
    """All weight on the slot with the least cumulative cost so far (follow the leader).

    The first of equals wins; before the first sample the weights are equal.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Best())
    >>> bank.learn_one(0.0, 1.0)
    >>> bank.weights.tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (slots,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        return [combiner_phase(hot.least, hot.LEAST, workspace, weights, **state)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """cumulative_cost: of every slot alone."""
        return {"cumulative_cost": state["totals"].copy()}

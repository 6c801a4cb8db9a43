"""Rules that every other rule should beat: equal weights, and the best slot so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._hot import combine as hot
from .._validate import Floats
from ..setting import Evidence, Setting
from .base import Combiner, State


@dataclass(frozen=True)
class Uniform(Combiner):
    """Equal weights: w_p = 1 / P for ever (over the slots that are still finite).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Uniform())
    >>> bank.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def weigh(self, setting: Setting, evidence: Evidence, state: State, weights: Floats) -> Floats:
        out = np.empty_like(evidence.window_loss)
        hot.share_equally(evidence.window_loss, out)
        return out


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

    def weigh(self, setting: Setting, evidence: Evidence, state: State, weights: Floats) -> Floats:
        out = np.empty_like(evidence.slot_cost)
        hot.choose_least(evidence.slot_cost, state["totals"], out)
        return out

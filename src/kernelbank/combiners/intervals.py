"""Exponential weights on every time scale at once, as in AdaRaker."""

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
class Intervals(Combiner):
    """Exponential weights restarted on intervals of every dyadic length, mixed by their regrets.

    Instance i works on intervals of 2^i samples, which start at the multiples of 2^i of the
    sample's number; at a start it forgets everything. Within an interval it weighs slot p by v_ip
    proportional to exp(-rate_i * sum of u_p), with rate_i = min(1/2, learning_rate / sqrt(2^i)).
    The weights are w = sum_i h_i v_i with h_i proportional to
    rate_i exp(rate_i * sum over its interval of (w'u - v_i'u)), so that the instance gains whose
    time scale fits. Short instances follow changes, long ones average noise out. At the end of the
    longest interval all of them start anew: let it be longer than what is worth remembering.

    The theory wants losses between 0 and 1. u_p is the slot's loss one step ahead minus the least
    one of that sample, divided by the mean size of the mixture's own loss w'l (over at
    most 2^(levels - 1) samples), and cut at 1. So losses have no unit; a slot about to diverge,
    however large its loss, counts 1 and cannot spoil the scale, as it would spoil a running
    maximum; and the scale follows a stream that becomes easier.

    Parameters
    ----------
    learning_rate : positive, without unit; 1 is the paper's.
    levels : how many lengths, 1 to 40; the longest interval has 2^(levels - 1) samples.

    Cost: O(levels * P) a sample, two exponentials a slot and level. Memory: levels * (P + 1).

    Reference: Shen, Chen and Giannakis, Random feature-based online multi-kernel learning in
    environments with unknown dynamics, JMLR 2019 (with learners that are not restarted).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Intervals(levels=3))
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bank.weights.tolist()  # after four samples all three instances start anew
    [0.25, 0.25, 0.25, 0.25]
    """

    learning_rate: float = 1.0
    levels: int = 16

    def __post_init__(self) -> None:
        remedy = "Give a positive number without unit, such as 1."
        rate = check.number("learning_rate", self.learning_rate, "Intervals", remedy, above=0)
        remedy = "Give how many lengths 1, 2, 4, ... the intervals have, such as 16."
        levels = check.count("levels", self.levels, "Intervals", remedy, most=40)
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "levels", levels)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (self.levels, slots), "meta": (self.levels,), "scale": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        slots = len(weights)
        intervals = combiner_phase(
            hot.intervals,
            hot.INTERVALS,
            workspace,
            weights,
            levels=self.levels,
            rate=self.learning_rate,
            **state,
            scratch=np.zeros(self.levels * (slots + 1) + 2 * slots),
        )
        return [intervals]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """shares: h, the part of each instance; loss_above_best: (levels, P); scale of losses."""
        rates = np.minimum(0.5, self.learning_rate / np.sqrt(2.0 ** np.arange(self.levels)))
        shares = rates * np.exp(state["meta"] - state["meta"].max())
        return {
            "shares": shares / shares.sum(),
            "loss_above_best": state["totals"].copy(),
            "scale": state["scale"].copy(),
        }

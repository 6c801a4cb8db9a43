"""Stacking for every loss: squares of its slopes take the place of squared errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import newton_stacking_steps as hot
from .base import State, Steps, combiner_phase
from .stacking import Stacking


@dataclass(frozen=True)
class NewtonStacking(Stacking):
    """Weights that minimise sum_i d^(n-i) c_i(w) + ridge L |w|^2 on the simplex, for any loss l.

    f_i holds the slots' predictions of sample i, each made before the slot learned it, m_i the
    proposal, which is their mixture by the weights of then, and g_i = l'(m_i, y_i). In

        c_i(w) = (1 + g_i (w'f_i - m_i) / u_i)^2 u_i,  u_i = caution * mean loss of the proposals,

    c_i / 2 has the slope of the loss at the proposal and the curvature g_i^2 / u_i, which is that
    of an online Newton step: for losses with kinks too. Where `Stacking` aims at the mean, whatever
    the loss, this aims at what the loss aims at, such as a quantile. Multiplying all losses, or all
    targets and predictions, by a factor changes no weight. L = min_p of the first sum for slot p
    alone.

    Since w'f_i - m_i is linear on the simplex, c_i = (w'e_i)^2 with e_i = sqrt(u_i) (1 + g_i
    (f_i - m_i) / u_i): all that is kept of the stream are the moments of e_i, as in `Stacking`,
    and they are solved for in the same way, to the same certificate.

    Parameters
    ----------
    discount : d, above 0 and at most 1: how much less a sample counts with each one after it. The
        mean loss has the same memory, of about 1 / (1 - d) samples.
    ridge : 0 to 1e9, as a fraction of L: draws the weights towards equal ones.
    tolerance : above 0: how far above the least cost the weights may be, as a fraction of it.
    steps : at most so many moves of weight between slots a sample.
    caution : positive, without unit: how little curvature is taken for granted, so how far a slope
        is trusted. On six real streams 2, 4 and 8 differed little, and 4 was best for quantiles.

    Cost a sample: O(P^2), and O(P) a move. Memory: P^2 + 5, and at most 64 P of scratch.

    Reference: Hazan, Agarwal and Kale, Logarithmic regret algorithms for online convex
    optimization, Machine Learning 2007, for the parabola.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.NewtonStacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking, loss="absolute")
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> figures = bank.evidence()
    >>> bool(figures["gap"] <= stacking.tolerance * figures["scale"])
    True
    """

    caution: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        remedy = "Give a positive number without unit, such as 4."
        caution = check.number("caution", self.caution, "NewtonStacking", remedy, above=0)
        object.__setattr__(self, "caution", caution)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {**super().shapes(slots), "mean_loss": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        loss = objective.loss
        stacking = combiner_phase(
            hot.slope_stacking,
            hot.SLOPE_STACKING,
            workspace,
            weights,
            **self._own(state),
            caution=self.caution,
            value=loss.value_address,
            derivative=loss.derivative_address,
            parameters=loss.parameters,
            lanes=np.zeros((3, WIDTH)),
        )
        return [stacking]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """As for Stacking; and mean_loss, of the proposals."""
        return {**super().diagnostics(state, weights), "mean_loss": np.array(state["mean_loss"][0])}

"""NewtonStacking: stacking for every loss, with squared Newton errors instead of squared errors."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import floats, lanes
from ..native.formulas import call_loss
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, lane
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .stacking import STACKING, Stacking, mixture, update_weights


@dataclass(frozen=True)
class NewtonStacking(Stacking):
    """Weights that minimise sum_i d^(n-i) c_i(w) + ridge L |w|^2 on the simplex, for any loss l.

    f_i holds the slots' predictions of sample i, made before learning it, m_i the prediction of the
    bank (their combination by the weights at that time), and g_i = l'(m_i, y_i). In

        c_i(w) = (1 + g_i (w'f_i - m_i) / u_i)^2 u_i,  u_i = caution * mean loss of the m_i so far,

    c_i / 2 has the slope of the loss at m_i and the curvature g_i^2 / u_i of an online Newton step,
    for losses with kinks too. Where `Stacking` aims at the mean, whatever the loss, this aims at
    the minimiser of the loss, such as a quantile. Multiplying all losses, or all targets and
    predictions, by a factor changes no weight. L = min_p of the first sum for slot p alone.

    Since w'f_i - m_i is linear on the simplex, c_i = (w'e_i)^2 with e_i = sqrt(u_i) (1 + g_i
    (f_i - m_i) / u_i): only the moments of e_i are kept, as in `Stacking`, and the weights are
    solved for in the same way, to the same certificate.

    Parameters
    ----------
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample. The mean loss has the same memory of about 1 / (1 - d) samples.
    ridge : 0 to 1e9, as a fraction of L: pulls the weights towards equal ones.
    tolerance : above 0: how far the cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between slots per sample.
    caution : positive, without unit: the larger, the smaller the assumed curvature, and the
        farther a slope is trusted. On six real streams 2, 4 and 8 differed little, and 4 was best
        for quantiles.

    Cost per sample: O(P^2), and O(P) per move. Memory: P^2 + 5, and at most 64 P of scratch.

    Reference: Hazan, Agarwal and Kale, Logarithmic regret algorithms for online convex
    optimization, Machine Learning 2007, for the parabola.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.NewtonStacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking, loss="absolute")
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> shown = bank.evidence()
    >>> bool(shown["gap"] <= stacking.tolerance * shown["scale"])
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
    ) -> PhaseList:
        loss = objective.loss
        phase = combiner_phase(
            _newton_stacking,
            workspace,
            weights,
            **self._arguments(state),
            caution=self.caution,
            value=loss.value_address,
            derivative=loss.derivative_address,
            parameters=loss.parameters,
            one=np.zeros((3, 1, WIDTH)),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """As for Stacking; and mean_loss: of the bank's predictions."""
        return {**super().diagnostics(state, weights), "mean_loss": np.array(state["mean_loss"][0])}


_NEWTON_STACKING = STACKING.extended(
    "newton_stacking",
    mean_loss=floats(1),
    caution=float,
    value=int,  # address of the loss
    derivative=int,  # address of its derivative
    parameters=floats(None),  # of the loss
    one=lanes(3, 1),  # scratch: four equal predictions, targets and results
)


@inline
def _loss_at(a, address, prediction, target):
    """The loss, or its derivative, of one prediction."""
    a.one[0, 0] = broadcast(prediction)
    a.one[1, 0] = broadcast(target)
    call_loss(address, a.one[0], a.one[1], 1, a.parameters, a.one[2])
    return lane(a.one[2, 0], 0)


@inline
def _newton_errors(predictions, combined, slope, unit, errors):
    """e_p = sqrt(unit) (1 + slope (f_p - combined) / unit); 0 if unit = 0, without any loss."""
    size = math.sqrt(unit)
    for p in range(len(errors)):
        change = slope * (predictions[p] - combined)
        errors[p] = size + change / size if size > 0.0 else 0.0


@native(_NEWTON_STACKING)
def _newton_stacking(a, first, count):
    """chosen[t] = the weights after sample t."""
    mean_loss = a.mean_loss
    forgotten = 1.0 - a.discount
    for t in range(count):
        before = a.chosen[t - 1] if t > 0 else a.weights
        combined, share = mixture(before, a.slot_predictions[t], a.window_loss[t])  # m = w'f
        target = a.new_targets[t]
        lost = abs(_loss_at(a, a.value, combined, target))
        slope = _loss_at(a, a.derivative, combined, target)  # g = l'(m, y)
        if not (share > 0.0 and lost < np.inf and abs(slope) < np.inf):
            lost = mean_loss[0]  # no slot made a prediction: nothing is known
            slope = 0.0
        mean_loss[0] += (lost - mean_loss[0]) * max(1.0 / (first + t + 1), forgotten)
        unit = a.caution * mean_loss[0]  # u = caution * mean loss
        _newton_errors(a.slot_predictions[t], combined, slope, unit, a.errors)
        update_weights(a, t)

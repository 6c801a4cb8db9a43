"""NewtonStacking: stacking for every loss, with squared Newton errors instead of squared errors."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .stacking import STACKING, Stacking, update_weights


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
            _NEWTON_STACKING,
            workspace,
            weights,
            **self._arguments(state),
            caution=self.caution,
            value=loss.value_address,
            derivative=loss.derivative_address,
            parameters=loss.parameters,
            lanes=np.zeros((3, WIDTH)),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """As for Stacking; and mean_loss: of the bank's predictions."""
        return {**super().diagnostics(state, weights), "mean_loss": np.array(state["mean_loss"][0])}


_NEWTON_STACKING = argument_fields(
    *STACKING._fields, "mean_loss", "caution", "value", "derivative", "parameters", "lanes"
)


@inline
def _loss_at(args, address, prediction, target):
    """The loss, or its derivative, of one prediction. lanes: (3, 4), scratch."""
    lanes = float_array(args, _NEWTON_STACKING.lanes)
    for k in range(WIDTH):
        lanes[k] = prediction
        lanes[WIDTH + k] = target
    out = pointer(lanes, 2 * WIDTH)
    parameters = float_array(args, _NEWTON_STACKING.parameters)
    call_loss(address, lanes, pointer(lanes, WIDTH), 1, parameters, out)
    return out[0]


@inline
def _newton_errors(predictions, mixture, slope, unit, slots, errors):
    """e_p = sqrt(unit) (1 + slope (f_p - mixture) / unit); 0 if unit = 0, without any loss."""
    size = math.sqrt(unit)
    for p in range(slots):
        change = slope * (predictions[p] - mixture)
        errors[p] = size + change / size if size > 0.0 else 0.0


def _newton_stacking(args, first, count):
    """chosen[t] = the weights after sample t. slot_predictions, window_loss, chosen: (n, P)."""
    slots = read_int(args, STACKING.slots)
    mean_loss = float_array(args, _NEWTON_STACKING.mean_loss)
    errors = float_array(args, STACKING.by_slot)
    forgotten = 1.0 - read_float(args, STACKING.discount)
    for t in range(count):
        predictions = pointer(float_array(args, STACKING.slot_predictions), t * slots)
        losses = pointer(float_array(args, STACKING.window_loss), t * slots)
        before = float_array(args, STACKING.weights)
        if t > 0:
            before = pointer(float_array(args, STACKING.chosen), (t - 1) * slots)
        mixture = 0.0
        share = 0.0
        for p in range(slots):
            if before[p] > 0.0 and losses[p] < np.inf:
                mixture += before[p] * predictions[p]
                share += before[p]
        mixture = mixture / share if share > 0.0 else 0.0
        target = float_array(args, STACKING.new_targets)[t]
        lost = abs(_loss_at(args, read_int(args, _NEWTON_STACKING.value), mixture, target))
        slope = _loss_at(args, read_int(args, _NEWTON_STACKING.derivative), mixture, target)
        if not (share > 0.0 and lost < np.inf and abs(slope) < np.inf):
            lost = mean_loss[0]  # no slot made a prediction: nothing is known
            slope = 0.0
        mean_loss[0] += (lost - mean_loss[0]) * max(1.0 / (first + t + 1), forgotten)
        unit = read_float(args, _NEWTON_STACKING.caution) * mean_loss[0]
        _newton_errors(predictions, mixture, slope, unit, slots, errors)
        update_weights(args, t)

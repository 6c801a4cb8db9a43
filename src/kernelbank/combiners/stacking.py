"""Stacking: the convex combination of least discounted squared error of the predictions.

    minimise  E(w) = w'M w + ridge L |w|^2  over the simplex,  L = min_p M_pp,

with M <- discount M + e e' after every sample, where e holds the errors of the slots' predictions.
On the simplex w'f - y = w'e, so the moments M are all that is needed of the stream. The columns of
E's matrix 2 M + 2 ridge L are those of the moments; `pairwise_solver` does the rest.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, int_array, read_float, read_int
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .pairwise_solver import (
    SPARE,
    PairwiseSolver,
    column_function,
    descend_pairs,
    drop_columns,
    least_gradient,
    linear_gap,
    normalise,
    pairwise_scratch,
)


@dataclass(frozen=True)
class Stacking(PairwiseSolver):
    """Weights that minimise sum_i d^(n-i) (w'f_i - y_i)^2 + ridge L |w|^2 on the simplex.

    f_i holds the slots' predictions of sample i, made before learning it, and
    L = min_p sum_i d^(n-i) (f_ip - y_i)^2 is the loss of the best slot. So the ridge has no unit,
    and multiplying targets and predictions by a factor changes no weight. The error is squared,
    whatever the loss of the bank.

    On the simplex w'f_i - y_i = w'e_i with the errors e_i = f_i - y_i. Only their moments
    sum_i d^(n-i) e_i e_i' are kept: the cost does not depend on the length of the memory, whereas
    `Joint(evidence="prequential")` goes through its horizon.

    The weights are solved for after every sample, from the weights before it, until the Frank-Wolfe
    gap, an upper bound of cost(w) - least cost, is at most tolerance * scale. The scale is cost(w)
    plus 1e-4 of the cost of the weights before. `bank.evidence()` shows a larger gap if `steps` or
    the precision of the moments did not suffice: where errors cancel, a cost below about 1e-15 of
    the slots' own costs is rounding.

    Parameters
    ----------
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample. The memory is about 1 / (1 - d) samples long.
    ridge : 0 to 1e9, as a fraction of the best slot's loss: pulls the weights towards equal ones.
    tolerance : above 0: how far the cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between slots per sample.

    Cost per sample: O(P^2), and O(P) per move. Memory: P^2 + 4, and at most 64 P of scratch. An
    error beyond 2^470, about 3e141, counts as 2^470. A slot with more than 2^60 times the best
    slot's loss gets no weight and is not counted in the gap.

    Reference: Wolpert, Stacked generalization, Neural Networks 1992; Breiman, Stacked regressions,
    Machine Learning 1996, who found that weights should not be negative.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.Stacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> shown = bank.evidence()
    >>> bool(shown["gap"] <= stacking.tolerance * shown["scale"])
    True
    """

    discount: float = 0.998
    ridge: float = 0.1
    tolerance: float = 1e-4
    steps: int = 200

    def __post_init__(self) -> None:
        owner = type(self).__name__
        remedy = "Give 1, or a little less, such as 0.998."
        discount = check.number("discount", self.discount, owner, remedy, above=0, most=1)
        remedy = "Give 0 or a fraction of the best slot's loss, such as 0.1; for equal weights, "
        remedy += "use Uniform."
        ridge = check.number("ridge", self.ridge, owner, remedy, least=0, most=1e9)
        remedy = "Give a small positive fraction, such as 1e-4."
        tolerance = check.number("tolerance", self.tolerance, owner, remedy, above=0)
        remedy = "Give the most moves per sample, such as 200."
        steps = check.count("steps", self.steps, owner, remedy, most=2**31)
        for name, value in (
            ("discount", discount),
            ("ridge", ridge),
            ("tolerance", tolerance),
            ("steps", steps),
        ):
            object.__setattr__(self, name, value)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"certificate": (4,), "moments": (slots, slots)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        return [combiner_phase(_stacking, STACKING, workspace, weights, **self._arguments(state))]

    def _arguments(self, state: State) -> dict[str, Any]:
        """The arguments of the phase beside the common ones."""
        slots = len(state["moments"])
        return {
            "discount": self.discount,
            "ridge": self.ridge,
            "tolerance": self.tolerance,
            "steps": self.steps,
            **state,
            "by_slot": np.zeros((_BY_SLOT, slots)),
            **pairwise_scratch(slots),
        }


STACKING = argument_fields(
    "slots", "discount", "ridge", "tolerance", "steps", "new_targets", "window_loss",
    "slot_predictions", "weights", "moments", "certificate", "by_slot", "columns", "column_of",
    "support", "face", "chosen",
)  # fmt: skip

_LARGEST_ERROR = 2.0**470
"""Larger errors count as this: its square, summed over 2^30 samples and times a ridge of 2^30, is
finite, so that one extreme prediction does not make the moments infinite for good."""

_WORST_RATIO = 2.0**60
"""A slot with more than this times the best slot's loss is left out. It could use a weight of at
most 2^-30, to cancel errors of the others by its own, and the rounding of its large moments would
hide from the certificate whether the others are solved."""

_BY_SLOT = 4  # number of scratch arrays with one number per slot
_ROUNDING = 4.0 * 2.0**-52


@inline
def _add_errors(moments, errors, discount, slots):
    """M = discount M + e e'. moments: (P, P), both halves, so that a column is a contiguous row."""
    for p in range(slots):
        row = pointer(moments, p * slots)
        error = errors[p]
        for q in range(slots):
            row[q] = discount * row[q] + error * errors[q]


@inline
def _gradient(moments, penalty, slots, w, g):
    """g = 2 (M w + penalty w). w, g: (P,)."""
    for q in range(slots):
        g[q] = 2.0 * penalty * w[q]
    for p in range(slots):
        factor = 2.0 * w[p]
        if factor > 0.0:
            row = pointer(moments, p * slots)
            for q in range(slots):
                g[q] += factor * row[q]


Moments = namedtuple("Moments", ["moments", "penalty"])
"""What the matrix 2 M + 2 penalty is computed from."""


@column_function(Moments)
def _column(source, s, slots, out):
    """out = column s of 2 M + 2 penalty."""
    row = pointer(source.moments, s * slots)
    for q in range(slots):
        out[q] = 2.0 * row[q]
    out[s] += 2.0 * source.penalty


@inline
def _gap_rounding(moments, slots, w, s):
    """The rounding error of the gap to slot s, with |M_pq| <= sqrt(M_pp M_qq).

    Where errors cancel, the cost can be far below the moments; no move improves on this.
    """
    mean = 0.0
    for p in range(slots):
        mean += w[p] * moments[p * slots + p]
    return _ROUNDING * (mean + math.sqrt(moments[s * slots + s]) * math.sqrt(mean))


@inline
def _solve(args, moments, penalty, active, w):
    """Move the weights w to the minimiser; certificate = (gap, cost, scale, moves)."""
    slots = read_int(args, STACKING.slots)
    tolerance = read_float(args, STACKING.tolerance)
    steps = read_int(args, STACKING.steps)
    certificate = float_array(args, STACKING.certificate)
    column_of = int_array(args, STACKING.column_of)
    g = pointer(active, slots)
    diag = pointer(g, slots)
    used = 0
    spare = -1.0
    while True:
        _gradient(moments, penalty, slots, w, g)
        cost = 0.0  # E(w) = w'M w + penalty |w|^2
        for p in range(slots):
            cost += 0.5 * w[p] * g[p]
        if spare < 0.0:
            spare = SPARE * abs(cost)
            drop_columns(column_of, slots)
            for p in range(slots):
                diag[p] = 2.0 * (moments[p * slots + p] + penalty)
        best = least_gradient(g, active, slots)
        gap = linear_gap(g, w, best, slots)
        noise = _gap_rounding(moments, slots, w, best)
        certificate[0] = gap
        certificate[1] = cost
        certificate[2] = abs(cost) + spare
        certificate[3] = used
        if gap <= max(tolerance * certificate[2], noise) or used >= steps:
            return
        made = descend_pairs(
            Moments(moments, penalty), slots, active, w, g, diag,
            max(0.5 * tolerance * spare, 0.5 * noise), 0.5 * tolerance, cost, steps - used,
            column_of, float_array(args, STACKING.columns), int_array(args, STACKING.support),
            float_array(args, STACKING.face),
        )  # fmt: skip
        if made == 0:
            return
        used += made
        normalise(w, active, slots)


@inline
def update_weights(args, t):
    """Add the errors of sample t, which are in by_slot[0], to the moments, and solve for chosen[t].

    by_slot: (4, P); window_loss, chosen: (n, P).
    """
    slots = read_int(args, STACKING.slots)
    moments = float_array(args, STACKING.moments)
    certificate = float_array(args, STACKING.certificate)
    errors = float_array(args, STACKING.by_slot)
    active = pointer(errors, slots)
    chosen = pointer(float_array(args, STACKING.chosen), t * slots)
    before = float_array(args, STACKING.weights)
    if t > 0:
        before = pointer(float_array(args, STACKING.chosen), (t - 1) * slots)
    for p in range(slots):
        chosen[p] = before[p]
        active[p] = 1.0 if float_array(args, STACKING.window_loss)[t * slots + p] < np.inf else 0.0
        error = errors[p]
        if not abs(error) <= _LARGEST_ERROR:
            error = -_LARGEST_ERROR if error < 0.0 else _LARGEST_ERROR
        errors[p] = error if active[p] > 0.0 else 0.0
    _add_errors(moments, errors, read_float(args, STACKING.discount), slots)
    certificate[0] = certificate[1] = certificate[2] = certificate[3] = 0.0
    least = np.inf
    for p in range(slots):
        if active[p] > 0.0:
            least = min(least, moments[p * slots + p])
    for p in range(slots):
        if moments[p * slots + p] > _WORST_RATIO * least:
            active[p] = 0.0
    if normalise(chosen, active, slots) > 0:
        _solve(args, moments, read_float(args, STACKING.ridge) * least, active, chosen)


def _stacking(args, first, count):
    """chosen[t] = the weights after sample t. slot_predictions: (n, P); new_targets: (n,)."""
    slots = read_int(args, STACKING.slots)
    errors = float_array(args, STACKING.by_slot)
    for t in range(count):
        target = float_array(args, STACKING.new_targets)[t]
        for p in range(slots):
            errors[p] = float_array(args, STACKING.slot_predictions)[t * slots + p] - target
        update_weights(args, t)

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
from typing import Any, ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.jit import inline
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .pairwise_solver import (
    PAIRWISE,
    SPARE,
    PairwiseSolver,
    drop_columns,
    least_gradient,
    linear_gap,
    normalise,
    pairwise_moves,
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

    core_name: ClassVar[str] = "Stacking"
    accepts_missing: ClassVar[bool] = True
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
        return [combiner_phase(stacking_phase, workspace, weights, **self._arguments(state))]

    def _arguments(self, state: State) -> dict[str, Any]:
        """The arguments of the phase beside the common ones."""
        slots = len(state["moments"])
        return {
            "discount": self.discount,
            "ridge": self.ridge,
            "tolerance": self.tolerance,
            "steps": self.steps,
            **state,
            "errors": np.zeros(slots),
            "active": np.zeros(slots),
            "gradient": np.zeros(slots),
            "diagonal": np.zeros(slots),
            **pairwise_scratch(slots),
        }


STACKING = Arguments(
    "stacking",
    slots=int,
    discount=float,
    ridge=float,
    tolerance=float,
    steps=int,
    new_targets=floats(None),
    window_loss=floats(None, "slots"),
    slot_predictions=floats(None, "slots"),
    weights=floats("slots"),
    moments=floats("slots", "slots"),  # M, both halves, so that a column is a contiguous row
    certificate=floats(4),  # gap, cost, scale, moves
    errors=floats("slots"),  # e; this and all that follow but the last are scratch
    active=floats("slots"),  # 1 if the slot may have weight, else 0
    gradient=floats("slots"),
    diagonal=floats("slots"),
    **PAIRWISE,
    chosen=floats(None, "slots"),
)

LARGEST_ERROR = 2.0**470
"""Larger errors count as this: its square, summed over 2^30 samples and times a ridge of 2^30, is
finite, so that one extreme prediction does not make the moments infinite for good."""

WORST_RATIO = 2.0**60
"""A slot with more than this times the best slot's loss is left out. It could use a weight of at
most 2^-30, to cancel errors of the others by its own, and the rounding of its large moments would
hide from the certificate whether the others are solved."""

_ROUNDING = 4.0 * 2.0**-52


@inline
def _add_errors(a):
    """M = discount M + e e'."""
    errors = a.errors
    for p in range(a.slots):
        row = a.moments[p]
        error = errors[p]
        for q in range(a.slots):
            row[q] = a.discount * row[q] + error * errors[q]


@inline
def _gradient(a, penalty, w, g):
    """g = 2 (M w + penalty w). w, g: (P,)."""
    for q in range(a.slots):
        g[q] = 2.0 * penalty * w[q]
    for p in range(a.slots):
        factor = 2.0 * w[p]
        if factor > 0.0:
            row = a.moments[p]
            for q in range(a.slots):
                g[q] += factor * row[q]


Moments = namedtuple("Moments", ["moments", "penalty"])
"""What the matrix 2 M + 2 penalty is computed from."""


@inline
def _column(source, s, out):
    """out = column s of 2 M + 2 penalty, (P,)."""
    row = source.moments[s]
    for q in range(len(out)):
        out[q] = 2.0 * row[q]
    out[s] += 2.0 * source.penalty


_descend_pairs = pairwise_moves(_column)


@inline
def _gap_rounding(a, w, s):
    """The rounding error of the gap to slot s, with |M_pq| <= sqrt(M_pp M_qq).

    Where errors cancel, the cost can be far below the moments; no move improves on this.
    """
    mean = 0.0
    for p in range(a.slots):
        mean += w[p] * a.moments[p, p]
    return _ROUNDING * (mean + math.sqrt(a.moments[s, s]) * math.sqrt(mean))


@inline
def solve_weights(a, penalty, w):
    """Move the weights w to the minimiser of E(w) = w'M w + penalty |w|^2; write `certificate`."""
    g, diag, active, certificate = a.gradient, a.diagonal, a.active, a.certificate
    tolerance = a.tolerance
    used = 0
    spare = -1.0
    while True:
        _gradient(a, penalty, w, g)
        cost = 0.0  # E(w) = w'g / 2
        for p in range(a.slots):
            cost += 0.5 * w[p] * g[p]
        if spare < 0.0:
            spare = SPARE * abs(cost)
            drop_columns(a)
            for p in range(a.slots):
                diag[p] = 2.0 * (a.moments[p, p] + penalty)
        best = least_gradient(g, active)
        gap = linear_gap(g, w, best)
        noise = _gap_rounding(a, w, best)
        certificate[0] = gap
        certificate[1] = cost
        certificate[2] = abs(cost) + spare
        certificate[3] = used
        if gap <= max(tolerance * certificate[2], noise) or used >= a.steps:
            return
        source = Moments(a.moments, penalty)
        target, share = max(0.5 * tolerance * spare, 0.5 * noise), 0.5 * tolerance
        left = a.steps - used
        made = _descend_pairs(a, source, active, w, g, diag, target, share, cost, left)
        if made == 0:
            return
        used += made
        normalise(w, active)


@inline
def update_weights(a, t):
    """Add the `errors` of sample t to the moments, and solve for chosen[t]."""
    errors, active, moments = a.errors, a.active, a.moments
    chosen = a.chosen[t]
    before = a.chosen[t - 1] if t > 0 else a.weights
    for p in range(a.slots):
        chosen[p] = before[p]
        active[p] = 1.0 if a.window_loss[t, p] < np.inf else 0.0
        error = errors[p]
        if not abs(error) <= LARGEST_ERROR:
            error = -LARGEST_ERROR if error < 0.0 else LARGEST_ERROR
        errors[p] = error if active[p] > 0.0 else 0.0
    _add_errors(a)
    for k in range(4):
        a.certificate[k] = 0.0
    least = np.inf  # L = min_p M_pp
    for p in range(a.slots):
        if active[p] > 0.0:
            least = min(least, moments[p, p])
    for p in range(a.slots):
        if moments[p, p] > WORST_RATIO * least:
            active[p] = 0.0
    if normalise(chosen, active) > 0:
        solve_weights(a, a.ridge * least, chosen)


@inline
def mixture(weights, predictions, losses):
    """w'f of a sample, over slots that have not failed, and their share of the weights.

    weights, predictions, losses: (P,); the loss of a slot that has failed is infinite.
    """
    combined = 0.0
    share = 0.0
    for p in range(len(weights)):
        if weights[p] > 0.0 and losses[p] < np.inf:
            combined += weights[p] * predictions[p]
            share += weights[p]
    return combined / share if share > 0.0 else 0.0, share


@native(STACKING)
def stacking_phase(a, first, count):
    """chosen[t] = the weights after sample t."""
    for t in range(count):
        for p in range(a.slots):
            a.errors[p] = a.slot_predictions[t, p] - a.new_targets[t]
        update_weights(a, t)

"""Phase of stacking: the convex combination of least discounted squared error one step ahead.

    minimise  E(w) = w'M w + ridge L |w|^2  over the simplex,  L = min_p M_pp,

with M <- discount M + e e' after every sample, e being the errors of the slots' predictions of it.
On the simplex w'f - y = w'e, so the moments M are all that is left of the stream. The columns of
E's matrix 2 M + 2 ridge L are the moments' own, and `pairwise` does the rest.
"""

import math
from collections import namedtuple

import numpy as np

from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, int_array, read_float, read_int
from .hessian_columns import forget_columns, source_of_columns
from .pairwise import SPARE, descend_pairs, least_gradient, linear_gap, on_simplex

STACKING = argument_fields(
    "slots", "discount", "ridge", "tolerance", "steps", "new_targets", "window_loss",
    "slot_predictions", "weights", "moments", "figures", "by_slot", "columns", "owner", "support",
    "face", "chosen",
)  # fmt: skip

FARTHEST = 2.0**470
"""An error counts as at most this: its square, summed over 2^30 samples and times a ridge of 2^30,
is finite, so that one wild prediction does not make the moments infinite for good."""

HOPELESS = 2.0**60
"""A slot whose loss is larger than the best one's by this is left out. It could use a weight of at
most 2^-30, to cancel errors of the others by its own, and the rounding of its large moments would
hide from the certificate whether the others are solved."""

BY_SLOT = 4
"""How many scratch arrays of one number a slot there are."""

_NOISE = 4.0 * 2.0**-52


@inline
def _remember(moments, errors, discount, slots):
    """M = discount M + e e'. Both halves: a row is then also a column, and lies in one piece."""
    for p in range(slots):
        row = pointer(moments, p * slots)
        error = errors[p]
        for q in range(slots):
            row[q] = discount * row[q] + error * errors[q]


@inline
def _gradient(moments, penalty, slots, w, g):
    """g = 2 (M w + penalty w)."""
    for q in range(slots):
        g[q] = 2.0 * penalty * w[q]
    for p in range(slots):
        factor = 2.0 * w[p]
        if factor > 0.0:
            row = pointer(moments, p * slots)
            for q in range(slots):
                g[q] += factor * row[q]


Moments = namedtuple("Moments", ["moments", "penalty"])
"""What the matrix 2 M + 2 penalty is made from."""


@source_of_columns(Moments)
def _column(source, s, slots, out):
    row = pointer(source.moments, s * slots)
    for q in range(slots):
        out[q] = 2.0 * row[q]
    out[s] += 2.0 * source.penalty


@inline
def _noise(moments, slots, w, s):
    """What rounding leaves of the gap to slot s, |M_pq| being at most sqrt(M_pp M_qq).

    Where errors cancel, the cost can be far below the moments; no step improves on this.
    """
    mean = 0.0
    for p in range(slots):
        mean += w[p] * moments[p * slots + p]
    return _NOISE * (mean + math.sqrt(moments[s * slots + s]) * math.sqrt(mean))


@inline
def _solve(args, moments, penalty, alive, w):
    """Bring the weights w to the minimiser; figures = certificate, cost, scale, steps."""
    slots = read_int(args, STACKING.slots)
    tolerance = read_float(args, STACKING.tolerance)
    steps = read_int(args, STACKING.steps)
    figures = float_array(args, STACKING.figures)
    owner = int_array(args, STACKING.owner)
    g = pointer(alive, slots)
    diag = pointer(g, slots)
    used = 0
    spare = -1.0
    while True:
        _gradient(moments, penalty, slots, w, g)
        cost = 0.0
        for p in range(slots):
            cost += 0.5 * w[p] * g[p]
        if spare < 0.0:
            spare = SPARE * abs(cost)
            forget_columns(owner, slots)
            for p in range(slots):
                diag[p] = 2.0 * (moments[p * slots + p] + penalty)
        best = least_gradient(g, alive, slots)
        gap = linear_gap(g, w, best, slots)
        noise = _noise(moments, slots, w, best)
        figures[0] = gap
        figures[1] = cost
        figures[2] = abs(cost) + spare
        figures[3] = used
        if gap <= max(tolerance * figures[2], noise) or used >= steps:
            return
        made = descend_pairs(
            Moments(moments, penalty), slots, alive, w, g, diag,
            max(0.5 * tolerance * spare, 0.5 * noise), 0.5 * tolerance, cost, steps - used,
            owner, float_array(args, STACKING.columns), int_array(args, STACKING.support),
            float_array(args, STACKING.face),
        )  # fmt: skip
        if made == 0:
            return
        used += made
        on_simplex(w, alive, slots)


@inline
def settle(args, t):
    """Take the errors of sample t, in the first of `by_slot`, into the moments, and solve."""
    slots = read_int(args, STACKING.slots)
    moments = float_array(args, STACKING.moments)
    figures = float_array(args, STACKING.figures)
    errors = float_array(args, STACKING.by_slot)
    alive = pointer(errors, slots)
    chosen = pointer(float_array(args, STACKING.chosen), t * slots)
    before = float_array(args, STACKING.weights)
    if t > 0:
        before = pointer(float_array(args, STACKING.chosen), (t - 1) * slots)
    for p in range(slots):
        chosen[p] = before[p]
        alive[p] = 1.0 if float_array(args, STACKING.window_loss)[t * slots + p] < np.inf else 0.0
        error = errors[p]
        if not abs(error) <= FARTHEST:
            error = -FARTHEST if error < 0.0 else FARTHEST
        errors[p] = error if alive[p] > 0.0 else 0.0
    _remember(moments, errors, read_float(args, STACKING.discount), slots)
    figures[0] = figures[1] = figures[2] = figures[3] = 0.0
    least = np.inf
    for p in range(slots):
        if alive[p] > 0.0:
            least = min(least, moments[p * slots + p])
    for p in range(slots):
        if moments[p * slots + p] > HOPELESS * least:
            alive[p] = 0.0
    if on_simplex(chosen, alive, slots) > 0:
        _solve(args, moments, read_float(args, STACKING.ridge) * least, alive, chosen)


def stacking(args, first, count):
    """chosen[t] = the minimiser after sample t, from the weights before it."""
    slots = read_int(args, STACKING.slots)
    errors = float_array(args, STACKING.by_slot)
    for t in range(count):
        target = float_array(args, STACKING.new_targets)[t]
        for p in range(slots):
            errors[p] = float_array(args, STACKING.slot_predictions)[t * slots + p] - target
        settle(args, t)


__all__ = ["BY_SLOT", "STACKING", "settle", "stacking"]

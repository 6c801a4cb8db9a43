"""Phase of the joint combiner: the convex combination of least cost, not of least bound.

    minimise  E(w) = sum_i d_i l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2  over the simplex.

Every round models E by a quadratic, minimises that by pairwise steps (`pairwise`), and goes towards
its minimiser as far as the derivative falls. For squared loss the model is E itself.

The certificate is the Frank-Wolfe gap with numbers c_i for the losses' slopes. Where the
derivative is continuous, c_i is the derivative. Otherwise it is the slope of the loss averaged over
m around the prediction z_i, c_i = (l(z_i + m) - l(z_i - m)) / 2m. That is a subgradient of l
somewhere within m of z_i, so with any subgradient s_i at z_i, and for every z,

    l(z) >= l(z_i) + c_i (z - z_i) - m |c_i - s_i|,

and E(w) is above its minimum by at most the gap with c plus sum_i d_i m |c_i - s_i|, the slack. The
averaged loss has a second derivative, so Newton's steps apply; m shrinks until the sum is small.
"""

import numpy as np

from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import float_array, int_array, read_float, read_int
from .hessian import Hessian, diagonal, mixed, weighted_sums
from .hessian_columns import forget_columns
from .pairwise import SPARE, descend_pairs, least_gradient, linear_gap, on_simplex
from .smoothed_gradient import (
    JOINT,
    KINKED,
    QUADRATIC,
    SHRINK,
    SMOOTH,
    averaged_slopes,
    curvatures,
    first_width,
    loss_of,
    predict,
    search,
)

ROUNDS = 40
_NARROWEST = 1e-7  # of the first width: below, the difference of two values is rounding

BY_ROW, BY_SLOT = 10, 6
"""How many scratch arrays of each kind there are."""


@inline
def _gradient(F, rows, slots, c, penalty, w, g):
    """g = the gradient at w if c holds the slopes of the rows."""
    weighted_sums(F, rows, slots, c, g)
    for p in range(slots):
        g[p] += 2.0 * penalty[p] * w[p]


@inline
def _solve(args, F, rows, d, y, penalty, alive, w):
    """Bring the weights w to the minimiser; figures = certificate, cost, scale, steps."""
    slots = read_int(args, JOINT.slots)
    kind = read_int(args, JOINT.kind)
    tolerance = read_float(args, JOINT.tolerance)
    steps = read_int(args, JOINT.steps)
    figures = float_array(args, JOINT.figures)
    columns = float_array(args, JOINT.columns)
    owner = int_array(args, JOINT.owner)
    support = int_array(args, JOINT.support)
    z = pointer(y, read_int(args, JOINT.rows))
    way = pointer(z, read_int(args, JOINT.rows))
    c = pointer(way, read_int(args, JOINT.rows))
    h = pointer(c, read_int(args, JOINT.rows))
    slopes = pointer(h, read_int(args, JOINT.rows))
    place = pointer(slopes, read_int(args, JOINT.rows))
    shifted = pointer(place, read_int(args, JOINT.rows))
    other = pointer(shifted, read_int(args, JOINT.rows))
    g = pointer(alive, slots)
    model = pointer(g, slots)
    diag = pointer(model, slots)
    v = pointer(diag, slots)
    used = 0
    turn = 0
    width = 0.0
    narrowest = 0.0
    spare = 0.0
    while True:
        mixed(F, rows, slots, w, support, z)
        loss_of(args, JOINT.value, z, y, rows, other)
        loss_of(args, JOINT.derivative, z, y, rows, slopes)
        cost = 0.0
        for i in range(rows):
            cost += d[i] * other[i]
        for p in range(slots):
            cost += penalty[p] * w[p] * w[p]
        if turn == 0:
            spare = SPARE * abs(cost)
            width = first_width(kind, rows, d, cost, slopes, z, y)
            narrowest = _NARROWEST * width
        slack = 0.0
        if kind == KINKED:
            averaged_slopes(args, z, y, d, rows, width, shifted, other, c)
            for i in range(rows):
                slack += width * abs(c[i] - d[i] * slopes[i])
        else:
            for i in range(rows):
                c[i] = d[i] * slopes[i]
        _gradient(F, rows, slots, c, penalty, w, g)
        gap = linear_gap(g, w, least_gradient(g, alive, slots), slots)
        figures[0] = gap + slack
        figures[1] = cost
        figures[2] = abs(cost) + spare
        figures[3] = used
        enough = figures[0] <= tolerance * figures[2]
        if enough or used >= steps or turn == ROUNDS or not np.isfinite(gap + slack + cost):
            return
        narrow = slack > gap and width * SHRINK >= narrowest
        if kind == QUADRATIC:
            for i in range(rows):
                h[i] = 2.0 * d[i]
        elif narrow:
            predict(args, z, y, d, c, rows, width, shifted, other, h, slopes)
            _gradient(F, rows, slots, slopes, penalty, w, g)
            width *= SHRINK
        else:
            curvatures(args, z, y, d, c, rows, width, shifted, other, h)
        if turn == 0 or kind != QUADRATIC:  # the columns of a quadratic are those of all rounds
            forget_columns(owner, slots)
            diagonal(F, rows, slots, h, penalty, diag)
        for p in range(slots):
            v[p] = w[p]
            model[p] = g[p]
        made = descend_pairs(
            Hessian(F, rows, h, penalty, place), slots, alive, v, model, diag,
            0.5 * tolerance * spare if kind == QUADRATIC
            else 0.1 * (SHRINK * slack if narrow else gap),
            0.5 * tolerance if kind == QUADRATIC else 0.0,
            cost, steps - used, owner, columns, support,
            float_array(args, JOINT.face),
        )  # fmt: skip
        if made == 0 and not narrow:
            return
        used += made
        step = 1.0
        if kind != QUADRATIC and not narrow:
            for p in range(slots):
                model[p] = v[p] - w[p]
            mixed(F, rows, slots, model, support, way)  # not a difference of mixtures: it rounds
            straight = 0.0
            bend = 0.0
            at_start = 0.0
            for p in range(slots):
                move = model[p]
                if move != 0.0:
                    straight += 2.0 * penalty[p] * w[p] * move
                    bend += 2.0 * penalty[p] * move * move
                    at_start += g[p] * move
            if not at_start < 0.0:
                return
            step = search(
                args, d, y, z, way, rows, width, at_start, straight, bend, place, shifted, other, c
            )
            if step == 0.0:
                return
        for p in range(slots):
            w[p] = v[p] if step == 1.0 else max(w[p] + step * (v[p] - w[p]), 0.0)
        on_simplex(w, alive, slots)
        turn += 1


def joint(args, first, count):
    """chosen[t] = the minimiser of the joint cost after sample t, from the weights before it."""
    slots = read_int(args, JOINT.slots)
    window = read_int(args, JOINT.window)
    horizon = read_int(args, JOINT.horizon)
    figures = float_array(args, JOINT.figures)
    d = float_array(args, JOINT.by_row)
    y = pointer(d, read_int(args, JOINT.rows))
    penalty = float_array(args, JOINT.by_slot)
    alive = pointer(penalty, slots)
    for t in range(count):
        chosen = pointer(float_array(args, JOINT.chosen), t * slots)
        before = float_array(args, JOINT.weights)
        if t > 0:
            before = pointer(float_array(args, JOINT.chosen), (t - 1) * slots)
        safest = 0
        losses = pointer(float_array(args, JOINT.window_loss), t * slots)
        for p in range(slots):
            chosen[p] = before[p]
            alive[p] = 1.0 if losses[p] < np.inf else 0.0
            penalty[p] = float_array(args, JOINT.curvature)[t * slots + p] + read_float(
                args, JOINT.ridge
            )
            if losses[p] < losses[safest]:
                safest = p
        if horizon > 0:  # the predictions of the last samples, each at its own place
            place = (first + t) % horizon
            rows = min(first + t + 1, horizon)
            F = float_array(args, JOINT.values)
            for p in range(slots):
                value = float_array(args, JOINT.slot_predictions)[t * slots + p]
                F[place * slots + p] = value if alive[p] > 0.0 else 0.0
            float_array(args, JOINT.targets)[place] = float_array(args, JOINT.new_targets)[t]
            for i in range(rows):
                d[i] = float_array(args, JOINT.powers)[(place - i + horizon) % horizon]
                y[i] = float_array(args, JOINT.targets)[i]
        else:  # the values on the window, the newest last
            rows = min(first + t + 1, window)
            F = pointer(float_array(args, JOINT.values), ((t + 1) * window - rows) * slots)
            for i in range(rows):
                d[i] = 1.0
                y[i] = float_array(args, JOINT.recent)[t + window - rows + i]
        figures[0] = figures[1] = figures[2] = figures[3] = 0.0
        if on_simplex(chosen, alive, slots) == 0:
            continue
        _solve(args, F, rows, d, y, penalty, alive, chosen)
        if not np.isfinite(figures[0]):  # the costs overflow: the slot of least loss alone
            figures[0] = figures[1] = figures[2] = np.inf
            for p in range(slots):
                chosen[p] = 1.0 if p == safest else 0.0


__all__ = ["BY_ROW", "BY_SLOT", "JOINT", "KINKED", "QUADRATIC", "SMOOTH", "joint"]

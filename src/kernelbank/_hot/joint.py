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

from .formulas import call_loss, pointer
from .jit import part
from .lanes import WIDTH
from .pairwise import (
    descend_pairs,
    diagonal,
    forget_columns,
    least_gradient,
    linear_gap,
    mixed,
    on_simplex,
    weighted_sums,
)
from .table import fields, floats, real, whole, wholes

QUADRATIC, SMOOTH, KINKED = range(3)
"""Kinds of losses: squared; with a continuous derivative; others."""

ROUNDS = 40
SPARE = 1e-4
"""Of the cost at the start: belongs to the certificate's scale, since the least cost may be 0."""

_SHRINK = 0.1  # of the averaging width, when the slack is larger than the gap
_NARROWEST = 1e-7  # of the first width: below, the difference of two values is rounding
_FLOOR = 0.05  # of a row's secant curvature, lest the model be flat where the loss is not

JOINT = fields(
    "slots", "window", "horizon", "kind", "steepest", "ridge", "tolerance", "steps", "value",
    "derivative", "parameters", "recent", "new_targets", "curvature", "window_loss", "values",
    "slot_predictions", "weights", "powers", "rows", "targets", "figures", "by_row", "by_slot", "columns", "owner",
    "support", "face", "chosen",
)  # fmt: skip

BY_ROW, BY_SLOT = 10, 6
"""How many scratch arrays of each kind there are."""


@part
def _loss(table, place, z, y, rows, out):
    """out = the loss, or its derivative, at predictions z."""
    blocks = (rows + WIDTH - 1) // WIDTH
    call_loss(whole(table, place), z, y, blocks, floats(table, JOINT.parameters), out)


@part
def _slopes(table, z, y, d, rows, width, shifted, other, c):
    """c_i = d_i times the slope of the loss at z_i, averaged over `width` if the loss has kinks."""
    if whole(table, JOINT.kind) != KINKED:
        _loss(table, JOINT.derivative, z, y, rows, c)
        for i in range(rows):
            c[i] *= d[i]
        return
    for i in range(rows):
        shifted[i] = z[i] + width
    _loss(table, JOINT.value, shifted, y, rows, c)
    for i in range(rows):
        shifted[i] = z[i] - width
    _loss(table, JOINT.value, shifted, y, rows, other)
    for i in range(rows):
        c[i] = d[i] * ((c[i] - other[i]) / (2.0 * width))


@part
def _curvatures(table, z, y, d, c, rows, width, shifted, other, h):
    """h_i = d_i times the second derivative, as a difference of first ones, and not too small."""
    for i in range(rows):
        shifted[i] = z[i] + width
    _loss(table, JOINT.derivative, shifted, y, rows, h)
    for i in range(rows):
        shifted[i] = z[i] - width
    _loss(table, JOINT.derivative, shifted, y, rows, other)
    for i in range(rows):
        secant = _FLOOR * abs(c[i]) / max(abs(z[i] - y[i]), width)
        secant = min(secant, _FLOOR * d[i] * real(table, JOINT.steepest))
        h[i] = max(d[i] * ((h[i] - other[i]) / (2.0 * width)), secant)


@part
def _predict(table, z, y, d, c, rows, width, shifted, other, h, slopes):
    """Slopes and curvatures of a model for when `width` has shrunk, from those that hold now.

    A row near a kink keeps its slope c_i if its distance from the kink shrinks with the width. From
    the slopes on either side of it, how far from the kink it is now: the model expects that move.
    """
    for i in range(rows):
        shifted[i] = z[i] + width
    _loss(table, JOINT.derivative, shifted, y, rows, h)
    for i in range(rows):
        shifted[i] = z[i] - width
    _loss(table, JOINT.derivative, shifted, y, rows, other)
    for i in range(rows):
        low = d[i] * other[i]
        jump = d[i] * h[i] - low
        away = 0.0
        if jump > 0.0:
            away = width * min(max(2.0 * (c[i] - low) / jump - 1.0, -1.0), 1.0)
        secant = _FLOOR * abs(c[i]) / max(abs(z[i] - y[i]), width)
        h[i] = max(jump / (2.0 * width * _SHRINK), secant)
        slopes[i] = c[i] + h[i] * (1.0 - _SHRINK) * away


@part
def _first_width(kind, rows, d, cost, slopes, z, y):
    """Over how much a loss is averaged at first, or its derivative differenced if it is smooth."""
    size = 0.0
    steepest = 0.0
    farthest = 0.0
    for i in range(rows):
        size += d[i]
        steepest = max(steepest, abs(slopes[i]))
        farthest = max(farthest, abs(z[i] - y[i]))
    width = 1e-4 * farthest
    if kind == KINKED and steepest > 0.0:
        width = 0.1 * (abs(cost) / size) / steepest
    return width if width > 0.0 and width < np.inf else 1e-8


@part
def _along(table, d, y, z, way, rows, step, width, place, shifted, other, c):
    """Derivative of the losses' part, at z + step * way, in the direction of `way`."""
    for i in range(rows):
        place[i] = z[i] + step * way[i]
    _slopes(table, place, y, d, rows, width, shifted, other, c)
    total = 0.0
    for i in range(rows):
        total += c[i] * way[i]
    return total


@part
def _search(table, d, y, z, way, rows, width, at_start, straight, bend, place, shifted, other, c):
    """How far to go, 0 to 1, so that the cost falls all the way and hardly any further.

    Its derivative at step x is that of the losses plus straight + bend x. It grows with x: the
    place where it vanishes is closed in on, and the end where it is still negative is taken.
    """
    slope = _along(table, d, y, z, way, rows, 1.0, width, place, shifted, other, c)
    high_slope = slope + straight + bend
    if high_slope <= 0.0:
        return 1.0
    low = 0.0
    low_slope = at_start
    high = 1.0
    for _ in range(20):
        span = high - low
        x = low + span * (low_slope / (low_slope - high_slope))
        x = min(max(x, low + 0.1 * span), high - 0.1 * span)
        slope = _along(table, d, y, z, way, rows, x, width, place, shifted, other, c)
        slope += straight + bend * x
        if slope <= 0.0:
            low = x
            low_slope = slope
            if slope >= 0.1 * at_start:
                break
        else:
            high = x
            high_slope = slope
    return low


@part
def _gradient(F, rows, slots, c, penalty, w, g):
    """g = the gradient at w if c holds the slopes of the rows."""
    weighted_sums(F, rows, slots, c, g)
    for p in range(slots):
        g[p] += 2.0 * penalty[p] * w[p]


@part
def _solve(table, F, rows, d, y, penalty, alive, w):
    """Bring the weights w to the minimiser; figures = certificate, cost, scale, steps."""
    slots = whole(table, JOINT.slots)
    kind = whole(table, JOINT.kind)
    tolerance = real(table, JOINT.tolerance)
    steps = whole(table, JOINT.steps)
    figures = floats(table, JOINT.figures)
    columns = floats(table, JOINT.columns)
    owner = wholes(table, JOINT.owner)
    support = wholes(table, JOINT.support)
    z = pointer(y, whole(table, JOINT.rows))
    way = pointer(z, whole(table, JOINT.rows))
    c = pointer(way, whole(table, JOINT.rows))
    h = pointer(c, whole(table, JOINT.rows))
    slopes = pointer(h, whole(table, JOINT.rows))
    place = pointer(slopes, whole(table, JOINT.rows))
    shifted = pointer(place, whole(table, JOINT.rows))
    other = pointer(shifted, whole(table, JOINT.rows))
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
        _loss(table, JOINT.value, z, y, rows, other)
        _loss(table, JOINT.derivative, z, y, rows, slopes)
        cost = 0.0
        for i in range(rows):
            cost += d[i] * other[i]
        for p in range(slots):
            cost += penalty[p] * w[p] * w[p]
        if turn == 0:
            spare = SPARE * abs(cost)
            width = _first_width(kind, rows, d, cost, slopes, z, y)
            narrowest = _NARROWEST * width
        slack = 0.0
        if kind == KINKED:
            _slopes(table, z, y, d, rows, width, shifted, other, c)
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
        narrow = slack > gap and width * _SHRINK >= narrowest
        if kind == QUADRATIC:
            for i in range(rows):
                h[i] = 2.0 * d[i]
        elif narrow:
            _predict(table, z, y, d, c, rows, width, shifted, other, h, slopes)
            _gradient(F, rows, slots, slopes, penalty, w, g)
            width *= _SHRINK
        else:
            _curvatures(table, z, y, d, c, rows, width, shifted, other, h)
        if turn == 0 or kind != QUADRATIC:  # the columns of a quadratic are those of all rounds
            forget_columns(owner, slots)
            diagonal(F, rows, slots, h, penalty, diag)
        for p in range(slots):
            v[p] = w[p]
            model[p] = g[p]
        made = descend_pairs(
            F, rows, slots, h, penalty, alive, v, model, diag,
            0.5 * tolerance * spare if kind == QUADRATIC
            else 0.1 * (_SHRINK * slack if narrow else gap),
            0.5 * tolerance if kind == QUADRATIC else 0.0,
            cost, steps - used, owner, columns, place, support,
            floats(table, JOINT.face),
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
            step = _search(
                table, d, y, z, way, rows, width, at_start, straight, bend, place, shifted, other, c
            )
            if step == 0.0:
                return
        for p in range(slots):
            w[p] = v[p] if step == 1.0 else max(w[p] + step * (v[p] - w[p]), 0.0)
        on_simplex(w, alive, slots)
        turn += 1


def joint(table, first, count):
    """chosen[t] = the minimiser of the joint cost after sample t, from the weights before it."""
    slots = whole(table, JOINT.slots)
    window = whole(table, JOINT.window)
    horizon = whole(table, JOINT.horizon)
    figures = floats(table, JOINT.figures)
    d = floats(table, JOINT.by_row)
    y = pointer(d, whole(table, JOINT.rows))
    penalty = floats(table, JOINT.by_slot)
    alive = pointer(penalty, slots)
    for t in range(count):
        chosen = pointer(floats(table, JOINT.chosen), t * slots)
        before = floats(table, JOINT.weights)
        if t > 0:
            before = pointer(floats(table, JOINT.chosen), (t - 1) * slots)
        safest = 0
        losses = pointer(floats(table, JOINT.window_loss), t * slots)
        for p in range(slots):
            chosen[p] = before[p]
            alive[p] = 1.0 if losses[p] < np.inf else 0.0
            penalty[p] = floats(table, JOINT.curvature)[t * slots + p] + real(table, JOINT.ridge)
            if losses[p] < losses[safest]:
                safest = p
        if horizon > 0:  # the predictions of the last samples, each at its own place
            place = (first + t) % horizon
            rows = min(first + t + 1, horizon)
            F = floats(table, JOINT.values)
            for p in range(slots):
                value = floats(table, JOINT.slot_predictions)[t * slots + p]
                F[place * slots + p] = value if alive[p] > 0.0 else 0.0
            floats(table, JOINT.targets)[place] = floats(table, JOINT.new_targets)[t]
            for i in range(rows):
                d[i] = floats(table, JOINT.powers)[(place - i + horizon) % horizon]
                y[i] = floats(table, JOINT.targets)[i]
        else:  # the values on the window, the newest last
            rows = min(first + t + 1, window)
            F = pointer(floats(table, JOINT.values), ((t + 1) * window - rows) * slots)
            for i in range(rows):
                d[i] = 1.0
                y[i] = floats(table, JOINT.recent)[t + window - rows + i]
        figures[0] = figures[1] = figures[2] = figures[3] = 0.0
        if on_simplex(chosen, alive, slots) == 0:
            continue
        _solve(table, F, rows, d, y, penalty, alive, chosen)
        if not np.isfinite(figures[0]):  # the costs overflow: the slot of least loss alone
            figures[0] = figures[1] = figures[2] = np.inf
            for p in range(slots):
                chosen[p] = 1.0 if p == safest else 0.0

"""The local model of the joint cost (see `joint`): slopes, curvatures, matrix of the quadratic.

For a loss with kinks, the loss averaged over a width m, (1 / 2m) * integral of l over
z - m .. z + m, is convex, has the derivative (l(z + m) - l(z - m)) / 2m, from values alone, and the
second derivative (l'(z + m) - l'(z - m)) / 2m: all that Newton's method needs, for any convex loss.

The matrix of the quadratic is H = F' diag(h) F + 2 diag(penalty). Row i of F holds the values of
all slots at sample i, h_i the curvature of the loss there.
"""

from collections import namedtuple

import numpy as np

from ..native.arguments import Arguments, floats
from ..native.formulas import call_loss
from ..native.jit import inline
from ..native.simd import WIDTH, broadcast
from ..native.views import load_four, store_four
from .pairwise_solver import PAIRWISE, pairwise_moves

QUADRATIC, SMOOTH, KINKED = range(3)
"""Kinds of losses: squared; with continuous derivative; others."""

SHRINK = 0.1  # factor of the averaging width, when the slack is larger than the gap
_FLOOR = 0.05  # part of a row's secant curvature: the model must not be flat where the loss is not

BY_ROW = ("d", "y", "z", "direction", "c", "h", "slopes", "point", "shifted", "other")
"""Scratch arrays with one number per row i: d_i, y_i, z_i = w'f_i, c_i, h_i = d_i l''(z_i), ..."""

BY_SLOT = ("penalty", "active", "g", "model", "diag", "v")
"""Scratch arrays with one number per slot p: penalty_p = a_p + ridge, gradients, weights, ..."""

JOINT = Arguments(
    "joint",
    slots=int,
    window=int,
    horizon=int,  # 0 for window evidence
    kind=int,
    steepest=float,
    ridge=float,
    tolerance=float,
    steps=int,
    value=int,  # address of the loss
    derivative=int,  # address of its derivative
    parameters=floats(None),  # of the loss
    recent=floats(None),  # (window - 1 + n,): recent[t + i] is the target of values[t, i]
    new_targets=floats(None),
    curvature=floats(None, "slots"),
    window_loss=floats(None, "slots"),
    values=floats(None, "window", "slots"),
    slot_predictions=floats(None, "slots"),
    weights=floats("slots"),
    powers=floats(None),  # d^age
    past_predictions=floats("horizon", "slots"),  # these two: rings of prequential evidence
    past_targets=floats("horizon"),
    taken=floats(1),  # how many samples the rings have taken
    certificate=floats(4),  # gap, cost, scale, moves
    longest=int,  # the most rows, rounded up to a multiple of four
    **dict.fromkeys(BY_ROW, floats("longest")),
    **dict.fromkeys(BY_SLOT, floats("slots")),
    **PAIRWISE,
    chosen=floats(None, "slots"),
)


@inline
def loss_of(a, address, rows, z, out):
    """out_i = the loss, or its derivative, at prediction z_i and target y_i, for i < rows."""
    call_loss(address, z, a.y, (rows + WIDTH - 1) // WIDTH, a.parameters, out)


@inline
def _loss_around(a, address, rows, z, width, above, below):
    """above_i, below_i = the loss, or its derivative, at z_i + width and z_i - width."""
    for i in range(rows):
        a.shifted[i] = z[i] + width
    loss_of(a, address, rows, a.shifted, above)
    for i in range(rows):
        a.shifted[i] = z[i] - width
    loss_of(a, address, rows, a.shifted, below)


@inline
def averaged_slopes(a, rows, z, width):
    """c_i = d_i l'(z_i), averaged over z_i - width .. z_i + width if the loss has kinks."""
    c, d, other = a.c, a.d, a.other
    if a.kind != KINKED:
        loss_of(a, a.derivative, rows, z, c)
        for i in range(rows):
            c[i] *= d[i]
        return
    _loss_around(a, a.value, rows, z, width, c, other)
    for i in range(rows):
        c[i] = d[i] * ((c[i] - other[i]) / (2.0 * width))


@inline
def curvatures(a, rows, width):
    """h_i = d_i l''(z_i), as a difference of first derivatives, and not too small."""
    z, y, d, c, h, other = a.z, a.y, a.d, a.c, a.h, a.other
    _loss_around(a, a.derivative, rows, z, width, h, other)
    for i in range(rows):
        secant = _FLOOR * abs(c[i]) / max(abs(z[i] - y[i]), width)
        secant = min(secant, _FLOOR * d[i] * a.steepest)
        h[i] = max(d[i] * ((h[i] - other[i]) / (2.0 * width)), secant)


@inline
def shrunk_model(a, rows, width):
    """Slopes and curvatures of the model after `width` has shrunk, from the present ones.

    A row near a kink keeps its slope c_i if its distance from the kink shrinks with the width. The
    slopes on both sides give its present distance, and the model includes that move.
    """
    z, y, d, c, h, other = a.z, a.y, a.d, a.c, a.h, a.other
    _loss_around(a, a.derivative, rows, z, width, h, other)
    for i in range(rows):
        low = d[i] * other[i]
        jump = d[i] * h[i] - low
        away = 0.0
        if jump > 0.0:
            away = width * min(max(2.0 * (c[i] - low) / jump - 1.0, -1.0), 1.0)
        secant = _FLOOR * abs(c[i]) / max(abs(z[i] - y[i]), width)
        h[i] = max(jump / (2.0 * width * SHRINK), secant)
        a.slopes[i] = c[i] + h[i] * (1.0 - SHRINK) * away


@inline
def first_width(a, rows, cost):
    """The first width of averaging, or of differences of derivatives if the loss is smooth."""
    size = 0.0
    steepest = 0.0
    farthest = 0.0
    for i in range(rows):
        size += a.d[i]
        steepest = max(steepest, abs(a.slopes[i]))
        farthest = max(farthest, abs(a.z[i] - a.y[i]))
    width = 1e-4 * farthest
    if a.kind == KINKED and steepest > 0.0:
        width = 0.1 * (abs(cost) / size) / steepest
    return width if width > 0.0 and width < np.inf else 1e-8


@inline
def _slope_along(a, rows, step, width):
    """The derivative of the losses at z + step * direction, in that direction."""
    for i in range(rows):
        a.point[i] = a.z[i] + step * a.direction[i]
    averaged_slopes(a, rows, a.point, width)
    total = 0.0
    for i in range(rows):
        total += a.c[i] * a.direction[i]
    return total


@inline
def line_search(a, rows, width, at_start, straight, bend):
    """The step in [0, 1] up to which the cost falls, by regula falsi.

    The cost's derivative at step x is that of the losses plus straight + bend x. It grows with x:
    its zero is enclosed, and the end with negative derivative is returned.
    """
    slope = _slope_along(a, rows, 1.0, width)
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
        slope = _slope_along(a, rows, x, width)
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


# --- the matrix of the quadratic ------------------------------------------------------------------


@inline
def weighted_sums(F, factors, out):
    """out_p = sum_i factors_i F_ip, in the order of the rows; 16 slots at once. F: (rows, P)."""
    rows, slots = len(F), len(out)
    even = slots - slots % WIDTH
    wide = even - even % (4 * WIDTH)
    for p in range(0, wide, 4 * WIDTH):
        q = r = s = t = broadcast(0.0)
        for i in range(rows):
            row = F[i]
            factor = factors[i]
            q = q + factor * load_four(row, p)
            r = r + factor * load_four(row, p + WIDTH)
            s = s + factor * load_four(row, p + 2 * WIDTH)
            t = t + factor * load_four(row, p + 3 * WIDTH)
        store_four(out, p, q)
        store_four(out, p + WIDTH, r)
        store_four(out, p + 2 * WIDTH, s)
        store_four(out, p + 3 * WIDTH, t)
    for p in range(wide, even, WIDTH):
        q = broadcast(0.0)
        for i in range(rows):
            q = q + factors[i] * load_four(F[i], p)
        store_four(out, p, q)
    for p in range(even, slots):
        total = 0.0
        for i in range(rows):
            total += factors[i] * F[i, p]
        out[p] = total


@inline
def mixed(F, weights, support, out):
    """out_i = z_i = sum_p weights_p F_ip, over slots with weight; `support` is scratch."""
    size = 0
    for p in range(len(weights)):
        if weights[p] != 0.0:
            support[size] = p
            size += 1
    for i in range(len(F)):
        row = F[i]
        total = 0.0
        for k in range(size):
            total += weights[support[k]] * row[support[k]]
        out[i] = total


@inline
def diagonal(F, h, penalty, out):
    """out_p = H_pp = sum_i h_i F_ip^2 + 2 penalty_p."""
    for p in range(len(out)):
        out[p] = 2.0 * penalty[p]
    for i in range(len(F)):
        factor = h[i]
        row = F[i]
        for p in range(len(out)):
            out[p] += factor * row[p] * row[p]


Hessian = namedtuple("Hessian", ["F", "h", "penalty", "factors"])
"""What H is computed from, and a row of scratch (`factors`)."""


@inline
def _column(source, s, out):
    """out_p = sum_i h_i F_is F_ip, plus 2 penalty_s for p = s."""
    for i in range(len(source.F)):
        source.factors[i] = source.h[i] * source.F[i, s]
    weighted_sums(source.F, source.factors, out)
    out[s] += 2.0 * source.penalty[s]


descend_pairs = pairwise_moves(_column)
"""`descend_pairs` for this matrix; its source is a `Hessian`."""

"""The local model of the joint cost (see `joint`): slopes, curvatures, matrix of the quadratic.

For a loss with kinks, the loss averaged over a width m, (1 / 2m) * integral of l over
z - m .. z + m, is convex, has the derivative (l(z + m) - l(z - m)) / 2m, from values alone, and the
second derivative (l'(z + m) - l'(z - m)) / 2m: all that Newton's method needs, for any convex loss.

The matrix of the quadratic is H = F' diag(h) F + 2 diag(penalty). Row i of F holds the values of
all slots at sample i, h_i the curvature of the loss there.
"""

from collections import namedtuple

import numpy as np

from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH, broadcast, load, store
from .pairwise_solver import column_function

QUADRATIC, SMOOTH, KINKED = range(3)
"""Kinds of losses: squared; with continuous derivative; others."""

SHRINK = 0.1  # factor of the averaging width, when the slack is larger than the gap
_FLOOR = 0.05  # part of a row's secant curvature: the model must not be flat where the loss is not

JOINT = argument_fields(
    "slots", "window", "horizon", "kind", "steepest", "ridge", "tolerance", "steps", "value",
    "derivative", "parameters", "recent", "new_targets", "curvature", "window_loss", "values",
    "slot_predictions", "weights", "powers", "rows", "targets", "certificate",
    "by_row", "by_slot", "columns", "column_of", "support", "face", "chosen",
)  # fmt: skip


@inline
def loss_of(args, field, z, y, rows, out):
    """out_i = the loss, or its derivative, at prediction z_i and target y_i. z, y, out: (rows,)."""
    blocks = (rows + WIDTH - 1) // WIDTH
    call_loss(read_int(args, field), z, y, blocks, float_array(args, JOINT.parameters), out)


@inline
def averaged_slopes(args, z, y, d, rows, width, shifted, other, c):
    """c_i = d_i l'(z_i), averaged over z_i - width .. z_i + width if the loss has kinks."""
    if read_int(args, JOINT.kind) != KINKED:
        loss_of(args, JOINT.derivative, z, y, rows, c)
        for i in range(rows):
            c[i] *= d[i]
        return
    for i in range(rows):
        shifted[i] = z[i] + width
    loss_of(args, JOINT.value, shifted, y, rows, c)
    for i in range(rows):
        shifted[i] = z[i] - width
    loss_of(args, JOINT.value, shifted, y, rows, other)
    for i in range(rows):
        c[i] = d[i] * ((c[i] - other[i]) / (2.0 * width))


@inline
def curvatures(args, z, y, d, c, rows, width, shifted, other, h):
    """h_i = d_i l''(z_i), as a difference of first derivatives, and not too small."""
    for i in range(rows):
        shifted[i] = z[i] + width
    loss_of(args, JOINT.derivative, shifted, y, rows, h)
    for i in range(rows):
        shifted[i] = z[i] - width
    loss_of(args, JOINT.derivative, shifted, y, rows, other)
    for i in range(rows):
        secant = _FLOOR * abs(c[i]) / max(abs(z[i] - y[i]), width)
        secant = min(secant, _FLOOR * d[i] * read_float(args, JOINT.steepest))
        h[i] = max(d[i] * ((h[i] - other[i]) / (2.0 * width)), secant)


@inline
def shrunk_model(args, z, y, d, c, rows, width, shifted, other, h, slopes):
    """Slopes and curvatures of the model after `width` has shrunk, from the present ones.

    A row near a kink keeps its slope c_i if its distance from the kink shrinks with the width. The
    slopes on both sides give its present distance, and the model includes that move.
    """
    for i in range(rows):
        shifted[i] = z[i] + width
    loss_of(args, JOINT.derivative, shifted, y, rows, h)
    for i in range(rows):
        shifted[i] = z[i] - width
    loss_of(args, JOINT.derivative, shifted, y, rows, other)
    for i in range(rows):
        low = d[i] * other[i]
        jump = d[i] * h[i] - low
        away = 0.0
        if jump > 0.0:
            away = width * min(max(2.0 * (c[i] - low) / jump - 1.0, -1.0), 1.0)
        secant = _FLOOR * abs(c[i]) / max(abs(z[i] - y[i]), width)
        h[i] = max(jump / (2.0 * width * SHRINK), secant)
        slopes[i] = c[i] + h[i] * (1.0 - SHRINK) * away


@inline
def first_width(kind, rows, d, cost, slopes, z, y):
    """The first width of averaging, or of differences of derivatives if the loss is smooth."""
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


@inline
def _slope_along(args, d, y, z, direction, rows, step, width, point, shifted, other, c):
    """The derivative of the losses at z + step * direction, in that direction."""
    for i in range(rows):
        point[i] = z[i] + step * direction[i]
    averaged_slopes(args, point, y, d, rows, width, shifted, other, c)
    total = 0.0
    for i in range(rows):
        total += c[i] * direction[i]
    return total


@inline
def line_search(
    args, d, y, z, direction, rows, width, at_start, straight, bend, point, shifted, other, c
):
    """The step in [0, 1] up to which the cost falls, by regula falsi.

    The cost's derivative at step x is that of the losses plus straight + bend x. It grows with x:
    its zero is enclosed, and the end with negative derivative is returned.
    """
    slope = _slope_along(args, d, y, z, direction, rows, 1.0, width, point, shifted, other, c)
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
        slope = _slope_along(args, d, y, z, direction, rows, x, width, point, shifted, other, c)
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

Hessian = namedtuple("Hessian", ["F", "rows", "h", "penalty", "factors"])
"""What H is computed from, and a row of scratch (`factors`)."""


@inline
def weighted_sums(F, rows, slots, factors, out):
    """out_p = sum_i factors_i F_ip, in the order of the rows; 16 slots at once. F: (rows, P)."""
    even = slots - slots % WIDTH
    wide = even - even % (4 * WIDTH)
    for p in range(0, wide, 4 * WIDTH):
        q = r = s = t = broadcast(0.0)
        for i in range(rows):
            row = pointer(F, i * slots + p)
            factor = factors[i]
            q = q + factor * load(row, 0)
            r = r + factor * load(row, 1)
            s = s + factor * load(row, 2)
            t = t + factor * load(row, 3)
        store(pointer(out, p), 0, q)
        store(pointer(out, p), 1, r)
        store(pointer(out, p), 2, s)
        store(pointer(out, p), 3, t)
    for p in range(wide, even, WIDTH):
        q = broadcast(0.0)
        for i in range(rows):
            q = q + factors[i] * load(pointer(F, i * slots + p), 0)
        store(pointer(out, p), 0, q)
    for p in range(even, slots):
        total = 0.0
        for i in range(rows):
            total += factors[i] * F[i * slots + p]
        out[p] = total


@inline
def mixed(F, rows, slots, weights, support, out):
    """out_i = z_i = sum_p weights_p F_ip, over slots with weight; `support` is scratch."""
    size = 0
    for p in range(slots):
        if weights[p] != 0.0:
            support[size] = p
            size += 1
    for i in range(rows):
        row = pointer(F, i * slots)
        total = 0.0
        for k in range(size):
            total += weights[support[k]] * row[support[k]]
        out[i] = total


@inline
def diagonal(F, rows, slots, h, penalty, out):
    """out_p = H_pp = sum_i h_i F_ip^2 + 2 penalty_p."""
    for p in range(slots):
        out[p] = 2.0 * penalty[p]
    for i in range(rows):
        factor = h[i]
        row = pointer(F, i * slots)
        for p in range(slots):
            out[p] += factor * row[p] * row[p]


@column_function(Hessian)
def _column(source, s, slots, out):
    """out_p = sum_i h_i F_is F_ip, plus 2 penalty_s for p = s."""
    for i in range(source.rows):
        source.factors[i] = source.h[i] * source.F[i * slots + s]
    weighted_sums(source.F, source.rows, slots, source.factors, out)
    out[s] += 2.0 * source.penalty[s]

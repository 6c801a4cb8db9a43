"""Slopes and curvatures of losses for the joint combiner, averaged where a loss has kinks.

The averaged loss (1 / 2m) * integral of l over z - m .. z + m is convex, has the derivative
(l(z + m) - l(z - m)) / 2m, from values alone, and the second derivative
(l'(z + m) - l'(z - m)) / 2m: all that Newton's method needs, for any convex loss.
"""

import numpy as np

from ..native.formulas import call_loss
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH

QUADRATIC, SMOOTH, KINKED = range(3)
"""Kinds of losses: squared; with a continuous derivative; others."""

SHRINK = 0.1  # of the averaging width, when the slack is larger than the gap
_FLOOR = 0.05  # of a row's secant curvature, lest the model be flat where the loss is not

JOINT = argument_fields(
    "slots", "window", "horizon", "kind", "steepest", "ridge", "tolerance", "steps", "value",
    "derivative", "parameters", "recent", "new_targets", "curvature", "window_loss", "values",
    "slot_predictions", "weights", "powers", "rows", "targets", "figures", "by_row",
    "by_slot", "columns", "owner", "support", "face", "chosen",
)  # fmt: skip


@inline
def loss_of(args, place, z, y, rows, out):
    """out = the loss, or its derivative, at predictions z."""
    blocks = (rows + WIDTH - 1) // WIDTH
    call_loss(read_int(args, place), z, y, blocks, float_array(args, JOINT.parameters), out)


@inline
def averaged_slopes(args, z, y, d, rows, width, shifted, other, c):
    """c_i = d_i times the slope of the loss at z_i, averaged over `width` if the loss has kinks."""
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
    """h_i = d_i times the second derivative, as a difference of first ones, and not too small."""
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
def predict(args, z, y, d, c, rows, width, shifted, other, h, slopes):
    """Slopes and curvatures of a model for when `width` has shrunk, from those that hold now.

    A row near a kink keeps its slope c_i if its distance from the kink shrinks with the width. From
    the slopes on either side of it, how far from the kink it is now: the model expects that move.
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


@inline
def along(args, d, y, z, way, rows, step, width, place, shifted, other, c):
    """Derivative of the losses' part, at z + step * way, in the direction of `way`."""
    for i in range(rows):
        place[i] = z[i] + step * way[i]
    averaged_slopes(args, place, y, d, rows, width, shifted, other, c)
    total = 0.0
    for i in range(rows):
        total += c[i] * way[i]
    return total


@inline
def search(args, d, y, z, way, rows, width, at_start, straight, bend, place, shifted, other, c):
    """How far to go, 0 to 1, so that the cost falls all the way and hardly any further.

    Its derivative at step x is that of the losses plus straight + bend x. It accepts_new_inputs with x: the
    place where it vanishes is closed in on, and the end where it is still negative is taken.
    """
    slope = along(args, d, y, z, way, rows, 1.0, width, place, shifted, other, c)
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
        slope = along(args, d, y, z, way, rows, x, width, place, shifted, other, c)
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

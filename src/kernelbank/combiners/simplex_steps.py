"""Phases of the combiners: from evidence to the weights after each sample of a block."""

import numpy as np

from ..losses.steps import window_loss
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, int_array, read_float, read_int
from ..native.simd import WIDTH
from .qp import AUTO, solve

SIMPLEX = argument_fields(
    "worker", "workers", "slots", "curvature", "linear", "chosen", "scratch", "places"
)


def simplex(args, first, count):
    """chosen[t] = the minimiser of the bound with this curvature and linear part.

    The programs of different samples are independent: every worker takes its share of them.
    """
    slots = read_int(args, SIMPLEX.slots)
    for t in range(read_int(args, SIMPLEX.worker), count, read_int(args, SIMPLEX.workers)):
        chosen = pointer(float_array(args, SIMPLEX.chosen), t * slots)
        for p in range(slots):
            chosen[p] = 0.0
        solve(
            pointer(float_array(args, SIMPLEX.curvature), t * slots),
            pointer(float_array(args, SIMPLEX.linear), t * slots),
            slots,
            AUTO,
            chosen,
            float_array(args, SIMPLEX.scratch),
            int_array(args, SIMPLEX.places),
        )


NOTE = argument_fields("slots", "curvature", "linear", "figures")


def note(args, first, count):
    """figures = curvature and linear part of the block's last sample, for whoever asks."""
    slots = read_int(args, NOTE.slots)
    figures = float_array(args, NOTE.figures)
    for p in range(slots):
        last = (count - 1) * slots + p
        figures[p] = float_array(args, NOTE.curvature)[last]
        figures[slots + p] = float_array(args, NOTE.linear)[last]


SLIDE = argument_fields("slots", "horizon", "slot_loss", "segment", "suffixes", "prefix", "out")


def sliding_sums(args, first, count):
    """out[t, p] = sum of the last `horizon` losses of slot p, without any subtraction.

    Time is cut into segments of `horizon` samples by the absolute sample number. The sum is that of
    the end of the last segment (`suffixes`, added up from its back when it closed) and of the
    present one so far (`prefix`). A huge loss that has left the horizon leaves no rounding behind.
    """
    slots = read_int(args, SLIDE.slots)
    horizon = read_int(args, SLIDE.horizon)
    segment = float_array(args, SLIDE.segment)
    suffixes = float_array(args, SLIDE.suffixes)
    prefix = float_array(args, SLIDE.prefix)
    for t in range(count):
        place = (first + t) % horizon
        for p in range(slots):
            loss = float_array(args, SLIDE.slot_loss)[t * slots + p]
            if place == 0:
                prefix[p] = 0.0
            segment[place * slots + p] = loss
            prefix[p] += loss
            rest = suffixes[(place + 1) * slots + p] if place + 1 < horizon else 0.0
            float_array(args, SLIDE.out)[t * slots + p] = rest + prefix[p]
            if place == horizon - 1:
                total = 0.0
                for i in range(horizon - 1, -1, -1):
                    total = segment[i * slots + p] + total
                    suffixes[i * slots + p] = total


DESCEND = argument_fields(
    "slots",
    "window",
    "first_rate",
    "halve_every",
    "least_rate",
    "ridge",
    "derivative",
    "parameters",
    "recent",
    "curvature",
    "window_loss",
    "values",
    "weights",
    "gradient",
    "rate",
    "scratch",
    "chosen",
)


def descend(args, first, count):
    """Gradient steps on the weights of the regularised cost over the window (OMKR).

    values[t, i, p] is f_p on the window after sample t, recent[t + i] the target there; the step
    after sample number n (from 0) makes the weights of round n + 2 in the paper's count.
    """
    slots = read_int(args, DESCEND.slots)
    window = read_int(args, DESCEND.window)
    values = float_array(args, DESCEND.values)
    chosen = float_array(args, DESCEND.chosen)
    rows = (window + WIDTH - 1) // WIDTH * WIDTH
    mixed = float_array(args, DESCEND.scratch)
    f = pointer(mixed, rows)
    y = pointer(f, rows)
    slope = pointer(y, rows)
    for t in range(count):
        seen = min(first + t + 1, window)
        unseen = window - seen
        before = float_array(args, DESCEND.weights)
        if t > 0:
            before = pointer(chosen, (t - 1) * slots)
        for i in range(seen):
            total = 0.0
            for p in range(slots):
                total += before[p] * values[(t * window + unseen + i) * slots + p]
            mixed[i] = total
        window_loss(
            read_int(args, DESCEND.derivative),
            float_array(args, DESCEND.parameters),
            mixed,
            pointer(float_array(args, DESCEND.recent), t + unseen),
            seen,
            f,
            y,
            slope,
        )
        halvings = (first + t + 1) // read_int(args, DESCEND.halve_every)
        step = max(
            read_float(args, DESCEND.first_rate) * 2.0**-halvings,
            read_float(args, DESCEND.least_rate),
        )
        float_array(args, DESCEND.rate)[0] = step
        ridge = read_float(args, DESCEND.ridge)
        for p in range(slots):
            gradient = ridge * float_array(args, DESCEND.curvature)[t * slots + p] * before[p]
            for i in range(seen):
                gradient += slope[i] * values[(t * window + unseen + i) * slots + p]
            float_array(args, DESCEND.gradient)[p] = gradient
            moved = before[p] - step * gradient
            # A slot that is out has no weight; a weight that overflows starts again.
            out = float_array(args, DESCEND.window_loss)[t * slots + p] == np.inf
            chosen[t * slots + p] = 0.0 if out or not np.isfinite(moved) else moved


LEAST = argument_fields("slots", "slot_cost", "totals", "chosen")


def least(args, first, count):
    """All weight on the slot with the least total cost after each sample, the first of equals."""
    slots = read_int(args, LEAST.slots)
    totals = float_array(args, LEAST.totals)
    for t in range(count):
        chosen = pointer(float_array(args, LEAST.chosen), t * slots)
        best = 0
        for p in range(slots):
            totals[p] += float_array(args, LEAST.slot_cost)[t * slots + p]
            chosen[p] = 0.0
            if totals[p] < totals[best]:
                best = p
        if totals[best] < np.inf:
            chosen[best] = 1.0


SHARE = argument_fields("slots", "window_loss", "chosen")


def share(args, first, count):
    """Equal weights for all slots that are not out (loss inf)."""
    slots = read_int(args, SHARE.slots)
    for t in range(count):
        losses = pointer(float_array(args, SHARE.window_loss), t * slots)
        chosen = pointer(float_array(args, SHARE.chosen), t * slots)
        alive = 0
        for p in range(slots):
            if losses[p] < np.inf:
                alive += 1
        for p in range(slots):
            chosen[p] = 1.0 / alive if losses[p] < np.inf else 0.0

"""Phases of the combiners: from evidence to the weights after each sample of a block."""

import numpy as np

from ..losses.steps import window_loss
from ..native.formulas import pointer
from ..native.phases import fields, floats, real, whole, wholes
from ..native.simd import WIDTH
from .qp import AUTO, solve

SIMPLEX = fields("worker", "workers", "slots", "curvature", "linear", "chosen", "scratch", "places")


def simplex(table, first, count):
    """chosen[t] = the minimiser of the bound with this curvature and linear part.

    The programs of different samples are independent: every worker takes its share of them.
    """
    slots = whole(table, SIMPLEX.slots)
    for t in range(whole(table, SIMPLEX.worker), count, whole(table, SIMPLEX.workers)):
        chosen = pointer(floats(table, SIMPLEX.chosen), t * slots)
        for p in range(slots):
            chosen[p] = 0.0
        solve(
            pointer(floats(table, SIMPLEX.curvature), t * slots),
            pointer(floats(table, SIMPLEX.linear), t * slots),
            slots,
            AUTO,
            chosen,
            floats(table, SIMPLEX.scratch),
            wholes(table, SIMPLEX.places),
        )


NOTE = fields("slots", "curvature", "linear", "figures")


def note(table, first, count):
    """figures = curvature and linear part of the block's last sample, for whoever asks."""
    slots = whole(table, NOTE.slots)
    figures = floats(table, NOTE.figures)
    for p in range(slots):
        last = (count - 1) * slots + p
        figures[p] = floats(table, NOTE.curvature)[last]
        figures[slots + p] = floats(table, NOTE.linear)[last]


SLIDE = fields("slots", "horizon", "slot_loss", "segment", "suffixes", "prefix", "out")


def sliding_sums(table, first, count):
    """out[t, p] = sum of the last `horizon` losses of slot p, without any subtraction.

    Time is cut into segments of `horizon` samples by the absolute sample number. The sum is that of
    the end of the last segment (`suffixes`, added up from its back when it closed) and of the
    present one so far (`prefix`). A huge loss that has left the horizon leaves no rounding behind.
    """
    slots = whole(table, SLIDE.slots)
    horizon = whole(table, SLIDE.horizon)
    segment = floats(table, SLIDE.segment)
    suffixes = floats(table, SLIDE.suffixes)
    prefix = floats(table, SLIDE.prefix)
    for t in range(count):
        place = (first + t) % horizon
        for p in range(slots):
            loss = floats(table, SLIDE.slot_loss)[t * slots + p]
            if place == 0:
                prefix[p] = 0.0
            segment[place * slots + p] = loss
            prefix[p] += loss
            rest = suffixes[(place + 1) * slots + p] if place + 1 < horizon else 0.0
            floats(table, SLIDE.out)[t * slots + p] = rest + prefix[p]
            if place == horizon - 1:
                total = 0.0
                for i in range(horizon - 1, -1, -1):
                    total = segment[i * slots + p] + total
                    suffixes[i * slots + p] = total


DESCEND = fields(
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


def descend(table, first, count):
    """Gradient steps on the weights of the regularised cost over the window (OMKR).

    values[t, i, p] is f_p on the window after sample t, recent[t + i] the target there; the step
    after sample number n (from 0) makes the weights of round n + 2 in the paper's count.
    """
    slots = whole(table, DESCEND.slots)
    window = whole(table, DESCEND.window)
    values = floats(table, DESCEND.values)
    chosen = floats(table, DESCEND.chosen)
    rows = (window + WIDTH - 1) // WIDTH * WIDTH
    mixed = floats(table, DESCEND.scratch)
    f = pointer(mixed, rows)
    y = pointer(f, rows)
    slope = pointer(y, rows)
    for t in range(count):
        seen = min(first + t + 1, window)
        unseen = window - seen
        before = floats(table, DESCEND.weights)
        if t > 0:
            before = pointer(chosen, (t - 1) * slots)
        for i in range(seen):
            total = 0.0
            for p in range(slots):
                total += before[p] * values[(t * window + unseen + i) * slots + p]
            mixed[i] = total
        window_loss(
            whole(table, DESCEND.derivative),
            floats(table, DESCEND.parameters),
            mixed,
            pointer(floats(table, DESCEND.recent), t + unseen),
            seen,
            f,
            y,
            slope,
        )
        halvings = (first + t + 1) // whole(table, DESCEND.halve_every)
        step = max(
            real(table, DESCEND.first_rate) * 2.0**-halvings, real(table, DESCEND.least_rate)
        )
        floats(table, DESCEND.rate)[0] = step
        ridge = real(table, DESCEND.ridge)
        for p in range(slots):
            gradient = ridge * floats(table, DESCEND.curvature)[t * slots + p] * before[p]
            for i in range(seen):
                gradient += slope[i] * values[(t * window + unseen + i) * slots + p]
            floats(table, DESCEND.gradient)[p] = gradient
            moved = before[p] - step * gradient
            # A slot that is out has no weight; a weight that overflows starts again.
            out = floats(table, DESCEND.window_loss)[t * slots + p] == np.inf
            chosen[t * slots + p] = 0.0 if out or not np.isfinite(moved) else moved


LEAST = fields("slots", "slot_cost", "totals", "chosen")


def least(table, first, count):
    """All weight on the slot with the least total cost after each sample, the first of equals."""
    slots = whole(table, LEAST.slots)
    totals = floats(table, LEAST.totals)
    for t in range(count):
        chosen = pointer(floats(table, LEAST.chosen), t * slots)
        best = 0
        for p in range(slots):
            totals[p] += floats(table, LEAST.slot_cost)[t * slots + p]
            chosen[p] = 0.0
            if totals[p] < totals[best]:
                best = p
        if totals[best] < np.inf:
            chosen[best] = 1.0


SHARE = fields("slots", "window_loss", "chosen")


def share(table, first, count):
    """Equal weights for all slots that are not out (loss inf)."""
    slots = whole(table, SHARE.slots)
    for t in range(count):
        losses = pointer(floats(table, SHARE.window_loss), t * slots)
        chosen = pointer(floats(table, SHARE.chosen), t * slots)
        alive = 0
        for p in range(slots):
            if losses[p] < np.inf:
                alive += 1
        for p in range(slots):
            chosen[p] = 1.0 / alive if losses[p] < np.inf else 0.0

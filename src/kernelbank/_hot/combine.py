"""Loops of the combiners over the rows of a block."""

import numpy as np

from .formulas import call_loss, pointer
from .jit import hot
from .lanes import WIDTH


@hot
def sliding_sums(first, losses, segment, suffixes, prefix, out):
    """out[t, p] = sum of the last `horizon` losses of slot p, without any subtraction.

    Time is cut into segments of `horizon` samples by the absolute sample number. The sum is that of
    the end of the last segment (`suffixes`, added up from its back when it closed) and of the
    present one so far (`prefix`). A huge loss that has left the horizon leaves no rounding behind.
    """
    horizon = segment.shape[0]
    for t in range(losses.shape[0]):
        place = (first + t) % horizon
        for p in range(losses.shape[1]):
            if place == 0:
                prefix[p] = 0.0
            segment[place, p] = losses[t, p]
            prefix[p] += losses[t, p]
            rest = suffixes[place + 1, p] if place + 1 < horizon else 0.0
            out[t, p] = rest + prefix[p]
            if place == horizon - 1:
                total = 0.0
                for i in range(horizon - 1, -1, -1):
                    total = segment[i, p] + total
                    suffixes[i, p] = total


@hot
def descend(
    first,
    rate,
    halve_every,
    least,
    ridge,
    derivative,
    parameters,
    targets,
    curvature,
    values,
    weights,
    out,
):
    """Gradient steps on the weights of the regularised cost over the window (OMKR).

    values[t, i, p] is f_p on the window after sample t, targets[t + i] the target there; the step
    after sample number n (from 0) makes the weights of round n + 2 in the paper's count.
    """
    window = values.shape[1]
    slots = values.shape[2]
    rows = (window + WIDTH - 1) // WIDTH
    f = np.ones((rows, WIDTH))
    y = np.ones((rows, WIDTH))
    slope = np.ones((rows, WIDTH))
    for t in range(values.shape[0]):
        seen = min(first + t + 1, window)
        for i in range(seen):
            total = 0.0
            for p in range(slots):
                total += weights[p] * values[t, window - seen + i, p]
            f[i // WIDTH, i % WIDTH] = total
            y[i // WIDTH, i % WIDTH] = targets[t + window - seen + i]
        call_loss(
            derivative,
            pointer(f, 0),
            pointer(y, 0),
            (seen + WIDTH - 1) // WIDTH,
            pointer(parameters, 0),
            pointer(slope, 0),
        )
        step = max(rate * 2.0 ** -((first + t + 1) // halve_every), least)
        for p in range(slots):
            gradient = ridge * curvature[t, p] * weights[p]
            for i in range(seen):
                gradient += slope[i // WIDTH, i % WIDTH] * values[t, window - seen + i, p]
            moved = weights[p] - step * gradient
            out[t, p] = moved if np.isfinite(moved) else 0.0  # overflown: start again
        for p in range(slots):
            weights[p] = out[t, p]


@hot
def choose_least(rows, totals, out):
    """out[t] = all weight on the slot with the least total after row t, the first of equals."""
    for t in range(rows.shape[0]):
        best = 0
        for p in range(rows.shape[1]):
            totals[p] += rows[t, p]
            out[t, p] = 0.0
            if totals[p] < totals[best]:
                best = p
        if totals[best] < np.inf:
            out[t, best] = 1.0


@hot
def share_equally(losses, out):
    """out[t] = equal weights for all slots that are not out (loss inf)."""
    for t in range(losses.shape[0]):
        alive = 0
        for p in range(losses.shape[1]):
            if losses[t, p] < np.inf:
                alive += 1
        for p in range(losses.shape[1]):
            out[t, p] = 1.0 / alive if losses[t, p] < np.inf else 0.0

"""The quadratic program of many samples at once, whose slots are spread over shards.

Nothing above the level has weight (see `qp`), and mass(v) >= 1 shows that the level is below v. So
shards find out together, by sums, a v for every sample below which few slots are left; these are
solved for by the code of `qp`. The sums only steer the search: that mass(v) >= 1 is checked, by the
canonical sum, on the slots that are left. So the weights have the bits of the whole program.

Slots that are left are lists: sample t has the members starts[t] .. starts[t + 1] - 1.
"""

import numpy as np

from ..native.formulas import int_pointer, pointer
from ..native.jit import entry, inline
from .qp import AUTO, HUGE, SCRATCH, solve

BOUND, FLAT, LARGEST = range(3)
MASS, SLOPE = range(2)

SLACK = 1e-11  # of a step, so that rounding does not bring it below the level
CLOSE = 1e-6  # more than 1: not worth a further step


@inline
def _descended(a, b, t, top, flat, some_a, some_b):
    """A level from `top` down at which the slots alone still reach 1: Newton's steps, from above.

    mass is convex, so no step passes the solution, but for rounding, against which it stays a
    little above. some_a and some_b are scratch for the slots that are left.
    """
    level = min(top, flat)
    left = 0
    for p in range(a.shape[1]):
        if b[t, p] < level and a[t, p] > 0.0:
            some_a[left] = a[t, p]
            some_b[left] = b[t, p]
            left += 1
    while True:
        taken = 0.0
        slope = 0.0
        kept = 0
        for k in range(left):
            if some_b[k] < level:
                some_a[kept] = some_a[k]
                some_b[kept] = some_b[k]
                taken += 0.5 * ((level - some_b[kept]) / some_a[kept])
                slope += 0.5 / some_a[kept]
                kept += 1
        lower = _stepped(level, taken, slope)
        if not (lower < level) or (kept == left and taken < 1.0 + CLOSE):
            return level
        level = lower
        left = kept


@inline
def _stepped(level, taken, slope):
    """One step of Newton's down, to where mass is still 1 or more; `level` if there is none."""
    down = (taken - 1.0) / slope
    slack = SLACK * (down + 1.0 / slope) + 1e-15 * abs(level)
    lower = level - down + slack
    if taken > 1.0 and lower < level and abs(lower) < np.inf:
        return lower
    return level


@entry
def outline(a, b, out):
    """out[:, t] = where mass reaches 1 at the latest, the least b without curvature, largest |b|.

    a and b are (n, P); b = inf marks a slot that takes no part.
    """
    some_a, some_b = np.empty(a.shape[1]), np.empty(a.shape[1])
    for t in range(a.shape[0]):
        bound = np.inf
        flat = np.inf
        largest = 0.0
        for p in range(a.shape[1]):
            here = b[t, p]
            if here == np.inf:
                continue
            largest = max(largest, abs(here))
            if a[t, p] == 0.0:
                flat = min(flat, here)
            else:
                bound = min(bound, here + 2.0 * a[t, p])
        if bound < np.inf and largest <= HUGE:
            top = bound + 1e-15 * abs(bound)
            bound = min(bound, _descended(a, b, t, top, flat, some_a, some_b))
        out[BOUND, t] = bound
        out[FLAT, t] = flat
        out[LARGEST, t] = largest


@entry
def step_down(level, mass, slope):
    """The next levels; one that is infinite, because all slots are to be sent, stays so."""
    out = np.empty_like(level)
    for t in range(len(level)):
        out[t] = _stepped(level[t], mass[t], slope[t])
    return out


@entry
def count_below(b, level, starts):
    """starts, for the slots with b <= level[t]."""
    starts[0] = 0
    for t in range(b.shape[0]):
        found = 0
        for p in range(b.shape[1]):
            if b[t, p] <= level[t] and b[t, p] < np.inf:
                found += 1
        starts[t + 1] = starts[t] + found


@entry
def list_below(a, b, level, places, some_a, some_b):
    """The slots that `count_below` has counted."""
    k = 0
    for t in range(b.shape[0]):
        for p in range(b.shape[1]):
            if b[t, p] <= level[t] and b[t, p] < np.inf:
                places[k] = p
                some_a[k] = a[t, p]
                some_b[k] = b[t, p]
                k += 1


@entry
def narrow(starts, places, a, b, level, out):
    """Keep those with b <= level[t], in place; out[:, t] = mass and its slope."""
    kept = 0
    begin = starts[0]
    for t in range(level.shape[0]):
        end = starts[t + 1]
        taken = 0.0
        slope = 0.0
        for k in range(begin, end):
            if b[k] <= level[t]:
                places[kept] = places[k]
                a[kept] = a[k]
                b[kept] = b[k]
                kept += 1
                if b[kept - 1] < level[t] and a[kept - 1] > 0.0:
                    taken += 0.5 * ((level[t] - b[kept - 1]) / a[kept - 1])
                    slope += 0.5 / a[kept - 1]
        begin = end
        starts[t + 1] = kept
        out[MASS, t] = taken
        out[SLOPE, t] = slope
    return kept


@entry
def solve_lists(starts, a, b, level, weights, right):
    """The program of every sample on its list; right[t]: whether nothing else can have weight.

    level[t] is inf where all slots that take part are listed, and the least b without curvature
    where this is lower than what the search found: then nothing has to be shown.
    """
    most = 0
    for t in range(level.shape[0]):
        most = max(most, starts[t + 1] - starts[t])
    scratch = np.empty((4, most + SCRATCH))
    room = np.empty((2, most + SCRATCH), np.int64)
    for t in range(level.shape[0]):
        begin = starts[t]
        count = starts[t + 1] - begin
        taken = 0.0
        flat = False
        for k in range(begin, begin + count):
            weights[k] = 0.0
            if a[k] == 0.0:
                flat = True
            elif b[k] < level[t]:
                taken += 0.5 * ((level[t] - b[k]) / a[k])
        right[t] = level[t] == np.inf or flat or taken >= 1.0
        if right[t] and count > 0:
            solve(
                pointer(a, begin),
                pointer(b, begin),
                count,
                AUTO,
                pointer(weights, begin),
                pointer(scratch, 0),
                int_pointer(room, 0),
            )


@entry
def add_rows(samples, rows, totals):
    """totals[samples[k]] += rows[k], in the order of k."""
    for k in range(rows.shape[0]):
        t = samples[k]
        for i in range(rows.shape[1]):
            totals[t, i] += rows[k, i]

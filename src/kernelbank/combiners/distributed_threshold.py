"""The quadratic programs of many samples at once, with slots distributed over shards.

No slot above the threshold has weight (see `simplex_qp`), and mass(v) >= 1 shows that the threshold
is below v. So the shards find together, by sums, a v for each sample below which few slots are
left, and these are solved by the code of `simplex_qp`. The sums only guide the search: mass(v) >= 1
is checked, by the fixed sum, on the slots that are left. So the weights have the bits of the whole
program.

The slots that are left are lists: sample t has the members starts[t] .. starts[t + 1] - 1.
"""

import numpy as np

from ..native.formulas import int_pointer, pointer
from ..native.jit import entry, inline
from .simplex_qp import AUTO, HUGE, SCRATCH, solve

BOUND, FLAT, LARGEST = range(3)
MASS, SLOPE = range(2)

SLACK = 1e-11  # relative: rounding must not bring a step below the threshold
CLOSE = 1e-6  # a mass of 1 + CLOSE is not worth a further step


@inline
def _descend(a, b, t, top, flat, some_a, some_b):
    """A bound below `top` at which the mass of these slots is still at least 1, by Newton steps.

    mass is convex, so no step passes the solution except by rounding; SLACK keeps it above.
    a, b: (n, P); some_a, some_b: scratch for the slots that are left.
    """
    threshold = min(top, flat)
    left = 0
    for p in range(a.shape[1]):
        if b[t, p] < threshold and a[t, p] > 0.0:
            some_a[left] = a[t, p]
            some_b[left] = b[t, p]
            left += 1
    while True:
        taken = 0.0
        slope = 0.0
        kept = 0
        for k in range(left):
            if some_b[k] < threshold:
                some_a[kept] = some_a[k]
                some_b[kept] = some_b[k]
                taken += 0.5 * ((threshold - some_b[kept]) / some_a[kept])
                slope += 0.5 / some_a[kept]
                kept += 1
        lower = _newton_step(threshold, taken, slope)
        if not (lower < threshold) or (kept == left and taken < 1.0 + CLOSE):
            return threshold
        threshold = lower
        left = kept


@inline
def _newton_step(threshold, taken, slope):
    """One Newton step down, to where mass is still at least 1; `threshold` if there is none."""
    down = (taken - 1.0) / slope
    slack = SLACK * (down + 1.0 / slope) + 1e-15 * abs(threshold)
    lower = threshold - down + slack
    if taken > 1.0 and lower < threshold and abs(lower) < np.inf:
        return lower
    return threshold


@entry
def threshold_bounds(a, b, out):
    """out[:, t] = (a v with mass(v) >= 1, the least b_p with a_p = 0, the largest |b_p|).

    a, b: (n, P); out: (3, n). b_p = inf marks a slot that has failed.
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
            bound = min(bound, _descend(a, b, t, top, flat, some_a, some_b))
        out[BOUND, t] = bound
        out[FLAT, t] = flat
        out[LARGEST, t] = largest


@entry
def step_down(threshold, mass, slope):
    """The next bounds, (n,). An infinite one, for which all slots are sent, stays infinite."""
    out = np.empty_like(threshold)
    for t in range(len(threshold)):
        out[t] = _newton_step(threshold[t], mass[t], slope[t])
    return out


@entry
def count_below(b, threshold, starts):
    """starts of the lists of slots with b <= threshold[t]. b: (n, P); starts: (n + 1,)."""
    starts[0] = 0
    for t in range(b.shape[0]):
        found = 0
        for p in range(b.shape[1]):
            if b[t, p] <= threshold[t] and b[t, p] < np.inf:
                found += 1
        starts[t + 1] = starts[t] + found


@entry
def list_below(a, b, threshold, indices, some_a, some_b):
    """List the slots that `count_below` has counted: their indices, a and b."""
    k = 0
    for t in range(b.shape[0]):
        for p in range(b.shape[1]):
            if b[t, p] <= threshold[t] and b[t, p] < np.inf:
                indices[k] = p
                some_a[k] = a[t, p]
                some_b[k] = b[t, p]
                k += 1


@entry
def narrow(starts, indices, a, b, threshold, out):
    """Keep list members with b <= threshold[t], in place; out[:, t] = mass and its slope."""
    kept = 0
    begin = starts[0]
    for t in range(threshold.shape[0]):
        end = starts[t + 1]
        taken = 0.0
        slope = 0.0
        for k in range(begin, end):
            if b[k] <= threshold[t]:
                indices[kept] = indices[k]
                a[kept] = a[k]
                b[kept] = b[k]
                kept += 1
                if b[kept - 1] < threshold[t] and a[kept - 1] > 0.0:
                    taken += 0.5 * ((threshold[t] - b[kept - 1]) / a[kept - 1])
                    slope += 0.5 / a[kept - 1]
        begin = end
        starts[t + 1] = kept
        out[MASS, t] = taken
        out[SLOPE, t] = slope
    return kept


@entry
def solve_lists(starts, a, b, threshold, weights, right):
    """Solve the program of each sample on its list; right[t]: whether no other slot has weight.

    threshold[t] is inf if all slots are listed, and the least b_p with a_p = 0 if that is below the
    bound of the search: then there is nothing to check.
    """
    most = 0
    for t in range(threshold.shape[0]):
        most = max(most, starts[t + 1] - starts[t])
    scratch = np.empty((4, most + SCRATCH))
    indices = np.empty((2, most + SCRATCH), np.int64)
    for t in range(threshold.shape[0]):
        begin = starts[t]
        count = starts[t + 1] - begin
        taken = 0.0
        flat = False
        for k in range(begin, begin + count):
            weights[k] = 0.0
            if a[k] == 0.0:
                flat = True
            elif b[k] < threshold[t]:
                taken += 0.5 * ((threshold[t] - b[k]) / a[k])
        right[t] = threshold[t] == np.inf or flat or taken >= 1.0
        if right[t] and count > 0:
            solve(
                pointer(a, begin),
                pointer(b, begin),
                count,
                AUTO,
                pointer(weights, begin),
                pointer(scratch, 0),
                int_pointer(indices, 0),
            )


@entry
def add_rows(samples, rows, totals):
    """totals[samples[k]] += rows[k], in the order of k."""
    for k in range(rows.shape[0]):
        t = samples[k]
        for i in range(rows.shape[1]):
            totals[t, i] += rows[k, i]

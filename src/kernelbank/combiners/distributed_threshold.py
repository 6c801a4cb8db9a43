"""The quadratic programs of many samples at once, with slots distributed over shards.

No slot above the threshold has weight (see `simplex_qp`), and mass(v) >= 1 shows that the threshold
is below v. So the shards find together, by sums, a v for each sample below which few slots are
left, and these are solved by the code of `simplex_qp`. The sums only guide the search: mass(v) >= 1
is checked, by the fixed sum, on the slots that are left. So the weights have the bits of the whole
program.

The slots that are left are lists: sample t has the members starts[t] .. starts[t + 1] - 1.
"""

import numpy as np

from ..native.arguments import Arguments, floats, ints
from ..native.functions import native
from ..native.jit import inline
from .simplex_qp import AUTO, HUGE, solve

BOUND, FLAT, LARGEST = range(3)
MASS, SLOPE = range(2)

SLACK = 1e-11  # relative: rounding must not bring a step below the threshold
CLOSE = 1e-6  # a mass of 1 + CLOSE is not worth a further step


# --- all slots of a shard, for n samples ----------------------------------------------------------


@inline
def _newton_step(threshold, taken, slope):
    """One Newton step down, to where mass is still at least 1; `threshold` if there is none."""
    down = (taken - 1.0) / slope
    slack = SLACK * (down + 1.0 / slope) + 1e-15 * abs(threshold)
    lower = threshold - down + slack
    if taken > 1.0 and lower < threshold and abs(lower) < np.inf:
        return lower
    return threshold


@inline
def _descend(a, b, top, flat, some_a, some_b):
    """A bound below `top` at which the mass of these slots is still at least 1, by Newton steps.

    mass is convex, so no step passes the solution except by rounding; SLACK keeps it above.
    a, b: (P,); some_a, some_b: (P,), scratch for the slots that are left.
    """
    threshold = min(top, flat)
    left = 0
    for p in range(len(a)):
        if b[p] < threshold and a[p] > 0.0:
            some_a[left] = a[p]
            some_b[left] = b[p]
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


_BOUNDS = Arguments(
    "threshold_bounds",
    samples=int,
    slots=int,
    a=floats("samples", "slots"),
    b=floats("samples", "slots"),
    scratch=floats(2, "slots"),
    out=floats(3, "samples"),
)


@native(_BOUNDS)
def threshold_bounds(args, first, count):
    """out[:, t] = (a v with mass(v) >= 1, the least b_p with a_p = 0, the largest |b_p|).

    b_p = inf marks a slot that has failed.
    """
    for t in range(args.samples):
        a, b = args.a[t], args.b[t]
        bound = np.inf
        flat = np.inf
        largest = 0.0
        for p in range(args.slots):
            if b[p] == np.inf:
                continue
            largest = max(largest, abs(b[p]))
            if a[p] == 0.0:
                flat = min(flat, b[p])
            else:
                bound = min(bound, b[p] + 2.0 * a[p])
        if bound < np.inf and largest <= HUGE:
            top = bound + 1e-15 * abs(bound)
            bound = min(bound, _descend(a, b, top, flat, args.scratch[0], args.scratch[1]))
        args.out[BOUND, t] = bound
        args.out[FLAT, t] = flat
        args.out[LARGEST, t] = largest


_STEP = Arguments(
    "threshold_step",
    samples=int,
    threshold=floats("samples"),
    mass=floats("samples"),
    slope=floats("samples"),
    out=floats("samples"),
)


@native(_STEP)
def step_down(args, first, count):
    """out = the next bounds. An infinite one, for which all slots are sent, stays infinite."""
    for t in range(args.samples):
        args.out[t] = _newton_step(args.threshold[t], args.mass[t], args.slope[t])


# --- lists of the slots that are left -------------------------------------------------------------

_COUNT = Arguments(
    "count_below",
    samples=int,
    slots=int,
    b=floats("samples", "slots"),
    threshold=floats("samples"),
    starts=ints("samples + 1"),
)


@native(_COUNT)
def count_below(args, first, count):
    """starts of the lists of slots with b_p <= threshold[t]."""
    args.starts[0] = 0
    for t in range(args.samples):
        found = 0
        for p in range(args.slots):
            if args.b[t, p] <= args.threshold[t] and args.b[t, p] < np.inf:
                found += 1
        args.starts[t + 1] = args.starts[t] + found


_LIST = Arguments(
    "list_below",
    samples=int,
    slots=int,
    members=int,
    a=floats("samples", "slots"),
    b=floats("samples", "slots"),
    threshold=floats("samples"),
    indices=ints("members"),
    some_a=floats("members"),
    some_b=floats("members"),
)


@native(_LIST)
def list_below(args, first, count):
    """List the slots that `count_below` has counted: their indices, a and b."""
    k = 0
    for t in range(args.samples):
        for p in range(args.slots):
            if args.b[t, p] <= args.threshold[t] and args.b[t, p] < np.inf:
                args.indices[k] = p
                args.some_a[k] = args.a[t, p]
                args.some_b[k] = args.b[t, p]
                k += 1


_NARROW = Arguments(
    "narrow_lists",
    samples=int,
    starts=ints("samples + 1"),
    indices=ints(None),
    a=floats(None),
    b=floats(None),
    threshold=floats("samples"),
    out=floats(2, "samples"),
)


@native(_NARROW)
def narrow(args, first, count):
    """Keep list members with b_p <= v = threshold[t], in place; out[:, t] = mass and its slope."""
    indices, a, b = args.indices, args.a, args.b
    kept = 0
    begin = args.starts[0]
    for t in range(args.samples):
        v = args.threshold[t]
        end = args.starts[t + 1]
        taken = 0.0
        slope = 0.0
        for k in range(begin, end):
            if b[k] <= v:
                indices[kept] = indices[k]
                a[kept] = a[k]
                b[kept] = b[k]
                if b[kept] < v and a[kept] > 0.0:
                    taken += 0.5 * ((v - b[kept]) / a[kept])  # (v - b_p) / (2 a_p)
                    slope += 0.5 / a[kept]
                kept += 1
        begin = end
        args.starts[t + 1] = kept
        args.out[MASS, t] = taken
        args.out[SLOPE, t] = slope


_SOLVE = Arguments(
    "solve_lists",
    samples=int,
    members=int,
    starts=ints("samples + 1"),
    a=floats("members"),
    b=floats("members"),
    threshold=floats("samples"),
    weights=floats("members"),
    right=ints("samples"),
    scratch=floats(4, None),  # of `solve`, for the longest list
    indices=ints(2, None),
)


@native(_SOLVE)
def solve_lists(args, first, count):
    """Solve the program of each sample on its list; right[t]: whether no other slot has weight.

    threshold[t] is inf if all slots are listed, and the least b_p with a_p = 0 if that is below the
    bound of the search: then there is nothing to check.
    """
    for t in range(args.samples):
        v = args.threshold[t]
        begin, end = args.starts[t], args.starts[t + 1]
        a, b, weights = args.a[begin:end], args.b[begin:end], args.weights[begin:end]
        taken = 0.0
        flat = False
        for k in range(len(a)):
            weights[k] = 0.0
            if a[k] == 0.0:
                flat = True
            elif b[k] < v:
                taken += 0.5 * ((v - b[k]) / a[k])  # mass(v)
        args.right[t] = v == np.inf or flat or taken >= 1.0
        if args.right[t] == 1 and len(a) > 0:
            solve(a, b, AUTO, weights, args.scratch, args.indices)


_ADD = Arguments(
    "add_rows",
    rows=int,
    width=int,
    samples=ints("rows"),
    values=floats("rows", "width"),
    totals=floats(None, "width"),
)


@native(_ADD)
def add_rows(args, first, count):
    """totals[samples[k]] += values[k], in the order of k."""
    for k in range(args.rows):
        total = args.totals[args.samples[k]]
        for i in range(args.width):
            total[i] += args.values[k, i]

"""The quadratic program of the scheme: minimise sum_p a_p t_p^2 + b_p t_p over the simplex.

Let mass(v) = sum over b_p < v of (v - b_p) / (2 a_p): what the kernels take if the multiplier
stands at v. It accepts_new_inputs with v, and the last active b is the largest b_p with mass(b_p) < 1, the
*level*. All weights are then referred to the level, so that nothing is ever subtracted but two
members of b:

    t_p = (level - b_p) / (2 a_p) + (1 - mass(level)) (c / a_p) / sum_active(c / a),   c = min a.

(The paper's multiplier, Algorithm 1 line 4, loses all digits when a spans many powers of ten.)

`mass` is summed in index order by both methods. A sum of non-negative terms in a fixed order is
monotone in v even after rounding, so the level is unique and both methods end at the same bits.
b = inf marks a slot that takes no part.
"""

import numpy as np

from ..native.formulas import int_pointer, pointer
from ..native.jit import entry, inline
from ..native.simd import WIDTH, absolute, broadcast, lane, load, where_less
from .qp_threshold import FEW, SAMPLE, level_by_pivots, level_by_sorting, mass

SORT, PIVOT, AUTO = 0, 1, 2
HUGE = 2.0**1000  # beyond this the difference of two members of b may overflow: halve them
_CHUNK = 2048  # kernels looked at together: their a and b stay in the cache
SCRATCH = SAMPLE + 2
_SLACK = 8.9e-16  # four units in the last place: no candidate is lost to the rounding of the bound


@inline
def _settled(level, a, b, count, half, found):
    """The level in the canonical sum: the largest b with mass(b) < 1, from one that is close.

    found[0] = the mass there, found[1] = the least curvature of those at or below it.
    """
    while True:
        taken = 0.0
        least = np.inf
        below = -np.inf
        above = np.inf
        for i in range(count):
            if b[i] < level:
                taken += half * ((level - b[i]) / a[i])
                below = max(below, b[i])
                least = min(least, a[i])
            elif b[i] > level:
                above = min(above, b[i])
            else:
                least = min(least, a[i])
        if taken >= 1.0:
            level = below
            continue
        found[0] = taken
        found[1] = least
        if above == np.inf or mass(above, a, b, count, half) >= 1.0:
            return level
        level = above


@inline
def _bounds(a, b, start, end, bound, flat, largest):
    """Lower the bounds by the kernels start .. end - 1; returns all three.

    bound: mass reaches 1 here at the latest, so nothing beyond is active. flat: the least b among
    the kernels without curvature. largest: the largest |b|.
    """
    even = start + (end - start) // WIDTH * WIDTH
    bounds = broadcast(bound)
    flats = broadcast(flat)
    sizes = broadcast(largest)
    for i in range(start, even, WIDTH):
        some_a = load(pointer(a, i), 0)
        some_b = load(pointer(b, i), 0)
        twice = 2.0 * some_a
        size = absolute(some_b)
        edge = where_less(0.0, some_a, some_b + twice + _SLACK * (size + twice), np.inf)
        base = where_less(0.0, some_a, np.inf, some_b)
        bounds = where_less(edge, bounds, edge, bounds)
        flats = where_less(base, flats, base, flats)
        sizes = where_less(sizes, where_less(size, np.inf, size, 0.0), size, sizes)
    for k in range(WIDTH):
        bound = min(bound, lane(bounds, k))
        flat = min(flat, lane(flats, k))
        largest = max(largest, lane(sizes, k))
    for i in range(even, end):
        if b[i] == np.inf:
            continue
        largest = max(largest, abs(b[i]))
        if a[i] == 0.0:
            flat = min(flat, b[i])
        else:
            twice = 2.0 * a[i]
            bound = min(bound, b[i] + twice + _SLACK * (abs(b[i]) + twice))
    return bound, flat, largest


@inline
def _candidates(a, b, size, method, some_a, some_b, places):
    """List the kernels that can be active; returns their number, `flat`, and whether b is huge.

    In one pass: a chunk lowers the bounds while it is in the cache, and is then searched.
    """
    bound = np.inf
    flat = np.inf
    largest = 0.0
    count = np.int64(0)  # typed: a literal would compile the callees twice
    for start in range(0, size, _CHUNK):
        end = min(start + _CHUNK, size)
        bound, flat, largest = _bounds(a, b, start, end, bound, flat, largest)
        edge = np.inf if method == SORT else bound
        for i in range(start, end):
            if b[i] <= edge and a[i] > 0.0 and b[i] < flat and b[i] < np.inf:
                some_a[count] = a[i]
                some_b[count] = b[i]
                places[count] = i
                count += 1
    if method == SORT or 2 * count > size:
        return count, flat, largest > HUGE
    kept = np.int64(0)
    for k in range(count):  # again, by the bounds of all chunks: fewer is quicker, not righter
        if some_b[k] <= bound and some_b[k] < flat:
            some_a[kept] = some_a[k]
            some_b[kept] = some_b[k]
            places[kept] = places[k]
            kept += 1
    return kept, flat, largest > HUGE


@inline
def solve(a, b, size, method, weights, scratch, places):
    """Write the minimiser to `weights`, where it is not 0; all are pointers.

    `scratch` has room for 4, `places` for 2 times size + SCRATCH numbers.
    """
    room = size + SCRATCH
    some_a = scratch
    some_b = pointer(scratch, room)
    unknown_a = pointer(scratch, 2 * room)
    unknown_b = pointer(scratch, 3 * room)
    order = int_pointer(places, room)
    count, flat, huge = _candidates(a, b, size, method, some_a, some_b, places)
    half = 0.5
    scale = 1.0
    if huge:
        half = 1.0
        scale = 0.5
        for k in range(count):
            some_b[k] *= scale
    found = pointer(some_a, size + SAMPLE)
    if flat < np.inf:
        taken = mass(scale * flat, some_a, some_b, count, half)
        if taken < 1.0:
            sharing = 0
            for i in range(size):
                if a[i] == 0.0 and b[i] == flat:
                    sharing += 1
            for k in range(count):
                if some_b[k] < scale * flat:
                    weights[places[k]] = half * ((scale * flat - some_b[k]) / some_a[k])
            for i in range(size):
                if a[i] == 0.0 and b[i] == flat:
                    weights[i] = (1.0 - taken) / sharing
            return
    if count == 0:
        return  # every slot is out: nobody has weight
    if method == SORT or (method == AUTO and count <= FEW):
        level = level_by_sorting(some_a, some_b, order, count, half)
    else:
        level = level_by_pivots(some_a, some_b, order, count, half, unknown_a, unknown_b, found)
    level = _settled(level, some_a, some_b, count, half, found)
    rest = 1.0 - found[0]
    least = found[1]
    inverse = 0.0
    for k in range(count):
        if some_b[k] <= level:
            inverse += least / some_a[k]
    for k in range(count):
        if some_b[k] <= level:
            own = half * ((level - some_b[k]) / some_a[k])
            weights[places[k]] = own + rest * ((least / some_a[k]) / inverse)


@entry
def flaw(a, b):
    """0 if a is finite and non-negative and b finite, all through; else 1 for a, 2 for b."""
    size = a.size
    even = size - size % WIDTH
    first, second = a.ravel(), b.ravel()
    spoiled_a = broadcast(0.0)
    spoiled_b = broadcast(0.0)
    least = broadcast(0.0)
    for i in range(0, even, WIDTH):
        some = load(pointer(first, i), 0)
        spoiled_a = spoiled_a + some * 0.0  # NaN from NaN and infinity, for good
        least = where_less(some, least, some, least)
        spoiled_b = spoiled_b + load(pointer(second, i), 0) * 0.0
    for k in range(WIDTH):
        if not (lane(spoiled_a, k) == 0.0 and lane(least, k) == 0.0):
            return 1
    for i in range(even, size):
        if not (np.isfinite(first[i]) and first[i] >= 0.0):
            return 1
    for k in range(WIDTH):
        if lane(spoiled_b, k) != 0.0:
            return 2
    for i in range(even, size):
        if not np.isfinite(second[i]):
            return 2
    return 0


@entry
def solve_rows(a, b, method, weights):
    """The minimiser of every row; `weights` starts at 0."""
    size = a.shape[1]
    scratch = np.empty((4, size + SCRATCH))
    sorted_too = size + SCRATCH if method == SORT else SCRATCH
    places = np.empty(size + SCRATCH + sorted_too, np.int64)
    for row in range(a.shape[0]):
        solve(
            pointer(a, row * size),
            pointer(b, row * size),
            size,
            method,
            pointer(weights, row * size),
            pointer(scratch, 0),
            int_pointer(places, 0),
        )

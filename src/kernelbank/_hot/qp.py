"""The quadratic program of the scheme: minimise sum_p a_p t_p^2 + b_p t_p over the simplex.

Let mass(v) = sum over b_p < v of (v - b_p) / (2 a_p): what the kernels take if the multiplier
stands at v. It grows with v, and the last active b is the largest b_p with mass(b_p) < 1, the
*level*. All weights are then referred to the level, so that nothing is ever subtracted but two
members of b:

    t_p = (level - b_p) / (2 a_p) + (1 - mass(level)) (c / a_p) / sum_active(c / a),   c = min a.

(The paper's multiplier, Algorithm 1 line 4, loses all digits when a spans many powers of ten.)

`mass` is summed in index order by both methods. A sum of non-negative terms in a fixed order is
monotone in v even after rounding, so the level is unique and both methods end at the same bits.
b = inf marks a slot that takes no part.
"""

import numpy as np

from .formulas import pointer, whole_pointer
from .jit import hot, part

SORT, PIVOT, AUTO = 0, 1, 2
_FEW = 64  # up to here sorting beats selecting
_HUGE = 2.0**1000  # beyond this the difference of two members of b may overflow: halve them
_SLACK = 8.9e-16  # four units in the last place: no candidate is lost to the rounding of the bound


@part
def mass(level, a, b, count, half):
    """What the candidates take at this level. `half` is 1/2, or 1 where b has been halved."""
    total = 0.0
    for i in range(count):
        if b[i] < level:
            total += half * ((level - b[i]) / a[i])
    return total


@part
def _sift(order, b, start, end):
    """Restore the heap of `order` below `start`."""
    root = start
    moved = order[root]
    child = 2 * root + 1
    while child < end:
        if child + 1 < end and b[order[child]] < b[order[child + 1]]:
            child += 1
        if b[order[child]] <= b[moved]:
            break
        order[root] = order[child]
        root = child
        child = 2 * root + 1
    order[root] = moved


@part
def sort_order(b, order, count):
    """Let order[:count] list 0 .. count-1 by ascending b: insertion for few, a heap for many."""
    for i in range(count):
        order[i] = i
    if count <= _FEW:
        for i in range(1, count):
            moved = order[i]
            j = i - 1
            while j >= 0 and b[order[j]] > b[moved]:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = moved
        return
    for start in range(count // 2 - 1, -1, -1):
        _sift(order, b, start, count)
    for end in range(count - 1, 0, -1):
        largest = order[0]
        order[0] = order[end]
        order[end] = largest
        _sift(order, b, 0, end)


@part
def _level_by_sorting(a, b, order, count, half):
    """The level, to rounding, by a walk through the sorted candidates."""
    sort_order(b, order, count)
    level = b[order[0]]
    least = a[order[0]]
    inverse = 1.0  # sum of least / a over the candidates passed
    taken = 0.0
    for j in range(1, count):
        i = order[j]
        taken += half * ((b[i] - level) / least) * inverse
        if not taken < 1.0:
            break
        level = b[i]
        if a[i] < least:
            inverse = inverse * (a[i] / least) + 1.0
            least = a[i]
        else:
            inverse += least / a[i]
    return level


@part
def _level_by_pivots(a, b, order, count, half):
    """The level, to rounding, by random pivots: expected time proportional to `count`.

    order[:unknown] lists the candidates that may still be active or not. Those known to be active
    are kept as what they take at `level` and as how fast that grows.
    """
    for i in range(count):
        order[i] = i
    unknown = count
    level = np.inf
    taken = 0.0
    least = 1.0
    inverse = 0.0
    state = np.uint64(88172645463325252)  # xorshift: any fixed start will do
    while unknown > 0:
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        pivot = b[order[np.int64(state >> np.uint64(33)) % unknown]]
        at_pivot = taken
        if inverse > 0.0:
            at_pivot += half * ((pivot - level) / least) * inverse
        for k in range(unknown):
            i = order[k]
            if b[i] < pivot:
                at_pivot += half * ((pivot - b[i]) / a[i])
        kept = 0
        if at_pivot < 1.0:
            for k in range(unknown):
                i = order[k]
                if b[i] > pivot:
                    order[kept] = i
                    kept += 1
                elif inverse == 0.0:
                    least = a[i]
                    inverse = 1.0
                elif a[i] < least:
                    inverse = inverse * (a[i] / least) + 1.0
                    least = a[i]
                else:
                    inverse += least / a[i]
            level = pivot
            taken = at_pivot
        else:
            for k in range(unknown):
                i = order[k]
                if b[i] < pivot:
                    order[kept] = i
                    kept += 1
        unknown = kept
    return level


@part
def _settled(level, a, b, count, half):
    """The level in the canonical sum: the largest b with mass(b) < 1, from one that is close."""
    while mass(level, a, b, count, half) >= 1.0:
        below = -np.inf
        for i in range(count):
            if below < b[i] < level:
                below = b[i]
        level = below
    while True:
        above = np.inf
        for i in range(count):
            if level < b[i] < above:
                above = b[i]
        if above == np.inf or mass(above, a, b, count, half) >= 1.0:
            return level
        level = above


@part
def solve(a, b, size, method, weights, some_a, some_b, places, order):
    """Write the minimiser to `weights`. All are pointers; the last four, to scratch."""
    flat = np.inf  # least b among the kernels without curvature
    bound = np.inf  # mass reaches 1 here at the latest: nothing beyond is active
    largest = 0.0
    for i in range(size):
        weights[i] = 0.0
        if b[i] == np.inf:
            continue
        largest = max(largest, abs(b[i]))
        if a[i] == 0.0:
            flat = min(flat, b[i])
        else:
            twice = 2.0 * a[i]
            bound = min(bound, b[i] + twice + _SLACK * (abs(b[i]) + twice))
    scale, half = (0.5, 1.0) if largest > _HUGE else (1.0, 0.5)
    if method == SORT or not bound < np.inf:
        bound = np.inf
    count = np.int64(0)  # typed: a literal would compile the callees twice
    for i in range(size):
        if a[i] > 0.0 and b[i] < flat and b[i] <= bound and b[i] < np.inf:
            some_a[count] = a[i]
            some_b[count] = scale * b[i]
            places[count] = i
            count += 1
    if flat < np.inf:
        taken = mass(scale * flat, some_a, some_b, count, half)
        if taken < 1.0:
            sharing = 0
            for i in range(size):
                if a[i] == 0.0 and b[i] == flat:
                    sharing += 1
            for k in range(count):
                weights[places[k]] = half * ((scale * flat - some_b[k]) / some_a[k])
            for i in range(size):
                if a[i] == 0.0 and b[i] == flat:
                    weights[i] = (1.0 - taken) / sharing
            return
    if count == 0:
        return  # every slot is out: nobody has weight
    if method == SORT or (method == AUTO and count <= _FEW):
        level = _level_by_sorting(some_a, some_b, order, count, half)
    else:
        level = _level_by_pivots(some_a, some_b, order, count, half)
    level = _settled(level, some_a, some_b, count, half)
    rest = 1.0 - mass(level, some_a, some_b, count, half)
    least = np.inf
    for k in range(count):
        if some_b[k] <= level:
            least = min(least, some_a[k])
    inverse = 0.0
    for k in range(count):
        if some_b[k] <= level:
            inverse += least / some_a[k]
    for k in range(count):
        if some_b[k] <= level:
            own = half * ((level - some_b[k]) / some_a[k])
            weights[places[k]] = own + rest * ((least / some_a[k]) / inverse)


@hot
def solve_rows(a, b, method, weights):
    """The minimiser of every row."""
    size = a.shape[1]
    scratch = np.empty((2, size))
    places = np.empty((2, size), np.int64)
    for row in range(a.shape[0]):
        solve(
            pointer(a, row * size),
            pointer(b, row * size),
            size,
            method,
            pointer(weights, row * size),
            pointer(scratch, 0),
            pointer(scratch, size),
            whole_pointer(places, 0),
            whole_pointer(places, size),
        )

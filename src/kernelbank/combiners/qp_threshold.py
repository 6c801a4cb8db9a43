"""The threshold of the quadratic program (see `simplex_qp`): by sorting, or by pivots.

Both find it up to rounding only. `simplex_qp` makes it exact by one fixed sum, so both give the
same bits. The first `count` members of a and b are the candidates, which can have weight.
"""

import numpy as np

from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, lane, where_less
from ..native.views import load_four

FEW = 64  # up to here sorting is faster than pivots
SAMPLE = 2048  # candidates from which the first pivots are guessed
_RANKS = 40  # distance from the guess: five standard deviations of a rank in the sample


@inline
def mass(threshold, a, b, count, half):
    """mass(v) = sum over b_p < v of (v - b_p) / (2 a_p). `half` is 1/2, or 1 if b is halved."""
    total = 0.0
    for i in range(count):
        if b[i] < threshold:
            total += half * ((threshold - b[i]) / a[i])
    return total


@inline
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


@inline
def sort_order(b, order, count):
    """order[:count] = 0 .. count - 1 by ascending b: insertion sort for few, heap sort for many."""
    for i in range(count):
        order[i] = i
    if count <= FEW:
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


@inline
def threshold_by_sorting(a, b, order, count, half):
    """The threshold, up to rounding, by a walk through the sorted candidates."""
    sort_order(b, order, count)
    threshold = b[order[0]]
    least = a[order[0]]
    inverse = 1.0  # sum of least / a over the candidates so far
    taken = 0.0
    for j in range(1, count):
        i = order[j]
        taken += half * ((b[i] - threshold) / least) * inverse
        if not taken < 1.0:
            break
        threshold = b[i]
        if a[i] < least:
            inverse = inverse * (a[i] / least) + 1.0
            least = a[i]
        else:
            inverse += least / a[i]
    return threshold


@inline
def _guesses(a, b, order, count, half, hints):
    """Two guesses from a sample of the candidates, with the threshold almost surely between them.

    The threshold of the sample, with curvatures scaled to its size, then some ranks down and up.
    The sample is copied behind the `count` candidates of a and b.
    """
    stride = count // SAMPLE
    sample_a, sample_b = a[count:], b[count:]
    for k in range(SAMPLE):
        sample_a[k] = a[k * stride] * (SAMPLE / count)
        sample_b[k] = b[k * stride]
    threshold = threshold_by_sorting(sample_a, sample_b, order, np.int64(SAMPLE), half)
    rank = 0
    while rank < SAMPLE - 1 and sample_b[order[rank]] < threshold:
        rank += 1
    hints[0] = sample_b[order[max(rank - _RANKS, 0)]]
    hints[1] = sample_b[order[min(rank + _RANKS, SAMPLE - 1)]]


@inline
def _mass_and_least(pivot, a, b, count, half, found):
    """found = (mass(pivot), the least a_p with b_p <= pivot)."""
    taken = broadcast(0.0)
    least = broadcast(np.inf)
    even = count - count % WIDTH
    for i in range(0, even, WIDTH):
        some_a, some_b = load_four(a, i), load_four(b, i)
        own = half * ((pivot - some_b) / some_a)
        taken = taken + where_less(some_b, pivot, own, 0.0)
        upto = where_less(pivot, some_b, np.inf, some_a)
        least = where_less(upto, least, upto, least)
    found[0] = (lane(taken, 0) + lane(taken, 1)) + (lane(taken, 2) + lane(taken, 3))
    found[1] = min(lane(least, 0), lane(least, 1), lane(least, 2), lane(least, 3))
    for i in range(even, count):
        if b[i] < pivot:
            found[0] += half * ((pivot - b[i]) / a[i])
        if b[i] <= pivot:
            found[1] = min(found[1], a[i])


@inline
def _inverse(pivot, a, b, count, least):
    """Sum of least / a_p over b_p <= pivot."""
    total = broadcast(0.0)
    even = count - count % WIDTH
    for i in range(0, even, WIDTH):
        ratio = least / load_four(a, i)
        total = total + where_less(pivot, load_four(b, i), 0.0, ratio)
    result = (lane(total, 0) + lane(total, 1)) + (lane(total, 2) + lane(total, 3))
    for i in range(even, count):
        if b[i] <= pivot:
            result += least / a[i]
    return result


@inline
def threshold_by_pivots(a, b, order, count, half, unknown_a, unknown_b, found):
    """The threshold, up to rounding, by pivots: expected time proportional to `count`.

    `unknown_a` and `unknown_b` list the candidates of which it is unknown whether they have weight.
    Those known to have weight enter by their mass at `threshold` (`taken`) and its growth rate
    (`inverse` / `least`). The first pivots are guesses from a sample, the others random.
    """
    guesses = 0
    if count >= SAMPLE * 4:
        _guesses(a, b, order, count, half, found)
        guesses = 2
    low_guess, high_guess = found[0], found[1]
    for i in range(count):
        unknown_a[i] = a[i]
        unknown_b[i] = b[i]
    unknown = count
    threshold = -np.inf
    taken = 0.0
    least = 1.0
    inverse = 0.0
    state = np.uint64(88172645463325252)  # xorshift; the start is arbitrary but fixed
    while unknown > 0:
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        pivot = unknown_b[np.int64(state >> np.uint64(33)) % unknown]
        if guesses > 0:
            pivot = low_guess if guesses == 2 else high_guess
            guesses -= 1
        _mass_and_least(pivot, unknown_a, unknown_b, unknown, half, found)
        at_pivot = taken + found[0]
        if inverse > 0.0 and pivot > threshold:
            at_pivot += half * ((pivot - threshold) / least) * inverse
        kept = 0
        if at_pivot < 1.0:
            smaller = min(least, found[1]) if inverse > 0.0 else found[1]
            inverse = inverse * (smaller / least) + _inverse(
                pivot, unknown_a, unknown_b, unknown, smaller
            )
            least = smaller
            for k in range(unknown):  # without a branch, which could not be predicted
                here = unknown_b[k]
                unknown_a[kept] = unknown_a[k]
                unknown_b[kept] = here
                kept += here > pivot
            threshold = max(threshold, pivot)
            taken = at_pivot
        else:
            for k in range(unknown):
                here = unknown_b[k]
                unknown_a[kept] = unknown_a[k]
                unknown_b[kept] = here
                kept += here < pivot
        unknown = kept
    return threshold

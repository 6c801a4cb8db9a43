"""The search of `NearestNeighborGP`: which inputs of the memory are nearest to a point.

The memory is a ring: sample number n of the learner is at place n % memory. Reading all inputs
takes most of the time of a search, so they are kept in single precision, and f(x) is computed at x
in single precision. A search goes from the newest sample to the oldest, and takes an input only if
it is nearer than those it has: so of equally near ones the newest stay.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, fma, lane, where_less
from ..native.views import load_four, store_four

BLOCK = 4 * WIDTH
"""Samples of a block of the memory, whose distances are computed at once."""


@inline
def stored_samples(a, leaf):
    """Samples stored so far. A saved file may hold any number: stay a whole one."""
    stored = a.stored[leaf]
    if not 0.0 <= stored <= 2.0**53:
        return 0
    return int(stored)


@inline
def _insert(a, count, place, distance):
    """Put a sample among the `count` nearest so far; returns how many they are now."""
    i = count
    if count == a.neighbors:
        i = count - 1
        if not distance < a.distances[i]:
            return count
    while i > 0 and distance < a.distances[i - 1]:
        a.distances[i] = a.distances[i - 1]
        a.nearest[i] = a.nearest[i - 1]
        i -= 1
    a.distances[i] = distance
    a.nearest[i] = place
    return min(count + 1, a.neighbors)


@inline
def _smaller(x, y):
    return where_less(y, x, y, x)


@inline
def _some_less(d0, d1, d2, d3, most):
    """Whether one of sixteen numbers is less than `most`."""
    least = _smaller(_smaller(d0, d1), _smaller(d2, d3))
    return (
        lane(least, 0) < most
        or lane(least, 1) < most
        or lane(least, 2) < most
        or lane(least, 3) < most
    )


@inline
def _add_squares(point, block, first, last, d0, d1, d2, d3):
    """Sixteen sums plus (z_k - x_k)^2, k = first .. last - 1, of the samples of a block."""
    for k in range(first, last):
        x, row = broadcast(point[k]), block[k]
        u0, u1 = load_four(row, 0) - x, load_four(row, 4) - x
        u2, u3 = load_four(row, 8) - x, load_four(row, 12) - x
        d0, d1 = fma(u0, u0, d0), fma(u1, u1, d1)
        d2, d3 = fma(u2, u2, d2), fma(u3, u3, d3)
    return d0, d1, d2, d3


@inline
def _search(a, leaf, low, high, count):
    """Look at the places high - 1 down to low; returns the number of nearest samples so far.

    Sixteen distances at once, each a sum over the coordinates in their order. Where half of the
    coordinates already make all of them too large, the others are not read.
    """
    point, blocks = a.point, a.points[leaf]  # (dimension,), (memory / 16, dimension, 16)
    half = a.dimension // 2
    for number in range((high - 1) // BLOCK, low // BLOCK - 1, -1):
        block = blocks[number]
        most = a.distances[count - 1] if count == a.neighbors else np.inf
        d0, d1, d2, d3 = broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)
        d0, d1, d2, d3 = _add_squares(point, block, 0, half, d0, d1, d2, d3)
        if most < np.inf and not _some_less(d0, d1, d2, d3, most):
            continue
        d0, d1, d2, d3 = _add_squares(point, block, half, a.dimension, d0, d1, d2, d3)
        if most < np.inf and not _some_less(d0, d1, d2, d3, most):
            continue
        store_four(a.block_distances, 0, d0)
        store_four(a.block_distances, 4, d1)
        store_four(a.block_distances, 8, d2)
        store_four(a.block_distances, 12, d3)
        start = number * BLOCK
        for place in range(min(start + BLOCK, high) - 1, max(start, low) - 1, -1):
            count = _insert(a, count, place, a.block_distances[place - start])
    return count


@inline
def find_nearest(a, leaf):
    """nearest[:count] = the places of the samples nearest to `point`; returns their number.

    The one that the next sample replaces comes last.
    """
    stored = stored_samples(a, leaf)
    if stored == 0:
        return 0
    next_place = stored % a.memory
    count = 0
    if stored < a.memory:
        return _search(a, leaf, 0, stored, 0)
    count = _search(a, leaf, 0, next_place, count)
    count = _search(a, leaf, next_place, a.memory, count)
    for i in range(count - 1):
        if a.nearest[i] == next_place:
            for j in range(i, count - 1):
                a.nearest[j] = a.nearest[j + 1]
            a.nearest[count - 1] = next_place
            break
    return count

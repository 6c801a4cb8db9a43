"""The compiled steps of `NearestNeighborGP`: the search, and the local systems of four slots.

The memory is a ring: sample number n of the learner is at place n % memory. Reading all inputs
takes most of the time of a search, so they are kept in single precision, and f(x) is computed at x
in single precision. A search goes from the newest sample to the oldest, and takes an input only if
it is nearer than those it has: so of equally near ones the newest stay.

The local system is solved by a Cholesky factorization K + noise I = L L', one neighbor after the
other. The neighbor that the next sample will replace in the ring comes last. So the first k - 1 of
k neighbors are those of f(x) after x itself is learned: x is then the nearest, with all others but
the last. What follows from them is computed too, and f(x) after learning (x, y) is

    m + s (y - m) / (s + noise),

with the prediction m from these neighbors and its variance s.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..kernels.program import compute_statistics, kernel_row
from ..kernels.sample_buffer import USED
from ..native.arguments import Arguments, floats, ints, lanes
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, fma, lane, sqrt, where_less
from ..native.views import load_four, store_four

LOCAL_SIZE = 4
(
    PREDICTION,  # f(x)
    VARIANCE,  # its variance
    MEAN,  # m: the prediction from the neighbors that stay
    SPREAD,  # s: its variance
) = range(LOCAL_SIZE)
"""What is computed at a point, in each lane."""

BLOCK = 4 * WIDTH
"""Samples of a block of the memory, whose distances are computed at once."""

NEIGHBORS = Arguments(
    "neighbors",
    leaves=int,
    dimension=int,  # number of active coordinates
    active=ints("dimension"),  # their indices in an input
    inputs=floats(None, None),  # inputs[k, position] is coordinate k
    neighbors=int,  # the most of them
    memory=int,
    noise=float,
    constant=float,
    points=floats(  # in blocks
        "leaves", f"(memory + {BLOCK - 1}) // {BLOCK}", "dimension", BLOCK, dtype="float32"
    ),
    responses=floats("leaves", "memory"),  # their targets
    stored=floats("leaves"),  # samples stored so far
    program=ints(None, 3),  # the kernels' program, see `kernels.program`
    kernel_constants=lanes("leaves", None, 3),
    addresses=ints(None),  # of the statistics that the program reads
    source_parameters=floats(None),
    coordinates=ints(None),
    starts=ints(None),
    statistics=floats(None, 1, "neighbors"),
    stack=lanes(None, "neighbors"),  # scratch of the program; all that follow but `local` too
    rounded=floats("dimension", dtype="float32"),  # x in single precision,
    point=floats("dimension"),  # and as double again
    other=floats("dimension"),
    distances=floats("neighbors"),  # squared, of the nearest, ascending
    block_distances=floats(BLOCK),
    nearest=ints("neighbors"),  # their places in the memory
    chosen=floats("dimension", "neighbors"),  # their inputs
    factor=lanes("neighbors", "neighbors"),  # L by columns: factor[c, j] = L_jc
    row=lanes("neighbors"),
    query_row=lanes("neighbors"),  # q
    scales=lanes("neighbors"),  # 1 / L_ii
    solved=lanes("neighbors"),  # L^-1 v
    projected=lanes("neighbors"),  # L^-1 q
    local=lanes("leaves", LOCAL_SIZE),
)
LEARN = NEIGHBORS.extended(
    "neighbors_learn",
    steps=int,  # longest block + 1
    window=int,
    slide_period=int,
    history_length=int,
    targets=lanes("history_length + slide_period"),
    memo=ints(3),  # of the last query, see `SampleBuffer`
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
    variances=lanes("leaves", "steps - 1"),
)
QUERY = NEIGHBORS.extended("neighbors_query", query_values=lanes("leaves"))
POINTS = NEIGHBORS.extended(
    "neighbors_points",
    wanted=ints("leaves"),
    out=lanes("leaves", None),
    spread=lanes("leaves", None),
)


# --- the search -----------------------------------------------------------------------------------


@inline
def _stored(a, leaf):
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
def _find_nearest(a, leaf):
    """nearest[:count] = the places of the samples nearest to `point`; returns their number.

    The one that the next sample replaces comes last.
    """
    stored = _stored(a, leaf)
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


# --- the local systems ----------------------------------------------------------------------------


@inline
def _kernel_row(a, leaf, x, count, out):
    """out[j] = k(x, z_j) + constant for j < count, in each lane."""
    compute_statistics(a, x, a.chosen[0], a.neighbors, count)
    kernel_row(a.program, a.kernel_constants[leaf], a.statistics, -1, 0, count, out, a.stack)
    for j in range(count):
        out[j] = out[j] + a.constant


@inline
def _self_kernel(a, leaf):
    """k(x, x) + constant; overwrites the first input in `chosen`."""
    for k in range(a.dimension):
        a.chosen[k, 0] = a.point[k]
    _kernel_row(a, leaf, a.point, 1, a.row)
    return a.row[0]


@inline
def _solve_at_point(a, leaf):
    """Everything in `local` for the input in `point`."""
    local = a.local[leaf]
    row, factor, scales = a.row, a.factor, a.scales
    solved, projected = a.solved, a.projected
    count = _find_nearest(a, leaf)
    own = _self_kernel(a, leaf)
    for i in range(count):
        place = a.nearest[i]
        block = a.points[leaf, place // BLOCK]
        for k in range(a.dimension):
            a.chosen[k, i] = block[k, place % BLOCK]
    _kernel_row(a, leaf, a.point, count, a.query_row)
    staying = min(count, a.neighbors - 1)
    mean, variance = broadcast(0.0), own
    local[MEAN], local[SPREAD] = mean, variance
    for i in range(count):
        for k in range(a.dimension):
            a.other[k] = a.chosen[k, i]
        _kernel_row(a, leaf, a.other, i + 1, row)
        row[i] = row[i] + a.noise
        # Row i of L, and of L^-1 v and L^-1 q. On entry row[j] = (K + noise I)_ij, j <= i.
        v, q = broadcast(a.responses[leaf, a.nearest[i]]), a.query_row[i]
        for c in range(0, i - 1, 2):  # two columns at once
            one = -row[c] * scales[c]  # -L_ic
            other = -fma(one, factor[c, c + 1], row[c + 1]) * scales[c + 1]
            factor[c, i], factor[c + 1, i] = -one, -other
            first, second = factor[c], factor[c + 1]
            for j in range(c + 2, i + 1):
                row[j] = fma(other, second[j], fma(one, first[j], row[j]))
            v = fma(other, solved[c + 1], fma(one, solved[c], v))
            q = fma(other, projected[c + 1], fma(one, projected[c], q))
        if i % 2 == 1:
            one = -row[i - 1] * scales[i - 1]
            factor[i - 1, i] = -one
            row[i] = fma(one, factor[i - 1, i], row[i])
            v = fma(one, solved[i - 1], v)
            q = fma(one, projected[i - 1], q)
        # At least the noise in exact arithmetic; rounding must not make it smaller.
        pivot = where_less(row[i], a.noise, a.noise, row[i])
        scales[i] = 1.0 / sqrt(pivot)
        solved[i], projected[i] = v * scales[i], q * scales[i]
        mean = fma(solved[i], projected[i], mean)
        variance = variance - projected[i] * projected[i]
        if i == staying - 1:
            local[MEAN], local[SPREAD] = mean, where_less(variance, 0.0, 0.0, variance)
    local[PREDICTION] = mean
    local[VARIANCE] = where_less(variance, 0.0, 0.0, variance)


@inline
def _set_point(a, position):
    """point = the active coordinates of the input at a position, in single precision."""
    for k in range(a.dimension):
        a.rounded[k] = a.inputs[a.active[k], position]
        a.point[k] = a.rounded[k]


@inline
def _store(a, leaf, position, target):
    """Keep a sample, in the place of the oldest if the memory is full."""
    stored = _stored(a, leaf)
    place = stored % a.memory
    for k in range(a.dimension):
        a.points[leaf, place // BLOCK, k, place % BLOCK] = a.inputs[a.active[k], position]
    a.responses[leaf, place] = target
    a.stored[leaf] = stored + 1


@native(LEARN)
def learn_block(a, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide period."""
    for leaf in range(a.leaves):
        local = a.local[leaf]
        for t in range(count):
            position = a.history_length + first % a.slide_period + t
            y = lane(a.targets[position], 0)
            if a.memo[USED] == 0:  # else `local` is that of the query
                _set_point(a, position)
                _solve_at_point(a, leaf)
            a.predictions[leaf, t] = local[PREDICTION]
            a.variances[leaf, t] = local[VARIANCE] / a.noise
            value = local[MEAN] + local[SPREAD] * ((y - local[MEAN]) / (local[SPREAD] + a.noise))
            a.values[leaf, t + 1, a.window - 1] = value
            a.norms[leaf, t + 1] = 0.0
            _store(a, leaf, position, y)
            # Values of f at the older samples of the window; 0 before the first sample.
            for age in range(1, a.window):
                a.values[leaf, t + 1, a.window - 1 - age] = 0.0
                if age <= first + t:
                    _set_point(a, position - age)
                    _solve_at_point(a, leaf)
                    a.values[leaf, t + 1, a.window - 1 - age] = local[PREDICTION]


@native(QUERY)
def predict_query(a, first, count):
    """query_values[leaf] = f at inputs[:, 0]; `local` is kept for the sample that may follow."""
    _set_point(a, 0)
    for leaf in range(a.leaves):
        _solve_at_point(a, leaf)
        a.query_values[leaf] = a.local[leaf, PREDICTION]


@native(POINTS)
def predict_points(a, first, count):
    """out[leaf, t] = f at inputs[:, t], for leaves with wanted[leaf]; and its variance."""
    for leaf in range(a.leaves):
        if a.wanted[leaf] == 0:
            continue
        for t in range(count):
            _set_point(a, t)
            _solve_at_point(a, leaf)
            a.out[leaf, t] = a.local[leaf, PREDICTION]
            a.spread[leaf, t] = a.local[leaf, VARIANCE]

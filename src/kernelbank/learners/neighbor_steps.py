"""The compiled steps of `NearestNeighborGP`: the local systems of four slots, and the loops.

The local system is solved by a Cholesky factorization K + noise I = L L', one neighbor after the
other. The neighbor that the next sample will replace in the ring (`neighbor_search`) comes last. So
the first k - 1 of k neighbors are those of f(x) after x itself is learned: x is then the nearest,
with all others but the last. What follows from them is computed too, and f(x) after learning (x, y)
is

    m + s (y - m) / (s + noise),

with the prediction m from these neighbors and its variance s.

Neighbors, L and variances follow from the inputs alone: the slots of the first of several outputs
keep them for those of the others (`neighbor_follow`). A sample whose target is missing is among the
neighbors, but is left out of the local system.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..kernels.program import compute_statistics, kernel_row
from ..kernels.sample_buffer import USED
from ..native.arguments import Arguments, floats, ints, lanes
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import broadcast, fma, lane, sqrt, where_less
from .neighbor_search import BLOCK, find_nearest, stored_samples

LOCAL_SIZE = 4
(
    PREDICTION,  # f(x)
    VARIANCE,  # its variance
    MEAN,  # m: the prediction from the neighbors that stay
    SPREAD,  # s: its variance
) = range(LOCAL_SIZE)
"""What is computed at a point, in each lane."""

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
    followed=int,  # 1 if slots of other outputs follow these, 2 if these follow others
    # for them, of each point of a block and of its window: the neighbors' places, their number, the
    # number of those that stay, and the place of the sample; their inputs; L without its diagonal,
    # by columns; 1 / L_ii; L^-1 q; SPREAD
    kept_places=ints("leaves", None, None, "neighbors + 3"),
    kept_inputs=floats("leaves", None, None, "dimension", "neighbors"),
    kept_factors=lanes("leaves", None, None, "neighbors * (neighbors - 1) // 2"),
    kept_scales=lanes("leaves", None, None, "neighbors"),
    kept_projected=lanes("leaves", None, None, "neighbors"),
    kept_spread=lanes("leaves", None, None),
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
)
QUERY = NEIGHBORS.extended("neighbors_query", query_values=lanes("leaves"))
POINTS = NEIGHBORS.extended(
    "neighbors_points",
    wanted=ints("leaves"),
    out=lanes("leaves", None),
    spread=lanes("leaves", None),
)


# --- the local systems ----------------------------------------------------------------------------


@inline
def _kernel_row(a, leaf, x, count, out):
    """out[j] = k(x, z_j) + constant for j < count, in each lane."""
    compute_statistics(a, x, a.chosen[0], a.neighbors, count)
    kernel_row(a.program, a.kernel_constants[leaf], a.statistics, -1, 0, count, out, a.stack)
    for j in range(count):
        out[j] = out[j] + a.constant


@inline
def _gather_inputs(a, leaf, count):
    """chosen[:, i] = the input of neighbor i < count."""
    for i in range(count):
        place = a.nearest[i]
        block = a.points[leaf, place // BLOCK]
        for k in range(a.dimension):
            a.chosen[k, i] = block[k, place % BLOCK]


@inline
def count_unknown(a, leaf, count):
    """How many of the `count` neighbors have no target."""
    unknown = 0
    for i in range(count):
        if np.isnan(a.responses[leaf, a.nearest[i]]):
            unknown += 1
    return unknown


@inline
def drop_unknown(a, leaf, count, staying):
    """Remove the neighbors without a target; returns how many are left, and how many that stay."""
    known, known_staying = 0, 0
    for i in range(count):
        if np.isnan(a.responses[leaf, a.nearest[i]]):
            continue
        a.nearest[known] = a.nearest[i]
        for k in range(a.dimension):
            a.chosen[k, known] = a.chosen[k, i]
        known += 1
        if i < staying:
            known_staying = known
    return known, known_staying


@inline
def self_kernel(a, leaf):
    """k(x, x) + constant; overwrites the first input in `chosen`."""
    for k in range(a.dimension):
        a.chosen[k, 0] = a.point[k]
    _kernel_row(a, leaf, a.point, 1, a.row)
    return a.row[0]


@inline
def solve_system(a, leaf, own, count, staying):
    """Everything in `local`, from the neighbors' inputs in `chosen`; own = k(x, x) + constant."""
    local = a.local[leaf]
    row, factor, scales = a.row, a.factor, a.scales
    solved, projected = a.solved, a.projected
    _kernel_row(a, leaf, a.point, count, a.query_row)
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
def _keep_system(a, leaf, t, age, count, staying):
    """Keep for other outputs what follows from the inputs: of point t, or of one `age` before."""
    places = a.kept_places[leaf, t, age]
    places[a.neighbors], places[a.neighbors + 1] = count, staying
    factors = a.kept_factors[leaf, t, age]
    start = 0
    for c in range(count):
        places[c] = a.nearest[c]
        a.kept_scales[leaf, t, age, c] = a.scales[c]
        a.kept_projected[leaf, t, age, c] = a.projected[c]
        for j in range(c + 1, count):
            factors[start + j - c - 1] = a.factor[c, j]
        start += a.neighbors - 1 - c
    for k in range(a.dimension):
        for i in range(count):
            a.kept_inputs[leaf, t, age, k, i] = a.chosen[k, i]
    a.kept_spread[leaf, t, age] = a.local[leaf, SPREAD]


@inline
def _solve_at_point(a, leaf, t, age):
    """Everything in `local` for the input in `point`, that of sample t or of one `age` before."""
    count = find_nearest(a, leaf)
    own = self_kernel(a, leaf)
    _gather_inputs(a, leaf, count)
    staying = min(count, a.neighbors - 1)
    unknown = count_unknown(a, leaf, count)
    systems = 2 if unknown > 0 and a.followed == 1 else 1  # that of all neighbors for the others
    for i in range(systems):
        if unknown > 0 and i == systems - 1:
            count, staying = drop_unknown(a, leaf, count, staying)
        solve_system(a, leaf, own, count, staying)
        if i == 0 and a.followed == 1:
            _keep_system(a, leaf, t, age, count, staying)


@inline
def set_point(a, position):
    """point = the active coordinates of the input at a position, in single precision."""
    for k in range(a.dimension):
        a.rounded[k] = a.inputs[a.active[k], position]
        a.point[k] = a.rounded[k]


@inline
def value_after(a, leaf, y):
    """f(x) after (x, y) is learned; a missing target leaves the prediction of those that stay."""
    mean, spread = a.local[leaf, MEAN], a.local[leaf, SPREAD]
    if np.isnan(y):
        return mean
    return mean + spread * ((y - mean) / (spread + a.noise))


@inline
def _store(a, leaf, position, target):
    """Keep a sample, in the place of the oldest if the memory is full; returns its place."""
    stored = stored_samples(a, leaf)
    place = stored % a.memory
    for k in range(a.dimension):
        a.points[leaf, place // BLOCK, k, place % BLOCK] = a.inputs[a.active[k], position]
    a.responses[leaf, place] = target
    a.stored[leaf] = stored + 1
    return place


@native(LEARN)
def learn_block(a, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide period."""
    for leaf in range(a.leaves):
        local = a.local[leaf]
        for t in range(count):
            position = a.history_length + first % a.slide_period + t
            y = lane(a.targets[position], 0)
            if a.memo[USED] == 0:  # else `local` is that of the query
                set_point(a, position)
                _solve_at_point(a, leaf, t, 0)
            a.predictions[leaf, t] = local[PREDICTION]
            a.values[leaf, t + 1, a.window - 1] = value_after(a, leaf, y)
            a.norms[leaf, t + 1] = 0.0
            place = _store(a, leaf, position, y)
            if a.followed == 1:
                a.kept_places[leaf, t, 0, a.neighbors + 2] = place
            # Values of f at the older samples of the window; 0 before the first sample.
            for age in range(1, a.window):
                a.values[leaf, t + 1, a.window - 1 - age] = 0.0
                if age <= first + t:
                    set_point(a, position - age)
                    _solve_at_point(a, leaf, t, age)
                    a.values[leaf, t + 1, a.window - 1 - age] = local[PREDICTION]


@native(QUERY)
def predict_query(a, first, count):
    """query_values[leaf] = f at inputs[:, 0]; `local` is kept for the sample that may follow."""
    set_point(a, 0)
    for leaf in range(a.leaves):
        _solve_at_point(a, leaf, 0, 0)
        a.query_values[leaf] = a.local[leaf, PREDICTION]


@native(POINTS)
def predict_points(a, first, count):
    """out[leaf, t] = f at inputs[:, t], for leaves with wanted[leaf]; and its variance."""
    for leaf in range(a.leaves):
        if a.wanted[leaf] == 0:
            continue
        for t in range(count):
            set_point(a, t)
            _solve_at_point(a, leaf, 0, 0)
            a.out[leaf, t] = a.local[leaf, PREDICTION]
            a.spread[leaf, t] = a.local[leaf, VARIANCE]

"""How slots of `NearestNeighborGP` follow those of the first output.

The first output has kept, for every point of a block and of its window, the neighbors and the
Cholesky factor L of their system. What is left is v, the neighbors' targets for this output:

    f(x) = (L^-1 q)' (L^-1 v).

L^-1 v is computed column by column: each of its elements is the same sum in the same order as in
`neighbor_steps.solve_system`. If a target among v is missing, the output has a system of its own,
without that neighbor.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from ..native.functions import native
from ..native.jit import inline
from ..native.simd import broadcast, fma, lane
from .neighbor_steps import (
    LEARN,
    MEAN,
    PREDICTION,
    QUERY,
    SPREAD,
    count_unknown,
    drop_unknown,
    self_kernel,
    set_point,
    solve_system,
    value_after,
)


@inline
def _substitute(a, leaf, t, age, count, staying):
    """`local` from the kept factor and the targets of the neighbors in `nearest`."""
    local, solved, responses = a.local[leaf], a.solved, a.responses[leaf]
    scales, projected = a.kept_scales[leaf, t, age], a.kept_projected[leaf, t, age]
    factors = a.kept_factors[leaf, t, age]
    local[SPREAD] = a.kept_spread[leaf, t, age]
    mean = broadcast(0.0)
    local[MEAN] = mean
    for i in range(count):
        solved[i] = broadcast(responses[a.nearest[i]])
    start = 0
    for c in range(count):
        own = solved[c] * scales[c]
        mean = fma(own, projected[c], mean)
        if c == staying - 1:
            local[MEAN] = mean
        column = factors[start:]  # L_jc, j = c + 1 ..
        minus = -own
        for j in range(c + 1, count):
            solved[j] = fma(column[j - c - 1], minus, solved[j])
        start += a.neighbors - 1 - c
    local[PREDICTION] = mean


@inline
def _solve_alone(a, leaf, t, age, position, count, staying):
    """`local` from a system of its own, where a neighbor has no target."""
    set_point(a, position)
    own = self_kernel(a, leaf)
    inputs = a.kept_inputs[leaf, t, age]  # (dimension, neighbors)
    for k in range(a.dimension):
        for i in range(count):
            a.chosen[k, i] = inputs[k, i]
    known, known_staying = drop_unknown(a, leaf, count, staying)
    solve_system(a, leaf, own, known, known_staying)


@inline
def _follow_at_point(a, leaf, t, age, position):
    """Everything in `local` for the input at `position`: of sample t, or of one `age` before."""
    places = a.kept_places[leaf, t, age]
    count, staying = places[a.neighbors], places[a.neighbors + 1]
    for i in range(count):
        a.nearest[i] = places[i]
    if count_unknown(a, leaf, count) == 0:
        _substitute(a, leaf, t, age, count, staying)
    else:
        _solve_alone(a, leaf, t, age, position, count, staying)


@native(LEARN)
def follow_block(a, first, count):
    """What `neighbor_steps.learn_block` does, for another output."""
    for leaf in range(a.leaves):
        local = a.local[leaf]
        for t in range(count):
            position = a.history_length + first % a.slide_period + t
            y = lane(a.targets[position], 0)
            _follow_at_point(a, leaf, t, 0, position)
            a.predictions[leaf, t] = local[PREDICTION]
            a.values[leaf, t + 1, a.window - 1] = value_after(a, leaf, y)
            a.norms[leaf, t + 1] = 0.0
            a.responses[leaf, a.kept_places[leaf, t, 0, a.neighbors + 2]] = y
            for age in range(1, a.window):
                a.values[leaf, t + 1, a.window - 1 - age] = 0.0
                if age <= first + t:
                    _follow_at_point(a, leaf, t, age, position - age)
                    a.values[leaf, t + 1, a.window - 1 - age] = local[PREDICTION]


@native(QUERY)
def follow_query(a, first, count):
    """query_values[leaf] = f at inputs[:, 0], for which the first output has kept its system."""
    for leaf in range(a.leaves):
        _follow_at_point(a, leaf, 0, 0, 0)
        a.query_values[leaf] = a.local[leaf, PREDICTION]

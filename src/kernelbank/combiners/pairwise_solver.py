"""A quadratic on the simplex, minimised by moving weight between two slots, up to a certificate.

    minimise  g'(w - v) + (w - v)' H (w - v) / 2  over the simplex, from the weights v.

H is never formed: a move between slots s and q needs two of its columns, and a column is computed
when its slot first moves. Few slots move, because the solution is sparse and the start is the
solution of the sample before.

Pairs are slow where H is stiff, because then only moves of three slots or more lower the cost. So
every few moves a *face step* goes to the minimiser on the face of the slots with weight, or as far
towards it as all weights stay positive.

The certificate is the Frank-Wolfe gap sum_p w_p (g_p - min g), an upper bound of the cost above its
minimum.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

from ..native.formulas import pointer
from ..native.jit import inline
from ..utils.validation import Floats
from .base import Combiner, State

MAX_COLUMNS = 64
"""Columns of H that are kept; if more slots move, all are dropped and computed again."""

MAX_FACE = 48
"""The most slots of a face step, at most MAX_COLUMNS."""

SPARE = 1e-4
"""Part of the first cost that is added to the certificate's scale: the least cost may be 0."""

_PAIRS_PER_FACE_STEP = 6
_JITTER = 1e-14  # relative to the largest diagonal member: makes a singular matrix positive


class PairwiseSolver(Combiner):
    """Base of the combiners that solve for their weights by pairwise moves.

    Their state has `certificate`: the gap, the cost, the scale of the gap, the number of moves.
    """

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what is minimised; scale: of the gap; steps: the moves."""
        names = ("gap", "cost", "scale", "steps")
        return {name: np.array(x) for name, x in zip(names, state["certificate"], strict=True)}


def pairwise_scratch(slots: int) -> dict[str, Any]:
    """Scratch arrays of the pairwise moves: columns of the matrix, and a face step."""
    return {
        "columns": np.zeros((min(MAX_COLUMNS, slots), slots)),
        "column_of": np.zeros(slots + 1, dtype=np.int64),
        "support": np.zeros(slots, dtype=np.int64),
        "face": np.zeros(MAX_FACE * (MAX_FACE + 1)),
    }


# --- columns of H, computed when needed -----------------------------------------------------------


def compute_column(source, s, slots, out):
    """out = column s of H, which `source` describes; from compiled code only."""
    raise NotImplementedError


def column_function(kind: Any) -> Callable[[Any], Any]:
    """Decorate function(source, s, slots, out), which writes column s for sources of this kind.

    A source is a named tuple of the arrays that H is made from; its type selects the function. (A
    function given as an argument would keep all loops that use it out of the file cache.)
    """

    def register(function: Any) -> Any:
        @overload(compute_column, jit_options={"error_model": "numpy"})
        def choose(source, s, slots, out):
            own = isinstance(source, types.BaseNamedTuple) and source.instance_class is kind  # type: ignore[attr-defined]
            return function if own else None

        return function

    return register


@inline
def drop_columns(column_of, slots):
    """Mark all columns as missing. column_of[p] is the row of `columns` that holds column p of H,
    or -1; column_of[slots] is the number of columns."""
    for p in range(slots):
        column_of[p] = -1
    column_of[slots] = 0


@inline
def _column_offset(s, source, slots, column_of, columns):
    """The offset of column s in `columns`; the column is computed if it is missing."""
    if column_of[s] < 0:
        if column_of[slots] == min(MAX_COLUMNS, slots):
            drop_columns(column_of, slots)
        column_of[s] = column_of[slots]
        column_of[slots] += 1
        compute_column(source, s, slots, pointer(columns, column_of[s] * slots))
    return column_of[s] * slots


# --- face steps -----------------------------------------------------------------------------------


@inline
def _factorise(B, size):
    """The Cholesky factor of B + jitter, in the lower half of B; False if there is none."""
    largest = 0.0
    for j in range(size):
        largest = max(largest, B[j * MAX_FACE + j])
    for j in range(size):
        total = B[j * MAX_FACE + j] + _JITTER * largest
        for k in range(j):
            total -= B[j * MAX_FACE + k] * B[j * MAX_FACE + k]
        if not total > 0.0:
            return False
        root = math.sqrt(total)
        B[j * MAX_FACE + j] = root
        for i in range(j + 1, size):
            total = B[i * MAX_FACE + j]
            for k in range(j):
                total -= B[i * MAX_FACE + k] * B[j * MAX_FACE + k]
            B[i * MAX_FACE + j] = total / root
    return True


@inline
def _face_direction(columns, column_of, slots, g, members, size, B, move):
    """move = from the weights to the minimiser on the face of `members`; False if there is none.

    The sum of the weights fixes the last member: size - 1 free numbers with the matrix
    B_ij = (H_ij - H_il) - (H_lj - H_ll), l the last. B: (MAX_FACE, MAX_FACE); move: (size,).
    """
    free = size - 1
    last = members[free]
    own = pointer(columns, column_of[last] * slots)
    for i in range(free):
        column = pointer(columns, column_of[members[i]] * slots)
        for j in range(i + 1):
            q = members[j]
            B[i * MAX_FACE + j] = (column[q] - column[last]) - (own[q] - own[last])
        move[i] = g[last] - g[members[i]]
    if not _factorise(B, free):
        return False
    for i in range(free):
        for k in range(i):
            move[i] -= B[i * MAX_FACE + k] * move[k]
        move[i] /= B[i * MAX_FACE + i]
    for i in range(free - 1, -1, -1):
        for k in range(i + 1, free):
            move[i] -= B[k * MAX_FACE + i] * move[k]
        move[i] /= B[i * MAX_FACE + i]
    move[free] = 0.0
    for i in range(free):
        move[free] -= move[i]
    return True


@inline
def _face_step(source, slots, weights, g, column_of, columns, members, face):
    """One face step, if it lowers the quadratic; returns by how much.

    weights, g: (P,); `members` and `face` (the matrix B and the move) are scratch.
    """
    size = 0
    missing = 0
    for p in range(slots):
        if weights[p] > 0.0:
            if size == MAX_FACE:
                return 0.0
            members[size] = p
            size += 1
            if column_of[p] < 0:
                missing += 1
    if size < 3:  # a pair does as well
        return 0.0
    if column_of[slots] + missing > min(MAX_COLUMNS, slots):
        drop_columns(column_of, slots)
    for k in range(size):
        _column_offset(members[k], source, slots, column_of, columns)
    move = pointer(face, MAX_FACE * MAX_FACE)
    if not _face_direction(columns, column_of, slots, g, members, size, face, move):
        return 0.0
    slope = 0.0
    curvature = 0.0
    longest = 1.0
    first = -1  # the member whose weight reaches 0 first
    for k in range(size):
        p = members[k]
        slope += g[p] * move[k]
        column = pointer(columns, column_of[p] * slots)
        for i in range(size):
            curvature += move[k] * move[i] * column[members[i]]
        if move[k] < 0.0 and weights[p] < -longest * move[k]:
            longest = -weights[p] / move[k]
            first = p
    if not slope < 0.0:
        return 0.0
    step = longest
    if -slope < step * curvature:
        step = -slope / curvature
        first = -1
    gain = -step * (slope + 0.5 * step * max(curvature, 0.0))
    if not gain > 0.0:
        return 0.0
    for k in range(size):
        p = members[k]
        moved = weights[p] + step * move[k]
        weights[p] = max(moved, 0.0) if p != first else 0.0
        column = pointer(columns, column_of[p] * slots)
        for q in range(slots):
            g[q] += step * move[k] * column[q]
    return gain


# --- pairwise moves -------------------------------------------------------------------------------


@inline
def least_gradient(g, active, slots):
    """The slot of least gradient among the active ones."""
    best = -1
    for p in range(slots):
        if active[p] > 0.0 and (best < 0 or g[p] < g[best]):
            best = p
    return best


@inline
def linear_gap(g, weights, s, slots):
    """The Frank-Wolfe gap sum_p w_p (g_p - g_s), if slot s has the least gradient."""
    gap = 0.0
    for p in range(slots):
        if weights[p] > 0.0:
            gap += weights[p] * (g[p] - g[s])
    return gap


@inline
def descend_pairs(
    source, slots, active, weights, g, diag, target, share, cost, steps, column_of, columns,
    members, face,
):  # fmt: skip
    """Move weight in pairs until the gap is at most target + share * |cost|.

    The slot of least gradient takes weight from the slot that gives the largest decrease, as far as
    the quadratic falls or the other has weight. `cost` is the value at the start, and is updated.
    Returns the number of moves. active, weights, g, diag: (P,); `weights` and `g` are changed;
    `diag` is the diagonal of H, `source` what its columns are computed from.
    """
    pairs = 0  # since the last face step
    for step in range(steps):
        s = least_gradient(g, active, slots)
        if not linear_gap(g, weights, s, slots) > target + share * abs(cost):
            return step
        if pairs >= _PAIRS_PER_FACE_STEP:
            pairs = 0
            gain = _face_step(source, slots, weights, g, column_of, columns, members, face)
            if gain > 0.0:
                cost -= gain
                continue
        pairs += 1
        start = _column_offset(s, source, slots, column_of, columns)
        own = pointer(columns, start)
        giver = -1
        amount = 0.0
        best = 0.0
        for p in range(slots):
            slope = g[p] - g[s]
            if weights[p] > 0.0 and slope > 0.0:
                curvature = own[s] + diag[p] - 2.0 * own[p]  # H_ss + H_pp - 2 H_sp
                move = weights[p]
                if slope < move * curvature:
                    move = slope / curvature
                gain = move * (slope - 0.5 * move * max(curvature, 0.0))
                if gain > best:
                    giver = p
                    amount = move
                    best = gain
        if giver < 0:
            return step
        kept = weights[giver] - amount
        taken = weights[s] + amount
        # A slot of large values may need a weight far below the rounding of the other's: the
        # caller corrects the sum of the weights. No move is left if both stay the same.
        if kept == weights[giver] and taken == weights[s]:
            return step
        other = _column_offset(giver, source, slots, column_of, columns)
        # If that has dropped the first column, it is computed again: two always fit.
        start = _column_offset(s, source, slots, column_of, columns)
        own = pointer(columns, start)
        lost = pointer(columns, other)
        weights[giver] = max(kept, 0.0)
        weights[s] = taken
        cost -= best
        for p in range(slots):
            g[p] += amount * (own[p] - lost[p])
    return steps


@inline
def normalise(weights, active, slots):
    """Set inactive weights to 0 and divide the rest by their sum; equal weights if that is 0.

    Returns the number of active slots. weights, active: (P,).
    """
    number = 0
    total = 0.0
    for p in range(slots):
        if not active[p] > 0.0:
            weights[p] = 0.0
        else:
            number += 1
            total += weights[p]
    for p in range(slots):
        if total > 0.0:
            weights[p] /= total
        else:
            weights[p] = 1.0 / number if active[p] > 0.0 else 0.0
    return number

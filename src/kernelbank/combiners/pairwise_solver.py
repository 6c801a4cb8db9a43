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

from ..native.arguments import floats, ints
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


PAIRWISE = {
    "columns": floats(None, "slots"),  # at most MAX_COLUMNS columns of H, one per row
    "column_of": ints("slots + 1"),  # the row that holds column p of H, or -1; last: their number
    "support": ints("slots"),
    "face_matrix": floats(MAX_FACE, MAX_FACE),
    "face_move": floats(MAX_FACE),
}
"""Arguments of the pairwise moves: scratch arrays, which `pairwise_scratch` makes."""


def pairwise_scratch(slots: int) -> dict[str, Any]:
    """The scratch arrays of PAIRWISE."""
    return {
        "columns": np.zeros((min(MAX_COLUMNS, slots), slots)),
        "column_of": np.zeros(slots + 1, dtype=np.int64),
        "support": np.zeros(slots, dtype=np.int64),
        "face_matrix": np.zeros((MAX_FACE, MAX_FACE)),
        "face_move": np.zeros(MAX_FACE),
    }


@inline
def drop_columns(a):
    """Mark all columns of H as missing."""
    for p in range(a.slots):
        a.column_of[p] = -1
    a.column_of[a.slots] = 0


# --- face steps -----------------------------------------------------------------------------------


@inline
def _factorise(B, size):
    """The Cholesky factor of B + jitter, in the lower half of B; False if there is none."""
    largest = 0.0
    for j in range(size):
        largest = max(largest, B[j, j])
    for j in range(size):
        total = B[j, j] + _JITTER * largest
        for k in range(j):
            total -= B[j, k] * B[j, k]
        if not total > 0.0:
            return False
        root = math.sqrt(total)
        B[j, j] = root
        for i in range(j + 1, size):
            total = B[i, j]
            for k in range(j):
                total -= B[i, k] * B[j, k]
            B[i, j] = total / root
    return True


@inline
def _face_direction(a, g, size):
    """face_move = from the weights to the minimiser on the face; False if there is none.

    The first `size` members of `support` are the slots of the face. The sum of the weights fixes
    the last one, l: size - 1 free numbers with the matrix B_ij = (H_ij - H_il) - (H_lj - H_ll).
    """
    B, move, members = a.face_matrix, a.face_move, a.support
    free = size - 1
    last = members[free]
    own = a.columns[a.column_of[last]]
    for i in range(free):
        column = a.columns[a.column_of[members[i]]]
        for j in range(i + 1):
            q = members[j]
            B[i, j] = (column[q] - column[last]) - (own[q] - own[last])
        move[i] = g[last] - g[members[i]]
    if not _factorise(B, free):
        return False
    for i in range(free):
        for k in range(i):
            move[i] -= B[i, k] * move[k]
        move[i] /= B[i, i]
    for i in range(free - 1, -1, -1):
        for k in range(i + 1, free):
            move[i] -= B[k, i] * move[k]
        move[i] /= B[i, i]
    move[free] = 0.0
    for i in range(free):
        move[free] -= move[i]
    return True


@inline
def _go_to_face(a, weights, g, size):
    """Go towards the minimiser on the face of `support`; returns by how much the quadratic falls.

    weights, g: (P,). All columns of the face are present.
    """
    members, move = a.support, a.face_move
    if not _face_direction(a, g, size):
        return 0.0
    slope = 0.0
    curvature = 0.0
    longest = 1.0
    first = -1  # the member whose weight reaches 0 first
    for k in range(size):
        p = members[k]
        slope += g[p] * move[k]
        column = a.columns[a.column_of[p]]
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
        column = a.columns[a.column_of[p]]
        for q in range(a.slots):
            g[q] += step * move[k] * column[q]
    return gain


# --- pairwise moves -------------------------------------------------------------------------------


@inline
def least_gradient(g, active):
    """The slot of least gradient among the active ones. Both are (P,)."""
    best = -1
    for p in range(len(g)):
        if active[p] > 0.0 and (best < 0 or g[p] < g[best]):
            best = p
    return best


@inline
def linear_gap(g, weights, s):
    """The Frank-Wolfe gap sum_p w_p (g_p - g_s), if slot s has the least gradient."""
    gap = 0.0
    for p in range(len(g)):
        if weights[p] > 0.0:
            gap += weights[p] * (g[p] - g[s])
    return gap


def pairwise_moves(column: Callable[..., None]) -> Callable[..., int]:
    """The compiled function `descend_pairs` for one kind of matrix H.

    column : compiled function(source, s, out) that writes column s of H to out, (P,). A source is
        a tuple of what H is made from. (A function given as an argument of compiled code would keep
        all loops that use it out of the file cache.)
    """

    @inline
    def column_row(a, source, s):
        """The row of `columns` with column s of H, which is computed if it is missing."""
        if a.column_of[s] < 0:
            if a.column_of[a.slots] == len(a.columns):
                drop_columns(a)
            a.column_of[s] = a.column_of[a.slots]
            a.column_of[a.slots] += 1
            column(source, s, a.columns[a.column_of[s]])
        return a.column_of[s]

    @inline
    def face_step(a, source, weights, g):
        """One face step, if it lowers the quadratic; returns by how much. weights, g: (P,)."""
        size = 0
        missing = 0
        for p in range(a.slots):
            if weights[p] > 0.0:
                if size == MAX_FACE:
                    return 0.0
                a.support[size] = p
                size += 1
                if a.column_of[p] < 0:
                    missing += 1
        if size < 3:  # a pair does as well
            return 0.0
        if a.column_of[a.slots] + missing > len(a.columns):
            drop_columns(a)
        for k in range(size):
            column_row(a, source, a.support[k])
        return _go_to_face(a, weights, g, size)

    @inline
    def descend_pairs(a, source, active, weights, g, diag, target, share, cost, steps):
        """Move weight in pairs until the gap is at most target + share * |cost|.

        The slot of least gradient takes weight from the slot that gives the largest decrease, as
        far as the quadratic falls or the other has weight. `cost` is the value at the start.
        Returns the number of moves. active, weights, g, diag: (P,); `weights` and `g` are changed;
        `diag` is the diagonal of H, `source` what its columns are computed from.
        """
        pairs = 0  # since the last face step
        for step in range(steps):
            s = least_gradient(g, active)
            if not linear_gap(g, weights, s) > target + share * abs(cost):
                return step
            if pairs >= _PAIRS_PER_FACE_STEP:
                pairs = 0
                gain = face_step(a, source, weights, g)
                if gain > 0.0:
                    cost -= gain
                    continue
            pairs += 1
            own = a.columns[column_row(a, source, s)]
            giver = -1
            amount = 0.0
            best = 0.0
            for p in range(a.slots):
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
            lost = a.columns[column_row(a, source, giver)]
            # If that has dropped the first column, it is computed again: two always fit.
            own = a.columns[column_row(a, source, s)]
            weights[giver] = max(kept, 0.0)
            weights[s] = taken
            cost -= best
            for p in range(a.slots):
                g[p] += amount * (own[p] - lost[p])
        return steps

    return descend_pairs


@inline
def normalise(weights, active):
    """Set inactive weights to 0 and divide the rest by their sum; equal weights if that is 0.

    Returns the number of active slots. weights, active: (P,).
    """
    number = 0
    total = 0.0
    for p in range(len(weights)):
        if not active[p] > 0.0:
            weights[p] = 0.0
        else:
            number += 1
            total += weights[p]
    for p in range(len(weights)):
        if total > 0.0:
            weights[p] /= total
        else:
            weights[p] = 1.0 / number if active[p] > 0.0 else 0.0
    return number

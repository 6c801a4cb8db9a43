"""Pairwise steps: a quadratic on the simplex, minimised by moving weight between two slots.

minimise g'(w - v) + (w - v)' H (w - v) / 2 over the simplex. H need not be formed: a step between
slots s and q needs two of its columns, and a column is made when its slot first moves (`columns`).
Few do: the solution is sparse and the start is the solution of the sample before.

Pairs are slow where H is stiff: rows of large h allow only moves of three slots or more. So, every
now and then, a *face step* goes to the minimiser on the face of the slots with weight, or as far
towards it as all weights stay positive.
"""

import math

from ..native.formulas import pointer
from ..native.jit import inline
from .hessian_columns import KEPT, column_place, forget_columns

FACE = 48
"""The most slots of a face step, at most KEPT."""

SPARE = 1e-4
"""Of the cost at the start: belongs to the certificate's scale, since the least cost may be 0."""

_PATIENCE = 6  # pairwise steps between two face steps
_TRACE = 1e-14  # of the largest diagonal member: makes a singular matrix positive


@inline
def _factorise(B, size):
    """The Cholesky factor of B and a trace, in the lower half of B; False if it has none."""
    largest = 0.0
    for j in range(size):
        largest = max(largest, B[j * FACE + j])
    for j in range(size):
        total = B[j * FACE + j] + _TRACE * largest
        for k in range(j):
            total -= B[j * FACE + k] * B[j * FACE + k]
        if not total > 0.0:
            return False
        root = math.sqrt(total)
        B[j * FACE + j] = root
        for i in range(j + 1, size):
            total = B[i * FACE + j]
            for k in range(j):
                total -= B[i * FACE + k] * B[j * FACE + k]
            B[i * FACE + j] = total / root
    return True


@inline
def _face_direction(columns, owner, slots, g, members, size, B, move):
    """move = the way from the weights to the minimiser on the face of `members`; False if none.

    The last member gives what the others take: size - 1 free numbers with the matrix B.
    """
    free = size - 1
    last = members[free]
    own = pointer(columns, owner[last] * slots)
    for i in range(free):
        column = pointer(columns, owner[members[i]] * slots)
        for j in range(i + 1):
            q = members[j]
            B[i * FACE + j] = (column[q] - column[last]) - (own[q] - own[last])
        move[i] = g[last] - g[members[i]]
    if not _factorise(B, free):
        return False
    for i in range(free):
        for k in range(i):
            move[i] -= B[i * FACE + k] * move[k]
        move[i] /= B[i * FACE + i]
    for i in range(free - 1, -1, -1):
        for k in range(i + 1, free):
            move[i] -= B[k * FACE + i] * move[k]
        move[i] /= B[i * FACE + i]
    move[free] = 0.0
    for i in range(free):
        move[free] -= move[i]
    return True


@inline
def _face_step(source, slots, weights, g, owner, columns, members, face):
    """One face step, if it is worth it; returns by how much it lowers the quadratic.

    `members`, and `face` for the matrix B and the move, are scratch.
    """
    size = 0
    missing = 0
    for p in range(slots):
        if weights[p] > 0.0:
            if size == FACE:
                return 0.0
            members[size] = p
            size += 1
            if owner[p] < 0:
                missing += 1
    if size < 3:  # a pair does as well
        return 0.0
    if owner[slots] + missing > min(KEPT, slots):
        forget_columns(owner, slots)
    for k in range(size):
        column_place(members[k], source, slots, owner, columns)
    move = pointer(face, FACE * FACE)
    if not _face_direction(columns, owner, slots, g, members, size, face, move):
        return 0.0
    slope = 0.0
    curvature = 0.0
    longest = 1.0
    first = -1  # whose weight is used up first
    for k in range(size):
        p = members[k]
        slope += g[p] * move[k]
        column = pointer(columns, owner[p] * slots)
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
        column = pointer(columns, owner[p] * slots)
        for q in range(slots):
            g[q] += step * move[k] * column[q]
    return gain


@inline
def least_gradient(g, alive, slots):
    """The slot of least gradient among those that are alive."""
    best = -1
    for p in range(slots):
        if alive[p] > 0.0 and (best < 0 or g[p] < g[best]):
            best = p
    return best


@inline
def linear_gap(g, weights, s, slots):
    """sum_p w_p (g_p - g_s): the Frank-Wolfe gap, if s has the least gradient."""
    gap = 0.0
    for p in range(slots):
        if weights[p] > 0.0:
            gap += weights[p] * (g[p] - g[s])
    return gap


@inline
def descend_pairs(
    source, slots, alive, weights, g, diag, target, share, objective, steps, owner, columns,
    members, face,
):  # fmt: skip
    """Move weight in pairs until the gap is at most target + share * objective.

    The slot of least gradient takes from the slot with which the decrease is largest, as far as the
    quadratic says or as the other has weight. `objective` is the value at the start: it is carried
    along. Returns how many steps were made. `weights` and `g` are changed; `diag` is H's diagonal,
    and `source` what its columns are made from.
    """
    pairs = 0  # since the last face step
    for step in range(steps):
        s = least_gradient(g, alive, slots)
        if not linear_gap(g, weights, s, slots) > target + share * abs(objective):
            return step
        if pairs >= _PATIENCE:
            pairs = 0
            gain = _face_step(source, slots, weights, g, owner, columns, members, face)
            if gain > 0.0:
                objective -= gain
                continue
        pairs += 1
        start = column_place(s, source, slots, owner, columns)
        own = pointer(columns, start)
        giver = -1
        amount = 0.0
        best = 0.0
        for p in range(slots):
            slope = g[p] - g[s]
            if weights[p] > 0.0 and slope > 0.0:
                curvature = own[s] + diag[p] - 2.0 * own[p]
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
        # A slot of large values may need a weight far below the rounding of the other's: the sum
        # of the weights, off by that, is put right in the end. No step is left if both stay.
        if kept == weights[giver] and taken == weights[s]:
            return step
        other = column_place(giver, source, slots, owner, columns)
        # If that has forgotten the first column, it is made again: two always fit.
        start = column_place(s, source, slots, owner, columns)
        own = pointer(columns, start)
        lost = pointer(columns, other)
        weights[giver] = max(kept, 0.0)
        weights[s] = taken
        objective -= best
        for p in range(slots):
            g[p] += amount * (own[p] - lost[p])
    return steps


@inline
def on_simplex(weights, alive, slots):
    """Take the weight of those that are out and let the rest add up to one; equal if none is left.

    Returns how many are alive.
    """
    living = 0
    total = 0.0
    for p in range(slots):
        if not alive[p] > 0.0:
            weights[p] = 0.0
        else:
            living += 1
            total += weights[p]
    for p in range(slots):
        if total > 0.0:
            weights[p] /= total
        else:
            weights[p] = 1.0 / living if alive[p] > 0.0 else 0.0
    return living

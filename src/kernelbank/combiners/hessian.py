"""The matrix H = F' diag(h) F + 2 diag(penalty) of the joint problem's quadratic, by its columns.

Row i of F holds the values of all slots at sample i, h_i the curvature of the loss there.
"""

from collections import namedtuple

from ..native.formulas import pointer
from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, load, store
from .hessian_columns import source_of_columns

Hessian = namedtuple("Hessian", ["F", "rows", "h", "penalty", "factors"])
"""What H is made from, and a row of scratch."""


@inline
def weighted_sums(F, rows, slots, factors, out):
    """out_p = sum over the rows of factors_i F_ip, in their order; sixteen slots at once."""
    even = slots - slots % WIDTH
    wide = even - even % (4 * WIDTH)
    for p in range(0, wide, 4 * WIDTH):
        q = r = s = t = broadcast(0.0)
        for i in range(rows):
            row = pointer(F, i * slots + p)
            factor = factors[i]
            q = q + factor * load(row, 0)
            r = r + factor * load(row, 1)
            s = s + factor * load(row, 2)
            t = t + factor * load(row, 3)
        store(pointer(out, p), 0, q)
        store(pointer(out, p), 1, r)
        store(pointer(out, p), 2, s)
        store(pointer(out, p), 3, t)
    for p in range(wide, even, WIDTH):
        q = broadcast(0.0)
        for i in range(rows):
            q = q + factors[i] * load(pointer(F, i * slots + p), 0)
        store(pointer(out, p), 0, q)
    for p in range(even, slots):
        total = 0.0
        for i in range(rows):
            total += factors[i] * F[i * slots + p]
        out[p] = total


@inline
def mixed(F, rows, slots, weights, support, out):
    """out_i = sum over the slots with weight of weights_p F_ip; `support` is scratch."""
    size = 0
    for p in range(slots):
        if weights[p] != 0.0:
            support[size] = p
            size += 1
    for i in range(rows):
        row = pointer(F, i * slots)
        total = 0.0
        for k in range(size):
            total += weights[support[k]] * row[support[k]]
        out[i] = total


@inline
def diagonal(F, rows, slots, h, penalty, out):
    """out_p = H_pp."""
    for p in range(slots):
        out[p] = 2.0 * penalty[p]
    for i in range(rows):
        factor = h[i]
        row = pointer(F, i * slots)
        for p in range(slots):
            out[p] += factor * row[p] * row[p]


@source_of_columns(Hessian)
def _column(source, s, slots, out):
    for i in range(source.rows):
        source.factors[i] = source.h[i] * source.F[i * slots + s]
    weighted_sums(source.F, source.rows, slots, source.factors, out)
    out[s] += 2.0 * source.penalty[s]

"""A symmetric matrix of which only those columns exist that are used.

What the matrix is, is told by a function: make(source, s, slots, out) writes column s of it, from
whatever it is that `source` holds.
"""

from .formulas import pointer
from .jit import part

KEPT = 64
"""Columns that are kept; if more slots move, all are forgotten and made again."""


@part
def forget_columns(owner, slots):
    """No column is known. owner[p] is the place of slot p's column, or -1; owner[slots] counts."""
    for p in range(slots):
        owner[p] = -1
    owner[slots] = 0


@part
def column_place(s, make, source, slots, owner, columns):
    """The place of column s, which is made if it is not there."""
    if owner[s] < 0:
        if owner[slots] == min(KEPT, slots):
            forget_columns(owner, slots)
        owner[s] = owner[slots]
        owner[slots] += 1
        make(source, s, slots, pointer(columns, owner[s] * slots))
    return owner[s] * slots

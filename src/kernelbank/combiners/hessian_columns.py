"""A symmetric matrix of which only those columns exist that are used.

What the matrix is, is told by the type of its *source*, a named tuple of whatever it is made from:
`source_of_columns` registers the function that writes a column. (A function handed over as an
argument would keep all loops that use it out of the file cache.)
"""

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import overload

from ..native.formulas import pointer
from ..native.jit import inline

KEPT = 64
"""Columns that are kept; if more slots move, all are forgotten and made again."""


def make_column(source, s, slots, out):
    """out = column s of the matrix; from compiled code only."""
    raise NotImplementedError


def source_of_columns(kind: Any) -> Callable[[Any], Any]:
    """Decorate function(source, s, slots, out), which writes column s, for sources of this kind."""

    def register(function: Any) -> Any:
        @overload(make_column, jit_options={"error_model": "numpy"})
        def choose(source, s, slots, out):
            own = isinstance(source, types.BaseNamedTuple) and source.instance_class is kind
            return function if own else None

        return function

    return register


@inline
def forget_columns(owner, slots):
    """No column is known. owner[p] is the place of slot p's column, or -1; owner[slots] counts."""
    for p in range(slots):
        owner[p] = -1
    owner[slots] = 0


@inline
def column_place(s, source, slots, owner, columns):
    """The place of column s, which is made if it is not there."""
    if owner[s] < 0:
        if owner[slots] == min(KEPT, slots):
            forget_columns(owner, slots)
        owner[s] = owner[slots]
        owner[slots] += 1
        make_column(source, s, slots, pointer(columns, owner[s] * slots))
    return owner[s] * slots

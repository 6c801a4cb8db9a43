"""Centres with their Gram matrix K, and often its inverse, kept beside them.

The inverse is that of K with its diagonal raised by JITTER of itself: smooth kernels on near inputs
have Gram matrices that no arithmetic can invert, and a centre that is new by less than that is as
good as none. It follows the centres by rank-one steps and is computed anew from K now and then, by
the absolute number of the sample, so that rounding does not add up.
"""

from ..native.dense import border, dot, grow_inverse, invert, matrix_times, shrink_inverse, strike
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import fields, floats, whole
from .centres_steps import CENTRES, append, remove
from .feature_steps import SELF, SINGLE, coefficients_of, size_of

GRAM = fields(*CENTRES._fields, "gram")
INVERSE = fields(*GRAM._fields, "inverse")
JITTER = 1e-8


@inline
def gram_of(table, leaf):
    capacity = whole(table, SINGLE.capacity)
    return pointer(floats(table, GRAM.gram), leaf * capacity * capacity)


@inline
def inverse_of(table, leaf):
    capacity = whole(table, SINGLE.capacity)
    return pointer(floats(table, INVERSE.inverse), leaf * capacity * capacity)


@inline
def append_gram(table, leaf, coefficient):
    """The present point becomes a centre, and enters the Gram matrix."""
    size = size_of(table, leaf)
    own = floats(table, SINGLE.sample)[SELF]
    border(
        gram_of(table, leaf),
        whole(table, SINGLE.capacity),
        size,
        floats(table, SINGLE.now),
        own,
    )
    append(table, leaf, coefficient)


@inline
def append_both(table, leaf, coefficient, solved, rest):
    """The same, with the inverse: solved = K^-1 k(x, centres), rest = k(x, x) - k' solved."""
    size = size_of(table, leaf)
    raised = rest + JITTER * floats(table, SINGLE.sample)[SELF]
    grow_inverse(inverse_of(table, leaf), whole(table, SINGLE.capacity), size, solved, raised)
    append_gram(table, leaf, coefficient)


@inline
def remove_gram(table, leaf, j):
    strike(gram_of(table, leaf), whole(table, SINGLE.capacity), size_of(table, leaf), j)
    remove(table, leaf, j)


@inline
def remove_both(table, leaf, j, scratch):
    shrink_inverse(
        inverse_of(table, leaf), whole(table, SINGLE.capacity), size_of(table, leaf), j, scratch
    )
    remove_gram(table, leaf, j)


@inline
def solve_now(table, leaf, solved):
    """solved = K^-1 k(x, centres); returns k(x, x) - k' solved, the part of x that is new."""
    size = size_of(table, leaf)
    now = floats(table, SINGLE.now)
    matrix_times(inverse_of(table, leaf), whole(table, SINGLE.capacity), now, size, solved)
    return max(floats(table, SINGLE.sample)[SELF] - dot(now, solved, size), 0.0)


@inline
def norm_by_gram(table, leaf, scratch):
    """alpha' K alpha."""
    size = size_of(table, leaf)
    coefficients = coefficients_of(table, leaf)
    matrix_times(gram_of(table, leaf), whole(table, SINGLE.capacity), coefficients, size, scratch)
    return max(dot(coefficients, scratch, size), 0.0)


@inline
def refresh_inverse(table, leaf, number, factor, fresh):
    """Once in `capacity` samples: K^-1 from K. `factor` and `fresh` are matrices of scratch."""
    capacity = whole(table, SINGLE.capacity)
    if (number + 1) % capacity != 0:
        return
    size = size_of(table, leaf)
    inverse = inverse_of(table, leaf)
    if invert(gram_of(table, leaf), capacity, size, JITTER, factor, fresh):
        for i in range(size):
            for j in range(size):
                inverse[i * capacity + j] = fresh[i * capacity + j]

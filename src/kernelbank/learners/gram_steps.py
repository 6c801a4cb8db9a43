"""Centres with their Gram matrix K, and often its inverse, kept beside them.

The inverse is that of K with its diagonal raised by JITTER of itself: smooth kernels on near inputs
have Gram matrices that no arithmetic can invert, and a centre that is new by less than that is as
good as none. It follows the centres by rank-one steps and is computed anew from K now and then, by
the absolute number of the sample, so that rounding does not add up.
"""

from ..native.dense import border, dot, grow_inverse, invert, matrix_times, shrink_inverse, strike
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_int
from .centres_steps import CENTRES, append, remove
from .feature_steps import SELF, SINGLE, coefficients_of, size_of

GRAM = argument_fields(*CENTRES._fields, "gram")
INVERSE = argument_fields(*GRAM._fields, "inverse")
JITTER = 1e-8


@inline
def gram_of(args, leaf):
    capacity = read_int(args, SINGLE.capacity)
    return pointer(float_array(args, GRAM.gram), leaf * capacity * capacity)


@inline
def inverse_of(args, leaf):
    capacity = read_int(args, SINGLE.capacity)
    return pointer(float_array(args, INVERSE.inverse), leaf * capacity * capacity)


@inline
def append_gram(args, leaf, coefficient):
    """The present point becomes a centre, and enters the Gram matrix."""
    size = size_of(args, leaf)
    own = float_array(args, SINGLE.sample)[SELF]
    border(
        gram_of(args, leaf),
        read_int(args, SINGLE.capacity),
        size,
        float_array(args, SINGLE.now),
        own,
    )
    append(args, leaf, coefficient)


@inline
def append_both(args, leaf, coefficient, solved, rest):
    """The same, with the inverse: solved = K^-1 k(x, centres), rest = k(x, x) - k' solved."""
    size = size_of(args, leaf)
    raised = rest + JITTER * float_array(args, SINGLE.sample)[SELF]
    grow_inverse(inverse_of(args, leaf), read_int(args, SINGLE.capacity), size, solved, raised)
    append_gram(args, leaf, coefficient)


@inline
def remove_gram(args, leaf, j):
    strike(gram_of(args, leaf), read_int(args, SINGLE.capacity), size_of(args, leaf), j)
    remove(args, leaf, j)


@inline
def remove_both(args, leaf, j, scratch):
    shrink_inverse(
        inverse_of(args, leaf), read_int(args, SINGLE.capacity), size_of(args, leaf), j, scratch
    )
    remove_gram(args, leaf, j)


@inline
def solve_now(args, leaf, solved):
    """solved = K^-1 k(x, centres); returns k(x, x) - k' solved, the part of x that is new."""
    size = size_of(args, leaf)
    now = float_array(args, SINGLE.now)
    matrix_times(inverse_of(args, leaf), read_int(args, SINGLE.capacity), now, size, solved)
    return max(float_array(args, SINGLE.sample)[SELF] - dot(now, solved, size), 0.0)


@inline
def norm_by_gram(args, leaf, scratch):
    """alpha' K alpha."""
    size = size_of(args, leaf)
    coefficients = coefficients_of(args, leaf)
    matrix_times(gram_of(args, leaf), read_int(args, SINGLE.capacity), coefficients, size, scratch)
    return max(dot(coefficients, scratch, size), 0.0)


@inline
def refresh_inverse(args, leaf, number, factor, fresh):
    """Once in `capacity` samples: K^-1 from K. `factor` and `fresh` are matrices of scratch."""
    capacity = read_int(args, SINGLE.capacity)
    if (number + 1) % capacity != 0:
        return
    size = size_of(args, leaf)
    inverse = inverse_of(args, leaf)
    if invert(gram_of(args, leaf), capacity, size, JITTER, factor, fresh):
        for i in range(size):
            for j in range(size):
                inverse[i * capacity + j] = fresh[i * capacity + j]

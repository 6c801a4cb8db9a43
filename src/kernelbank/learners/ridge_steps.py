"""Kernel ridge regression on kept samples: alpha = (K + ridge diag(1 / weights))^-1 responses."""

from ..native.dense import dot, grow_inverse, invert, matrix_times, shrink_inverse, strike_member
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from .feature_steps import NORM, RESPONSE, SELF, SINGLE, WEIGHT, coefficients_of, size_of
from .gram_steps import (
    INVERSE,
    JITTER,
    append_gram,
    gram_of,
    inverse_of,
    norm_by_gram,
    remove_gram,
)

RIDGE = argument_fields(*INVERSE._fields, "responses", "noises", "ridge")
"""`noises`: ridge over the weight of each sample, what stands beside K on the diagonal."""
_TOLERATED = 1e-6  # of the responses: how far the equations may be missed


@inline
def join(args, leaf):
    """The present sample joins those that are kept."""
    sample = float_array(args, SINGLE.sample)
    capacity = read_int(args, SINGLE.capacity)
    solved = float_array(args, SINGLE.work)
    size = size_of(args, leaf)
    now = float_array(args, SINGLE.now)
    noise = max(read_float(args, RIDGE.ridge) / sample[WEIGHT], JITTER * sample[SELF])
    matrix_times(inverse_of(args, leaf), capacity, now, size, solved)
    rest = sample[SELF] + noise - dot(now, solved, size)
    rest = max(rest, noise)  # it is never less, but for rounding
    grow_inverse(inverse_of(args, leaf), capacity, size, solved, rest)
    float_array(args, RIDGE.responses)[leaf * capacity + size] = sample[RESPONSE]
    float_array(args, RIDGE.noises)[leaf * capacity + size] = noise
    append_gram(args, leaf, 0.0)


@inline
def leave(args, leaf, j):
    """Kept sample j leaves."""
    capacity = read_int(args, SINGLE.capacity)
    size = size_of(args, leaf)
    shrink_inverse(inverse_of(args, leaf), capacity, size, j, float_array(args, SINGLE.work))
    strike_member(pointer(float_array(args, RIDGE.responses), leaf * capacity), size, j)
    strike_member(pointer(float_array(args, RIDGE.noises), leaf * capacity), size, j)
    remove_gram(args, leaf, j)


@inline
def solve(args, leaf):
    """alpha from the kept responses."""
    capacity = read_int(args, SINGLE.capacity)
    responses = pointer(float_array(args, RIDGE.responses), leaf * capacity)
    matrix_times(
        inverse_of(args, leaf),
        capacity,
        responses,
        size_of(args, leaf),
        coefficients_of(args, leaf),
    )


@inline
def _anew(args, leaf):
    """The inverse from the Gram matrix, by Cholesky."""
    capacity = read_int(args, SINGLE.capacity)
    size = size_of(args, leaf)
    matrix = pointer(float_array(args, SINGLE.work), 2 * capacity)
    factor = pointer(matrix, capacity * capacity)
    fresh = pointer(factor, capacity * capacity)
    gram = gram_of(args, leaf)
    inverse = inverse_of(args, leaf)
    for i in range(size):
        for j in range(size):
            matrix[i * capacity + j] = gram[i * capacity + j]
        matrix[i * capacity + i] += float_array(args, RIDGE.noises)[leaf * capacity + i]
    if invert(matrix, capacity, size, 0.0, factor, fresh):
        for i in range(size):
            for j in range(size):
                inverse[i * capacity + j] = fresh[i * capacity + j]


@inline
def _refine(args, leaf):
    """alpha += inverse (z - A alpha); returns the largest |z - A alpha| before it, over |z|."""
    capacity = read_int(args, SINGLE.capacity)
    size = size_of(args, leaf)
    rest = float_array(args, SINGLE.work)
    change = pointer(rest, capacity)
    coefficients = coefficients_of(args, leaf)
    matrix_times(gram_of(args, leaf), capacity, coefficients, size, rest)
    wrong = 0.0
    largest = 0.0
    for m in range(size):
        response = float_array(args, RIDGE.responses)[leaf * capacity + m]
        noise = float_array(args, RIDGE.noises)[leaf * capacity + m]
        rest[m] = response - (rest[m] + noise * coefficients[m])
        wrong = max(wrong, abs(rest[m]))
        largest = max(largest, abs(response))
    matrix_times(inverse_of(args, leaf), capacity, rest, size, change)
    for m in range(size):
        coefficients[m] += change[m]
    return wrong / largest if wrong > 0.0 else 0.0


@inline
def settle(args, leaf, number):
    """At the end of a step: alpha, refined; and the inverse anew, now and then or if it is bad."""
    if (number + 1) % read_int(args, SINGLE.capacity) == 0:
        _anew(args, leaf)
    solve(args, leaf)
    if not _refine(args, leaf) <= _TOLERATED:
        _anew(args, leaf)
        solve(args, leaf)
        _refine(args, leaf)
    work = float_array(args, SINGLE.work)
    float_array(args, SINGLE.sample)[NORM] = norm_by_gram(args, leaf, work)

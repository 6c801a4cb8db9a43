"""Kernel ridge regression on kept samples: alpha = (K + ridge diag(1 / weights))^-1 responses."""

from ..native.dense import dot, grow_inverse, invert, matrix_times, shrink_inverse, strike_member
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import fields, floats, real, whole
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

RIDGE = fields(*INVERSE._fields, "responses", "noises", "ridge")
"""`noises`: ridge over the weight of each sample, what stands beside K on the diagonal."""
_TOLERATED = 1e-6  # of the responses: how far the equations may be missed


@inline
def join(table, leaf):
    """The present sample joins those that are kept."""
    sample = floats(table, SINGLE.sample)
    capacity = whole(table, SINGLE.capacity)
    solved = floats(table, SINGLE.work)
    size = size_of(table, leaf)
    now = floats(table, SINGLE.now)
    noise = max(real(table, RIDGE.ridge) / sample[WEIGHT], JITTER * sample[SELF])
    matrix_times(inverse_of(table, leaf), capacity, now, size, solved)
    rest = sample[SELF] + noise - dot(now, solved, size)
    rest = max(rest, noise)  # it is never less, but for rounding
    grow_inverse(inverse_of(table, leaf), capacity, size, solved, rest)
    floats(table, RIDGE.responses)[leaf * capacity + size] = sample[RESPONSE]
    floats(table, RIDGE.noises)[leaf * capacity + size] = noise
    append_gram(table, leaf, 0.0)


@inline
def leave(table, leaf, j):
    """Kept sample j leaves."""
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    shrink_inverse(inverse_of(table, leaf), capacity, size, j, floats(table, SINGLE.work))
    strike_member(pointer(floats(table, RIDGE.responses), leaf * capacity), size, j)
    strike_member(pointer(floats(table, RIDGE.noises), leaf * capacity), size, j)
    remove_gram(table, leaf, j)


@inline
def solve(table, leaf):
    """alpha from the kept responses."""
    capacity = whole(table, SINGLE.capacity)
    responses = pointer(floats(table, RIDGE.responses), leaf * capacity)
    matrix_times(
        inverse_of(table, leaf),
        capacity,
        responses,
        size_of(table, leaf),
        coefficients_of(table, leaf),
    )


@inline
def _anew(table, leaf):
    """The inverse from the Gram matrix, by Cholesky."""
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    matrix = pointer(floats(table, SINGLE.work), 2 * capacity)
    factor = pointer(matrix, capacity * capacity)
    fresh = pointer(factor, capacity * capacity)
    gram = gram_of(table, leaf)
    inverse = inverse_of(table, leaf)
    for i in range(size):
        for j in range(size):
            matrix[i * capacity + j] = gram[i * capacity + j]
        matrix[i * capacity + i] += floats(table, RIDGE.noises)[leaf * capacity + i]
    if invert(matrix, capacity, size, 0.0, factor, fresh):
        for i in range(size):
            for j in range(size):
                inverse[i * capacity + j] = fresh[i * capacity + j]


@inline
def _refine(table, leaf):
    """alpha += inverse (z - A alpha); returns the largest |z - A alpha| before it, over |z|."""
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    rest = floats(table, SINGLE.work)
    change = pointer(rest, capacity)
    coefficients = coefficients_of(table, leaf)
    matrix_times(gram_of(table, leaf), capacity, coefficients, size, rest)
    wrong = 0.0
    largest = 0.0
    for m in range(size):
        response = floats(table, RIDGE.responses)[leaf * capacity + m]
        noise = floats(table, RIDGE.noises)[leaf * capacity + m]
        rest[m] = response - (rest[m] + noise * coefficients[m])
        wrong = max(wrong, abs(rest[m]))
        largest = max(largest, abs(response))
    matrix_times(inverse_of(table, leaf), capacity, rest, size, change)
    for m in range(size):
        coefficients[m] += change[m]
    return wrong / largest if wrong > 0.0 else 0.0


@inline
def settle(table, leaf, number):
    """At the end of a step: alpha, refined; and the inverse anew, now and then or if it is bad."""
    if (number + 1) % whole(table, SINGLE.capacity) == 0:
        _anew(table, leaf)
    solve(table, leaf)
    if not _refine(table, leaf) <= _TOLERATED:
        _anew(table, leaf)
        solve(table, leaf)
        _refine(table, leaf)
    work = floats(table, SINGLE.work)
    floats(table, SINGLE.sample)[NORM] = norm_by_gram(table, leaf, work)

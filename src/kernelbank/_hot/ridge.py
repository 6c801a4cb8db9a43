"""Kernel ridge regression on kept samples: alpha = (K + ridge diag(1 / weights))^-1 responses."""

from .dense import grow_inverse, invert, matrix_times, shrink_inverse, strike_member
from .formulas import pointer
from .gram import INVERSE, append_gram, gram_of, inverse_of, norm_by_gram, remove_gram
from .jit import part
from .single import NORM, RESPONSE, SELF, SINGLE, WEIGHT, coefficients_of, dot, size_of
from .table import fields, floats, real, whole

RIDGE = fields(*INVERSE._fields, "responses", "noises", "ridge")
"""`noises`: ridge over the weight of each sample, what stands beside K on the diagonal."""


@part
def join(table, leaf):
    """The present sample joins those that are kept."""
    sample = floats(table, SINGLE.sample)
    capacity = whole(table, SINGLE.capacity)
    solved = floats(table, SINGLE.work)
    size = size_of(table, leaf)
    now = floats(table, SINGLE.now)
    noise = real(table, RIDGE.ridge) / sample[WEIGHT]
    matrix_times(inverse_of(table, leaf), capacity, now, size, solved)
    rest = sample[SELF] + noise - dot(now, solved, size)
    rest = max(rest, noise)  # it is never less, but for rounding
    grow_inverse(inverse_of(table, leaf), capacity, size, solved, rest)
    floats(table, RIDGE.responses)[leaf * capacity + size] = sample[RESPONSE]
    floats(table, RIDGE.noises)[leaf * capacity + size] = noise
    append_gram(table, leaf, 0.0)


@part
def leave(table, leaf, j):
    """Kept sample j leaves."""
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    shrink_inverse(inverse_of(table, leaf), capacity, size, j, floats(table, SINGLE.work))
    strike_member(pointer(floats(table, RIDGE.responses), leaf * capacity), size, j)
    strike_member(pointer(floats(table, RIDGE.noises), leaf * capacity), size, j)
    remove_gram(table, leaf, j)


@part
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


@part
def settle(table, leaf, number):
    """At the end of a step: now and then the inverse anew; alpha and norm^2."""
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    work = floats(table, SINGLE.work)
    if (number + 1) % capacity == 0:
        matrix = pointer(work, 2 * capacity)
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
    solve(table, leaf)
    floats(table, SINGLE.sample)[NORM] = norm_by_gram(table, leaf, work)

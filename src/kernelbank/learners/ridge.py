"""Kernel ridge regression on kept samples: alpha = (K + ridge diag(1 / weights))^-1 responses."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..native.dense import (
    append_to_inverse,
    delete_element,
    delete_from_inverse,
    dot,
    invert,
    symmetric_matvec,
)
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from .base import SlotGroup
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of
from .gram import (
    INVERSE_FIELDS,
    JITTER,
    InverseBase,
    append_to_gram,
    gram_of,
    inverse_of,
    norm_from_gram,
    remove_from_gram,
)

FIELDS = argument_fields(
    *INVERSE_FIELDS._fields,
    "responses",  # (leaves, capacity): z of each kept sample
    "noises",  # (leaves, capacity): ridge / weight of each kept sample, added to K's diagonal
    "ridge",
)

_TOLERANCE = 1e-6  # largest residual of the equations, relative to the responses


class RidgeBase(InverseBase):
    """Kept samples with their responses; `inverse` holds (K + ridge diag(1 / weights))^-1."""

    second_order = True
    ridge: float

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own: Shapes = {"responses": (capacity,), "noises": (capacity,)}
        return {**super().state_shapes(capacity, dimension), **own}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {**super().step_arguments(group, dimension), "ridge": self.ridge}

    def work_size(self, capacity: int, dimension: int) -> int:
        return 2 * capacity + 3 * capacity * capacity


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def responses_of(args, leaf):
    """(capacity,): the responses of the kept samples of a slot."""
    return pointer(float_array(args, FIELDS.responses), leaf * read_int(args, FIELDS.capacity))


@inline
def noises_of(args, leaf):
    """(capacity,): what is added to the diagonal of K."""
    return pointer(float_array(args, FIELDS.noises), leaf * read_int(args, FIELDS.capacity))


@inline
def append_sample(args, leaf):
    """Keep the present sample."""
    sample = float_array(args, FIELDS.sample)
    capacity = read_int(args, FIELDS.capacity)
    solved = float_array(args, FIELDS.work)
    size = size_of(args, leaf)
    row = float_array(args, FIELDS.point_features)
    self_kernel = sample[SAMPLE.self_kernel]
    noise = max(read_float(args, FIELDS.ridge) / sample[SAMPLE.weight], JITTER * self_kernel)
    symmetric_matvec(inverse_of(args, leaf), capacity, row, size, solved)  # A^-1 k(x, centres)
    rest = self_kernel + noise - dot(row, solved, size)
    rest = max(rest, noise)  # it is never less, but for rounding
    append_to_inverse(inverse_of(args, leaf), capacity, size, solved, rest)
    responses_of(args, leaf)[size] = sample[SAMPLE.response]
    noises_of(args, leaf)[size] = noise
    append_to_gram(args, leaf, 0.0)


@inline
def remove_sample(args, leaf, j):
    """Remove kept sample j."""
    capacity = read_int(args, FIELDS.capacity)
    size = size_of(args, leaf)
    delete_from_inverse(inverse_of(args, leaf), capacity, size, j, float_array(args, FIELDS.work))
    delete_element(responses_of(args, leaf), size, j)
    delete_element(noises_of(args, leaf), size, j)
    remove_from_gram(args, leaf, j)


@inline
def solve(args, leaf):
    """alpha = A^-1 z."""
    capacity = read_int(args, FIELDS.capacity)
    size = size_of(args, leaf)
    inverse, alpha = inverse_of(args, leaf), coefficients_of(args, leaf)
    symmetric_matvec(inverse, capacity, responses_of(args, leaf), size, alpha)


@inline
def _refresh_inverse(args, leaf):
    """A^-1 from K, by Cholesky."""
    capacity = read_int(args, FIELDS.capacity)
    size = size_of(args, leaf)
    matrix = pointer(float_array(args, FIELDS.work), 2 * capacity)
    factor = pointer(matrix, capacity * capacity)
    fresh = pointer(factor, capacity * capacity)
    gram = gram_of(args, leaf)
    inverse = inverse_of(args, leaf)
    for i in range(size):
        for j in range(size):
            matrix[i * capacity + j] = gram[i * capacity + j]
        matrix[i * capacity + i] += noises_of(args, leaf)[i]
    if invert(matrix, capacity, size, 0.0, factor, fresh):
        for i in range(size):
            for j in range(size):
                inverse[i * capacity + j] = fresh[i * capacity + j]


@inline
def _refine(args, leaf):
    """alpha += A^-1 (z - A alpha); returns the largest |z - A alpha| before it, over |z|."""
    capacity = read_int(args, FIELDS.capacity)
    size = size_of(args, leaf)
    residual = float_array(args, FIELDS.work)
    change = pointer(residual, capacity)
    alpha = coefficients_of(args, leaf)
    symmetric_matvec(gram_of(args, leaf), capacity, alpha, size, residual)
    worst = 0.0
    largest = 0.0
    for m in range(size):
        response = responses_of(args, leaf)[m]
        residual[m] = response - (residual[m] + noises_of(args, leaf)[m] * alpha[m])
        worst = max(worst, abs(residual[m]))
        largest = max(largest, abs(response))
    symmetric_matvec(inverse_of(args, leaf), capacity, residual, size, change)
    for m in range(size):
        alpha[m] += change[m]
    return worst / largest if worst > 0.0 else 0.0


@inline
def finish_step(args, leaf, number):
    """alpha and norm^2 after a step.

    The inverse is computed again once in `capacity` samples, and whenever it solves badly.
    """
    if (number + 1) % read_int(args, FIELDS.capacity) == 0:
        _refresh_inverse(args, leaf)
    solve(args, leaf)
    if not _refine(args, leaf) <= _TOLERANCE:
        _refresh_inverse(args, leaf)
        solve(args, leaf)
        _refine(args, leaf)
    work = float_array(args, FIELDS.work)
    float_array(args, FIELDS.sample)[SAMPLE.squared_norm] = norm_from_gram(args, leaf, work)

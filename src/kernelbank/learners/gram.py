"""Learners on centres that keep the Gram matrix K of the centres, and often its inverse.

What is inverted is K with its diagonal raised by JITTER of itself. Smooth kernels on near inputs
have Gram matrices that no arithmetic can invert, and a centre that is new by less than that adds
nothing. The inverse follows the centres by rank-one updates. It is computed again from K once in
`capacity` samples, by the absolute number of the sample, so that rounding does not add up.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from ..native.dense import (
    append_row_column,
    append_to_inverse,
    delete_from_inverse,
    delete_row_column,
    dot,
    invert,
    symmetric_matvec,
)
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_int
from .centres import FIELDS as CENTRES_FIELDS
from .centres import CentresBase, append_centre, remove_centre
from .feature_learner import SAMPLE, Shapes, coefficients_of, size_of

GRAM_FIELDS = argument_fields(*CENTRES_FIELDS._fields, "gram")  # (leaves, capacity, capacity)
INVERSE_FIELDS = argument_fields(*GRAM_FIELDS._fields, "inverse")  # (leaves, capacity, capacity)

JITTER = 1e-8
DEPENDENT = 1e-6
"""A centre that is new by a smaller fraction of k(x, x) is not kept: it would spoil the inverse."""


class GramBase(CentresBase):
    """Centres with their Gram matrix K; scratch for one vector."""

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "gram": (capacity, capacity)}

    def work_size(self, capacity: int, dimension: int) -> int:
        return capacity


class InverseBase(GramBase):
    """Centres with K and K^-1; scratch for four vectors and two matrices."""

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "inverse": (capacity, capacity)}

    def work_size(self, capacity: int, dimension: int) -> int:
        return 4 * capacity + 2 * capacity * capacity


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def gram_of(args, leaf):
    """(capacity, capacity): K of a slot."""
    capacity = read_int(args, GRAM_FIELDS.capacity)
    return pointer(float_array(args, GRAM_FIELDS.gram), leaf * capacity * capacity)


@inline
def inverse_of(args, leaf):
    """(capacity, capacity): K^-1 of a slot."""
    capacity = read_int(args, INVERSE_FIELDS.capacity)
    return pointer(float_array(args, INVERSE_FIELDS.inverse), leaf * capacity * capacity)


@inline
def append_to_gram(args, leaf, coefficient):
    """The present point becomes a centre: K <- (K k; k' k(x, x))."""
    size = size_of(args, leaf)
    capacity = read_int(args, GRAM_FIELDS.capacity)
    row = float_array(args, GRAM_FIELDS.point_features)
    self_kernel = float_array(args, GRAM_FIELDS.sample)[SAMPLE.self_kernel]
    append_row_column(gram_of(args, leaf), capacity, size, row, self_kernel)
    append_centre(args, leaf, coefficient)


@inline
def append_to_both(args, leaf, coefficient, solved, rest):
    """The same, with the inverse: solved = K^-1 k(x, centres), rest = k(x, x) - k' solved."""
    size = size_of(args, leaf)
    capacity = read_int(args, GRAM_FIELDS.capacity)
    raised = rest + JITTER * float_array(args, GRAM_FIELDS.sample)[SAMPLE.self_kernel]
    append_to_inverse(inverse_of(args, leaf), capacity, size, solved, raised)
    append_to_gram(args, leaf, coefficient)


@inline
def remove_from_gram(args, leaf, j):
    """Remove centre j, and its row and column of K."""
    delete_row_column(
        gram_of(args, leaf), read_int(args, GRAM_FIELDS.capacity), size_of(args, leaf), j
    )
    remove_centre(args, leaf, j)


@inline
def remove_from_both(args, leaf, j, scratch):
    """The same, with the inverse; `scratch` is a vector."""
    capacity = read_int(args, GRAM_FIELDS.capacity)
    delete_from_inverse(inverse_of(args, leaf), capacity, size_of(args, leaf), j, scratch)
    remove_from_gram(args, leaf, j)


@inline
def project_point(args, leaf, solved):
    """solved = K^-1 k(x, centres); returns k(x, x) - k' solved, the part of x that is new."""
    size = size_of(args, leaf)
    row = float_array(args, GRAM_FIELDS.point_features)
    symmetric_matvec(
        inverse_of(args, leaf), read_int(args, GRAM_FIELDS.capacity), row, size, solved
    )
    self_kernel = float_array(args, GRAM_FIELDS.sample)[SAMPLE.self_kernel]
    return max(self_kernel - dot(row, solved, size), 0.0)


@inline
def norm_from_gram(args, leaf, scratch):
    """alpha' K alpha; `scratch` is a vector."""
    size = size_of(args, leaf)
    capacity = read_int(args, GRAM_FIELDS.capacity)
    coefficients = coefficients_of(args, leaf)
    symmetric_matvec(gram_of(args, leaf), capacity, coefficients, size, scratch)
    return max(dot(coefficients, scratch, size), 0.0)


@inline
def refresh_inverse(args, leaf, number, factor, fresh):
    """Once in `capacity` samples: K^-1 from K; `factor` and `fresh` are matrices of scratch."""
    capacity = read_int(args, GRAM_FIELDS.capacity)
    if (number + 1) % capacity != 0:
        return
    size = size_of(args, leaf)
    inverse = inverse_of(args, leaf)
    if invert(gram_of(args, leaf), capacity, size, JITTER, factor, fresh):
        for i in range(size):
            for j in range(size):
                inverse[i * capacity + j] = fresh[i * capacity + j]

"""Learners on centres that keep the Gram matrix K of the centres, and often its inverse.

What is inverted is K with its diagonal raised by `jitter` of itself. Smooth kernels on near inputs
have Gram matrices that no arithmetic can invert, and a centre that is new by less than that adds
nothing. (kafbox adds a number to the diagonal, the same for kernels with k(x, x) = 1.) The inverse
follows the centres by rank-one updates. It is computed again from K once in `capacity` samples, by
the absolute number of the sample, so that rounding does not add up.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..native.arguments import floats
from ..native.dense import (
    append_row_column,
    append_to_inverse,
    copy_matrix,
    delete_from_inverse,
    delete_row_column,
    dot,
    invert,
    symmetric_matvec,
)
from ..native.jit import inline
from .base import SlotGroup
from .centres import CENTRES, CentresBase, append_centre, remove_centre
from .feature_learner import Shapes
from .feature_steps import SELF_KERNEL, size_of

GRAM = CENTRES.extended(
    "gram",
    gram=floats("leaves", "capacity", "capacity"),
    vector=floats("capacity"),  # scratch of the functions below
)
INVERSE = GRAM.extended(
    "inverse",
    jitter=float,  # part of k(c, c) by which the diagonal of K is raised
    inverse=floats("leaves", "capacity", "capacity"),
    solved=floats("capacity"),  # K^-1 k(x, centres), after `project_point`
    factor=floats("capacity", "capacity"),  # scratch of `refresh_inverse`
    fresh=floats("capacity", "capacity"),  # likewise
)

JITTER = 1e-8
DEPENDENT = 1e-6
"""A centre that is new by a smaller fraction of k(x, x) is not kept: it would spoil the inverse."""


class GramBase(CentresBase):
    """Centres with their Gram matrix K."""

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "gram": (capacity, capacity)}


class InverseBase(GramBase):
    """Centres with K and K^-1."""

    jitter: float = JITTER

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {**super().state_shapes(capacity, dimension), "inverse": (capacity, capacity)}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {**super().step_arguments(group, dimension), "jitter": self.jitter}


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def append_to_gram(a, leaf, coefficient):
    """The present point becomes a centre: K <- (K k; k' k(x, x))."""
    append_row_column(a.gram[leaf], size_of(a, leaf), a.point_features, a.sample[SELF_KERNEL])
    append_centre(a, leaf, coefficient)


@inline
def append_to_both(a, leaf, coefficient, rest):
    """The same, with the inverse: rest = k(x, x) - k' solved, from `project_point`."""
    raised = rest + a.jitter * a.sample[SELF_KERNEL]
    append_to_inverse(a.inverse[leaf], size_of(a, leaf), a.solved, raised)
    append_to_gram(a, leaf, coefficient)


@inline
def remove_from_gram(a, leaf, j):
    """Remove centre j, and its row and column of K."""
    delete_row_column(a.gram[leaf], size_of(a, leaf), j)
    remove_centre(a, leaf, j)


@inline
def remove_from_both(a, leaf, j):
    """The same, with the inverse."""
    delete_from_inverse(a.inverse[leaf], size_of(a, leaf), j, a.vector)
    remove_from_gram(a, leaf, j)


@inline
def project_point(a, leaf):
    """solved = K^-1 k(x, centres); returns k(x, x) - k' solved, the part of x that is new."""
    k, size = a.point_features, size_of(a, leaf)
    symmetric_matvec(a.inverse[leaf], k, size, a.solved)
    return max(a.sample[SELF_KERNEL] - dot(k, a.solved, size), 0.0)


@inline
def norm_from_gram(a, leaf):
    """alpha' K alpha."""
    alpha, size = a.coefficients[leaf], size_of(a, leaf)
    symmetric_matvec(a.gram[leaf], alpha, size, a.vector)
    return max(dot(alpha, a.vector, size), 0.0)


@inline
def refresh_inverse(a, leaf, number):
    """Once in `capacity` samples: K^-1 from K."""
    if (number + 1) % a.capacity != 0:
        return
    size = size_of(a, leaf)
    if invert(a.gram[leaf], size, a.jitter, a.factor, a.fresh):
        copy_matrix(a.fresh, size, a.inverse[leaf])

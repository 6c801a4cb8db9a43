"""Kernel ridge regression on kept samples: alpha = (K + ridge diag(1 / weights))^-1 responses."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..native.arguments import floats
from ..native.dense import (
    append_to_inverse,
    copy_matrix,
    delete_element,
    delete_from_inverse,
    dot,
    invert,
    symmetric_matvec,
)
from ..native.jit import inline
from .base import SlotGroup
from .feature_learner import Shapes
from .feature_steps import RESPONSE, SELF_KERNEL, SQUARED_NORM, WEIGHT, size_of
from .gram import INVERSE, JITTER, InverseBase, append_to_gram, norm_from_gram, remove_from_gram

RIDGE = INVERSE.extended(
    "ridge",
    responses=floats("leaves", "capacity"),  # z of each kept sample
    noises=floats("leaves", "capacity"),  # ridge / weight of each one, added to K's diagonal
    ridge=float,
    matrix=floats("capacity", "capacity"),  # scratch: A,
    residual=floats("capacity"),  # z - A alpha,
    change=floats("capacity"),  # and A^-1 (z - A alpha)
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


# --- compiled: what the steps use; A = K + diag(noises) ------------------------------------------


@inline
def append_sample(a, leaf):
    """Keep the present sample."""
    inverse, k, solved = a.inverse[leaf], a.point_features, a.solved
    size = size_of(a, leaf)
    self_kernel = a.sample[SELF_KERNEL]
    noise = max(a.ridge / a.sample[WEIGHT], JITTER * self_kernel)
    symmetric_matvec(inverse, k, size, solved)  # A^-1 k(x, centres)
    rest = self_kernel + noise - dot(k, solved, size)
    rest = max(rest, noise)  # it is never less, but for rounding
    append_to_inverse(inverse, size, solved, rest)
    a.responses[leaf, size] = a.sample[RESPONSE]
    a.noises[leaf, size] = noise
    append_to_gram(a, leaf, 0.0)


@inline
def remove_sample(a, leaf, j):
    """Remove kept sample j."""
    size = size_of(a, leaf)
    delete_from_inverse(a.inverse[leaf], size, j, a.vector)
    delete_element(a.responses[leaf], size, j)
    delete_element(a.noises[leaf], size, j)
    remove_from_gram(a, leaf, j)


@inline
def solve(a, leaf):
    """alpha = A^-1 z."""
    symmetric_matvec(a.inverse[leaf], a.responses[leaf], size_of(a, leaf), a.coefficients[leaf])


@inline
def _refresh_inverse(a, leaf):
    """A^-1 from K, by Cholesky."""
    size = size_of(a, leaf)
    copy_matrix(a.gram[leaf], size, a.matrix)
    for i in range(size):
        a.matrix[i, i] += a.noises[leaf, i]
    if invert(a.matrix, size, 0.0, a.factor, a.fresh):
        copy_matrix(a.fresh, size, a.inverse[leaf])


@inline
def _refine(a, leaf):
    """alpha += A^-1 (z - A alpha); returns the largest |z - A alpha| before it, over |z|."""
    alpha, responses, noises = a.coefficients[leaf], a.responses[leaf], a.noises[leaf]
    residual, change = a.residual, a.change
    size = size_of(a, leaf)
    symmetric_matvec(a.gram[leaf], alpha, size, residual)
    worst = 0.0
    largest = 0.0
    for m in range(size):
        residual[m] = responses[m] - (residual[m] + noises[m] * alpha[m])
        worst = max(worst, abs(residual[m]))
        largest = max(largest, abs(responses[m]))
    symmetric_matvec(a.inverse[leaf], residual, size, change)
    for m in range(size):
        alpha[m] += change[m]
    return worst / largest if worst > 0.0 else 0.0


@inline
def finish_step(a, leaf, number):
    """alpha and norm^2 after a step.

    The inverse is computed again once in `capacity` samples, and whenever it solves badly.
    """
    if (number + 1) % a.capacity == 0:
        _refresh_inverse(a, leaf)
    solve(a, leaf)
    if not _refine(a, leaf) <= _TOLERANCE:
        _refresh_inverse(a, leaf)
        solve(a, leaf)
        _refine(a, leaf)
    a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)

"""Recursive least squares on features, in one pass over the covariance per sample.

The covariance P of the weights is symmetric: only rows up to the diagonal are kept, packed one
behind the other. A step needs u = P phi and then changes P everywhere. It leaves that change
*pending*, and the next step makes it while it multiplies:

    P_ij <- s_i s_j P_ij + a u_i u_j + b v_i v_j,   and c (1 - s_i^2) on the diagonal,

with s = scaling, u = first_vector, v = second_vector and (a, b, c) = pending. So the matrix, whose
memory traffic dominates the cost, is read and written once per sample. The pending change is part
of the state: it does not matter whether the next sample is in the same block.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.dense import dot
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, fma, lane
from ..native.views import load_four, store_four
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import ERROR, FIELDS, SQUARED_NORM, WEIGHT, FeatureLearner, Shapes, size_of

RECURSIVE: dict[str, Any] = {
    "covariance": floats("leaves", "capacity * (capacity + 1) // 2"),
    "pending": floats("leaves", 3),  # a, b, c
    "scaling": floats("leaves", "capacity"),
    "first_vector": floats("leaves", "capacity"),
    "second_vector": floats("leaves", "capacity"),
    "forget_rule": int,
    "forgetting": float,
    "constant": int,  # index of the constant feature, which may have a forgetting of its own
    "constant_forgetting": float,
    "ridge": float,
    "u": floats("capacity"),  # scratch
}
"""The arguments of the step, which follow those of the features."""

FIRST, SECOND, DIAGONAL = range(3)  # a, b, c of the pending change

NEVER, EXPONENTIAL, PRIOR = range(3)
FORGET_RULES = {"exponential": EXPONENTIAL, "prior": PRIOR}

_MAX_GROWTH = 5.0
"""The covariance may grow by exp(this) at most until every weight had a dummy observation."""


class RecursiveLeastSquares(FeatureLearner):
    """Bayesian least squares on features, with two kinds of forgetting."""

    second_order = True
    forgetting: float
    ridge: float
    forget: str
    constant_forgetting: float | None

    def _check_forgetting(self) -> None:
        fraction = check.fraction(0.999, positive=True)
        check.settings(self, forgetting=fraction, ridge=check.positive(0.01))
        owner = type(self).__name__
        check.choice("forget", self.forget, owner, FORGET_RULES)
        if self.constant_forgetting is not None:
            check.settings(self, constant_forgetting=check.fraction(0.9))
            if self.forget != "prior" or self.forgetting == 1:
                remedy = 'Use forget="prior" with forgetting below 1.'
                rule = "be given with forgetting to the prior only"
                value = self.constant_forgetting
                raise check.refuse("constant_forgetting", rule, value, remedy, owner)

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {
            "covariance": (capacity * (capacity + 1) // 2,),
            "pending": (3,),
            "scaling": (capacity,),
            "first_vector": (capacity,),
            "second_vector": (capacity,),
        }

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> Shapes:
        size = self.capacity(kernel, dimension)
        if self.forget == "exponential" and -size * np.log(self.forgetting) > _MAX_GROWTH:
            least = np.exp(-_MAX_GROWTH / size)
            raise check.refuse(
                "forgetting",
                f"be >= {least:.4g} for {size} features, if it is exponential",
                self.forgetting,
                'Raise it, use fewer features, or forget="prior".',
                type(self).__name__,
            )
        return super().shapes(objective, leaves, dimension, kernel, history_length)

    def prepare(self, group: SlotGroup) -> None:
        capacity = group.state["coefficients"].shape[1]
        diagonal = np.cumsum(np.arange(1, capacity + 1)) - 1
        group.state["covariance"][:, diagonal] = 1.0 / self.ridge
        group.state["scaling"][:] = 1.0
        group.state["size"][:] = capacity

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        constant_forgetting = self.constant_forgetting
        if constant_forgetting is None:
            constant_forgetting = self.forgetting
        return {
            **super().step_arguments(group, dimension),
            "forget_rule": FORGET_RULES[self.forget] if self.forgetting < 1 else NEVER,
            "constant_forgetting": constant_forgetting,
        }

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        """phi(x)' P phi(x): of f, without the noise, in units of the noise's variance."""
        out = np.full((group.leaves, len(points), WIDTH), np.nan)
        features = self.feature_rows(group, points)
        for leaf in range(group.leaves):
            size = features.shape[2]
            full = unpack_triangle(group.state["covariance"][leaf], size)
            first, second, diagonal = group.state["pending"][leaf]  # a, b, c
            scale = group.state["scaling"][leaf]
            first_vector, second_vector = (
                group.state["first_vector"][leaf],
                group.state["second_vector"][leaf],
            )
            full = np.outer(scale, scale) * full + first * np.outer(first_vector, first_vector)
            full = full + second * np.outer(second_vector, second_vector)
            full[np.diag_indices(size)] += diagonal * (1 - scale**2)
            rows = features[leaf]
            out[leaf, :, 0] = np.maximum(((rows @ full) * rows).sum(axis=1), 0.0)
        return out

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, size): the features of some points."""
        raise NotImplementedError

    @staticmethod
    @native(FIELDS.extended("recursive", **RECURSIVE))
    def step(a, leaf, number):
        """One sample of least squares, then forgetting (see `FourierRLS`)."""
        covariance, pending = a.covariance[leaf], a.pending[leaf]
        scaling, first, second = a.scaling[leaf], a.first_vector[leaf], a.second_vector[leaf]
        phi, weights, u = a.point_features, a.coefficients[leaf], a.u  # (capacity,)
        forgetting = a.forgetting
        size = size_of(a, leaf)

        # u = P phi, s = 1 / weight + phi'u, weights += u e / s, P -= u u' / s.
        _multiply_pending(covariance, pending, scaling, first, second, phi, size, u)
        variance = dot(phi, u, size)
        s = 1.0 / a.sample[WEIGHT] + variance
        informed = variance > 0.0  # otherwise rounding is all there is
        change = a.sample[ERROR] / s if informed else 0.0
        scale = 1.0
        if a.forget_rule == EXPONENTIAL:
            scale = 1.0 / np.sqrt(forgetting)
        elif a.forget_rule == PRIOR:
            scale = np.sqrt(forgetting)
        pending[FIRST] = -1.0 / s if informed else 0.0
        pending[SECOND] = 0.0
        pending[DIAGONAL] = 1.0 / a.ridge if a.forget_rule == PRIOR else 0.0
        for m in range(size):
            weights[m] += u[m] * change
            scaling[m] = scale
            first[m] = scale * u[m]
            second[m] = 0.0

        if a.forget_rule == PRIOR:  # P <- r P + (1 - r) I / ridge, weights <- sqrt(r) weights
            constant = a.constant
            if constant < size:
                scaling[constant] = np.sqrt(a.constant_forgetting)
                first[constant] = scaling[constant] * u[constant]
            for m in range(size):
                weights[m] *= scaling[m]
        if a.forget_rule == EXPONENTIAL:
            # P <- P / r, and a dummy observation that weight j is 0, each weight in turn. In `size`
            # samples it adds as much as the prior loses, so that the ridge never fades.
            j = number % size
            _copy_column(covariance, size, j, second)
            share = pending[FIRST] * first[j]
            for m in range(size):
                second[m] = scale * scale * second[m] + share * first[m]  # column j of P
            s = 1.0 / (size * (1.0 - forgetting) * a.ridge) + second[j]
            pending[SECOND] = -1.0 / s
            change = weights[j] / s
            for m in range(size):
                weights[m] -= second[m] * change
        a.sample[SQUARED_NORM] = dot(weights, weights, size)


def unpack_triangle(triangle: Floats, size: int) -> Floats:
    """The symmetric matrix (size, size) whose lower triangle is packed row by row."""
    full = np.zeros((size, size))
    full[np.tril_indices(size)] = triangle
    return np.asarray(full + np.tril(full, -1).T)


@inline
def _multiply_pending(covariance, pending, scaling, first, second, vector, count, out):
    """Make the pending change of P (see above), and out = P vector with the changed P.

    covariance: (count (count + 1) / 2,); pending: (3,); all others: (count,).
    """
    for i in range(count):
        out[i] = 0.0
    for i in range(count):
        row = covariance[i * (i + 1) // 2 :]
        scale = scaling[i]
        one = pending[FIRST] * first[i]
        two = pending[SECOND] * second[i]
        own = vector[i]
        total = broadcast(0.0)
        even = i - i % WIDTH
        for j in range(0, even, WIDTH):
            value = scale * load_four(scaling, j) * load_four(row, j)
            value = fma(one, load_four(first, j), value)
            value = fma(two, load_four(second, j), value)
            store_four(row, j, value)
            store_four(out, j, fma(own, value, load_four(out, j)))
            total = fma(value, load_four(vector, j), total)
        result = (lane(total, 0) + lane(total, 1)) + (lane(total, 2) + lane(total, 3))
        for j in range(even, i):
            value = scale * scaling[j] * row[j] + one * first[j] + two * second[j]
            row[j] = value
            out[j] += own * value
            result += value * vector[j]
        value = scale * scale * row[i] + one * first[i] + two * second[i]
        value += pending[DIAGONAL] * (1.0 - scale * scale)
        row[i] = value
        out[i] += result + own * value


@inline
def _copy_column(covariance, count, j, out):
    """out = column j of P as it is stored, without the pending change."""
    row = covariance[j * (j + 1) // 2 :]
    for i in range(j + 1):
        out[i] = row[i]
    for i in range(j + 1, count):
        out[i] = covariance[i * (i + 1) // 2 + j]

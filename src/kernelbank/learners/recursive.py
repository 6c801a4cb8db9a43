"""Recursive least squares on features, a cycle of samples at a time.

The covariance P of the weights is symmetric, and half of it is kept (`packed_symmetric`). Memory
traffic dominates the cost: a step needs P phi, and then changes P everywhere. So the change of a
step is kept as a vector, and made for a whole cycle of samples at once. After k samples of a cycle

    P = C^k P0 C^k + D_k + sum_i factors[i] vectors[i] vectors[i]',

with P0 = covariance, as it was at the start of the cycle, C the diagonal matrix by which a step
forgets, and D_k a diagonal matrix: (I - C^2k) / ridge with forget="prior", (1 - r) k I / ridge with
forget="random_walk", else 0. A cycle is eight samples; four with exponential forgetting, which adds
two vectors per sample.

P0 is multiplied by the features of all samples that are known, of one for a single sample and of a
cycle in a block. These are the same sums in the same order, and the vectors are part of the state:
it does not matter how a stream is cut into blocks.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.dense import add_multiple, dot, multiply_by
from ..native.functions import native
from ..native.jit import inline
from ..native.packed_symmetric import (
    RANK,
    copy_column,
    multiply,
    pack,
    packed_size,
    padded_length,
    row_start,
    unpack,
    update,
)
from ..native.simd import WIDTH
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import FeatureLearner, Shapes
from .feature_steps import AHEAD, ERROR, FIELDS, ROW, SQUARED_NORM, WEIGHT, size_of
from .recursive_follow import (
    EXPONENTIAL,
    FORGET_RULES,
    NEVER,
    PRIOR,
    RANDOM_WALK,
    follow_recursive_block,
    forget_row,
)

RECURSIVE: dict[str, Any] = {
    "padded": int,  # capacity, rounded up to a multiple of four
    "covariance": floats("leaves", "padded * (padded + 4) // 2"),  # P0
    "factors": floats("leaves", RANK),
    "vectors": floats("leaves", RANK, "padded"),
    "forget_rule": int,
    "forgetting": float,
    "constant": int,  # index of the constant feature, which may have a forgetting of its own
    "powers": floats("cycle + 1", 2),  # C^k: of every feature but the constant, of the constant
    "added": floats("cycle + 1", 2),  # D_k, likewise
    "ridge": float,
    "scaled": floats("cycle", "padded"),  # scratch: C^k phi of the samples of a cycle,
    "products": floats("cycle", "padded"),  # and P0 C^k phi
    "scales": floats("padded"),
    "u": floats("padded"),
    # for other outputs: P phi of the block's samples, and 1 / weight + phi'P phi (0: not informed);
    # the column and the divisor of the dummy observation
    "kept_gains": floats("leaves", "steps - 1", "capacity"),
    "kept_columns": floats("leaves", "steps - 1", None),  # empty unless forgetting is exponential
    "kept_divisors": floats("leaves", "steps - 1", 2),
}
"""The arguments of the step, which follow those of the features."""

_MAX_GROWTH = 5.0
"""The covariance may grow by exp(this) at most until every weight had a dummy observation."""


class RecursiveLeastSquares(FeatureLearner):
    """Bayesian least squares on features, with three kinds of forgetting."""

    second_order = True
    shared_arrays = frozenset({"covariance", "factors", "vectors", "size", "window_features"})
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

    @property
    def cycle(self) -> int:
        return RANK // 2 if self._forget_rule == EXPONENTIAL else RANK

    @property
    def _forget_rule(self) -> int:
        return FORGET_RULES[self.forget] if self.forgetting < 1 else NEVER

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        padded = padded_length(capacity)
        return {
            "covariance": (packed_size(padded),),
            "factors": (RANK,),
            "vectors": (RANK, padded),
        }

    def axis_lengths(self, capacity: int, dimension: int) -> dict[Any, int]:
        padded = {"padded": padded_length(capacity)}
        return {**super().axis_lengths(capacity, dimension), **padded}

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
        first = 1.0 / self.ridge
        if self._forget_rule == RANDOM_WALK:  # the weights move before the first sample too
            first += self._added()[1, 0]
        # P = C^k P0 C^k + D_k after k samples of a cycle: P0 so that P is `first` at the start.
        power, added = self._constants_at(group, group.first_sample % self.cycle, capacity)
        group.state["covariance"][:] = pack(np.diag((first - added) / (power * power)))
        group.state["size"][:] = capacity

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {
            **super().step_arguments(group, dimension),
            "padded": group.state["vectors"].shape[2],
            "forget_rule": self._forget_rule,
            "powers": self._powers(),
            "added": self._added(),
        }

    def _powers(self) -> Floats:
        """(cycle + 1, 2): C^k of every feature but the constant one, and of the constant."""
        scale = np.ones(2)
        if self._forget_rule == EXPONENTIAL:
            scale[:] = 1.0 / np.sqrt(self.forgetting)
        elif self._forget_rule == PRIOR:
            own = self.constant_forgetting
            scale[:] = np.sqrt([self.forgetting, self.forgetting if own is None else own])
        return np.vstack([np.ones(2), np.cumprod(np.tile(scale, (self.cycle, 1)), axis=0)])

    def _added(self) -> Floats:
        """(cycle + 1, 2): D_k, likewise."""
        powers = self._powers()
        if self._forget_rule == PRIOR:
            return (1.0 - powers * powers) / self.ridge
        if self._forget_rule == RANDOM_WALK:
            step = (1.0 - self.forgetting) / self.ridge
            return step * np.repeat(np.arange(self.cycle + 1.0)[:, None], 2, axis=1)
        return np.zeros_like(powers)

    def _constants_at(self, group: SlotGroup, k: int, size: int) -> tuple[Floats, Floats]:
        """The diagonals of C^k and D_k, (size,) each."""
        power, added = np.full(size, self._powers()[k, 0]), np.full(size, self._added()[k, 0])
        if self.constant_forgetting is not None:
            active = self.active_dims(group.kernels[0][0], group.dimension)
            constant = self.step_arguments(group, len(active))["constant"]
            power[constant:], added[constant:] = self._powers()[k, 1], self._added()[k, 1]
        return power, added

    def variance(self, group: SlotGroup, seen: int, points: Floats) -> Floats:
        """phi(x)' P phi(x): of f, without the noise, in units of the noise's variance."""
        out = np.full((group.leaves, len(points), WIDTH), np.nan)
        features = self.feature_rows(group, points)
        size = features.shape[2]
        k = seen % self.cycle
        power, added = self._constants_at(group, k, size)
        for leaf in range(group.leaves):
            full = np.outer(power, power) * unpack(group.state["covariance"][leaf], size)
            full[np.diag_indices(size)] += added
            vectors = group.state["vectors"][leaf][:, :size]  # zeros beyond those of this cycle
            full += (vectors.T * group.state["factors"][leaf]) @ vectors
            rows = features[leaf]
            out[leaf, :, 0] = np.maximum(((rows @ full) * rows).sum(axis=1), 0.0)
        return out

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, size): the features of some points."""
        raise NotImplementedError

    @staticmethod
    @native(FIELDS.extended("recursive", **RECURSIVE))
    def look_ahead(a, leaf, number):
        """products[k] = P0 C^k phi of the next samples, of which `cycle_features` are known."""
        first, count = number % a.cycle, int(a.sample[AHEAD])
        for k in range(first, first + count):
            phi, scaled = a.cycle_features[k], a.scaled[k]  # (capacity,), (padded,)
            power = a.powers[k, 0]
            for m in range(a.capacity):
                scaled[m] = power * phi[m]
            if a.constant < a.capacity:
                scaled[a.constant] = a.powers[k, 1] * phi[a.constant]
        multiply(a.covariance[leaf], a.padded, a.scaled, first, count, a.products)

    @staticmethod
    @native(FIELDS.extended("recursive", **RECURSIVE))
    def step(a, leaf, number):
        """One sample of least squares, then forgetting (see `FourierRLS`)."""
        recursive_step(a, leaf, number, False)

    @staticmethod
    @native(FIELDS.extended("recursive", **RECURSIVE))
    def lead_step(a, leaf, number):
        """The same, and what other outputs need is kept."""
        recursive_step(a, leaf, number, True)

    @staticmethod
    @native(FIELDS.extended("recursive", **RECURSIVE))
    def follow_loop(a, first, count):
        """A block of another output: P is that of the first."""
        follow_recursive_block(a, first, count)

    def kept_shapes(self, capacity: int, samples: int, window: int) -> Shapes:
        columns = capacity if self._forget_rule == EXPONENTIAL else 0
        return {
            **super().kept_shapes(capacity, samples, window),
            "kept_gains": (samples, capacity),
            "kept_columns": (samples, columns),
            "kept_divisors": (samples, 2),
        }


@inline
def recursive_step(a, leaf, number, keeps):
    """One sample of least squares, then forgetting. Leaves P phi in `u`.

    keeps : a constant, so that a step that keeps nothing has no code for it.
    """
    factors, vectors = a.factors[leaf], a.vectors[leaf]  # (RANK,), (RANK, padded)
    phi, weights, u = a.point_features, a.coefficients[leaf], a.u
    size, rule, constant = size_of(a, leaf), a.forget_rule, a.constant
    k = number % a.cycle
    known = 2 * k if rule == EXPONENTIAL else k  # vectors of this cycle

    # u = P phi, s = 1 / weight + phi'u, weights += u e / s, P -= u u' / s.
    _copy(a.products[k], u, size)
    forget_row(u, a.powers[k, 0], a.powers[k, 1], size, constant)
    if rule >= PRIOR:
        _add_diagonal(u, phi, a.added[k], size, constant)
    for i in range(known):
        add_multiple(u, factors[i] * dot(vectors[i], phi, size), vectors[i], size)
    variance = dot(phi, u, size)
    s = 1.0 / a.sample[WEIGHT] + variance
    informed = variance > 0.0  # otherwise rounding is all there is
    change = a.sample[ERROR] / s if informed else 0.0
    add_multiple(weights, change, u, size)
    row = int(a.sample[ROW])
    if keeps:
        _copy(u, a.kept_gains[leaf, row], size)
        a.kept_divisors[leaf, row, 0] = s if informed else 0.0

    # Forget: P <- C P C + D_1; with "prior", weights <- C weights.
    scale, constant_scale = a.powers[1, 0], a.powers[1, 1]
    for i in range(known if rule in (EXPONENTIAL, PRIOR) else 0):
        forget_row(vectors[i], scale, constant_scale, size, constant)
    _copy(u, vectors[known], size)
    forget_row(vectors[known], scale, constant_scale, size, constant)
    factors[known] = -1.0 / s if informed else 0.0
    known += 1
    if rule == PRIOR:
        forget_row(weights, scale, constant_scale, size, constant)
    if rule == EXPONENTIAL:
        # A dummy observation that weight j is 0, each weight in turn. In `size` samples it adds
        # as much as the prior loses, so that the ridge never fades.
        j = number % size
        column = vectors[known]
        copy_column(a.covariance[leaf], a.padded, j, column)
        square = a.powers[k + 1, 0] * a.powers[k + 1, 0]
        multiply_by(column, square, size)
        for i in range(known):  # column j of P
            add_multiple(column, factors[i] * vectors[i, j], vectors[i], size)
        s = 1.0 / (size * (1.0 - a.forgetting) * a.ridge) + column[j]
        factors[known] = -1.0 / s
        add_multiple(weights, -weights[j] / s, column, size)
        if keeps:
            _copy(column, a.kept_columns[leaf, row], size)
            a.kept_divisors[leaf, row, 1] = s
    if k + 1 == a.cycle:
        _end_cycle(a, leaf, size)
    a.sample[SQUARED_NORM] = dot(weights, weights, size)


@inline
def _copy(row, out, size):
    """out = row. row, out: (size,)."""
    for m in range(size):
        out[m] = row[m]


@inline
def _add_diagonal(u, phi, added, size, constant):
    """u += D_k phi, with D_k in added."""
    before = u[constant] if constant < size else 0.0
    add_multiple(u, added[0], phi, size)
    if constant < size:
        u[constant] = before + added[1] * phi[constant]


@inline
def _end_cycle(a, leaf, size):
    """P0 <- P: make the changes of a whole cycle."""
    covariance, factors, vectors = a.covariance[leaf], a.factors[leaf], a.vectors[leaf]
    scales, constant = a.scales, a.constant
    for m in range(a.padded):
        scales[m] = a.powers[a.cycle, 0]
    if constant < size:
        scales[constant] = a.powers[a.cycle, 1]
    update(covariance, a.padded, scales, factors, vectors)
    if a.forget_rule >= PRIOR:
        for m in range(size):
            covariance[row_start(m) + m] += a.added[a.cycle, 1 if m == constant else 0]
    for i in range(RANK):
        factors[i] = 0.0
        for m in range(a.padded):
            vectors[i, m] = 0.0

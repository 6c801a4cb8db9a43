"""Learners on random features, drawn once for each slot and kept in its state."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..kernels.base import CoreSpec, Kernel
from ..kernels.dimensions import active_coordinates
from ..kernels.feature_rows import features
from ..kernels.random_features import FeatureMap, feature_counts, feature_map
from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import FeatureLearner, Shapes
from .feature_steps import FIELDS, SELF_KERNEL

FOURIER = FIELDS.extended(
    "fourier",
    trigonometric=int,  # number of cosines and sines; the other features are linear
    frequencies=floats("leaves", "dimension", "capacity"),
    phases=floats("leaves", "capacity"),
    amplitudes=floats("leaves", "capacity"),
)


class FourierBase(FeatureLearner):
    """f(x) = weights . phi(x). Subclasses have settings `features` (how many) and `seed`."""

    fixed_features = True
    shared_arrays = frozenset({"frequencies", "phases", "amplitudes", "size", "window_features"})
    features: int
    seed: int

    def _check_features(self) -> None:
        remedy = "Features come in pairs, a cosine and a sine: give an even number, such as 100."
        owner = type(self).__name__
        count = check.count("features", self.features, owner, remedy, least=2)
        if count % 2:
            raise check.refuse("features", "be even", count, remedy, owner)
        remedy = "Give a whole number; the same draws the same features."
        check.settings(self, features=lambda *_: count, seed=check.whole(remedy, least=0))

    def check_kernel(self, kernel: Kernel) -> None:
        super().check_kernel(kernel)
        try:
            feature_counts(kernel, self.features, _accepted_width(kernel))
        except InvalidArgument as error:  # name this learner
            owner = type(self).__name__
            words = str(error).replace("'count' of feature_map", f"'features' of {owner}")
            raise InvalidArgument(words.replace("of feature_map", f"of {owner}")) from None

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, Any]:
        drawn = _draw_features(kernels[0], self.features, dimension, self.seed, identity)
        return super().core_settings(kernels, dimension, identity) | {
            "frequencies": drawn.frequencies,
            "phases": drawn.phases,
            "amplitudes": drawn.amplitudes,
            "trigonometric": drawn.trigonometric,
            "coordinates": np.array(drawn.coordinates, dtype=float),
        }

    def described_numbers(self, kernel: Kernel, dimension: int) -> int:
        return 2 * self.features * (dimension + 4)

    def feature_map(self, kernel: Kernel, dimension: int, identity: int) -> FeatureMap:
        """The features of a slot with that identity."""
        return _draw_features(kernel, self.features, dimension, self.seed, identity)

    def core_kernels(self, kernels: Sequence[Kernel], dimension: int) -> list[CoreSpec]:
        return []  # the features take their place

    def active_dims(self, kernel: Kernel, dimension: int) -> tuple[int, ...]:
        return active_coordinates(kernel, dimension)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return feature_counts(kernel, self.features, dimension)[1]

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {
            "frequencies": (dimension, capacity),
            "phases": (capacity,),
            "amplitudes": (capacity,),
        }

    def prepare(self, group: SlotGroup) -> None:
        super().prepare(group)
        for leaf, (kernel, *_) in enumerate(group.kernels):
            # The slot's identity takes part, so that slots of one kernel and seed differ.
            identity = int(group.identities[leaf, 0])
            drawn = _draw_features(kernel, self.features, group.dimension, self.seed, identity)
            group.state["frequencies"][leaf] = drawn.frequencies
            group.state["phases"][leaf] = drawn.phases
            group.state["amplitudes"][leaf] = drawn.amplitudes
        group.state["size"][:] = group.state["phases"].shape[1]

    def check_initial(self, objective: Objective, terms: int) -> None:
        """Any number of terms: weights = sum_j c_j phi(points_j)."""

    def start_from(self, group: SlotGroup, points: Floats, coefficients: Floats) -> None:
        for leaf, rows in enumerate(self.feature_rows(group, points)):  # (m, size)
            terms = coefficients[leaf, :, :1] * rows
            weights = np.array([fsum(column) for column in terms.T])
            group.state["coefficients"][leaf, : len(weights)] = weights
            group.norms[leaf, 0, 0] = fsum(weights * weights)

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        trigonometric = self._trigonometric(group)
        return {**super().step_arguments(group, dimension), "trigonometric": trigonometric}

    def _trigonometric(self, group: SlotGroup) -> int:
        """The number of features that are cosines and sines."""
        return feature_counts(group.kernels[0][0], self.features, group.dimension)[0]

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, size): the features of points (n, width)."""
        state = group.state
        active = self.active_dims(group.kernels[0][0], group.dimension)
        rows = [
            FeatureMap(
                state["frequencies"][leaf],
                state["phases"][leaf],
                state["amplitudes"][leaf],
                self._trigonometric(group),
                group.dimension,
                active,
            )(points)
            for leaf in range(group.leaves)
        ]
        return np.array(rows)

    @staticmethod
    @native(FOURIER)
    def compute_features(a, leaf, number):
        """point_features = phi(x), and phi(x)'phi(x) for k(x, x)."""
        phi = a.point_features
        frequencies, phases, amplitudes = a.frequencies[leaf], a.phases[leaf], a.amplitudes[leaf]
        features(a.point, frequencies, phases, amplitudes, a.trigonometric, phi)
        a.sample[SELF_KERNEL] = dot(phi, phi, a.capacity)


@lru_cache(maxsize=64)
def _draw_features(kernel: Kernel, count: int, dimension: int, seed: int, slot: int) -> FeatureMap:
    """The features of the slot with that identity. Equal banks draw the same ones."""
    return feature_map(kernel, count, dimension, np.random.default_rng([seed, slot]))


def _accepted_width(kernel: Kernel) -> int:
    """A number of coordinates that the kernel accepts."""
    for width in (1, 64, 4096):
        try:
            kernel.check_width(width, "dimension")
        except ValueError:
            continue
        return width
    return 2**20

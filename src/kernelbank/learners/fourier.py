"""Learners on random features, drawn once for each slot and kept in its state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..kernels.base import Kernel
from ..kernels.dimensions import view_of
from ..kernels.random_features import FeatureMap, feature_counts, feature_map
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import FeatureLearner, Shapes
from .fourier_steps import waves


class FourierBase(FeatureLearner):
    """f(x) = weights . phi(x); the settings `features` (how many) and `seed` are the subclass's."""

    feature_function = waves
    features: int
    seed: int

    def _check_features(self) -> None:
        remedy = "Features come in pairs, a cosine and a sine: give an even number, such as 100."
        owner = type(self).__name__
        count = check.count("features", self.features, owner, remedy, least=2)
        if count % 2:
            raise check.refuse("features", "be even", count, remedy, owner)
        remedy = "Give a whole number; the same draws the same features."
        self._set(features=count, seed=check.count("seed", self.seed, owner, remedy, least=0))

    def check_kernel(self, kernel: Kernel) -> None:
        super().check_kernel(kernel)
        try:
            feature_counts(kernel, self.features, _widest(kernel))
        except InvalidArgument as error:  # say it in this learner's words
            owner = type(self).__name__
            words = str(error).replace("'count' of feature_map", f"'features' of {owner}")
            raise InvalidArgument(words.replace("of feature_map", f"of {owner}")) from None

    def view(self, kernel: Kernel, dimension: int) -> tuple[int, ...]:
        return view_of(kernel, dimension)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return feature_counts(kernel, self.features, dimension)[1]

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {
            "frequencies": (dimension, capacity),
            "phases": (capacity,),
            "amplitudes": (capacity,),
        }

    def prepare(self, group: SlotGroup) -> None:
        super().prepare(group)
        for leaf, (kernel, *_) in enumerate(group.kernels):
            # The slot's place takes part, so that slots of one kernel and seed differ.
            place = int(group.columns[leaf, 0])
            drawn = _drawn(kernel, self.features, group.dimension, self.seed, place)
            group.state["frequencies"][leaf] = drawn.frequencies
            group.state["phases"][leaf] = drawn.phases
            group.state["amplitudes"][leaf] = drawn.amplitudes
        group.state["size"][:] = group.state["phases"].shape[1]

    def extras(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        return {"trigonometric": self._trigonometric(group)}

    def _trigonometric(self, group: SlotGroup) -> int:
        """How many of the features are cosines and sines."""
        return feature_counts(group.kernels[0][0], self.features, group.dimension)[0]

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, size): the features of some points."""
        state = group.state
        view = self.view(group.kernels[0][0], group.dimension)
        rows = [
            FeatureMap(
                state["frequencies"][leaf],
                state["phases"][leaf],
                state["amplitudes"][leaf],
                self._trigonometric(group),
                group.dimension,
                view,
            )(points)
            for leaf in range(group.leaves)
        ]
        return np.array(rows)


@lru_cache(maxsize=64)
def _drawn(kernel: Kernel, features: int, dimension: int, seed: int, place: int) -> FeatureMap:
    """The features of a slot. Banks that start anew, or stand side by side, draw the same ones."""
    return feature_map(kernel, features, dimension, np.random.default_rng([seed, place]))


def _widest(kernel: Kernel) -> int:
    """A width at which any kernel can be asked what it is made of."""
    for width in (1, 64, 4096):
        try:
            kernel.check_width(width, "dimension")
        except ValueError:
            continue
        return width
    return 2**20

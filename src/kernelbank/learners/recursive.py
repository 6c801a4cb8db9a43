"""Learners that do recursive least squares on features (see `_hot.recursive`)."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH
from ..utils import validation as check
from ..utils.validation import Floats
from . import recursive_steps as hot
from .base import SlotGroup
from .feature_learner import FeatureLearner, Shapes
from .feature_steps import SINGLE, size_of

RECURSIVE = (
    *hot.RECURSIVE._fields,
    "forget",
    "forgetting",
    "constant",
    "constant_forgetting",
    "ridge",
)
"""The names that the tables of such learners have somewhere behind those of SINGLE."""

PLACES = argument_fields(*SINGLE._fields, *RECURSIVE)
"""Where `recursive` finds them; each learner has a variant of it with its own."""

_LONGEST = 5.0
"""How much, in units of exp, the covariance may grow until the dummies come round to a weight."""

FORGET = {"exponential": hot.EXPONENTIAL, "prior": hot.PRIOR}


def recursive(args, leaf, number):
    """One sample of least squares, then some forgetting."""
    capacity = read_int(args, SINGLE.capacity)
    triangle = capacity * (capacity + 1) // 2
    hot.recursive_step(
        args,
        leaf,
        number,
        size_of(args, leaf),
        pointer(float_array(args, PLACES.covariance), leaf * triangle),
        pointer(float_array(args, PLACES.pending), leaf * hot.PENDING),
        pointer(float_array(args, PLACES.scaling), leaf * capacity),
        pointer(float_array(args, PLACES.first_vector), leaf * capacity),
        pointer(float_array(args, PLACES.second_vector), leaf * capacity),
        read_int(args, PLACES.forget),
        read_float(args, PLACES.forgetting),
        read_int(args, PLACES.constant),
        read_float(args, PLACES.constant_forgetting),
        read_float(args, PLACES.ridge),
    )


class RecursiveLeastSquares(FeatureLearner):
    """Bayesian least squares on features, with two kinds of forgetting."""

    second_order = True
    forgetting: float
    ridge: float
    forget: str
    constant_forgetting: float | None

    def _check_forgetting(self) -> None:
        self._share("forgetting", 0.999)
        self._positive("forgetting", 0.999)
        self._positive("ridge", 0.01)
        owner = type(self).__name__
        check.choice("forget", self.forget, owner, FORGET)
        if self.constant_forgetting is not None:
            self._share("constant_forgetting", 0.9)
            if self.forget != "prior" or self.forgetting == 1:
                remedy = 'Use forget="prior" with forgetting below 1.'
                rule = "be given with forgetting to the prior only"
                value = self.constant_forgetting
                raise check.refuse("constant_forgetting", rule, value, remedy, owner)

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {
            "covariance": (capacity * (capacity + 1) // 2,),
            "pending": (hot.PENDING,),
            "scaling": (capacity,),
            "first_vector": (capacity,),
            "second_vector": (capacity,),
        }

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> Shapes:
        size = self.capacity(kernel, dimension)
        if self.forget == "exponential" and -size * np.log(self.forgetting) > _LONGEST:
            least = np.exp(-_LONGEST / size)
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

    def settings(self, objective: Objective) -> Mapping[str, float]:
        kind = FORGET[self.forget] if self.forgetting < 1 else hot.NEVER
        own = self.constant_forgetting
        return {
            "forget": kind,
            "forgetting": self.forgetting,
            "constant_forgetting": self.forgetting if own is None else own,
            "ridge": self.ridge,
        }

    def work(self, capacity: int, dimension: int) -> int:
        return capacity

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        """phi(x)' P phi(x): of f, without the noise, in units of the noise's variance."""
        out = np.full((group.leaves, len(points), WIDTH), np.nan)
        features = self.feature_rows(group, points)
        for leaf in range(group.leaves):
            size = features.shape[2]
            full = unpacked(group.state["covariance"][leaf], size)
            first, second, diagonal = group.state["pending"][leaf]
            scale = group.state["scaling"][leaf]
            one, two = group.state["first_vector"][leaf], group.state["second_vector"][leaf]
            full = np.outer(scale, scale) * full + first * np.outer(one, one)
            full = full + second * np.outer(two, two)
            full[np.diag_indices(size)] += diagonal * (1 - scale**2)
            rows = features[leaf]
            out[leaf, :, 0] = np.maximum(((rows @ full) * rows).sum(axis=1), 0.0)
        return out

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, size): the features of some points."""
        raise NotImplementedError


def unpacked(triangle: Floats, size: int) -> Floats:
    """The symmetric matrix whose lower triangle lies row by row."""
    full = np.zeros((size, size))
    full[np.tril_indices(size)] = triangle
    return np.asarray(full + np.tril(full, -1).T)

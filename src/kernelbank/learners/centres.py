"""Learners whose features are kernel values with kept inputs (see `_hot.centres`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel, Program, Sources, sources_of
from ..native.phases import argument_fields
from ..native.simd import WIDTH
from ..utils.validation import Floats
from . import centres_steps as hot
from .base import SlotGroup
from .feature_learner import FeatureLearner, Shapes


def places(*own: str) -> Any:
    """The places of a table of a learner on centres, with the method's own behind them."""
    return argument_fields(*hot.CENTRES._fields, *own)


class CentresBase(FeatureLearner):
    """f = sum_j alpha_j k(c_j, .), at most `budget` centres c_j, oldest first."""

    feature_function = hot.features
    spare = 1
    accepts_new_inputs: ClassVar[bool] = True
    budget: int

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.budget + self.spare  # room for a new one before an old one leaves

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        return {"centres": (dimension, capacity)}

    def widen(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        known = old["centres"].shape[1]
        new["centres"][:, :known], new["centres"][:, known:] = old["centres"], 0.0
        others = {name: array for name, array in old.items() if name != "centres"}
        super().widen(others, new)

    def extras(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        numbers = sources_of([kernel for leaf in group.kernels for kernel in leaf], dimension)
        program = Program.pack(group.kernels, numbers, dimension)
        sources = Sources.pack(numbers, dimension)
        capacity = group.state["coefficients"].shape[1]
        room = max(capacity, group.objective.window, 1)
        return {
            "instructions": len(program.code),
            "program": program.code,
            "constants": program.constants,
            "addresses": sources.addresses,
            "source_parameters": sources.parameters,
            "coordinates": sources.coordinates,
            "starts": sources.starts,
            "statistics": np.zeros((len(numbers), room)),
            "row": np.zeros((room, WIDTH)),
            "stack": np.zeros((program.depth + 1, room, WIDTH)),
            "room": room,
            "recent": np.zeros(room),
        }

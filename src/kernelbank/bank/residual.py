"""Slots that learn the residual of an earlier slot.

With b the function of the base slot, a residual slot trains its learner on (x, y - b(x)), where b
is taken as it was before the base learned the sample. The slot's function is f = b + g, with g what
the learner has found. It reads the base slot, never the weights. norm^2 is |b|^2 + |g|^2, an upper
bound of the norm^2 in the sum space. The variances of b and g add up, as if they were independent.
The base runs once, for itself and for all its residual slots.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..learners.base import SlotGroup
from ..losses.objective import Objective
from ..native.arguments import Arguments, floats, lanes
from ..native.functions import native
from ..native.phases import Phase
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import Floats

if TYPE_CHECKING:
    from .layout import GroupSettings

RESIDUAL = Arguments(
    "residual",
    leaves=int,
    steps=int,  # longest block + 1
    window=int,
    slide_period=int,
    history_length=int,
    # b: the base slot, one lane of a leaf of its group
    base_leaf=int,
    base_lane=int,
    base_predictions=floats(None, "steps - 1", WIDTH),
    base_variances=floats(None, "steps - 1", WIDTH),
    base_values=floats(None, "steps", "window", WIDTH),
    base_norms=floats(None, "steps", WIDTH),
    base_query_values=floats(None, WIDTH),
    # the block's targets y, and y - b(x)
    new_targets=floats("steps - 1"),
    new_residuals=floats("steps - 1"),
    # state: y - b(x) of the newest samples, the same for all leaves; g after the last block
    residual_targets=lanes("leaves", "history_length + slide_period"),
    residual_values=lanes("leaves", "window"),
    residual_norms=lanes("leaves"),
    # g: what the learner has found
    trained_values=lanes("leaves", "steps", "window"),
    trained_norms=lanes("leaves", "steps"),
    trained_predictions=lanes("leaves", "steps - 1"),
    trained_variances=lanes("leaves", "steps - 1"),
    trained_query_values=lanes("leaves"),
    # f = b + g
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
    variances=lanes("leaves", "steps - 1"),
    query_values=lanes("leaves"),
)


@native(RESIDUAL)
def subtract_base(a, first, count):
    """Targets of the learner: y - b(x), with b before it learned the sample.

    residual_targets slides like the buffer's targets. trained_values and trained_norms get their
    row 0, the state before the block.
    """
    position = a.history_length + first % a.slide_period
    for leaf in range(a.leaves):
        targets = a.residual_targets[leaf]  # (history_length + slide_period,)
        if first > 0 and first % a.slide_period == 0:
            for m in range(a.history_length):
                targets[m] = targets[a.slide_period + m]
        for t in range(count):
            residual = a.new_targets[t] - a.base_predictions[a.base_leaf, t, a.base_lane]
            a.new_residuals[t] = residual  # y - b(x)
            targets[position + t] = residual
        for i in range(a.window):
            a.trained_values[leaf, 0, i] = a.residual_values[leaf, i]
        a.trained_norms[leaf, 0] = a.residual_norms[leaf]


@native(RESIDUAL)
def add_base(a, first, count):
    """f = b + g for the predictions and the values on the window; |f|^2 = |b|^2 + |g|^2."""
    base, lane = a.base_leaf, a.base_lane
    for leaf in range(a.leaves):
        for t in range(count):
            b = a.base_predictions[base, t, lane]
            a.predictions[leaf, t] = a.trained_predictions[leaf, t] + b
            known = a.base_variances[base, t, lane]
            a.variances[leaf, t] = a.trained_variances[leaf, t] + known
            for i in range(a.window):
                b = a.base_values[base, t + 1, i, lane]
                a.values[leaf, t + 1, i] = a.trained_values[leaf, t + 1, i] + b
            a.norms[leaf, t + 1] = a.trained_norms[leaf, t + 1] + a.base_norms[base, t + 1, lane]
        for i in range(a.window):  # kept for row 0 of the next block
            a.residual_values[leaf, i] = a.trained_values[leaf, count, i]
        a.residual_norms[leaf] = a.trained_norms[leaf, count]


@native(RESIDUAL)
def add_base_to_query(a, first, count):
    """f = b + g at the query point."""
    b = a.base_query_values[a.base_leaf, a.base_lane]
    for leaf in range(a.leaves):
        a.query_values[leaf] = a.trained_query_values[leaf] + b


_STATE = ("residual_targets", "residual_values", "residual_norms")
"""The arrays that a residual group adds to the state of its learner."""


def state_shapes(
    settings: GroupSettings,
    objective: Objective,
    leaves: int,
    dimension: int,
    kernel: Kernel,
    history_length: int,
) -> dict[str, tuple[int, ...]]:
    """The shapes of a group's state; `objective` is the bank's. See `Learner.shapes`."""
    own = settings.objective(objective)
    shapes = settings.learner.shapes(own, leaves, dimension, kernel, history_length)
    if settings.residual_of is None:
        return shapes
    return {
        **shapes,
        "residual_targets": (leaves, history_length + SLIDE_PERIOD, WIDTH),
        "residual_values": (leaves, objective.window, WIDTH),
        "residual_norms": (leaves, WIDTH),
    }


def extend_state(
    settings: GroupSettings, old: Mapping[str, Floats], new: dict[str, Floats]
) -> None:
    """Write a group's state to one on inputs with more columns. See `Learner.extend_inputs`."""
    if settings.residual_of is None:
        settings.learner.extend_inputs(old, new)
        return
    sums = ("values", "norms", "alive", *_STATE)
    for name in sums:
        new[name][...] = old[name]
    own = {name: array for name, array in new.items() if name not in sums}
    settings.learner.extend_inputs({name: old[name] for name in own}, own)


class ShardGroup:
    """The slots of one group that a shard runs: their learner and their arrays.

    `scored` holds the arrays that the bank scores and mixes, `trained` those that the learner
    works on; they are the same unless the slots learn a residual.
    """

    def __init__(
        self, settings: GroupSettings, scored: SlotGroup, leader: SlotGroup | None = None
    ) -> None:
        """`leader`: what the learner of the first output works on, if this one follows it."""
        self.learner = settings.learner
        self.scored = scored
        self.trained = scored
        self.leader = leader
        self.base: tuple[ShardGroup, int, int] | None = None
        """For slots that learn a residual: group, leaf and lane of the base slot."""
        self.evaluated: Floats = np.empty(0)
        """What `evaluate` returned last, for the residual slots of these."""

    def phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        """The phases that learn a block. Called once."""
        if self.leader is not None:
            return self.learner.follow_phases(self.trained, self.leader, buffer, workspace)
        return self.learner.phases(self.trained, buffer, workspace)

    def predict_phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        """The phases that fill scored.query_values at workspace.query_point. After `phases`."""
        if self.leader is not None:
            return self.learner.follow_predict_phases(self.trained, self.leader, buffer, workspace)
        return self.learner.predict_phases(self.trained, buffer, workspace)

    def evaluate(self, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray) -> Floats:
        """(leaves, n, 4): values at the points. See `Learner.evaluate`."""
        self.evaluated = self.learner.evaluate(self.trained, seen, points, statistics, wanted)
        return self.evaluated

    def variance(self, seen: int, points: Floats) -> Floats:
        """(leaves, n, 4): predictive variance at the points."""
        return self.learner.variance(self.trained, seen, points)


class ResidualGroup(ShardGroup):
    """Slots that learn the residual of a base slot: the one in `base` at (leaf, lane)."""

    def __init__(
        self,
        settings: GroupSettings,
        scored: SlotGroup,
        leader: SlotGroup | None,
        base: ShardGroup,
        leaf: int,
        lane: int,
    ) -> None:
        super().__init__(settings, scored, leader)
        self.base = (base, leaf, lane)
        self.trained = copy.copy(scored)  # its effects of truncation are the slot's
        for name in ("values", "norms", "predictions", "query_values"):
            setattr(self.trained, name, np.zeros_like(getattr(scored, name)))
        self.trained.variances = np.full_like(scored.variances, np.nan)
        self.trained.state = {n: a for n, a in scored.state.items() if n not in _STATE}

    def phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        # The learner sees other targets than the rest of the bank.
        self._buffer, self._workspace = copy.copy(buffer), copy.copy(workspace)
        self._buffer.targets = self.scored.state["residual_targets"][0]
        self._workspace.new_targets = np.zeros(workspace.size)
        assert self.base is not None
        group, leaf, lane = self.base
        base = group.scored
        self._arguments = {
            **self.scored.common(),
            **{name: self.scored.state[name] for name in _STATE},
            "slide_period": SLIDE_PERIOD,
            "history_length": buffer.history_length,
            "base_leaf": leaf,
            "base_lane": lane,
            "base_predictions": base.predictions,
            "base_variances": base.variances,
            "base_values": base.values,
            "base_norms": base.norms,
            "base_query_values": base.query_values,
            "new_targets": workspace.new_targets,
            "new_residuals": self._workspace.new_targets,
            "trained_values": self.trained.values,
            "trained_norms": self.trained.norms,
            "trained_predictions": self.trained.predictions,
            "trained_variances": self.trained.variances,
            "variances": self.scored.variances,
            "trained_query_values": self.trained.query_values,
            "query_values": self.scored.query_values,
        }
        return [
            Phase(subtract_base, **self._arguments),
            *super().phases(self._buffer, self._workspace),
            Phase(add_base, **self._arguments),
        ]

    def predict_phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        own = super().predict_phases(self._buffer, self._workspace)
        return [*own, Phase(add_base_to_query, **self._arguments)]

    def evaluate(self, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray) -> Floats:
        assert self.base is not None
        base, leaf, lane = self.base
        known = base.evaluated[leaf, :, lane]  # the shard evaluates the base first
        own = self.learner.evaluate(self.trained, seen, points, statistics, wanted)
        self.evaluated = np.asarray(own + known[None, :, None])
        return self.evaluated

    def variance(self, seen: int, points: Floats) -> Floats:
        """The variances of b and of g add up, as if they were independent."""
        assert self.base is not None
        base, leaf, lane = self.base
        known = base.variance(seen, points)[leaf, :, lane]
        return np.asarray(super().variance(seen, points) + known[None, :, None])

"""Slots whose learner has another target than y: a residual, or a transform of the target.

With T the transform of a slot and b the function of its base, its learner is trained on

    T(y) - T(b(x)),  and the slot's function is  f = T^-1(T(b) + g),

with g what the learner has found. Without a transform T is the identity: the slot learns y - b(x),
the residual of b, and f = b + g. Without a base T(b) is 0: the slot learns T(y). b is taken as it
was before the base learned the sample. The slot reads its base, never the weights, and the base
runs once, for itself and for all slots on its residual.

norm^2 is |b|^2 + |g|^2, without a transform an upper bound of the norm^2 in the sum space. The
variances of b and g, in units of that of the noise, add up, as if they were independent; to first
order a transform scales both and the noise by the same factor.
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
from ..native.formulas import call_loss
from ..native.functions import native
from ..native.jit import inline
from ..native.phases import Phase
from ..native.simd import WIDTH, broadcast, lane
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..transforms import TargetTransform
from ..utils.validation import Floats

if TYPE_CHECKING:
    from .layout import GroupSettings

OWN_TARGETS = Arguments(
    "own_targets",
    leaves=int,
    steps=int,  # longest block + 1
    window=int,
    slide_period=int,
    history_length=int,
    # T and its inverse: addresses, or 0 without a transform
    forward=int,
    inverse=int,
    parameters=floats(None),
    transformed=lanes(2),  # scratch
    # b: the base slot, one lane of a leaf of its group; there is none if has_base = 0
    has_base=int,
    base_leaf=int,
    base_lane=int,
    base_predictions=floats(None, "steps - 1", WIDTH),
    base_values=floats(None, "steps", "window", WIDTH),
    base_norms=floats(None, "steps", WIDTH),
    base_query_values=floats(None, WIDTH),
    # the block's targets: y, and those of the learner
    new_targets=floats("steps - 1"),
    new_own_targets=floats("steps - 1"),
    # state: the learner's targets of the newest samples, the same for all leaves; g after the last
    # block
    own_targets=lanes("leaves", "history_length + slide_period"),
    own_values=lanes("leaves", "window"),
    own_norms=lanes("leaves"),
    # g: what the learner has found
    trained_values=lanes("leaves", "steps", "window"),
    trained_norms=lanes("leaves", "steps"),
    trained_predictions=lanes("leaves", "steps - 1"),
    trained_query_values=lanes("leaves"),
    # f
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
    query_values=lanes("leaves"),
)


@inline
def _apply(a, formula, v):
    """formula(v) in each lane; v itself if there is no formula."""
    if formula == 0:
        return v
    rows = a.transformed
    rows[0] = v
    call_loss(formula, rows, rows, 1, a.parameters, rows[1:])
    return rows[1]


@inline
def _of_base(a, b):
    """T(b), for a value b of the base; 0 if there is no base."""
    if a.has_base == 0:
        return 0.0
    if a.forward == 0:
        return b
    return lane(_apply(a, a.forward, broadcast(b)), 0)


@native(OWN_TARGETS)
def compute_own_targets(a, first, count):
    """Targets of the learner: T(y) - T(b(x)), with b before it learned the sample.

    own_targets slides like the buffer's targets. trained_values and trained_norms get their row 0,
    the state before the block.
    """
    position = a.history_length + first % a.slide_period
    for t in range(count):
        y = a.new_targets[t]
        if a.forward != 0:
            y = lane(_apply(a, a.forward, broadcast(y)), 0)
        a.new_own_targets[t] = y - _of_base(a, a.base_predictions[a.base_leaf, t, a.base_lane])
    for leaf in range(a.leaves):
        targets = a.own_targets[leaf]  # (history_length + slide_period,)
        if first > 0 and first % a.slide_period == 0:
            for m in range(a.history_length):
                targets[m] = targets[a.slide_period + m]
        for t in range(count):
            targets[position + t] = a.new_own_targets[t]
        for i in range(a.window):
            a.trained_values[leaf, 0, i] = a.own_values[leaf, i]
        a.trained_norms[leaf, 0] = a.own_norms[leaf]


@native(OWN_TARGETS)
def compute_functions(a, first, count):
    """f = T^-1(T(b) + g): predictions and values on the window; |f|^2 = |b|^2 + |g|^2."""
    base, place, has_base = a.base_leaf, a.base_lane, a.has_base
    for leaf in range(a.leaves):
        for t in range(count):
            b = _of_base(a, a.base_predictions[base, t, place])
            a.predictions[leaf, t] = _apply(a, a.inverse, a.trained_predictions[leaf, t] + b)
            for i in range(a.window):
                b = _of_base(a, a.base_values[base, t + 1, i, place])
                own = a.trained_values[leaf, t + 1, i]
                a.values[leaf, t + 1, i] = _apply(a, a.inverse, own + b)
            known = a.base_norms[base, t + 1, place] if has_base != 0 else 0.0
            a.norms[leaf, t + 1] = a.trained_norms[leaf, t + 1] + known
        for i in range(a.window):  # kept for row 0 of the next block
            a.own_values[leaf, i] = a.trained_values[leaf, count, i]
        a.own_norms[leaf] = a.trained_norms[leaf, count]


@native(OWN_TARGETS)
def compute_query(a, first, count):
    """f = T^-1(T(b) + g) at the query point."""
    b = _of_base(a, a.base_query_values[a.base_leaf, a.base_lane])
    for leaf in range(a.leaves):
        a.query_values[leaf] = _apply(a, a.inverse, a.trained_query_values[leaf] + b)


_STATE = ("own_targets", "own_values", "own_norms")
"""The arrays that such a group adds to the state of its learner."""


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
    if not settings.has_own_targets:
        return shapes
    return {
        **shapes,
        "own_targets": (leaves, history_length + SLIDE_PERIOD, WIDTH),
        "own_values": (leaves, objective.window, WIDTH),
        "own_norms": (leaves, WIDTH),
    }


def extend_state(
    settings: GroupSettings, old: Mapping[str, Floats], new: dict[str, Floats]
) -> None:
    """Write a group's state to one on inputs with more columns. See `Learner.extend_inputs`."""
    if not settings.has_own_targets:
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
    works on; they are the same unless the slots have targets of their own.
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


class OwnTargetGroup(ShardGroup):
    """Slots whose learner has another target: see this module.

    base : group, leaf and lane of the slot whose residual they learn, if they learn one.
    """

    def __init__(
        self,
        settings: GroupSettings,
        scored: SlotGroup,
        leader: SlotGroup | None,
        base: tuple[ShardGroup, int, int] | None,
    ) -> None:
        super().__init__(settings, scored, leader)
        self.base = base
        self.transform = settings.transform
        self.trained = copy.copy(scored)  # its effects of truncation are the slot's
        for name in ("values", "norms", "predictions", "query_values"):
            setattr(self.trained, name, np.zeros_like(getattr(scored, name)))
        self.trained.state = {n: a for n, a in scored.state.items() if n not in _STATE}

    def phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        # The learner sees other targets than the rest of the bank.
        self._buffer, self._workspace = copy.copy(buffer), copy.copy(workspace)
        self._buffer.targets = self.scored.state["own_targets"][0]
        self._workspace.new_targets = np.zeros(workspace.size)
        group, leaf, lane = (self, 0, 0) if self.base is None else self.base
        base, transform = group.scored, self.transform
        self._first = Phase(
            compute_own_targets,
            **self.scored.common(),
            **{name: self.scored.state[name] for name in _STATE},
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            forward=0 if transform is None else transform.forward_address,
            inverse=0 if transform is None else transform.inverse_address,
            parameters=np.zeros(1) if transform is None else transform.parameters,
            transformed=np.zeros((2, WIDTH)),
            has_base=int(self.base is not None),
            base_leaf=leaf,
            base_lane=lane,
            base_predictions=base.predictions,
            base_values=base.values,
            base_norms=base.norms,
            base_query_values=base.query_values,
            new_targets=workspace.new_targets,
            new_own_targets=self._workspace.new_targets,
            trained_values=self.trained.values,
            trained_norms=self.trained.norms,
            trained_predictions=self.trained.predictions,
            trained_query_values=self.trained.query_values,
            query_values=self.scored.query_values,
        )
        learning = super().phases(self._buffer, self._workspace)
        return [self._first, *learning, self._first.with_function(compute_functions)]

    def predict_phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        own = super().predict_phases(self._buffer, self._workspace)
        return [*own, self._first.with_function(compute_query)]

    def evaluate(self, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray) -> Floats:
        own = self.learner.evaluate(self.trained, seen, points, statistics, wanted)
        known = None
        if self.base is not None:
            base, leaf, lane = self.base
            known = base.evaluated[leaf, :, lane][None, :, None]  # the shard evaluates it first
        self.evaluated = combined_function(self.transform, own, known)
        return self.evaluated

    def variance(self, seen: int, points: Floats) -> Floats:
        """The variances of b and of g add up, as if they were independent."""
        own = super().variance(seen, points)
        if self.base is None:
            return own
        base, leaf, lane = self.base
        return np.asarray(own + base.variance(seen, points)[leaf, :, lane][None, :, None])


def combined_function(
    transform: TargetTransform | None, own: Floats, base: Floats | None
) -> Floats:
    """T^-1(T(b) + g), from values of g (own) and of b (base), if there is one."""
    if transform is None:
        return own if base is None else np.asarray(own + base)
    known = 0.0 if base is None else transform.forward(base)
    return np.asarray(transform.inverse(own + known))

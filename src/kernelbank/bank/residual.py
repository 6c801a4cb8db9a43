"""Slots that learn the residual of an earlier slot.

With b the function of the base slot, a residual slot trains its learner on (x, y - b(x)), where b
is taken as it was before the base learned the sample. The slot's function is f = b + g, with g what
the learner has found. It reads the base slot, never the weights. norm^2 is |b|^2 + |g|^2, an upper
bound of the norm^2 in the sum space. The base runs once, for itself and for all its residual slots.
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
from ..native.formulas import pointer
from ..native.phases import Phase, argument_fields, compiled, float_array, read_int
from ..native.simd import WIDTH, load, store
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import Floats

if TYPE_CHECKING:
    from .layout import GroupSettings

RESIDUAL = argument_fields(
    "leaves",
    "steps",
    "window",
    "slide_period",
    "history_length",
    "base_leaf",
    "base_lane",
    "base_predictions",
    "base_values",
    "base_norms",
    "base_query_values",
    "new_targets",
    "new_residuals",
    "residual_targets",
    "residual_values",
    "residual_norms",
    "trained_values",
    "trained_norms",
    "trained_predictions",
    "trained_query_values",
    "values",
    "norms",
    "predictions",
    "query_values",
)


def subtract_base(args, first, count):
    """Targets of the learner: y - b(x), with b before it learned the sample.

    residual_targets (leaves, history_length + slide_period, 4) slides like the buffer's targets;
    all leaves hold the same. trained_values (leaves, steps, window, 4) and trained_norms (leaves,
    steps, 4) get their row 0, the state before the block.
    """
    slide_period = read_int(args, RESIDUAL.slide_period)
    history_length = read_int(args, RESIDUAL.history_length)
    steps = read_int(args, RESIDUAL.steps)
    window = read_int(args, RESIDUAL.window)
    position = history_length + first % slide_period
    base = read_int(args, RESIDUAL.base_leaf) * (steps - 1)
    for leaf in range(read_int(args, RESIDUAL.leaves)):
        targets = pointer(
            float_array(args, RESIDUAL.residual_targets),
            leaf * (history_length + slide_period) * WIDTH,
        )
        if first > 0 and first % slide_period == 0:
            for m in range(history_length):
                store(targets, m, load(targets, slide_period + m))
        for t in range(count):
            known = float_array(args, RESIDUAL.base_predictions)[
                (base + t) * WIDTH + read_int(args, RESIDUAL.base_lane)
            ]
            rest = float_array(args, RESIDUAL.new_targets)[t] - known  # y - b(x)
            float_array(args, RESIDUAL.new_residuals)[t] = rest
            store(targets, position + t, rest)
        for i in range(window):
            own = load(float_array(args, RESIDUAL.residual_values), leaf * window + i)
            store(float_array(args, RESIDUAL.trained_values), leaf * steps * window + i, own)
        own = load(float_array(args, RESIDUAL.residual_norms), leaf)
        store(float_array(args, RESIDUAL.trained_norms), leaf * steps, own)


def add_base(args, first, count):
    """f = b + g for predictions (leaves, n, 4) and values (leaves, steps, window, 4); norms add."""
    steps = read_int(args, RESIDUAL.steps)
    window = read_int(args, RESIDUAL.window)
    lane = read_int(args, RESIDUAL.base_lane)
    base = read_int(args, RESIDUAL.base_leaf)
    base_values = float_array(args, RESIDUAL.base_values)
    trained_values = float_array(args, RESIDUAL.trained_values)
    trained_norms = float_array(args, RESIDUAL.trained_norms)
    for leaf in range(read_int(args, RESIDUAL.leaves)):
        for t in range(count):
            step = leaf * (steps - 1) + t
            known = float_array(args, RESIDUAL.base_predictions)[
                (base * (steps - 1) + t) * WIDTH + lane
            ]
            own = load(float_array(args, RESIDUAL.trained_predictions), step)
            store(float_array(args, RESIDUAL.predictions), step, own + known)
            after = leaf * steps + t + 1
            base_after = base * steps + t + 1
            for i in range(window):
                known = base_values[(base_after * window + i) * WIDTH + lane]
                own = load(trained_values, after * window + i)
                store(float_array(args, RESIDUAL.values), after * window + i, own + known)
            known = float_array(args, RESIDUAL.base_norms)[base_after * WIDTH + lane]
            store(float_array(args, RESIDUAL.norms), after, load(trained_norms, after) + known)
        last = leaf * steps + count  # kept for row 0 of the next block
        for i in range(window):
            own = load(trained_values, last * window + i)
            store(float_array(args, RESIDUAL.residual_values), leaf * window + i, own)
        store(float_array(args, RESIDUAL.residual_norms), leaf, load(trained_norms, last))


def add_base_to_query(args, first, count):
    """f = b + g at the query point: query_values (leaves, 4)."""
    place = read_int(args, RESIDUAL.base_leaf) * WIDTH + read_int(args, RESIDUAL.base_lane)
    known = float_array(args, RESIDUAL.base_query_values)[place]
    for leaf in range(read_int(args, RESIDUAL.leaves)):
        own = load(float_array(args, RESIDUAL.trained_query_values), leaf)
        store(float_array(args, RESIDUAL.query_values), leaf, own + known)


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

    def __init__(self, settings: GroupSettings, scored: SlotGroup) -> None:
        self.learner = settings.learner
        self.scored = scored
        self.trained = scored
        self.base: tuple[ShardGroup, int, int] | None = None
        """For slots that learn a residual: group, leaf and lane of the base slot."""
        self.evaluated: Floats = np.empty(0)
        """What `evaluate` returned last, for the residual slots of these."""

    def phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        """The phases that learn a block. Called once."""
        return self.learner.phases(self.trained, buffer, workspace)

    def predict_phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        """The phases that fill scored.query_values at workspace.query_point. After `phases`."""
        return self.learner.predict_phases(self.trained, buffer, workspace)

    def evaluate(self, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray) -> Floats:
        """(leaves, n, 4): values at the points. See `Learner.evaluate`."""
        self.evaluated = self.learner.evaluate(self.trained, seen, points, statistics, wanted)
        return self.evaluated

    def variance(self, points: Floats) -> Floats:
        """(leaves, n, 4): predictive variance at the points."""
        return self.learner.variance(self.trained, points)


class ResidualGroup(ShardGroup):
    """Slots that learn the residual of a base slot: the one in `base` at (leaf, lane)."""

    def __init__(
        self, settings: GroupSettings, scored: SlotGroup, base: ShardGroup, leaf: int, lane: int
    ) -> None:
        super().__init__(settings, scored)
        self.base = (base, leaf, lane)
        self.trained = copy.copy(scored)  # its effects of truncation are the slot's
        for name in ("values", "norms", "predictions", "query_values"):
            setattr(self.trained, name, np.zeros_like(getattr(scored, name)))
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
            "base_values": base.values,
            "base_norms": base.norms,
            "base_query_values": base.query_values,
            "new_targets": workspace.new_targets,
            "new_residuals": self._workspace.new_targets,
            "trained_values": self.trained.values,
            "trained_norms": self.trained.norms,
            "trained_predictions": self.trained.predictions,
            "trained_query_values": self.trained.query_values,
            "query_values": self.scored.query_values,
        }
        return [
            Phase(compiled(subtract_base), RESIDUAL, **self._arguments),
            *super().phases(self._buffer, self._workspace),
            Phase(compiled(add_base), RESIDUAL, **self._arguments),
        ]

    def predict_phases(self, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        own = super().predict_phases(self._buffer, self._workspace)
        return [*own, Phase(compiled(add_base_to_query), RESIDUAL, **self._arguments)]

    def evaluate(self, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray) -> Floats:
        assert self.base is not None
        base, leaf, lane = self.base
        known = base.evaluated[leaf, :, lane]  # the shard evaluates the base first
        own = self.learner.evaluate(self.trained, seen, points, statistics, wanted)
        self.evaluated = np.asarray(own + known[None, :, None])
        return self.evaluated

    def variance(self, points: Floats) -> Floats:
        """The variances of b and of g add up, as if they were independent."""
        assert self.base is not None
        base, leaf, lane = self.base
        known = base.variance(points)[leaf, :, lane]
        return np.asarray(super().variance(points) + known[None, :, None])

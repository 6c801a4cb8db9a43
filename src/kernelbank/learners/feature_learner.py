"""Learners with one slot per leaf: f(x) = sum_m coefficients[m] features(x)[m].

One compiled loop serves all of them (`feature_steps.py`). A method contributes two compiled
functions, `compute_features` and `step`. Their arguments begin with FIELDS; a method appends its
state, its settings and its scratch, which are the arrays with no axes but `capacity` and
`dimension`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import prod
from typing import Any, ClassVar, cast

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses import Logistic, Loss, Squared
from ..losses.objective import Objective
from ..native.aligned import aligned_zeros
from ..native.arguments import ArrayKind
from ..native.functions import NativeFunction
from ..native.phases import Phase, Phases
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup
from .feature_steps import (
    BOUNDED,
    CONSTANT,
    LOGISTIC,
    NO_CURVATURE,
    SAMPLE_SIZE,
    follow_block,
    follow_query,
    learn_block,
    predict_points,
    predict_query,
)

Shapes = dict[str, tuple[int, ...]]

_CURVATURE_RULES: dict[type[Loss], int] = {Squared: CONSTANT, Logistic: LOGISTIC}
"""The curvature rule of a loss; BOUNDED for others whose curvature is bounded."""


class FeatureLearner(Learner):
    """A learner on features. Subclasses state the features, the step and the arrays they need."""

    pack_width = 1
    uses_kernel_rows = False
    second_order: ClassVar[bool] = False
    """Whether the step uses the loss's second derivative, or a bound: the loss must have one."""
    compute_features: ClassVar[NativeFunction]
    """Compiled (a, leaf, number): write `point_features`, and k(x, x) to `sample`."""
    step: ClassVar[NativeFunction]
    """Compiled (a, leaf, number): learn the present sample. Its arguments begin with those of
    `compute_features`, and are what the method's phases are filled with."""
    look_ahead: ClassVar[NativeFunction | None] = None
    """Compiled (a, leaf, number): prepare the next sample[AHEAD] steps, whose features are in
    `cycle_features`. The state that it reads changes at the end of a cycle only."""
    fixed_features: ClassVar[bool] = False
    """Whether features follow from the input alone: then slots of several outputs share them."""
    lead_step: ClassVar[NativeFunction | None] = None
    """`step` for slots that others follow, if it has to keep something for them."""
    follow_loop: ClassVar[NativeFunction] = follow_block
    """Compiled (a, first, count): a block of another output, from what `lead_step` has kept of the
    sample in row sample[ROW] of the block; by default with the features of the first output."""
    accepts_missing = True
    extra_capacity: ClassVar[int] = 0
    """Features by which a step may exceed its maximum before it removes some."""

    def check(self, objective: Objective) -> None:
        if self.second_order and not objective.loss.curvature:
            raise check.refuse(
                "loss",
                f"have a bounded curvature for {type(self).__name__}, a second-order method",
                objective.loss,
                'Use "squared", "logistic" or "huber", a loss with smoothing, a first-order '
                "learner such as kb.learners.KLMS(), or let this one learn by squares all the "
                'same: kb.Slot(..., loss="squared").',
            )

    def _curvature_rule(self, loss: Loss) -> int:
        bounded = BOUNDED if self.second_order else NO_CURVATURE
        return _CURVATURE_RULES.get(type(loss), bounded)

    @property
    def cycle(self) -> int:
        """Samples of a cycle: a method with `look_ahead` prepares their steps together."""
        return 1

    def active_dims(self, kernel: Kernel, dimension: int) -> tuple[int, ...]:
        """The coordinates of an input that the features use.

        All by default: learners on kernel values leave the choice to the kernel.
        """
        return tuple(range(dimension))

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        """The most features of a slot during a step, for inputs of `dimension` coordinates."""
        raise NotImplementedError

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        """The state of one slot beyond its coefficients, without the leaf axis.

        `dimension` counts the active coordinates, here and in the methods below.
        """
        return {}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        """What the method adds to FIELDS, except for its state, its settings and its scratch."""
        return {}

    def axis_lengths(self, capacity: int, dimension: int) -> dict[Any, int]:
        """The lengths of the axes of scratch arrays, by their names."""
        return {"capacity": capacity, "dimension": dimension, "cycle": self.cycle}

    def _scratch_shapes(self, capacity: int, dimension: int) -> Shapes:
        """The shapes of the arrays that have no other axes."""
        lengths = self.axis_lengths(capacity, dimension)
        return {
            name: tuple(lengths[axis] for axis in kind.axes)
            for name, kind in type(self).step.arguments.fields.items()
            if isinstance(kind, ArrayKind)
            and kind.dtype == "float64"
            and lengths.keys() >= set(kind.axes)
        }

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> Shapes:
        capacity = self.capacity(kernel, dimension)
        shapes = {
            "size": (),
            "coefficients": (capacity,),
            "window_features": (objective.window, capacity),
            **self.state_shapes(capacity, len(self.active_dims(kernel, dimension))),
        }
        return {name: (leaves, *shape) for name, shape in shapes.items()}

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        capacity = self.capacity(kernel, dimension)
        active = len(self.active_dims(kernel, dimension))
        rows = 8 * max(capacity, objective.window)  # a row of kernel values in lanes, and its parts
        return 2 * (sum(map(prod, self._scratch_shapes(capacity, active).values())) + rows + active)

    def follows(self, objective: Objective, leader: Objective) -> bool:
        """Features are shared, and for squared losses what second-order steps keep of the inputs.

        (For other losses that depends on the targets by the loss's curvature.)
        """
        if not self.fixed_features:
            return False
        constant = all(self._curvature_rule(o.loss) == CONSTANT for o in (objective, leader))
        return constant or not self.second_order

    def kept_shapes(self, capacity: int, samples: int, window: int) -> Shapes:
        """What slots keep of a block for other outputs, without the axis of leaves."""
        return {"kept_features": (window + samples, capacity), "kept_self_kernels": (samples,)}

    def kept_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        if not self.follows(objective, objective):
            return 0
        capacity = self.capacity(kernel, dimension)
        one, two = (sum(map(prod, self.kept_shapes(capacity, n, 1).values())) for n in (1, 2))
        return two - one

    def _kept_arrays(self, leader: SlotGroup) -> dict[str, Floats]:
        """What the slots of the first output keep of a block for those of the others."""
        capacity = leader.state["coefficients"].shape[1]
        shapes = self.kept_shapes(capacity, leader.size, leader.objective.window)
        for name, shape in shapes.items():
            if name not in leader.scratch:
                leader.scratch[name] = aligned_zeros((leader.leaves, *shape))
        return {name: leader.scratch[name] for name in shapes}

    def follow_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        arrays = self._block_arrays(group, buffer, workspace) | self._kept_arrays(leader)
        return [self._follow_phase(type(self).follow_loop, group, leader, **arrays)]

    def _follow_phase(
        self, function: NativeFunction, group: SlotGroup, leader: SlotGroup, **arrays: Any
    ) -> Phase:
        """A phase of another output; of the third one on that of the second with other arrays."""
        key = (function, group.objective)
        if key not in leader.follow_templates:
            arrays |= self._follow_scratch(leader) | {"followed": 2}
            leader.follow_templates[key] = self._phase(function, group, **arrays)
            return leader.follow_templates[key]
        own = {name: array for name, array in group.state.items() if name not in group.borrowed}
        for name in ("values", "norms", "predictions", "effects", "query_values"):
            own[name] = getattr(group, name)
        return leader.follow_templates[key].with_arrays(**own, targets=arrays["targets"])

    def _follow_scratch(self, leader: SlotGroup) -> dict[str, Floats]:
        """Scratch that the slots of all other outputs use, one output after the other."""
        capacity = leader.state["coefficients"].shape[1]
        dimension = len(self.active_dims(leader.kernels[0][0], leader.dimension))
        shapes = self._scratch_shapes(capacity, dimension)
        for name, shape in shapes.items():
            leader.scratch.setdefault(f"follow_{name}", aligned_zeros(shape))
        return {name: leader.scratch[f"follow_{name}"] for name in shapes}

    def follow_predict_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        arrays = self._block_arrays(group, buffer, workspace)
        arrays["memo_features"] = leader.scratch["memo_features"]
        return [self._follow_phase(follow_query, group, leader, **arrays)]

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        return [self._phase(learn_block, group, **self._block_arrays(group, buffer, workspace))]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        return [self._phase(predict_query, group, **self._block_arrays(group, buffer, workspace))]

    def _block_arrays(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> dict[str, Any]:
        memo_features, followed, kept = None, self._is_followed(group, workspace), {}
        if self.cycle > 1 or followed:  # shared by the phases that write and read it
            shape = group.state["coefficients"].shape
            memo_features = group.scratch.setdefault("memo_features", np.zeros(shape))
        if followed:
            kept = {**self._kept_arrays(group), "followed": 1}
            if self.lead_step is not None:
                kept["step"] = self.lead_step.address
        return {
            **kept,
            "history_length": buffer.history_length,
            "points": workspace.points,
            "targets": buffer.targets,
            "inputs": buffer.inputs,
            "query_point": workspace.query_point,
            "memo": buffer.memo,
            "memo_features": memo_features,
        }

    def _is_followed(self, group: SlotGroup, workspace: Workspace) -> bool:
        """Whether slots of other outputs may follow these."""
        return workspace.is_followed and self.follows(group.objective, group.objective)

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        arrays = {"points": np.ascontiguousarray(points), "wanted": wanted.astype(np.int64)}
        phase = self._phase(predict_points, group, **arrays, out=out)
        Phases([phase]).run(seen, len(points))
        return out

    def _settings(self) -> dict[str, Any]:
        """The settings that are arguments of the compiled functions, by their names."""
        names = [field.name for field in fields(cast(Any, self))]
        declared = type(self).step.arguments.fields
        return {name: getattr(self, name) for name in names if name in declared}

    def _phase(self, function: NativeFunction, group: SlotGroup, **arrays: Any) -> Phase:
        """One of the three loops below, with the arrays that it reads or writes."""
        objective = group.objective
        active = self.active_dims(group.kernels[0][0], group.dimension)
        dimension = len(active)
        capacity = group.state["coefficients"].shape[1]
        scratch = self._scratch_shapes(capacity, dimension)
        values: dict[str, Any] = {
            **group.common(),
            "slide_period": SLIDE_PERIOD,
            "history_length": 0,
            "width": group.dimension,
            "dimension": dimension,
            "active_dims": np.array(active, dtype=np.int64),
            "contiguous": active == tuple(range(active[0], active[0] + dimension)),
            "capacity": capacity,
            "max_size": capacity - self.extra_capacity,
            "effects": group.effects,
            "curvature_rule": self._curvature_rule(objective.loss),
            "curvature_bound": objective.loss.curvature or 0.0,
            "compute_features": type(self).compute_features.address,
            "step": type(self).step.address,
            "cycle": self.cycle,
            "look_ahead": 0 if self.look_ahead is None else self.look_ahead.address,
            "derivative": objective.loss.derivative_address,
            "loss_parameters": objective.loss.parameters,
            "points": None,
            "targets": None,
            "inputs": None,
            "query_point": None,
            "query_values": group.query_values,
            "wanted": None,
            "out": None,
            "memo": None,
            "memo_features": None,
            "followed": 0,
            **dict.fromkeys(self.kept_shapes(capacity, 1, 1)),
            "sample": np.zeros(SAMPLE_SIZE),
            "loss_lanes": np.zeros((3, WIDTH)),
            **{name: aligned_zeros(shape) for name, shape in scratch.items() if name not in arrays},
            **group.state,
            **self._settings(),
            **self.step_arguments(group, dimension),
            **arrays,
        }
        return Phase(function, type(self).step.arguments, **values)

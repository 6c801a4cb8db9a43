"""Learners with one slot per leaf: f(x) = sum_m coefficients[m] features(x)[m].

One compiled loop serves all of them. A method contributes two compiled functions, both called by
address with (args, leaf, number): `compute_features` writes the features of the present point, and
`step` learns the present sample. Their arguments begin with FIELDS; a method appends its own.
`sample` (see SAMPLE) carries what is known of the present sample between the loop and the two.

The features of the window's samples are kept (`window_features`), so that each value on the window
after a step is one sum.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, cast

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses import Logistic, Loss, Squared
from ..losses.objective import Objective
from ..native.dense import dot
from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import (
    Phase,
    Phases,
    address_of,
    argument_fields,
    call_phase,
    compiled,
    float_array,
    int_array,
    read_int,
)
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup

Shapes = dict[str, tuple[int, ...]]

FIELDS = argument_fields(
    "leaves",
    "steps",  # longest block + 1
    "window",
    "slide_period",
    "history_length",
    "width",  # coordinates of an input
    "dimension",  # coordinates that the features use
    "active_dims",  # (dimension,): which ones
    "contiguous",  # 1 if each of them is one more than the last
    "capacity",  # most features during a step
    "max_size",  # most features between two steps
    "curvature_rule",
    "compute_features",  # address
    "step",  # address
    "derivative",  # address of the loss's derivative
    "loss_parameters",
    "points",  # (count, width)
    "targets",  # (history_length + slide_period, 4)
    "inputs",  # (width, history_length + slide_period)
    "query_point",  # (width,)
    "query_values",  # (leaves, 4)
    "wanted",  # (leaves,)
    "out",  # (leaves, count, 4)
    "values",  # (leaves, steps, window, 4)
    "norms",  # (leaves, steps, 4)
    "predictions",  # (leaves, steps - 1, 4)
    "effects",  # (leaves, steps - 1, 4)
    "point",  # (dimension,): the active coordinates of the present input
    "sample",  # (SAMPLE_SIZE,)
    "point_features",  # (capacity,)
    "work",  # scratch of the step
    "loss_lanes",  # (3, 4): scratch of the loss
    "size",  # (leaves,): features in use
    "coefficients",  # (leaves, capacity)
    "window_features",  # (leaves, window, capacity): sample n in row n % window
)

SAMPLE = argument_fields(
    "self_kernel",  # k(x, x)
    "prediction",  # f(x) before the sample is learned
    "target",  # y
    "slope",  # l'(f(x), y)
    "error",  # e = -slope / curvature: what second-order methods take for y - f(x)
    "response",  # z = f(x) + e
    "weight",  # curvature / 2
    "squared_norm",  # norm^2 of f: the step keeps it up to date
    "number",  # of the sample, from 0
    "drop_effect",  # how far dropped terms moved the window's values, relative to their size
)
SAMPLE_SIZE = len(SAMPLE)

NO_CURVATURE, CONSTANT, LOGISTIC = range(3)
_CURVATURE_RULES: dict[type[Loss], int] = {Squared: CONSTANT, Logistic: LOGISTIC}
"""The curvature of the loss: not needed; 2; tanh(f / 2) / 2 f, which bounds it from above."""

_SMALL = 1e-4  # below, tanh(f / 2) / 2 f is 1/4 to the last digit but one


class FeatureLearner(Learner):
    """A learner on features. Subclasses state the features, the step and the arrays they need."""

    leaf_width = 1
    uses_kernel_rows = False
    second_order: ClassVar[bool] = False
    """Whether the step uses the loss's second derivative: then Squared and Logistic only."""
    arguments: ClassVar[Any]
    """The fields of the compiled functions: FIELDS, then the method's own."""
    compute_features: ClassVar[Callable[..., None]]
    """Compiled (args, leaf, number): write `point_features`, and k(x, x) to `sample`."""
    step: ClassVar[Callable[..., None]]
    """Compiled (args, leaf, number): learn the present sample."""
    extra_capacity: ClassVar[int] = 0
    """Features by which a step may exceed its maximum before it removes some."""

    def check(self, objective: Objective) -> None:
        if self.second_order and type(objective.loss) not in _CURVATURE_RULES:
            raise check.refuse(
                "loss",
                f"be Squared or Logistic for {type(self).__name__}, a second-order method",
                objective.loss,
                "Use one of these, a first-order learner such as kb.learners.KLMS(), or let this "
                'one learn by squares all the same: kb.Slot(..., loss="squared").',
            )

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
        """The arguments that the method adds to FIELDS, except for its state and its settings."""
        return {}

    def work_size(self, capacity: int, dimension: int) -> int:
        """The length of `work`, the step's scratch."""
        return 1

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
        return 2 * (self.work_size(capacity, active) + rows + capacity + 2 * active)

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        return [self._phase(learn_block, group, **_block_arrays(buffer, workspace))]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        return [self._phase(predict_query, group, **_block_arrays(buffer, workspace))]

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
        return {name: getattr(self, name) for name in names if name in self.arguments._fields}

    def _phase(self, function: Callable[..., None], group: SlotGroup, **arrays: Any) -> Phase:
        """One of the three loops below, with the arrays that it reads or writes."""
        objective = group.objective
        active = self.active_dims(group.kernels[0][0], group.dimension)
        dimension = len(active)
        capacity = group.state["coefficients"].shape[1]
        unused = np.zeros(1)
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
            "curvature_rule": _CURVATURE_RULES.get(type(objective.loss), NO_CURVATURE),
            "compute_features": compiled(type(self).compute_features).address,
            "step": compiled(type(self).step).address,
            "derivative": objective.loss.derivative_address,
            "loss_parameters": objective.loss.parameters,
            "points": unused,
            "targets": unused,
            "inputs": unused,
            "query_point": unused,
            "query_values": group.query_values,
            "wanted": np.zeros(1, dtype=np.int64),
            "out": unused,
            "point": np.zeros(dimension),
            "sample": np.zeros(SAMPLE_SIZE),
            "point_features": np.zeros(capacity),
            "work": np.zeros(self.work_size(capacity, dimension)),
            "loss_lanes": np.zeros((3, WIDTH)),
            **group.state,
            **self._settings(),
            **self.step_arguments(group, dimension),
            **arrays,
        }
        return Phase(compiled(function), self.arguments, **values)


def _block_arrays(buffer: SampleBuffer, workspace: Workspace) -> dict[str, Any]:
    return {
        "history_length": buffer.history_length,
        "points": workspace.points,
        "targets": buffer.targets,
        "inputs": buffer.inputs,
        "query_point": workspace.query_point,
    }


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def size_of(args, leaf):
    """The number of features in use. A saved file may hold any number: stay within the arrays."""
    size = float_array(args, FIELDS.size)[leaf]
    if not 0.0 <= size <= read_int(args, FIELDS.capacity):
        return 0
    return int(size)


@inline
def coefficients_of(args, leaf):
    """(capacity,): the coefficients of a slot."""
    return pointer(float_array(args, FIELDS.coefficients), leaf * read_int(args, FIELDS.capacity))


@inline
def window_features_of(args, leaf):
    """(window, capacity): the features of the window's samples; sample n in row n % window."""
    length = read_int(args, FIELDS.window) * read_int(args, FIELDS.capacity)
    return pointer(float_array(args, FIELDS.window_features), leaf * length)


@inline
def curvature_above(prediction):
    """tanh(f / 2) / 2 f: the curvature of the tightest parabola above the logistic loss at f.

    (Jaakkola and Jordan.) Unlike l'' it bounds the loss, so a confident mistake makes no huge step.
    """
    size = abs(prediction)
    return np.tanh(0.5 * size) / (2.0 * size) if size > _SMALL else 0.25


# --- compiled: the loops ------------------------------------------------------------------------


@inline
def _set_point(args, whole_input):
    """point = the active coordinates of an input of shape (width,)."""
    point = float_array(args, FIELDS.point)
    dimension = read_int(args, FIELDS.dimension)
    active = int_array(args, FIELDS.active_dims)
    if read_int(args, FIELDS.contiguous) != 0:  # copied four at a time
        start = active[0]
        for k in range(dimension):
            point[k] = whole_input[start + k]
    else:
        for k in range(dimension):
            point[k] = whole_input[active[k]]


@inline
def _value(args, leaf, number):
    """f at `point`; its features are left in `point_features`."""
    call_phase(read_int(args, FIELDS.compute_features), address_of(args), leaf, number)
    features = float_array(args, FIELDS.point_features)
    return dot(coefficients_of(args, leaf), features, size_of(args, leaf))


@inline
def _slope(args, prediction, target):
    """l'(prediction, target), from the loss's four-lane function."""
    lanes = float_array(args, FIELDS.loss_lanes)
    for k in range(WIDTH):
        lanes[k] = prediction
        lanes[WIDTH + k] = target
    call_loss(
        read_int(args, FIELDS.derivative),
        lanes,
        pointer(lanes, WIDTH),
        1,
        float_array(args, FIELDS.loss_parameters),
        pointer(lanes, 2 * WIDTH),
    )
    return lanes[2 * WIDTH]


@inline
def _fill_sample(args, prediction, target):
    """What the step needs to know of prediction and target."""
    sample = float_array(args, FIELDS.sample)
    slope = _slope(args, prediction, target)
    sample[SAMPLE.prediction] = prediction
    sample[SAMPLE.target] = target
    sample[SAMPLE.slope] = slope
    sample[SAMPLE.response] = target
    curvature = 2.0
    error = target - prediction
    if read_int(args, FIELDS.curvature_rule) == LOGISTIC:
        curvature = curvature_above(prediction)
        error = -slope / curvature
        sample[SAMPLE.response] = prediction + error
    sample[SAMPLE.error] = error
    sample[SAMPLE.weight] = 0.5 * curvature


def learn_block(args, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide period."""
    steps = read_int(args, FIELDS.steps)
    window = read_int(args, FIELDS.window)
    width = read_int(args, FIELDS.width)
    capacity = read_int(args, FIELDS.capacity)
    slide_period = read_int(args, FIELDS.slide_period)
    position = read_int(args, FIELDS.history_length) + first % slide_period
    sample = float_array(args, FIELDS.sample)
    norms = float_array(args, FIELDS.norms)
    for leaf in range(read_int(args, FIELDS.leaves)):
        if not size_of(args, leaf) <= read_int(args, FIELDS.max_size):  # from a forged file only
            float_array(args, FIELDS.size)[leaf] = 0.0
        coefficients = coefficients_of(args, leaf)  # (capacity,)
        rows = window_features_of(args, leaf)  # (window, capacity)
        for t in range(count):
            number = first + t
            block_row = (leaf * (steps - 1) + t) * WIDTH  # [leaf, t] of (leaves, steps - 1, 4)
            before = leaf * steps + t  # [leaf, t] of (leaves, steps): the state before the sample

            # Predict.
            _set_point(args, pointer(float_array(args, FIELDS.points), t * width))
            prediction = _value(args, leaf, number)
            float_array(args, FIELDS.predictions)[block_row] = prediction

            # Learn: coefficients, and norm^2.
            target = float_array(args, FIELDS.targets)[(position + t) * WIDTH]
            _fill_sample(args, prediction, target)
            sample[SAMPLE.squared_norm] = norms[before * WIDTH]
            sample[SAMPLE.number] = number
            sample[SAMPLE.drop_effect] = 0.0
            call_phase(read_int(args, FIELDS.step), address_of(args), leaf, number)
            norms[(before + 1) * WIDTH] = sample[SAMPLE.squared_norm]
            float_array(args, FIELDS.effects)[block_row] = sample[SAMPLE.drop_effect]

            # Values of f on the window, oldest first: coefficients . features of each sample.
            size = size_of(args, leaf)
            features = float_array(args, FIELDS.point_features)
            newest = pointer(rows, number % window * capacity)
            for m in range(size):
                newest[m] = features[m]
            for age in range(min(number + 1, window)):
                row = pointer(rows, (number - age) % window * capacity)
                value = dot(coefficients, row, size)
                index = (before + 1) * window + window - 1 - age
                float_array(args, FIELDS.values)[index * WIDTH] = value


def predict_query(args, first, count):
    """query_values[leaf] = f at query_point."""
    _set_point(args, float_array(args, FIELDS.query_point))
    for leaf in range(read_int(args, FIELDS.leaves)):
        float_array(args, FIELDS.query_values)[leaf * WIDTH] = _value(args, leaf, first)


def predict_points(args, first, count):
    """out[leaf, t] = f at points[t], for the leaves with wanted[leaf]; changes nothing."""
    width = read_int(args, FIELDS.width)
    for leaf in range(read_int(args, FIELDS.leaves)):
        if int_array(args, FIELDS.wanted)[leaf] == 0:
            continue
        for t in range(count):
            _set_point(args, pointer(float_array(args, FIELDS.points), t * width))
            float_array(args, FIELDS.out)[(leaf * count + t) * WIDTH] = _value(args, leaf, first)

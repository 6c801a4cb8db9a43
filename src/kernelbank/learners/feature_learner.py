"""Learners with one slot a leaf: f(x) = sum_m coefficients[m] features(x)[m]; see `_hot.single`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses import Logistic, Loss, Squared
from ..losses.objective import Objective
from ..native.phases import Phase, Phases, compiled
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import feature_steps as hot
from .base import Learner, SlotGroup

Shapes = dict[str, tuple[int, ...]]

_CURVING: dict[type[Loss], int] = {Squared: hot.CONSTANT, Logistic: hot.LOGISTIC}


class FeatureLearner(Learner):
    """Subclasses state their features, their step, and what it needs."""

    leaf_width = 1
    uses_kernel_rows = False
    second_order: ClassVar[bool] = False
    """Whether the step uses the loss's second derivative: then Squared and Logistic only."""
    places: ClassVar[Any]
    """The places of the table: those of SINGLE, then its own."""
    feature_function: ClassVar[Callable[..., None]]
    step: ClassVar[Callable[..., None]]

    spare: ClassVar[int] = 0
    """Room beyond the most features that stand between steps."""

    def check(self, objective: Objective) -> None:
        if self.second_order and type(objective.loss) not in _CURVING:
            raise check.refuse(
                "loss",
                f"be Squared or Logistic for {type(self).__name__}, a second-order method",
                objective.loss,
                "Use one of these, a first-order learner such as kb.learners.KLMS(), or let this "
                "one learn by squares all the same: kb.learners.WithLoss(...).",
            )

    def view(self, kernel: Kernel, dimension: int) -> tuple[int, ...]:
        """The coordinates of an input, of `dimension`, that the features are made of.

        By default all: learners on kernel values leave it to the kernel where to look.
        """
        return tuple(range(dimension))

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        """The most features that a slot can have, for inputs of that width."""
        raise NotImplementedError

    def own_shapes(self, capacity: int, dimension: int) -> Shapes:
        """The state of one slot beyond its coefficients; the leaf axis is added.

        Here, and wherever there is a capacity beside it, `dimension` counts the view only.
        """
        return {}

    def settings(self, objective: Objective) -> Mapping[str, float]:
        """The numbers that the step takes from its table."""
        return {}

    def work(self, capacity: int, dimension: int) -> int:
        """How many numbers of scratch the step needs."""
        return 1

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> Shapes:
        capacity = self.capacity(kernel, dimension)
        common = {
            "size": (),
            "coefficients": (capacity,),
            "shown": (objective.window, capacity),
        }
        own = {**common, **self.own_shapes(capacity, len(self.view(kernel, dimension)))}
        return {name: (leaves, *shape) for name, shape in own.items()}

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        capacity = self.capacity(kernel, dimension)
        seen = len(self.view(kernel, dimension))
        rows = 8 * max(capacity, objective.window)  # a row of kernel values in lanes, and its parts
        return 2 * (self.work(capacity, seen) + rows + capacity + 2 * seen)

    def extras(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        """What the features and the step find in their table, beyond state and settings.

        `dimension` counts the view; the inputs are `group.dimension` wide.
        """
        return {}

    def _table(
        self,
        group: SlotGroup,
        buffer: SampleBuffer | None,
        workspace: Workspace | None,
        **instead: Any,
    ) -> dict[str, Any]:
        objective = group.objective
        view = self.view(group.kernels[0][0], group.dimension)
        dimension = len(view)
        capacity = group.state["coefficients"].shape[1]
        nothing = np.zeros(1)
        values: dict[str, Any] = {
            **group.common(),
            "slide_period": SLIDE_PERIOD,
            "history_length": 0 if buffer is None else buffer.history_length,
            "width": group.dimension,
            "dimension": dimension,
            "offsets": np.array(view, dtype=np.int64),
            "neighbours": view == tuple(range(view[0], view[0] + dimension)),
            "capacity": capacity,
            "most": capacity - self.spare,
            "effects": group.effects,
            "curving": _CURVING.get(type(objective.loss), hot.NO_CURVATURE),
            "features": compiled(type(self).feature_function).address,
            "step": compiled(type(self).step).address,
            "derivative": objective.loss.derivative_address,
            "parameters": objective.loss.parameters,
            "points": nothing if workspace is None else workspace.points,
            "targets": nothing if buffer is None else buffer.targets,
            "inputs": nothing if buffer is None else buffer.inputs,
            "query_point": nothing if workspace is None else workspace.query_point,
            "query_values": group.query_values,
            "wanted": np.zeros(1, dtype=np.int64),
            "out": nothing,
            "point": np.zeros(dimension),
            "sample": np.zeros(hot.SAMPLE),
            "now": np.zeros(capacity),
            "work": np.zeros(self.work(capacity, dimension)),
            "lanes": np.zeros((3, WIDTH)),
            **group.state,
            **self.settings(objective),
            **self.extras(group, dimension),
        }
        return values | instead

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        values = self._table(group, buffer, workspace)
        return [Phase(compiled(hot.learn), self.places, **values)]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        values = self._table(group, buffer, workspace)
        return [Phase(compiled(hot.glance), self.places, **values)]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        values = self._table(
            group,
            None,
            None,
            points=np.ascontiguousarray(points),
            wanted=wanted.astype(np.int64),
            out=out,
        )
        Phases([Phase(compiled(hot.evaluate), self.places, **values)]).run(seen, len(points))
        return out

    def dropped(self, group: SlotGroup) -> Floats:
        result = np.zeros((group.leaves, WIDTH))
        if "dropped" in group.state:
            result[:, 0] = group.state["dropped"]
        return result

    def _check_decay(self, objective: Objective) -> None:
        """Refuse a step that turns the function over instead of shrinking it."""
        rate = getattr(self, "learning_rate", 0.0)
        if rate * objective.regularization >= 1:
            raise check.refuse(
                "learning_rate",
                f"be < 1 / regularization ({1 / objective.regularization:g})",
                rate,
                "Lower learning_rate or regularization: their product must stay below 1.",
                type(self).__name__,
            )

    def _set(self, **checked: Any) -> None:
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _positive(self, name: str, example: float) -> None:
        """Check a positive number."""
        remedy = f"Give a positive number, such as {example:g}."
        value = check.number(name, getattr(self, name), type(self).__name__, remedy, above=0)
        self._set(**{name: value})

    def _share(self, name: str, example: float, *, least: float = 0.0) -> None:
        """Check a number between 0 and 1."""
        remedy = f"Give a number between {least:g} and 1, such as {example:g}."
        owner = type(self).__name__
        value = check.number(name, getattr(self, name), owner, remedy, least=least, most=1)
        self._set(**{name: value})

    def _at_least(self, name: str, least: float, example: float) -> None:
        remedy = f"Give {least:g} or more, such as {example:g}."
        value = check.number(name, getattr(self, name), type(self).__name__, remedy, least=least)
        self._set(**{name: value})

    def _count(self, name: str, what: str, least: int = 1) -> None:
        """Check a whole number."""
        remedy = f"Give {what}, {least} or more."
        value = check.count(name, getattr(self, name), type(self).__name__, remedy, least=least)
        self._set(**{name: value})

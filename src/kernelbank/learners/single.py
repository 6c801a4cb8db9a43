"""Learners with one slot a leaf: f(x) = sum_m coefficients[m] features(x)[m]; see `_hot.single`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from .. import _validate as check
from .._hot import single as hot
from .._hot.lanes import WIDTH
from .._hot.table import Phase, Phases, compiled
from .._validate import Floats
from ..ground import Ground
from ..kernels.base import Kernel
from ..losses import Logistic, Loss, Squared
from ..setting import PAGE, Board, Setting
from .base import Group, Learner

Shapes = dict[str, tuple[int, ...]]

_CURVING: dict[type[Loss], int] = {Squared: hot.CONSTANT, Logistic: hot.LOGISTIC}


class SingleSlot(Learner):
    """Subclasses state their features, their step, and what it needs."""

    leaf_width = 1
    uses_rows = False
    second_order: ClassVar[bool] = False
    """Whether the step uses the loss's second derivative: then Squared and Logistic only."""
    places: ClassVar[Any]
    """The places of the table: those of SINGLE, then its own."""
    feature_function: ClassVar[Callable[..., None]]
    step: ClassVar[Callable[..., None]]

    spare: ClassVar[int] = 0
    """Room beyond the most features that stand between steps."""

    def check(self, setting: Setting) -> None:
        if self.second_order and type(setting.loss) not in _CURVING:
            raise check.refuse(
                "loss",
                f"be Squared or Logistic for {type(self).__name__}, a second-order method",
                setting.loss,
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

    def settings(self, setting: Setting) -> Mapping[str, float]:
        """The numbers that the step takes from its table."""
        return {}

    def work(self, capacity: int, dimension: int) -> int:
        """How many numbers of scratch the step needs."""
        return 1

    def shapes(
        self, setting: Setting, leaves: int, dimension: int, kernel: Kernel, reach: int
    ) -> Shapes:
        capacity = self.capacity(kernel, dimension)
        common = {
            "size": (),
            "coefficients": (capacity,),
            "shown": (setting.window, capacity),
        }
        own = {**common, **self.own_shapes(capacity, len(self.view(kernel, dimension)))}
        return {name: (leaves, *shape) for name, shape in own.items()}

    def workspace(self, setting: Setting, dimension: int, kernel: Kernel) -> int:
        capacity = self.capacity(kernel, dimension)
        seen = len(self.view(kernel, dimension))
        rows = 8 * max(capacity, setting.window)  # a row of kernel values in lanes, and its parts
        return 2 * (self.work(capacity, seen) + rows + capacity + 2 * seen)

    def extras(self, group: Group, dimension: int) -> Mapping[str, Any]:
        """What the features and the step find in their table, beyond state and settings.

        `dimension` counts the view; the inputs are `group.dimension` wide.
        """
        return {}

    def _table(
        self,
        group: Group,
        ground: Ground | None,
        board: Board | None,
        **instead: Any,
    ) -> dict[str, Any]:
        setting = group.setting
        view = self.view(group.kernels[0][0], group.dimension)
        dimension = len(view)
        capacity = group.state["coefficients"].shape[1]
        nothing = np.zeros(1)
        values: dict[str, Any] = {
            **group.common(),
            "page": PAGE,
            "reach": 0 if ground is None else ground.reach,
            "width": group.dimension,
            "dimension": dimension,
            "offsets": np.array(view, dtype=np.int64),
            "neighbours": view == tuple(range(view[0], view[0] + dimension)),
            "capacity": capacity,
            "most": capacity - self.spare,
            "effects": group.effects,
            "curving": _CURVING.get(type(setting.loss), hot.NO_CURVATURE),
            "features": compiled(type(self).feature_function).address,
            "step": compiled(type(self).step).address,
            "derivative": setting.loss.derivative_address,
            "parameters": setting.loss.parameters,
            "points": nothing if board is None else board.points,
            "targets": nothing if ground is None else ground.targets,
            "inputs": nothing if ground is None else ground.inputs,
            "look_point": nothing if board is None else board.look_point,
            "look_values": group.look_values,
            "wanted": np.zeros(1, dtype=np.int64),
            "out": nothing,
            "point": np.zeros(dimension),
            "sample": np.zeros(hot.SAMPLE),
            "now": np.zeros(capacity),
            "work": np.zeros(self.work(capacity, dimension)),
            "lanes": np.zeros((3, WIDTH)),
            **group.state,
            **self.settings(setting),
            **self.extras(group, dimension),
        }
        return values | instead

    def phases(self, group: Group, ground: Ground, board: Board) -> list[Phase]:
        values = self._table(group, ground, board)
        return [Phase(compiled(hot.learn), self.places, **values)]

    def glances(self, group: Group, ground: Ground, board: Board) -> list[Phase]:
        values = self._table(group, ground, board)
        return [Phase(compiled(hot.glance), self.places, **values)]

    def evaluate(
        self, group: Group, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
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

    def dropped(self, group: Group) -> Floats:
        result = np.zeros((group.leaves, WIDTH))
        if "dropped" in group.state:
            result[:, 0] = group.state["dropped"]
        return result

    def _check_decay(self, setting: Setting) -> None:
        """Refuse a step that turns the function over instead of shrinking it."""
        rate = getattr(self, "learning_rate", 0.0)
        if rate * setting.regularization >= 1:
            raise check.refuse(
                "learning_rate",
                f"be < 1 / regularization ({1 / setting.regularization:g})",
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

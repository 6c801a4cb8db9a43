"""Residual: a slot that learns what another slot leaves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses.objective import Objective
from ..native.phases import Phase, compiled
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import residual_steps as hot
from .base import Learner, SlotGroup
from .wrapper import Around


@dataclass(frozen=True)
class Residual(Around):
    """A slot that learns what an earlier slot of the bank leaves, and predicts the sum of both.

    With b the base slot's function, as it was before it learned the sample, the inner learner is
    given (x, y - b(x)); the slot's function is b + its own. It reads that slot, never the weights.
    norm^2 is the sum of both, which bounds that of the sum space. Cost and memory: those of the
    inner learner; the base works only once, for itself and all that stand on it.

    Parameters
    ----------
    base : the place of the base slot in the bank's list; it must come before this one.
    learner : the inner learner.

    >>> import kernelbank as kb
    >>> line = kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
    >>> rest = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Residual(0, kb.learners.KRLS()))
    >>> bank = kb.KernelBank(slots=[line, rest])
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, n / 10 + (n % 20 < 10))
    >>> bool(bank.ledger.slot_loss[1] < bank.ledger.slot_loss[0])
    True
    """

    base: int
    learner: Learner

    def __post_init__(self) -> None:
        remedy = "Give the place, from 0, of an earlier slot of the bank."
        object.__setattr__(
            self, "base", check.count("base", self.base, "Residual", remedy, least=0)
        )
        if not isinstance(self.learner, Learner) or isinstance(self.learner, Residual):
            remedy = "Use one of kb.learners; to stand on a Residual, give its place as base."
            raise check.refuse("learner", "be a plain learner", self.learner, remedy, "Residual")

    def check(self, objective: Objective) -> None:
        self.learner.check(objective)
        if self.learner.told(objective).loss.labels:
            remedy = "Use a loss for regression, or WithLoss(...): squares do well on labels too."
            raise check.refuse("loss", "be one for regression for Residual", objective.loss, remedy)

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        own = {
            "left_targets": (leaves, history_length + SLIDE_PERIOD, WIDTH),
            "inner_state_values": (leaves, objective.window, WIDTH),
            "inner_state_norms": (leaves, WIDTH),
        }
        return {**super().shapes(objective, leaves, dimension, kernel, history_length), **own}

    def _inner(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> tuple[SlotGroup, SampleBuffer, Workspace]:
        """The inner learner's own arrays: it sees other targets and does not see the base."""
        if "inner" not in group.parts:
            inner = copy.copy(group)
            for name in ("values", "norms", "predictions", "effects", "query_values"):
                setattr(inner, name, np.zeros_like(getattr(group, name)))
            inner.effects = group.effects
            inner.state = {n: a for n, a in group.state.items() if n not in _OWN}
            own_buffer, own_workspace = copy.copy(buffer), copy.copy(workspace)
            own_buffer.targets = group.state["left_targets"][0]
            own_workspace.new_targets = np.zeros(workspace.size)
            group.parts["inner"] = (inner, own_buffer, own_workspace)
        parts: tuple[SlotGroup, SampleBuffer, Workspace] = group.parts["inner"]
        return parts

    def _table(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> dict[str, Any]:
        inner, _, own_workspace = self._inner(group, buffer, workspace)
        assert group.base is not None
        _, base, leaf, lane = group.base
        return {
            **group.common(),
            **{name: group.state[name] for name in _OWN},
            "slide_period": SLIDE_PERIOD,
            "history_length": buffer.history_length,
            "base_leaf": leaf,
            "base_lane": lane,
            "base_predictions": base.predictions,
            "base_values": base.values,
            "base_norms": base.norms,
            "base_query_values": base.query_values,
            "new_targets": workspace.new_targets,
            "left": own_workspace.new_targets,
            "inner_values": inner.values,
            "inner_norms": inner.norms,
            "inner_predictions": inner.predictions,
            "inner_query_values": inner.query_values,
            "query_values": group.query_values,
        }

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        values = self._table(group, buffer, workspace)
        return [
            Phase(compiled(hot.subtract), hot.RESIDUAL, **values),
            *self.learner.phases(*self._inner(group, buffer, workspace)),
            Phase(compiled(hot.add), hot.RESIDUAL, **values),
        ]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        values = self._table(group, buffer, workspace)
        inner = self.learner.predict_phases(*self._inner(group, buffer, workspace))
        return [*inner, Phase(compiled(hot.add_look), hot.RESIDUAL, **values)]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        assert group.base is not None
        _, base, leaf, lane = group.base
        known = base.parts["evaluated"][leaf, :, lane]  # the base comes first
        inner = group.parts["inner"][0]
        own = self.learner.evaluate(inner, seen, points, statistics, wanted)
        return np.asarray(own + known[None, :, None])

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        """That of the base and of what it leaves, as if they were independent."""
        assert group.base is not None
        learner, base, leaf, lane = group.base
        known = learner.variance(base, points)[leaf, :, lane]
        inner = group.parts["inner"][0]
        return np.asarray(self.learner.variance(inner, points) + known[None, :, None])

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        own = ("values", "norms", "alive", *_OWN)
        for name in own:
            new[name][...] = old[name]
        inner = {name: array for name, array in new.items() if name not in own}
        self.learner.extend_inputs({name: old[name] for name in inner}, inner)


_OWN = ("left_targets", "inner_state_values", "inner_state_norms")

"""LastValue: the last target again."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Kernel
from ..kernels.base import CoreSpec
from ..kernels.no_kernel import NoKernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses.objective import Objective
from ..native.arguments import Arguments, floats, lanes
from ..native.functions import native
from ..native.phases import Phase
from ..native.simd import WIDTH, broadcast, lane
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup

LEARN = Arguments(
    "last_value_learn",
    leaves=int,
    steps=int,  # longest block + 1
    window=int,
    slide_period=int,
    history_length=int,
    targets=lanes("history_length + slide_period"),
    last=lanes("leaves"),
    column=int,  # of the input that is the last target; -1: remember targets
    points=floats(None, None),
    inputs=floats(None, "history_length + slide_period"),
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
)
QUERY = Arguments(
    "last_value_query",
    leaves=int,
    last=lanes("leaves"),
    column=int,
    query_point=floats(None),
    query_values=lanes("leaves"),
)


@dataclass(frozen=True)
class LastValue(Learner):
    """f = the last target, at every input: the baseline of every stream that moves slowly.

    In a stack it has its say from the second sample on, and a slot on its residual
    (`kb.Slot(..., residual_of=...)`) learns the change from one target to the next. f is 0 before
    the first sample. Cost per step: O(window). Memory: one number.

    It needs no kernel: use it with `kb.kernels.NoKernel()`. So norm^2 is 0, which means none.

    Parameters
    ----------
    column : index of an input that is the last target already, in its units; f(x) is then this
        input, from the second sample on. By default the targets themselves are remembered.

    per_output : whether output k of a bank with several uses the input at column + k.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(slots=[kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())])
    >>> bank.learn_one(1.0, 5.0)
    >>> bank.predict_one(2.0)
    5.0
    """

    core_name: ClassVar[str] = "LastValue"
    column: int | None = None
    per_output: bool = False
    accepts_new_inputs: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = True
    uses_kernel_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.column is not None:
            remedy = "Give the index, from 0, of an input, or None."
            own = check.count("column", self.column, type(self).__name__, remedy, least=0)
            object.__setattr__(self, "column", own)

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, NoKernel):
            remedy = "Use kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())."
            raise check.refuse("kernel", "be NoKernel for LastValue", kernel, remedy)

    def core_kernels(self, kernels: Sequence[Kernel], dimension: int) -> list[CoreSpec]:
        return []

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        return {"last": (leaves, WIDTH)}

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        column = self._column(group)
        if column >= group.dimension:
            rule = f"be the index of one of {group.dimension} inputs"
            remedy = "Give the index, from 0, of an input, or None."
            raise check.refuse("column", rule, self.column, remedy, type(self).__name__)
        learn = Phase(
            learn_block,
            **group.common(),
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            targets=buffer.targets,
            last=group.state["last"],
            column=column,
            points=workspace.points,
            inputs=buffer.inputs,
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        query = Phase(
            predict_query,
            leaves=group.leaves,
            last=group.state["last"],
            column=self._column(group),
            query_point=workspace.query_point,
            query_values=group.query_values,
        )
        return [query]

    def _column(self, group: SlotGroup) -> int:
        """The column of the input, -1 if targets are remembered."""
        if self.column is None:
            return -1
        return self.column + (group.output if self.per_output else 0)

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        if self.column is not None and seen > 0:
            own = points[:, self._column(group), None]
            values = np.broadcast_to(own, (len(points), WIDTH))
            return np.repeat(values[None], group.leaves, axis=0)
        return np.repeat(group.state["last"][:, None], len(points), axis=1)


@native(LEARN)
def learn_block(a, first, count):
    """Predict the last target, then let the new one be the last. values[..., -1] is the newest."""
    for leaf in range(a.leaves):
        for t in range(count):
            position = a.history_length + first % a.slide_period + t
            if a.column >= 0 and first + t > 0:
                a.last[leaf] = broadcast(a.points[t, a.column])
            a.predictions[leaf, t] = a.last[leaf]
            if a.column < 0 and not np.isnan(lane(a.targets[position], 0)):
                a.last[leaf] = a.targets[position]
            a.norms[leaf, t + 1] = 0.0
            for age in range(a.window):  # 0 before the first sample
                value = a.last[leaf]
                if a.column >= 0:
                    value = broadcast(a.inputs[a.column, position - age])
                if age > first + t:
                    value = broadcast(0.0)
                a.values[leaf, t + 1, a.window - 1 - age] = value


@native(QUERY)
def predict_query(a, first, count):
    """query_values[leaf] = the last target."""
    for leaf in range(a.leaves):
        if a.column >= 0 and first > 0:
            a.query_values[leaf] = broadcast(a.query_point[a.column])
        else:
            a.query_values[leaf] = a.last[leaf]

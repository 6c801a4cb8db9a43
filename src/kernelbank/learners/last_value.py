"""LastValue: the last target again."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Kernel
from ..kernels.no_kernel import NoKernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses.objective import Objective
from ..native.arguments import Arguments, lanes
from ..native.functions import native
from ..native.phases import Phase
from ..native.simd import WIDTH
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
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
)
QUERY = Arguments(
    "last_value_query", leaves=int, last=lanes("leaves"), query_values=lanes("leaves")
)


@dataclass(frozen=True)
class LastValue(Learner):
    """f = the last target, at every input: the baseline of every stream that moves slowly.

    In a stack it has its say from the second sample on, and a slot on its residual
    (`kb.Slot(..., residual_of=...)`) learns the change from one target to the next. f is 0 before
    the first sample. Cost per step: O(window). Memory: one number.

    It needs no kernel: use it with `kb.kernels.NoKernel()`. So norm^2 is 0, which means none.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(slots=[kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())])
    >>> bank.learn_one(1.0, 5.0)
    >>> bank.predict_one(2.0)
    5.0
    """

    accepts_new_inputs: ClassVar[bool] = True
    uses_kernel_rows: ClassVar[bool] = False

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, NoKernel):
            remedy = "Use kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())."
            raise check.refuse("kernel", "be NoKernel for LastValue", kernel, remedy)

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        return {"last": (leaves, WIDTH)}

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        learn = Phase(
            learn_block,
            **group.common(),
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            targets=buffer.targets,
            last=group.state["last"],
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        last, values = group.state["last"], group.query_values
        return [Phase(predict_query, leaves=group.leaves, last=last, query_values=values)]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        return np.repeat(group.state["last"][:, None], len(points), axis=1)


@native(LEARN)
def learn_block(a, first, count):
    """Predict the last target, then let the new one be the last."""
    for leaf in range(a.leaves):
        for t in range(count):
            a.predictions[leaf, t] = a.last[leaf]
            y = a.targets[a.history_length + first % a.slide_period + t]
            a.last[leaf] = y
            a.norms[leaf, t + 1] = 0.0
            for i in range(a.window):  # 0 before the first sample
                seen = a.window - 1 - i <= first + t
                a.values[leaf, t + 1, i] = y if seen else 0.0 * y


@native(QUERY)
def predict_query(a, first, count):
    """query_values[leaf] = the last target."""
    for leaf in range(a.leaves):
        a.query_values[leaf] = a.last[leaf]

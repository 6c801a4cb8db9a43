"""Learners around another learner: whatever they do not change is the inner one's."""

from __future__ import annotations

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..utils.validation import Floats
from .base import Learner, SlotGroup


class Around(Learner):
    """What the inner learner, the objective `learner`, decides."""

    learner: Learner

    @property
    def leaf_width(self) -> int:  # type: ignore[override]
        return self.learner.leaf_width

    @property
    def uses_kernel_rows(self) -> bool:  # type: ignore[override]
        return self.learner.uses_kernel_rows

    @property
    def float32_arrays(self) -> frozenset[str]:  # type: ignore[override]
        return self.learner.float32_arrays

    @property
    def accepts_new_inputs(self) -> bool:  # type: ignore[override]
        return self.learner.accepts_new_inputs

    @property
    def saveable(self) -> bool:  # type: ignore[override]
        return self.learner.saveable

    def check(self, objective: Objective) -> None:
        self.learner.check(objective)

    def check_kernel(self, kernel: Kernel) -> None:
        self.learner.check_kernel(kernel)

    def history_length(self, objective: Objective) -> int:
        return self.learner.history_length(objective)

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        return self.learner.shapes(objective, leaves, dimension, kernel, history_length)

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        return self.learner.scratch_size(objective, dimension, kernel)

    def prepare(self, group: SlotGroup) -> None:
        self.learner.prepare(group)

    def step_ratio(self, group: SlotGroup) -> Floats:
        return self.learner.step_ratio(group)

"""Learners around another learner: whatever they do not change is the inner one's."""

from __future__ import annotations

from typing import Any

from .._validate import Floats
from ..kernels.base import Kernel
from ..setting import Setting
from .base import Group, Learner


class Around(Learner):
    """What the inner learner, the setting `learner`, decides."""

    learner: Learner

    @property
    def leaf_width(self) -> int:  # type: ignore[override]
        return self.learner.leaf_width

    @property
    def uses_rows(self) -> bool:  # type: ignore[override]
        return self.learner.uses_rows

    @property
    def bulky(self) -> frozenset[str]:  # type: ignore[override]
        return self.learner.bulky

    @property
    def cost(self) -> str:  # type: ignore[override]
        return self.learner.cost

    @property
    def grows(self) -> bool:  # type: ignore[override]
        return self.learner.grows

    @property
    def saveable(self) -> bool:  # type: ignore[override]
        return self.learner.saveable

    def check(self, setting: Setting) -> None:
        self.learner.check(setting)

    def check_kernel(self, kernel: Kernel) -> None:
        self.learner.check_kernel(kernel)

    def reach(self, setting: Setting) -> int:
        return self.learner.reach(setting)

    def shapes(
        self, setting: Setting, leaves: int, dimension: int, kernel: Kernel, reach: int
    ) -> dict[str, tuple[int, ...]]:
        return self.learner.shapes(setting, leaves, dimension, kernel, reach)

    def workspace(self, setting: Setting, dimension: int, kernel: Kernel) -> int:
        return self.learner.workspace(setting, dimension, kernel)

    def prepare(self, group: Group) -> None:
        self.learner.prepare(group)

    def remember(self, group: Group) -> list[Any]:
        return self.learner.remember(group)

    def recall(self, group: Group, kept: list[Any]) -> None:
        self.learner.recall(group, kept)

    def dropped(self, group: Group) -> Floats:
        return self.learner.dropped(group)

    def excess(self, group: Group) -> Floats:
        return self.learner.excess(group)

"""The serial engine: all shards in turn, in the calling thread."""

from __future__ import annotations

from dataclasses import dataclass

from ...losses.objective import Objective
from ...native.workspace import Workspace
from ...utils import validation as check
from ...utils.validation import Floats
from ..layout import Layout
from .base import Engine, Executor, checked_block
from .local import LocalExecutor


@dataclass(frozen=True)
class Serial(Engine):
    """Work in the calling thread.

    Parameters
    ----------
    shards : into how many the slots are dealt. It changes no bit: it is there to show just that.
    block : samples worked at a time, at most 256; by default chosen. It changes no bit either.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Serial())
    """

    shards: int = 1
    block: int | None = None

    def __post_init__(self) -> None:
        check.count("shards", self.shards, "Serial", "Give 1 or more.")
        checked_block(self.block, "Serial")

    def open(
        self, objective: Objective, layout: Layout, workspace: Workspace, first_input: Floats
    ) -> Executor:
        return LocalExecutor(objective, layout, workspace, first_input, self.shards)

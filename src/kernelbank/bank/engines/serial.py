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
    """Run in the calling thread.

    Parameters
    ----------
    shards : how many shards the slots are split into. Changes no bit; it is here to show that.
    block : samples per block, at most 256; by default chosen. Changes no bit.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Serial())
    """

    shards: int = 1
    block: int | None = None

    def __post_init__(self) -> None:
        check.count("shards", self.shards, "Serial", "Give 1 or more.")
        checked_block(self.block, "Serial")

    def open(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        leader: Executor | None = None,
    ) -> Executor:
        return LocalExecutor(objective, layout, workspace, first_input, self.shards, leader)

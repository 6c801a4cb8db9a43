"""The serial engine: all shards in turn, in the calling thread."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _validate as check
from .._validate import Floats
from ..layout import Layout
from ..setting import Board, Setting
from .base import Crew, Engine, checked_block
from .local import LocalCrew


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

    def open(self, setting: Setting, layout: Layout, board: Board, first_input: Floats) -> Crew:
        return LocalCrew(setting, layout, board, first_input, self.shards)

"""The serial engine: all shards in turn, in the calling thread."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _validate as check
from .._validate import Floats
from ..layout import Layout
from ..setting import Board, Setting
from .base import Crew, Engine, LocalCrew


@dataclass(frozen=True)
class Serial(Engine):
    """Work in the calling thread. `shards` changes no bit: it is there to show just that.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Serial())
    """

    shards: int = 1

    def __post_init__(self) -> None:
        check.count("shards", self.shards, "Serial", "Give 1 or more.")

    def open(self, setting: Setting, layout: Layout, board: Board, first_input: Floats) -> Crew:
        return LocalCrew(setting, layout, board, first_input, self.shards)

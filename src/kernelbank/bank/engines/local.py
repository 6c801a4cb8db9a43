"""Engines on this machine: the calling thread, or several."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import _core
from ...utils import validation as check
from .base import Engine, EngineBank, checked_block

if TYPE_CHECKING:
    from ..settings import BankSettings


class _Local(Engine):
    """An engine of this process."""

    def open(
        self,
        settings: BankSettings,
        dimension: int,
        most_bytes: int | None = None,
        **options: Any,
    ) -> EngineBank:
        described = settings.describe(dimension, **self.local_options(), **options)
        bank: Any = _core.Bank(described, most_bytes)
        return bank


@dataclass(frozen=True)
class Serial(_Local):
    """Run in the calling thread.

    Parameters
    ----------
    block : samples per block, at most 256; by default chosen. Changes no bit.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Serial())
    """

    block: int | None = None

    def __post_init__(self) -> None:
        checked_block(self.block, "Serial")

    def local_options(self) -> dict[str, Any]:
        return {"block": self.block}


@dataclass(frozen=True)
class Threads(_Local):
    """Run in several threads, without the interpreter's lock. Same bits as `Serial`.

    Threads learn their slots for a whole block before they synchronize. So they help in `run` with
    many slots.

    Parameters
    ----------
    threads : how many; by default one per core that this process may use.
    block : samples per block, at most 256; by default chosen. Changes no bit.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Threads(2))
    """

    threads: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            remedy = "Give 1 or more, or None for all cores."
            check.count("threads", self.threads, "Threads", remedy, most=1024)
        checked_block(self.block, "Threads")

    def local_options(self) -> dict[str, Any]:
        return {"threads": self.threads or _cores(), "block": self.block}


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

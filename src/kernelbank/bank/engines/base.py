"""What an engine is: it makes the banks of the core in which the slots of a `KernelBank` run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from ... import _core
from ...utils import validation as check

if TYPE_CHECKING:
    from ..settings import BankSettings
    from .ray import RayBank


Description = dict[str, Any]
"""What a bank of the core is made from: see `BankSettings.describe`."""

Models = Mapping[int, list[object]]
"""By pack: the models of its outputs, behind a slot whose state is not arrays."""

Snapshot = tuple[dict[str, np.ndarray], Models]
"""The arrays of a bank by name, and its models."""


def with_models(description: Description, models: Models) -> Description:
    """The same bank with these models."""
    packs = enumerate(description["packs"])
    changed = [{**pack, "models": models[n]} if n in models else pack for n, pack in packs]
    return {**description, "packs": changed}


def bank_from(description: Description, snapshot: Snapshot) -> _core.Bank:
    """A bank of the core with that state."""
    arrays, models = snapshot
    bank = _core.Bank(with_models(description, models))
    bank.restore(arrays)
    return bank


EngineBank: TypeAlias = "_core.Bank | RayBank"
"""A bank as `KernelBank` uses it: that of the core, or one whose slots run elsewhere."""


class Engine(check.Settings):
    """Where slots run: in this process, unless a subclass overrides all of it.

    Subclasses are frozen dataclasses of their settings.
    """

    rows: ClassVar[int] = 4096
    """Samples that `run` gives to the bank at a time; between two of these calls signals are
    handled."""

    def open(
        self, settings: BankSettings, dimension: int, local: _core.Bank | None = None
    ) -> EngineBank:
        """A bank for inputs with that many columns, which has learned nothing.

        local : a bank of the core in this process, from which it goes on.
        """
        return local or _core.Bank(settings.describe(dimension))

    def local_options(self) -> dict[str, int | None]:
        """`threads` and `block` of a bank of the core in this process."""
        return {}


def _block_field() -> Any:
    remedy = f"Give 1 to {_core.SLIDE_PERIOD}, or None for a default."
    return check.count_field(None, remedy, most=_core.SLIDE_PERIOD)


@dataclass(frozen=True)
class Serial(Engine):
    """Run in the calling thread.

    Parameters
    ----------
    block : samples per block, at most 256; by default chosen. Changes no bit.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Serial())
    """

    block: int | None = _block_field()

    def local_options(self) -> dict[str, int | None]:
        return {"block": self.block}


@dataclass(frozen=True)
class Threads(Engine):
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

    threads: int | None = check.count_field(
        None, "Give 1 or more, or None for all cores.", most=1024
    )
    block: int | None = _block_field()

    def local_options(self) -> dict[str, int | None]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return {"threads": self.threads or cores or 1, "block": self.block}

"""What an engine is: it makes the banks of the core in which the slots of a `KernelBank` run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypedDict

import numpy as np

from ... import _core
from ...utils import validation as check
from ...utils.validation import Floats

if TYPE_CHECKING:
    from ..settings import BankSettings


Description = dict[str, Any]
"""What a bank of the core is made from: see `BankSettings.describe`."""

Models = Mapping[int, list[object]]
"""By pack: the models of its outputs, behind a slot whose state is not arrays."""


class LocalOptions(TypedDict, total=False):
    """How a bank of the core in this process computes."""

    threads: int
    block: int | None


class EngineBank(Protocol):
    """A bank as `KernelBank` uses it: that of the core, or one whose slots run elsewhere.

    K outputs, P slots. Inputs are (n, d) and targets (n, K), checked arrays of float64.
    """

    @property
    def samples(self) -> int:
        """How many samples have been learned."""

    @property
    def bytes(self) -> int:
        """The bytes of the state."""

    def begin(
        self, x: Floats, points: Floats | None = None, coefficients: Floats | None = None
    ) -> None:
        """Set the terms before the first sample: x, or those of an initial function."""

    def learn(self, X: Floats, y: Floats, past: Floats | None, trace: dict[str, Floats]) -> None:
        """Learn samples whole or not at all, or blocks of them; fills the trace's arrays."""

    def learn_one(self, x: object, y: object) -> int:
        """Learn one sample of plain floats: 0 declined, 1 learned, 2 with something to check."""

    def predict_one(self, x: object) -> Any:
        """The prediction at one input, a float or (K,); None: x has to be checked first."""

    def predict_slots_one(self, x: Floats) -> tuple[Floats, Floats]:
        """(K,) and (K, P): the predictions of the bank and of its slots at (d,) x."""

    def predict(self, X: Floats) -> Floats:
        """(n, K): the predictions of the bank at the rows of X."""

    def predict_slots(self, X: Floats) -> Floats:
        """(n, K, P): of every slot at the rows of X."""

    def variance_slots(self, X: Floats) -> Floats:
        """(n, K, P): of every slot at the rows of X."""

    def weights(self) -> Floats:
        """(K, P): the weights of the next prediction."""

    def weight_sums(self) -> Floats:
        """(P,): sums of |weight|, for a bank whose slots are revised."""

    def clear_weight_sums(self) -> None:
        """Begin to sum weights anew."""

    def ledger(self) -> dict[str, Floats]:
        """Totals (K,) and (K, P) by name."""

    def alerts(self) -> tuple[int, float]:
        """How many slots of all outputs are out, and the largest effect of truncation."""

    def step_ratio(self) -> Floats:
        """(K, P): learning rate over the largest stable one."""

    def combiner_step(self) -> list[tuple[float, float]]:
        """For each output the same of the combiner, and its rate."""

    def state(self, begin: str = "") -> dict[str, np.ndarray]:
        """Copies of all arrays that the next sample depends on, or of those named so."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""

    def models(self) -> dict[int, list[object]]:
        """The models behind slots whose state is not arrays, by pack and output."""

    def copy(self) -> EngineBank:
        """A bank that goes on alike."""


class Engine:
    """Where slots run. Subclasses are frozen dataclasses of their settings."""

    rows: ClassVar[int] = 4096
    """Samples that `run` gives to the bank at a time; between two of these calls signals are
    handled."""

    def open(
        self,
        settings: BankSettings,
        dimension: int,
        models: Models | None = None,
        most_bytes: int | None = None,
    ) -> EngineBank:
        """A bank that has learned nothing, for inputs with that many columns.

        models : as for `BankSettings.describe`. most_bytes : the memory that its arrays may take.
        """
        raise NotImplementedError

    def local_options(self) -> LocalOptions:
        """`threads` and `block` of a bank of the core in this process."""
        return {}

    def to_local(self, bank: EngineBank) -> _core.Bank:
        """A bank of this engine as one of the core in this process."""
        assert isinstance(bank, _core.Bank)
        return bank

    def from_local(self, settings: BankSettings, dimension: int, bank: _core.Bank) -> EngineBank:
        """A bank of this engine that goes on from one of the core in this process."""
        return bank


def checked_block(block: int | None, owner: str) -> None:
    """Refuse an impossible block length."""
    if block is not None:
        remedy = f"Give 1 to {_core.SLIDE_PERIOD}, or None for a default."
        check.count("block", block, owner, remedy, most=_core.SLIDE_PERIOD)


class _Local(Engine):
    """An engine of this process."""

    def open(
        self,
        settings: BankSettings,
        dimension: int,
        models: Models | None = None,
        most_bytes: int | None = None,
    ) -> EngineBank:
        described = settings.describe(dimension, models=models, **self.local_options())
        return _core.Bank(described, most_bytes)


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

    def local_options(self) -> LocalOptions:
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

    def local_options(self) -> LocalOptions:
        return {"threads": self.threads or _cores(), "block": self.block}


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

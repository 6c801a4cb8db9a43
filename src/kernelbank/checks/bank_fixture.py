"""Small banks and streams in which a learner or a combiner is checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..auto.loading.loading import load
from ..bank.bank import KernelBank
from ..bank.layout import Slot
from ..bank.trace import Trace
from ..errors import KernelBankWarning
from ..kernels import Gaussian
from ..learners import Norma
from ..learners.base import SlotGroup
from ..losses import Loss
from ..utils.validation import Floats
from .context import parts_of

COMPARED = ("slot_predictions", "curvature", "window_loss", "slot_cost", "weights", "predictions")
"""The fields of a trace that are compared, sample by sample."""

EXTREME = {
    "a constant input": lambda X, y: (np.full_like(X, 1.5), y),
    "inputs that are all 0": lambda X, y: (np.zeros_like(X), y),
    "every input ten times": lambda X, y: (np.repeat(X[::10], 10, axis=0)[: len(X)], y),
    "nearly equal inputs": lambda X, y: (1 + 1e-9 * X, y),
    "tiny numbers": lambda X, y: (1e-12 * X, 1e-12 * y),
    "huge inputs": lambda X, y: (1e12 * X, y),
    "huge targets": lambda X, y: (X, 1e12 * y),
    "one target of 1e9 among small ones": lambda X, y: (X, np.where(y == y[30], 1e9, y)),
}
"""Streams on which formulas break, made from an ordinary one."""


def stream(samples: int, width: int, loss: Loss, seed: int = 0) -> tuple[Floats, Floats]:
    """Non-negative inputs, some of them twice, and a sine with noise as the loss takes it."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1.5, (samples, width))
    X[9::10] = X[4::10][: len(X[9::10])]
    y = np.sin(3 * X).mean(axis=1) + 0.1 * draw.normal(size=samples)
    if loss.labels:
        return X, np.where(y >= np.median(y), 1.0, -1.0)
    return X, np.clip(y, *loss.targets)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the bank's warnings, which are not a fault of the component here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBankWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@dataclass(frozen=True)
class BankFixture:
    """How to make a bank with the slot that is checked, and a stream for it."""

    slot: Slot
    loss: Loss
    window: int
    regularization: float
    width: int
    combiner: Any = None

    @property
    def index(self) -> int:
        """The index of the slot; slots that it depends on come before it."""
        return 0 if self.slot.residual_of is None else self.slot.residual_of + 1

    def bank(self, *, twice: bool = False, engine: Any = "serial", outputs: int = 1) -> KernelBank:
        """A new bank: the slot, or two of it, and a built-in learner beside it."""
        beside = Slot(Gaussian(0.3), Norma(0.01, 20))
        slots = [*[beside] * self.index, *[self.slot] * (1 + twice), beside]
        return KernelBank(
            slots=slots,
            combiner=self.combiner,
            loss=self.loss,
            window=self.window,
            regularization=self.regularization,
            engine=engine,
            outputs=outputs,
        )

    def stream(self, samples: int, seed: int = 0) -> tuple[Floats, Floats]:
        return stream(samples, self.width, self.loss, seed)

    def reloaded(self, bank: KernelBank) -> KernelBank:
        """The bank, written to a file and loaded from it."""
        parts = parts_of(self.slot.learner, self.slot.kernel, self.loss, self.combiner)
        import tempfile  # slow to import

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bank.kb"
            bank.save(path)
            return load(path, components=parts)


def run_in_blocks(bank: KernelBank, X: Floats, y: Floats, cuts: Sequence[int] = ()) -> list[Trace]:
    """The traces of a stream that is run in blocks, which end at the cuts."""
    ends = [*(cut for cut in cuts if 0 < cut < len(X)), len(X)]
    starts = [0, *ends[:-1]]
    return [bank.run(X[a:b], y[a:b]) for a, b in zip(starts, ends, strict=True)]


def figures(traces: Sequence[Trace]) -> dict[str, Floats]:
    """The compared fields of the traces, concatenated."""
    return {name: np.concatenate([getattr(t, name) for t in traces]) for name in COMPARED}


def group_of(bank: KernelBank, index: int) -> tuple[SlotGroup, int, int]:
    """Where a serial bank keeps the state of a slot: its group, leaf and lane."""
    for shard in bank._runtime.executor._shards:  # type: ignore[attr-defined]
        for group in shard.scored:
            found = np.argwhere(group.columns == index)
            if len(found):
                return group, int(found[0, 0]), int(found[0, 1])
    raise AssertionError("every slot is in a shard")


def overwrite_block_arrays(bank: KernelBank) -> None:
    """Write other numbers over the inputs and targets of the last block, as the next block does."""
    bank._runtime.workspace.points[...] = 0.625
    bank._runtime.workspace.new_targets[...] = 1.0

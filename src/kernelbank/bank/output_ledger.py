"""The ledger of a bank with several outputs: the figures of each, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..utils.validation import Floats
from .ledger import Ledger
from .slot_history import SlotChange


class OutputLedger:
    """Costs and losses of a bank with K outputs and of its slots, as totals over all samples.

    Every figure of a `Ledger` with an axis of outputs before the others: (K,) for the bank, (K, P)
    for its slots. `outputs[k]` is the `Ledger` of one output.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(50) / 5
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3), outputs=2)
    >>> trace = bank.run(x, np.column_stack([np.sin(x), np.cos(x)]))
    >>> bank.ledger.cumulative_cost.shape, bank.ledger.slot_loss.shape
    ((2,), (2, 3))
    >>> bank.ledger.cumulative_cost[1] == bank.ledger.outputs[1].cumulative_cost
    np.True_
    """

    def __init__(self, outputs: Sequence[Ledger]) -> None:
        self.outputs = tuple(outputs)
        """The ledger of each output."""

    def _all(self, name: str) -> Floats:
        return np.array([getattr(ledger, name) for ledger in self.outputs])

    @property
    def samples(self) -> int:
        """How many samples have been counted."""
        return self.outputs[0].samples

    @property
    def missing(self) -> np.ndarray:
        """(K,): how many samples had no target for the output."""
        return self._all("missing")

    @property
    def cumulative_cost(self) -> Floats:
        """(K,): cumulative cost of the bank."""
        return self._all("cumulative_cost")

    @property
    def slot_cumulative_cost(self) -> Floats:
        """(K, P): cumulative cost of every slot alone; infinite for a slot that is out."""
        return self._all("slot_cumulative_cost")

    @property
    def loss(self) -> Floats:
        """(K,): sum of the one-step-ahead losses of the bank."""
        return self._all("loss")

    @property
    def mean_loss(self) -> Floats:
        """(K,): mean one-step-ahead loss of the bank; NaN before the first target."""
        return self._all("mean_loss")

    @property
    def slot_loss(self) -> Floats:
        """(K, P): sum of the one-step-ahead losses of every slot alone."""
        return self._all("slot_loss")

    @property
    def slot_mean_loss(self) -> Floats:
        """(K, P): mean one-step-ahead loss of every slot alone; infinite for a slot that is out."""
        return self._all("slot_mean_loss")

    @property
    def regret(self) -> Floats:
        """(K,): cumulative cost minus that of the best slot."""
        return self._all("regret")

    @property
    def bound_gap(self) -> Floats:
        """(K,): sum of bound minus cost; NaN for combiners off the simplex."""
        return self._all("bound_gap")

    @property
    def dropped(self) -> Floats:
        """(K, P): sum of norm^2 of the terms that each slot has dropped beyond its budget."""
        return self._all("dropped")

    @property
    def best_slot(self) -> np.ndarray:
        """(K,): the slot with the least cumulative cost, the first of equals."""
        return self._all("best_slot")

    @property
    def quarantined(self) -> tuple[int, ...]:
        """The slots that became non-finite for at least one output, for which they are out."""
        return tuple(sorted({p for ledger in self.outputs for p in ledger.quarantined}))

    @property
    def slot_since(self) -> tuple[int, ...]:
        """For every slot, after how many samples it was added; see `Ledger`."""
        return self.outputs[0].slot_since

    @property
    def slot_changes(self) -> tuple[SlotChange, ...]:
        """The newest 1,000 slots that were retired or added, oldest first."""
        return self.outputs[0].slot_changes

    @property
    def slot_change_count(self) -> int:
        """How many slots have been retired and added, all together."""
        return self.outputs[0].slot_change_count

    def copy(self) -> OutputLedger:
        """The ledger at this moment, which later samples do not change."""
        return OutputLedger([ledger.copy() for ledger in self.outputs])

    def since(self, earlier: OutputLedger) -> OutputLedger:
        """The ledger of the samples after `earlier`, a `copy` of this one."""
        pairs = zip(self.outputs, earlier.outputs, strict=True)
        return OutputLedger([now.since(before) for now, before in pairs])

    def __repr__(self) -> str:
        parts = "; ".join(f"output {k}: {ledger!r}" for k, ledger in enumerate(self.outputs))
        return f"OutputLedger({parts})"

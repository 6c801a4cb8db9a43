"""The ledger: costs and losses of the bank and of every slot, summed since the first sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from .slot_history import SlotChange, SlotHistory

if TYPE_CHECKING:
    from .engines.base import EngineBank
    from .settings import BankSettings

Figure = Any
"""A number; for several outputs an array (K,)."""


@dataclass(frozen=True, eq=False, repr=False)
class Ledger:
    """Costs and losses of a bank and of its slots at one moment, as totals over all samples so far.

    *Cost* is the paper's: the loss on the whole window plus the regularizer; L - 1 of its L samples
    have been learned before. *Loss* counts unseen samples only: the loss of the prediction of each
    sample before it was learned.

    For a bank with K outputs every figure has an axis of outputs before the others: (K,) for the
    bank, (K, P) for its slots. `outputs[k]` is the ledger of one output.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(50) / 5
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3), outputs=2)
    >>> trace = bank.run(x, np.column_stack([np.sin(x), np.cos(x)]))
    >>> bank.ledger.cumulative_cost.shape, bank.ledger.slot_loss.shape
    ((2,), (2, 3))
    >>> bank.ledger.cumulative_cost[1] == bank.ledger.outputs[1].cumulative_cost
    np.True_
    """

    samples: int
    """How many samples have been counted."""
    _totals: Mapping[str, Floats]
    """As `Bank.ledger` of the core returns them: (K,) and (K, P)."""
    _history: SlotHistory
    _several: bool
    """Whether figures have an axis of outputs."""

    @classmethod
    def of(cls, settings: BankSettings, bank: EngineBank | None) -> Ledger:
        """The ledger of a bank with these settings; None before the first sample."""
        outputs = settings.outputs
        if bank is not None:
            samples, totals = bank.samples, bank.ledger()
        else:
            samples, shape = 0, (outputs, len(settings.slots))
            numbers = ("cost", "loss", "gap", "effect", "missing")
            totals = {name: np.zeros(outputs) for name in numbers}
            totals |= {name: np.zeros(shape) for name in ("slot_cost", "slot_loss", "dropped")}
        return cls(samples, totals, settings.history, outputs > 1)

    def _shown(self, values: np.ndarray) -> Floats:
        """Figures (K,) or (K, P) of all outputs, or those of the only one: a number, or (P,)."""
        if self._several or values.ndim > 1:
            return values.copy() if self._several else np.array(values[0])
        return values.item(0)  # type: ignore[no-any-return]

    @property
    def outputs(self) -> tuple[Ledger, ...]:
        """The ledger of each output."""
        count = len(self._totals["cost"])
        parts = [{n: a[k : k + 1] for n, a in self._totals.items()} for k in range(count)]
        return tuple(replace(self, _totals=part, _several=False) for part in parts)

    @property
    def missing(self) -> Figure:
        """How many samples had no target; of one of several outputs only."""
        return self._shown(self._totals["missing"].astype(np.int64))

    @property
    def scored(self) -> Figure:
        """How many samples had a target: all but those whose target was missing."""
        return self.samples - self.missing

    @property
    def cumulative_cost(self) -> Figure:
        """Cumulative cost of the bank (CC in the paper)."""
        return self._shown(self._totals["cost"])

    @property
    def slot_cumulative_cost(self) -> Floats:
        """(P,): cumulative cost of every slot alone; infinite for a slot that is out."""
        return self._shown(self._totals["slot_cost"])

    @property
    def loss(self) -> Figure:
        """Sum of the one-step-ahead losses of the bank."""
        return self._shown(self._totals["loss"])

    @property
    def mean_loss(self) -> Figure:
        """Mean one-step-ahead loss of the bank; NaN before the first sample."""
        return self._shown(self._per_sample(self._totals["loss"]))

    @property
    def slot_loss(self) -> Floats:
        """(P,): sum of the one-step-ahead losses of every slot alone."""
        return self._shown(self._totals["slot_loss"])

    @property
    def slot_mean_loss(self) -> Floats:
        """(P,): mean one-step-ahead loss of every slot alone; infinite for a slot that is out."""
        out = np.isinf(self._totals["slot_cost"])
        return self._shown(self._per_sample(np.where(out, np.inf, self._totals["slot_loss"])))

    def _per_sample(self, totals: Floats) -> Floats:
        """Totals (K,) or (K, P) by the samples that had a target; NaN without any."""
        scored = self.samples - self._totals["missing"]
        scored = scored.reshape(-1, *[1] * (totals.ndim - 1))
        means: Floats = np.full(totals.shape, np.nan)
        np.divide(totals, scored, where=scored > 0, out=means)
        return means

    @property
    def quarantined(self) -> tuple[int, ...]:
        """The slots that became non-finite, for one output at least, and are out for good."""
        out = np.isinf(self._totals["slot_cost"]).any(axis=0)
        return tuple(np.flatnonzero(out).tolist())

    def slot_costs(self) -> Floats:
        """(P,): cumulative cost of every slot alone, summed over the outputs."""
        costs: Floats = self._totals["slot_cost"].sum(axis=0)
        return costs

    @property
    def best_slot(self) -> Figure:
        """The slot with the least cumulative cost, the first of equals."""
        return self._shown(np.argmin(self._totals["slot_cost"], axis=1))

    @property
    def regret(self) -> Figure:
        """Cumulative cost minus that of the best slot; negative if better than every slot."""
        return self._shown(self._totals["cost"] - self._totals["slot_cost"].min(axis=1))

    @property
    def dropped(self) -> Floats:
        """(P,): sum of norm^2 of the terms that each slot has dropped beyond its budget."""
        return self._shown(self._totals["dropped"])

    @property
    def slot_since(self) -> tuple[int, ...]:
        """For every slot, after how many samples it was added: 0 for one of the first.

        The totals of a later slot go on from those of the one in whose place it came, so that all
        totals are over all samples; see `KernelBank.with_slots`.
        """
        return self._history.since

    @property
    def slot_changes(self) -> tuple[SlotChange, ...]:
        """The newest 1,000 slots that were retired or added, oldest first: `SlotChange`s with
        sample, kind, index, name and reason."""
        return self._history.changes

    @property
    def slot_change_count(self) -> int:
        """How many slots have been retired and added, all together."""
        return self._history.change_count

    def since(self, earlier: Ledger) -> Ledger:
        """The ledger of the samples after `earlier`, one of the same bank.

        The sum of `since(...).regret` over consecutive intervals is the dynamic regret against the
        best slot of each interval; see `kb.regret` for the regret within intervals.

        >>> import numpy as np, kernelbank as kb
        >>> x, y = kb.datasets.ar1(seed=0, samples=400)
        >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5))
        >>> regrets = []
        >>> for start in range(0, 400, 100):
        ...     earlier = bank.ledger
        ...     trace = bank.run(x[start : start + 100], y[start : start + 100], record=())
        ...     regrets.append(bank.ledger.since(earlier).regret)
        >>> sum(regrets) >= bank.ledger.regret
        True
        """
        if (
            not isinstance(earlier, Ledger)
            or earlier._totals["slot_cost"].shape != self._totals["slot_cost"].shape
            or earlier.samples > self.samples
        ):
            remedy = "Give bank.ledger of a moment before these samples."
            raise check.refuse("earlier", "be an earlier ledger of this bank", earlier, remedy)
        out = np.isinf(self._totals["slot_cost"])  # for good: infinite minus infinite is no number
        with np.errstate(invalid="ignore"):
            totals = {name: a - earlier._totals[name] for name, a in self._totals.items()}
        totals["slot_cost"] = np.where(out, np.inf, totals["slot_cost"])
        totals["effect"] = self._totals["effect"]
        return replace(self, samples=self.samples - earlier.samples, _totals=totals)

    @property
    def effect(self) -> Figure:
        """The first effect of truncation on the window's values that is visible, relative to them;
        until then the largest."""
        return self._shown(self._totals["effect"])

    def __repr__(self) -> str:
        if self._several:
            return f"Ledger({self.samples} samples of {len(self._totals['cost'])} outputs)"
        return (
            f"Ledger({self.samples} samples; cumulative cost {self.cumulative_cost:.6g}, "
            f"best slot {self.best_slot} at {self.slot_cumulative_cost.min():.6g}; "
            f"mean one-step-ahead loss {self.mean_loss:.6g})"
        )

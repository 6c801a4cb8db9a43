"""The ledger: costs and losses of the bank and of every slot, summed since the first sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..losses.objective import Objective
from ..native.phases import Phase
from ..native.simd import WIDTH
from ..native.workspace import EXTRA_SUMS, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import bank_cost
from .slot_history import SlotChange, SlotHistory


class Ledger:
    """Costs and losses of a bank and of its slots, as totals over all samples so far.

    *Cost* is the paper's: the loss on the whole window plus the regularizer; L - 1 of its L samples
    have been learned before. *Loss* counts unseen samples only: the loss of the prediction of each
    sample before it was learned.
    """

    def __init__(
        self,
        objective: Objective,
        slots: int,
        on_simplex: bool,
        dropped: Callable[[], Floats],
        history: SlotHistory,
    ) -> None:
        self._history = history
        self._objective = objective
        self._on_simplex = on_simplex
        self._dropped = dropped
        self.running = np.zeros(bank_cost.SAMPLES + 1)  # see bank_cost; for the runtime
        self.missing = 0
        """How many samples had no target; of one of several outputs only."""
        self._slot_cost = np.zeros(slots)
        self._slot_loss = np.zeros(slots)

    @property
    def samples(self) -> int:
        """How many samples have been counted."""
        return int(self.running.item(bank_cost.SAMPLES))

    @property
    def scored(self) -> int:
        """How many samples had a target: all but those whose target was missing."""
        return self.samples - self.missing

    def skip_sample(self) -> None:
        """Count a sample whose target is missing; for the runtime."""
        self.running[bank_cost.SAMPLES] += 1.0
        self.missing += 1

    @property
    def cumulative_cost(self) -> float:
        """Cumulative cost of the bank (CC in the paper)."""
        return float(self.running[bank_cost.COST])

    @property
    def slot_cumulative_cost(self) -> Floats:
        """(P,): cumulative cost of every slot alone; infinite for a slot that is out."""
        return self._slot_cost.copy()

    @property
    def loss(self) -> float:
        """Sum of the one-step-ahead losses of the bank."""
        return float(self.running[bank_cost.LOSS])

    @property
    def mean_loss(self) -> float:
        """Mean one-step-ahead loss of the bank; NaN before the first sample."""
        return self.loss / self.scored if self.scored else float("nan")

    @property
    def slot_loss(self) -> Floats:
        """(P,): sum of the one-step-ahead losses of every slot alone."""
        return self._slot_loss.copy()

    @property
    def slot_mean_loss(self) -> Floats:
        """(P,): mean one-step-ahead loss of every slot alone; infinite for a slot that is out."""
        if not self.scored:
            return np.full(len(self._slot_loss), np.nan)
        return np.where(np.isinf(self._slot_cost), np.inf, self._slot_loss) / self.scored

    @property
    def quarantined(self) -> tuple[int, ...]:
        """The slots that became non-finite and are out for good."""
        return tuple(np.flatnonzero(np.isinf(self._slot_cost)).tolist())

    @property
    def best_slot(self) -> int:
        """The slot with the least cumulative cost, the first of equals."""
        return int(np.argmin(self._slot_cost))

    @property
    def regret(self) -> float:
        """Cumulative cost minus that of the best slot; negative if better than every slot."""
        return float(self.running[bank_cost.COST] - self._slot_cost.min())

    @property
    def bound_gap(self) -> float:
        """Sum of bound minus cost; NaN for combiners off the simplex, which have no such bound."""
        return float(self.running[bank_cost.GAP]) if self._on_simplex else float("nan")

    @property
    def dropped(self) -> Floats:
        """(P,): sum of norm^2 of the terms that each slot has dropped beyond its budget."""
        return self._dropped()

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

    def _empty(self, dropped: Floats) -> Ledger:
        """A ledger of the same slots with totals of 0."""
        slots = len(self._slot_cost)
        return Ledger(self._objective, slots, self._on_simplex, dropped.copy, self._history)

    def copy(self) -> Ledger:
        """The ledger at this moment, which later samples do not change."""
        dropped = self.dropped
        other = self._empty(dropped)
        other.restore(self.state())
        other.missing = self.missing
        return other

    def since(self, earlier: Ledger) -> Ledger:
        """The ledger of the samples after `earlier`, a `copy` of this one.

        The sum of `since(...).regret` over consecutive intervals is the dynamic regret against the
        best slot of each interval; see `kb.regret` for the regret within intervals.

        >>> import numpy as np, kernelbank as kb
        >>> x, y = kb.datasets.ar1(seed=0, samples=400)
        >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5))
        >>> regrets = []
        >>> for start in range(0, 400, 100):
        ...     earlier = bank.ledger.copy()
        ...     trace = bank.run(x[start : start + 100], y[start : start + 100], record=())
        ...     regrets.append(bank.ledger.since(earlier).regret)
        >>> sum(regrets) >= bank.ledger.regret
        True
        """
        if (
            not isinstance(earlier, Ledger)
            or len(earlier._slot_cost) != len(self._slot_cost)
            or earlier.samples > self.samples
        ):
            remedy = "Give what bank.ledger.copy() returned before these samples."
            raise check.refuse("earlier", "be an earlier copy of this ledger", earlier, remedy)
        dropped = self.dropped - earlier.dropped
        part = self._empty(dropped)
        part.running[:] = self.running
        part.missing = self.missing - earlier.missing
        for entry in (bank_cost.COST, bank_cost.LOSS, bank_cost.GAP, bank_cost.SAMPLES):
            part.running[entry] -= earlier.running[entry]
        out = np.isinf(self._slot_cost)  # out for good: infinite minus infinite is no number
        with np.errstate(invalid="ignore"):
            part._slot_cost[:] = np.where(out, np.inf, self._slot_cost - earlier._slot_cost)
            part._slot_loss[:] = self._slot_loss - earlier._slot_loss
        return part

    def __repr__(self) -> str:
        return (
            f"Ledger({self.samples} samples; cumulative cost {self.cumulative_cost:.6g}, "
            f"best slot {self.best_slot} at {self._slot_cost.min():.6g}; "
            f"mean one-step-ahead loss {self.mean_loss:.6g})"
        )

    # --- for the runtime ------------------------------------------------------------------------

    def phases(self, workspace: Workspace, leaves: int) -> tuple[Phase, Phase, Phase]:
        """Append targets, before the weights are chosen; then add slot costs, charge the bank."""
        objective = self._objective
        rows = -(-objective.window // WIDTH) * WIDTH
        values = {
            "slots": len(self._slot_cost),
            "leaves": leaves,
            "steps": workspace.size + 1,
            "window": objective.window,
            "half_regularization": objective.half_regularization,
            "loss": objective.loss.value_address,
            "parameters": objective.loss.parameters,
            "recent": workspace.recent,
            "new_targets": workspace.new_targets,
            "sums": workspace.sums,
            "totals": np.zeros((workspace.size, objective.window + EXTRA_SUMS)),
            "scratch": np.ones((3, rows)),
            "running": self.running,
            "best": workspace.best,
            "cumulative_cost": self._slot_cost,
            "out": workspace.sample_metrics,
        }
        add_slot_costs = Phase(
            bank_cost.add_slot_costs,
            slots=workspace.slots,
            slot_cost=workspace.slot_cost,
            slot_loss=workspace.slot_loss,
            cumulative_cost=self._slot_cost,
            cumulative_loss=self._slot_loss,
            best=workspace.best,
        )
        append_targets = Phase(bank_cost.append_targets, **values)
        return append_targets, add_slot_costs, Phase(bank_cost.charge_bank, **values)

    def write_skipped(self, workspace: Workspace, prediction: float) -> None:
        """The metrics of a sample without a target: no cost, no loss."""
        none = float("nan")
        metrics = [prediction, none, none, none, self.cumulative_cost, self.regret]
        workspace.sample_metrics[0] = metrics

    def rows(self, workspace: Workspace, count: int) -> dict[str, Floats]:
        """What a trace keeps of the last block."""
        predictions, cost, loss, gap, cumulative, regret = workspace.sample_metrics[:count].T
        if not self._on_simplex:
            gap = np.full(count, np.nan)
        return {
            "predictions": predictions,
            "cost": cost,
            "loss": loss,
            "bound_gap": gap,
            "cumulative_cost": cumulative,
            "regret": regret,
        }

    def state(self) -> dict[str, Floats]:
        """Copies of all totals, by name."""
        return {
            "running": self.running.copy(),
            "slot_cost": self._slot_cost.copy(),
            "slot_loss": self._slot_loss.copy(),
        }

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Continue from what `state` returned; the arrays stay in place."""
        self.running[:] = state["running"]
        self._slot_cost[:] = state["slot_cost"]
        self._slot_loss[:] = state["slot_loss"]

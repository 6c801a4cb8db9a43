"""The ledger: what the environment has charged the bank and every slot, since the first sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ._hot import score as hot
from ._validate import Floats
from .setting import Evidence, Setting


class Ledger:
    """Costs of a bank and of its slots. All figures are totals over all samples so far.

    *Cost* is what the paper's game charges: the loss on the whole window plus the regulariser,
    L - 1 of the L samples having been seen before. *Loss* counts unseen samples only: the loss of
    the prediction of each sample before it was learned.
    """

    def __init__(
        self, setting: Setting, slots: int, on_simplex: bool, dropped: Callable[[], Floats]
    ) -> None:
        self._setting = setting
        self._on_simplex = on_simplex
        self._dropped = dropped
        self._samples = 0
        self._running = np.zeros(3)
        self._slot_cost = np.zeros(slots)
        self._slot_loss = np.zeros(slots)
        self._recent = np.zeros(setting.window - 1)
        self.out = 0  # slots that are out so far
        self.effect = 0.0  # largest effect of truncation on a proposal so far

    @property
    def samples(self) -> int:
        """How many samples have been charged."""
        return self._samples

    @property
    def cumulative_cost(self) -> float:
        """The bank's cumulative cost (the paper's CC)."""
        return float(self._running[0])

    @property
    def slot_cumulative_cost(self) -> Floats:
        """(P,): the cumulative cost of every slot alone; infinite for a slot that is out."""
        return self._slot_cost.copy()

    @property
    def loss(self) -> float:
        """Sum of the one-step-ahead losses of the bank."""
        return float(self._running[1])

    @property
    def mean_loss(self) -> float:
        """Mean one-step-ahead loss of the bank; NaN before the first sample."""
        return self.loss / self._samples if self._samples else float("nan")

    @property
    def slot_loss(self) -> Floats:
        """(P,): sum of the one-step-ahead losses of every slot alone."""
        return self._slot_loss.copy()

    @property
    def best_slot(self) -> int:
        """The slot with the least cumulative cost, the first of equals."""
        return int(np.argmin(self._slot_cost))

    @property
    def regret(self) -> float:
        """Cumulative cost minus that of the best slot; negative is better than every slot."""
        return float(self._running[0] - self._slot_cost.min())

    @property
    def bound_gap(self) -> float:
        """Sum of bound minus cost; NaN for combiners off the simplex, which have no such bound."""
        return float(self._running[2]) if self._on_simplex else float("nan")

    @property
    def dropped(self) -> Floats:
        """(P,): norm^2 of all terms that the slot has dropped beyond its budget, added up."""
        return self._dropped()

    def __repr__(self) -> str:
        return (
            f"Ledger({self.samples} samples; cumulative cost {self.cumulative_cost:.6g}, "
            f"best slot {self.best_slot} at {self._slot_cost.min():.6g}; "
            f"mean one-step-ahead loss {self.mean_loss:.6g})"
        )

    # --- the bank's side --------------------------------------------------------------------------

    def window_targets(self, y: Floats) -> Floats:
        """The targets of the window before a block, then those of the block."""
        return np.concatenate([self._recent, y])

    def charge(self, evidence: Evidence, totals: Floats) -> dict[str, Floats]:
        """Charge a block, from the sums over the leaves; returns the rows for a trace."""
        setting = self._setting
        count = len(totals)
        rows = np.empty((count, 5))
        least = np.empty(count)
        effect = hot.charge(
            evidence.first,
            setting.window,
            setting.half_regularization,
            setting.loss.value_address,
            setting.loss.parameters,
            evidence.targets,
            totals,
            self._running,
            rows,
        )
        self.effect = max(self.effect, effect)
        hot.accumulate(evidence.slot_loss, self._slot_loss, least)
        self.out = hot.accumulate(evidence.slot_cost, self._slot_cost, least)
        self._recent = evidence.targets[len(evidence.targets) - len(self._recent) :].copy()
        self._samples += count
        with np.errstate(invalid="ignore"):  # a bank without any finite slot has no regret
            regret = rows[:, 4] - least
        gap = rows[:, 3] if self._on_simplex else np.full(count, np.nan)
        return {
            "predictions": rows[:, 0],
            "cost": rows[:, 1],
            "loss": rows[:, 2],
            "bound_gap": gap,
            "cumulative_cost": rows[:, 4],
            "regret": regret,
        }

    def state(self) -> dict[str, Floats]:
        """Copies of everything that the next figures depend on."""
        return {
            "running": self._running.copy(),
            "slot_cost": self._slot_cost.copy(),
            "slot_loss": self._slot_loss.copy(),
            "recent": self._recent.copy(),
            "effect": np.array([self.effect]),
        }

    def restore(self, samples: int, state: Mapping[str, Floats]) -> None:
        """Go on from what `state` returned after so many samples."""
        self._samples = samples
        self._running = state["running"].copy()
        self._slot_cost = state["slot_cost"].copy()
        self._slot_loss = state["slot_loss"].copy()
        self._recent = state["recent"].copy()
        self.effect = float(state["effect"][0])
        self.out = int(np.isinf(self._slot_cost).sum())

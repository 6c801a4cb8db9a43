"""Warnings of a bank while it learns: each kind once, attributed to the caller's line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import SlotQuarantined, TruncationMatters, UnstableStep
from ..native.workspace import SLIDE_PERIOD
from ..utils.whole_steps import warn_after_step
from . import bank_cost
from .engines.base import Executor
from .layout import Slot
from .ledger import Ledger

_VISIBLE = 0.01  # a truncation that moves a prediction by one part in a hundred matters


class Diagnostics:
    """Checks a bank after each block and warns."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self.warned: set[str] = set()
        """The kinds of warnings that have been given."""
        self.quarantined = 0
        """How many slots were out when that was last reported."""

    def check(self, ledger: Ledger, executor: Executor, first: int) -> None:
        """After a block whose first sample was number `first`."""
        quarantined = int(ledger.running.item(bank_cost.QUARANTINED))
        if quarantined > self.quarantined:
            self.quarantined = quarantined
            self._warn_quarantined(ledger.quarantined)
        effect = ledger.running.item(bank_cost.EFFECT)
        if effect > _VISIBLE and "truncation" not in self.warned:
            self.warned.add("truncation")
            warn_after_step(
                TruncationMatters,
                "dropping a term beyond the budget moved the estimate on the window by "
                f"{effect:.1%}. Raise budget, or regularization so that old terms fade; "
                "ledger.dropped has the norm^2 dropped by each slot.",
            )
        # Steps are checked rarely: when the samples have doubled, and after each slide period.
        seen = ledger.samples
        if (first ^ seen) > first or first // SLIDE_PERIOD != seen // SLIDE_PERIOD:
            self._check_steps(ledger, executor)

    def _warn_quarantined(self, indices: Sequence[int]) -> None:
        names = ", ".join(f"{p} ({self._slots[p].kernel!r})" for p in indices[:5])
        warn_after_step(
            SlotQuarantined,
            f"{len(indices)} of {len(self._slots)} slots became non-finite and have zero weight "
            f"from now on: {names}. Lower their learning rate or scale the data.",
        )

    def _check_steps(self, ledger: Ledger, executor: Executor) -> None:
        if "step" in self.warned:
            return
        ratios = np.where(np.isfinite(ledger.slot_cumulative_cost), executor.step_ratio(), 0.0)
        unstable = int((ratios >= 1).sum())
        if unstable == 0:
            return
        self.warned.add("step")
        worst = int(np.argmax(ratios))
        slot = self._slots[worst]
        rate = getattr(slot.learner, "learning_rate", float("nan"))
        warn_after_step(
            UnstableStep,
            f"{unstable} of {len(self._slots)} slots cannot be stable on the window: slot {worst} "
            f"({slot.kernel!r}) has learning_rate {rate:g}, and the bound 2 / (loss curvature * "
            "largest eigenvalue of the window's Gram matrix + regularization) is at most "
            f"{rate / ratios[worst]:.3g}. Lower learning_rate or shorten window.",
        )

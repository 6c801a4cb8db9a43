"""What a user should know while a bank learns: said once each, in the name of the caller's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np

from ..errors import SlotQuarantined, TruncationMatters, UnstableStep
from ..native.workspace import SLIDE_PERIOD
from .engines.base import Executor
from .layout import Slot
from .ledger import Ledger

_PACKAGE = __name__.partition(".")[0] + "."
_VISIBLE = 0.01  # a truncation that moves a proposal by one part in a hundred matters


class Diagnostics:
    """Watches a bank and warns; `said` and `out` are what has been said already."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self.said: set[str] = set()
        self.out = 0

    def look(self, ledger: Ledger, executor: Executor, first: int) -> None:
        """After a block that began with sample number `first`."""
        seen, out, effect = ledger.news()
        if out > self.out:
            self.out = out
            self._say_quarantined(np.flatnonzero(np.isinf(ledger.slot_cumulative_cost)))
        if effect > _VISIBLE and "truncation" not in self.said:
            self.said.add("truncation")
            _say(
                TruncationMatters,
                "dropping a term beyond the budget moved the estimate on the window by "
                f"{effect:.1%}. Raise budget, or regularization so that old terms fade; "
                "ledger.dropped has the norm^2 dropped by each slot.",
            )
        # The steps are looked at rarely: when the samples have doubled, and where a slide_period ended.
        if (first ^ seen) > first or first // SLIDE_PERIOD != seen // SLIDE_PERIOD:
            self._look_at_steps(ledger, executor)

    def _say_quarantined(self, places: np.ndarray) -> None:
        names = ", ".join(f"{p} ({self._slots[p].kernel!r})" for p in places[:5])
        _say(
            SlotQuarantined,
            f"{len(places)} of {len(self._slots)} slots became non-finite and have zero weight "
            f"from now on: {names}. Lower their learning rate or scale the data.",
        )

    def _look_at_steps(self, ledger: Ledger, executor: Executor) -> None:
        if "step" in self.said:
            return
        step_ratio = np.where(np.isfinite(ledger.slot_cumulative_cost), executor.step_ratio(), 0.0)
        bad = int((step_ratio >= 1).sum())
        if bad == 0:
            return
        self.said.add("step")
        worst = int(np.argmax(step_ratio))
        slot = self._slots[worst]
        rate = getattr(slot.learner, "learning_rate", float("nan"))
        _say(
            UnstableStep,
            f"{bad} of {len(self._slots)} slots cannot be stable on the window: slot {worst} "
            f"({slot.kernel!r}) has learning_rate {rate:g}, and the bound 2 / (loss curvature * "
            "largest eigenvalue of the window's Gram matrix + regularization) is at most "
            f"{rate / step_ratio[worst]:.3g}. Lower learning_rate or shorten window.",
        )


def _say(kind: type[Warning], message: str) -> None:
    """Warn in the name of the line outside this package that called it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)

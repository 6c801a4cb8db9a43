"""Warnings of a bank while it learns: each kind once, attributed to the caller's line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._core import SLIDE_PERIOD
from ..errors import SlotQuarantined, TruncationMatters, UnstableStep
from ..losses import Loss, Squared
from ..utils.whole_steps import warn_after_step
from .engines.base import EngineBank
from .ledger import Ledger
from .slot import Slot

_VISIBLE_EFFECT = 0.01
"""A truncation that moves a prediction by one part in a hundred matters."""


class Diagnostics:
    """Checks a bank after it has learned, and warns."""

    def __init__(self, slots: Sequence[Slot], loss: Loss) -> None:
        self._slots = slots
        self._loss = loss
        self.warned: set[str] = set()
        """The kinds of warnings that have been given."""
        self.quarantined: tuple[int, ...] = ()
        """The slots that were out when that was last reported."""
        self._out_count = 0

    def check(self, bank: EngineBank, first: int, ledger: Callable[[], Ledger]) -> None:
        """After the samples from number `first` on."""
        count, effect = bank.alerts()
        if count != self._out_count:
            self._out_count, out = count, ledger().quarantined
            if not set(out) <= set(self.quarantined):
                names = ", ".join(f"{p} ({self._slots[p].kernel!r})" for p in out[:5])
                warn_after_step(
                    SlotQuarantined,
                    f"{len(out)} of {len(self._slots)} slots became non-finite and have zero "
                    f"weight from now on: {names}. Lower their learning rate or scale the data.",
                )
            self.quarantined = out
        if effect > _VISIBLE_EFFECT and "truncation" not in self.warned:
            self.warned.add("truncation")
            size = f"{effect:.1%}" if effect <= 1 else "more than 100%"
            warn_after_step(
                TruncationMatters,
                f"dropping a term beyond the budget moved the estimate on the window by {size}. "
                "Raise budget, or regularization so that old terms fade; "
                "ledger.dropped has the norm^2 dropped by each slot.",
            )
        # Steps are checked rarely: when the samples have doubled, and after each slide period.
        seen = bank.samples
        if (first ^ seen) > first or first // SLIDE_PERIOD != seen // SLIDE_PERIOD:
            self._check_steps(bank)

    def _check_steps(self, bank: EngineBank) -> None:
        if "step" in self.warned:
            return
        ratios = bank.step_ratio().max(axis=0)
        ratios[list(self.quarantined)] = 0.0
        unstable, worst = int((ratios >= 1).sum()), int(np.argmax(ratios))
        if unstable == 0:
            return
        self.warned.add("step")
        slot = self._slots[worst]
        loss = self._loss if slot.loss is None else slot.loss
        # The bound holds for every prediction if the curvature is the same everywhere.
        verb = "cannot" if isinstance(loss, Squared) else "may not"
        rate = getattr(slot.learner, "learning_rate", float("nan"))
        warn_after_step(
            UnstableStep,
            f"{unstable} of {len(self._slots)} slots {verb} be stable on the window: slot "
            f"{worst} ({slot.kernel!r}) has learning_rate {rate:g}, and the bound 2 / (loss "
            "curvature * largest eigenvalue of the window's Gram matrix + regularization) is at "
            f"most {rate / ratios[worst]:.3g}. Lower learning_rate or shorten window.",
        )

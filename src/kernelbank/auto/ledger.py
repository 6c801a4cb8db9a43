"""How an AutoBank has done so far, and what has changed on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import calibration as hot
from .classification import Classification
from .regression import Regression
from .task_model import Change, Desk

if TYPE_CHECKING:
    from .bank import AutoBank


class AutoLedger:
    """Errors and signals of change, over all rows learned so far."""

    def __init__(self, bank: AutoBank) -> None:
        self._bank = bank

    @property
    def _desk(self) -> Desk | None:
        return self._bank._desk

    @property
    def samples(self) -> int:
        """How many rows have been learned."""
        return 0 if self._desk is None else self._desk.rows

    @property
    def mean_loss(self) -> float:
        """Mean squared error of the answers, or the share of wrong ones.

        Answers that were given before the first target was known do not count; NaN if there are no
        others.
        """
        desk = self._desk
        count = 0 if desk is None else desk.rows - desk.blind
        if isinstance(desk, Regression) and count:
            return float(desk.answers[hot.LOSS] / count)
        if isinstance(desk, Classification) and count:
            return float(desk.wrong[0] / count)
        return float("nan")

    @property
    def persistence_loss(self) -> float:
        """The same for the last target as an answer, from the second row on."""
        desk = self._desk
        if isinstance(desk, Regression) and desk.rows > 1:
            return float(desk.answers[hot.NAIVE_LOSS] / (desk.rows - 1))
        if isinstance(desk, Classification) and desk.rows > 1:
            return float(desk.wrong[1] / (desk.rows - 1))
        return float("nan")

    @property
    def changes(self) -> tuple[Change, ...]:
        """Signals of change, at most the last 1,000.

        `what` is "error grew" or "error fell" (in the size of the errors, or how often a label was
        wrong; each false at most once in 10,000 rows on average while errors are exchangeable),
        "weights" (more than half of the weight stands elsewhere than before), "target level" (five
        in a row beyond 10 sd that nothing announced) or "input level" (five in a row beyond 10 sd).
        """
        return () if self._desk is None else tuple(self._desk.changes)

    def __repr__(self) -> str:
        return (
            f"AutoLedger({self.samples} samples; mean loss {self.mean_loss:.6g}, persistence "
            f"{self.persistence_loss:.6g}; {len(self.changes)} signals of change)"
        )

"""How good the predictions of some rows were, as the history adds them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..utils.validation import Floats
from .history import EXTREMES, TOTALS
from .label_scores import log_loss


class RowScores(NamedTuple):
    """The scores of n rows; columns as in `history.py`, NaN or 0 where a task has none."""

    totals: Floats
    """(n, TOTALS)."""
    extremes: Floats
    """(n, EXTREMES)."""
    losses: Floats
    """(n, P): the loss of every slot alone."""

    def set_times(self, times: Floats) -> None:
        """(n,): the times of the rows."""
        self.extremes[:, 5] = self.extremes[:, 6] = times

    def leave_out_first(self) -> None:
        """Let the first row count as a row, but not as a scored one."""
        self.leave_out(np.arange(len(self.totals)) == 0)

    def leave_out(self, rows: np.ndarray) -> None:
        """Let some rows, a mask (n,), count as rows, but not as scored ones."""
        self.totals[rows, 1:] = 0.0
        self.losses[rows] = 0.0
        for column in (0, 2, 4):
            self.extremes[rows, column] = np.nan


def score_numbers(trace: Any, targets: Any, baseline: Any) -> RowScores:
    """Score predicted numbers, (n,). The baseline predicts the target before, (n,)."""
    totals, extremes = _empty(len(targets))
    y = np.array(targets)
    totals[:, 2] = (trace.predictions - y) ** 2
    totals[:, 3] = (np.array(baseline) - y) ** 2
    totals[:, 4] = (trace.lower <= y) & (y <= trace.upper)
    totals[:, 5] = trace.upper - trace.lower
    totals[:, 6] = np.abs(trace.predictions - y)
    totals[:, 7] = np.abs(np.array(baseline) - y)
    extremes[:, 0] = totals[:, 2]
    extremes[:, 1:5] = np.column_stack([y, trace.predictions, y, trace.predictions])
    return RowScores(totals, extremes, (trace.slot_predictions - y[:, None]) ** 2)


def score_labels(
    trace: Any, targets: list[Any], baseline: list[Any], classes: np.ndarray
) -> RowScores:
    """Score predicted labels; `classes` are the `class_numbers` of the targets."""
    totals, extremes = _empty(len(targets))
    totals[:, 2] = [a != b for a, b in zip(trace.predictions, targets, strict=True)]
    totals[:, 3] = [a != b for a, b in zip(baseline, targets, strict=True)]
    totals[:, 4] = 1.0 - totals[:, 2]
    totals[:, 5] = trace.probabilities.max(axis=1, initial=0.0)
    pairs = zip(trace.probabilities, classes, strict=True)
    own = [float(p[k]) if 0 <= k < len(p) else 0.0 for p, k in pairs]
    totals[:, 8] = [log_loss(p) for p in own]
    extremes[:, 0] = totals[:, 2]
    losses = (trace.slot_classes != classes[:, None]).astype(np.float64)
    return RowScores(totals, extremes, losses)


def class_numbers(trace: Any, targets: list[Any]) -> np.ndarray:
    """(n,): the number of each target's class; -2, which no slot predicts, if it is not known."""
    numbers = {label: number for number, label in enumerate(trace.classes)}
    return np.array([numbers.get(label, -2) for label in targets])


def _empty(count: int) -> tuple[Floats, Floats]:
    """Totals and extremes of rows that count, and are scored."""
    totals = np.zeros((count, len(TOTALS)))
    totals[:, :2] = 1.0
    return totals, np.full((count, len(EXTREMES)), np.nan)

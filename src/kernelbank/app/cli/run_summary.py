"""The figures of a run so far, from its history."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from ..runner.run import Run

_CARRIERS = 3
_VISIBLE = 0.005


class Summary:
    """What a run has done and how well, at this moment.

    Errors are root mean squares, or the shares of wrong answers; NaN before there are any.
    """

    def __init__(self, run: Run) -> None:
        history, progress = run.history, run.progress
        self.labels = run.settings.task == "classification"
        self.rows, self.bad = progress.rows, run.aside.count
        self.predicted_only = run.player.predicted_only
        self.seconds = max(time.monotonic() - progress.started, 1e-9)
        self.speed = (progress.rows - progress.first_row) / self.seconds
        self.error = self.persistence = self.best = self.coverage = math.nan
        self.best_name = ""
        self.carriers: list[tuple[str, float]] = []
        self.answered = 0
        if history is None or not history.rows:
            return
        sums = {name: float(values.sum()) for name, values in history.totals.items()}
        self.answered = int(sums["scored"])
        if not self.answered:
            return
        self.error = self._figure(sums["loss"])
        self.persistence = self._figure(sums["baseline_loss"])
        names = run.bank.names
        if not self.labels:
            self.coverage = sums["covered"] / self.answered
        losses = history.losses.sum(axis=0)
        place = int(np.argmin(losses))
        self.best, self.best_name = self._figure(float(losses[place])), names[place]
        weights = history.weights[-1]
        for place in np.argsort(-weights, kind="stable")[:_CARRIERS].tolist():
            if weights[place] > _VISIBLE:
                self.carriers.append((names[place], float(weights[place])))

    def _figure(self, total: float) -> float:
        mean = total / self.answered
        return mean if self.labels else math.sqrt(mean)

    def plain(self) -> dict[str, Any]:
        """For machines."""
        own = {
            "rows": self.rows,
            "bad_rows": self.bad,
            "rows_without_target": self.predicted_only,
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.speed, 1),
            "error": self.error,
            "persistence": self.persistence,
            "best_slot": self.best,
            "best_slot_name": self.best_name or None,
            "coverage": self.coverage,
            "weights": dict(self.carriers),
        }
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in own.items()
        }

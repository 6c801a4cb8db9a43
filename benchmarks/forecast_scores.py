"""Figures of `make forecasts`: errors and intervals of one forecaster on one stream by horizon."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from forecasters import Forecasts, Task

COVERAGE = 0.9


@dataclass(frozen=True)
class Score:
    """Of one horizon.

    - squared: mean squared error / variance of the targets
    - absolute: mean absolute error / standard deviation of the targets
    - coverage: the share of targets inside the interval, ends included; None without intervals
    - width: the mean width of the interval / standard deviation of the targets
    - rows: how many forecasts are scored
    """

    stream: str
    name: str
    horizon: int
    rows: int
    squared: float
    absolute: float
    coverage: float | None = None
    width: float | None = None


def score(name: str, task: Task, run: Forecasts) -> list[Score]:
    """One per horizon, over the forecasts made at rows `start`, ..., n - 1 - h.

    Variance and standard deviation are those of the targets from row `start` on, the same for all
    horizons. A forecast that is not finite makes the errors infinite.
    """
    y, start = task.stream.y, task.start
    variance = float(y[start:].var())
    found = []
    for column, horizon in enumerate(task.horizons):
        target = y[start + horizon :]
        made = slice(start, len(y) - horizon)  # the rows at which forecasts of `target` are made
        errors = run.values[made, column] - target
        squared = float(np.mean(errors**2)) / variance
        absolute = float(np.mean(np.abs(errors))) / math.sqrt(variance)
        coverage = width = None
        if run.lower is not None and run.upper is not None:
            lower, upper = run.lower[made, column], run.upper[made, column]
            coverage = float(np.mean((lower <= target) & (target <= upper)))
            width = float(np.mean(upper - lower)) / math.sqrt(variance)
        if not math.isfinite(squared):
            squared = absolute = math.inf
        found.append(
            Score(
                task.stream.name,
                name,
                horizon,
                len(target),
                squared,
                absolute,
                coverage,
                width,
            )
        )
    return found


@dataclass(frozen=True)
class Against:
    """Ours and the best rival on one stream and horizon, by mean squared error."""

    stream: str
    horizon: int
    ours: float
    rival: str
    best: float

    @property
    def ratio(self) -> float:
        """Ours / best; 1 if both are 0 or both failed."""
        if self.ours == self.best:
            return 1.0
        return self.ours / self.best if self.best else math.inf

    @property
    def first(self) -> bool:
        return self.ours <= self.best and math.isfinite(self.ours)


def against_rivals(
    scores: list[Score], ours: str, horizons: tuple[int, ...], measure: str = "squared"
) -> list[Against]:
    """Every stream and horizon that ours and a rival have, those that ours loses first."""
    found = []
    for own in scores:
        if own.name != ours or own.horizon not in horizons:
            continue
        rivals = [
            one
            for one in scores
            if one.name != ours and (one.stream, one.horizon) == (own.stream, own.horizon)
        ]
        if rivals:
            best = min(rivals, key=lambda one: getattr(one, measure))
            value, other = getattr(own, measure), getattr(best, measure)
            found.append(Against(own.stream, own.horizon, value, best.name, other))
    return sorted(found, key=lambda one: -one.ratio)


def summary(found: list[Against]) -> dict[str, object] | None:
    """Over all rows: on how many ours is first, and the geometric mean of the ratios."""
    if not found:
        return None
    ratios = np.array([one.ratio for one in found])
    with np.errstate(divide="ignore"):
        mean = float(np.exp(np.log(ratios).mean()))
    worst = found[0]
    return {
        "rows": len(found),
        "first": sum(one.first for one in found),
        "geometric_mean": mean,
        "worst": worst.ratio,
        "worst_row": f"{worst.stream}, horizon {worst.horizon}",
    }

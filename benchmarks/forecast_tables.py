"""Figures and tables of `make forecasts`: errors and intervals by horizon, lost rows first."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from accuracy_tables import TextTable, geometric_mean
from forecast_rivals import Forecasts, Task

HORIZONS = (1, 6, 12, 24)
"""Those of the tables of errors."""

COVERAGE = 0.9
SHOWN = (1, 2, 4, 8, 16, 24)
"""Horizons whose coverage has a column."""


@dataclass(frozen=True)
class Score:
    """Of one horizon.

    - squared: mean squared error / variance of the targets
    - coverage: the share of targets inside the interval, ends included; None without intervals
    - width: the mean width of the interval / standard deviation of the targets
    - rows: how many forecasts are scored
    """

    stream: str
    name: str
    horizon: int
    rows: int
    squared: float
    coverage: float | None = None
    width: float | None = None


def score(name: str, task: Task, run: Forecasts) -> list[Score]:
    """One per horizon, over the forecasts made at rows `start`, ..., n - 1 - h.

    Variance and standard deviation are those of the targets from row `start` on, the same for all
    horizons. A forecast that is not finite makes the error infinite.
    """
    y, start = task.stream.y, task.start
    variance = float(y[start:].var())
    scores = []
    for column, horizon in enumerate(task.horizons):
        target = y[start + horizon :]
        made = slice(start, len(y) - horizon)  # the rows at which forecasts of `target` are made
        errors = run.values[made, column] - target
        squared = float(np.mean(errors**2)) / variance
        coverage = width = None
        if run.lower is not None and run.upper is not None:
            lower, upper = run.lower[made, column], run.upper[made, column]
            coverage = float(np.mean((lower <= target) & (target <= upper)))
            width = float(np.mean(upper - lower)) / math.sqrt(variance)
        if not math.isfinite(squared):
            squared = math.inf
        scores.append(
            Score(
                task.stream.name,
                name,
                horizon,
                len(target),
                squared,
                coverage,
                width,
            )
        )
    return scores


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


def against_rivals(scores: list[Score], ours: str) -> list[Against]:
    """Every stream and horizon that ours and a rival have, those that ours loses first."""
    rows = []
    for own in scores:
        if own.name != ours or own.horizon not in HORIZONS:
            continue
        key = (own.stream, own.horizon)
        rivals = [one for one in scores if one.name != ours and (one.stream, one.horizon) == key]
        if rivals:
            best = min(rivals, key=lambda one: one.squared)
            rows.append(Against(*key, own.squared, best.name, best.squared))
    return sorted(rows, key=lambda one: -one.ratio)


# --- tables ---------------------------------------------------------------------------------------


def totals(scores: list[Score], ours: str) -> TextTable | None:
    """Ours over all rows, and by horizon."""
    every = against_rivals(scores, ours)
    rows = []
    for label, part in [("all", every)] + [
        (str(h), [one for one in every if one.horizon == h]) for h in HORIZONS
    ]:
        if part:
            first = f"{sum(one.first for one in part)} of {len(part)}"
            mean = number(geometric_mean([one.ratio for one in part]))
            rows.append([label, first, mean, number(part[0].ratio), part[0].stream])
    columns = ["horizon", "first on", "geometric mean to best", "worst", "on"]
    return TextTable(f"{ours} and the best rival of each row", columns, rows) if rows else None


def errors(scores: list[Score], ours: str) -> TextTable | None:
    """One row per stream and horizon: ours and the best rival."""
    rows = [
        [
            one.stream,
            str(one.horizon),
            number(one.ours),
            number(one.best),
            one.rival,
            number(one.ratio),
        ]
        for one in against_rivals(scores, ours)
    ]
    columns = ["stream", "rows ahead", ours, "best rival", "which", "ratio"]
    title = "forecasts: mean squared error / variance of the target"
    return TextTable(title, columns, rows) if rows else None


def intervals(scores: list[Score], ours: str) -> TextTable | None:
    """Coverage by horizon, and the mean width over all horizons; the farthest streams first."""
    groups: dict[str, list[Score]] = {}
    for one in scores:
        if one.name == ours and one.coverage is not None:
            groups.setdefault(one.stream, []).append(one)
    rows = []
    for stream, group in sorted(groups.items(), key=lambda item: -_farthest(item[1])):
        covered = {one.horizon: one.coverage for one in group}
        cells = [number(covered.get(horizon)) for horizon in SHOWN]
        ends = [number(min(covered.values())), number(max(covered.values()))]
        rows.append([stream, *cells, *ends, number(float(np.mean([one.width for one in group])))])
    columns = ["stream", *(f"{h}" for h in SHOWN), "least", "most", "width"]
    title = f"intervals meant to hold {COVERAGE:.0%}, by rows ahead; least and most over all"
    return TextTable(title, columns, rows) if rows else None


def _farthest(group: list[Score]) -> float:
    return max(abs(one.coverage - COVERAGE) for one in group if one.coverage is not None)


def times(seconds: dict[tuple[str, str], float]) -> TextTable:
    """Seconds of each run; keys are a stream and a forecaster."""
    names = list(dict.fromkeys(name for _, name in seconds))
    rows = [
        [stream, *(number(seconds.get((stream, name))) for name in names)]
        for stream in dict.fromkeys(stream for stream, _ in seconds)
    ]
    return TextTable("seconds per run", ["stream", *names], rows)


def number(value: object) -> str:
    """Three digits; empty for None."""
    if value is None:
        return ""
    assert isinstance(value, (int, float))
    return f"{value:.3g}" if math.isfinite(value) else "failed"

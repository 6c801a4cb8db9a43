"""Figures and tables of `make forecasts`: errors and intervals by horizon, lost rows first."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from accuracy_tables import TextTable, geometric_mean
from forecast_rivals import Forecasts, Task

COVERAGE = 0.9
SHOWN = (1, 2, 4, 8, 16, 24)
"""Horizons whose coverage has a column."""
_WORDS = {
    "squared": "mean squared error / variance",
    "absolute": "mean absolute error / standard deviation",
}


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
    worst = found[0]
    return {
        "rows": len(found),
        "first": sum(one.first for one in found),
        "geometric_mean": geometric_mean([one.ratio for one in found]),
        "worst": worst.ratio,
        "worst_row": f"{worst.stream}, horizon {worst.horizon}",
    }


# --- tables ---------------------------------------------------------------------------------------


def errors(
    scores: list[Score], ours: str, horizons: tuple[int, ...], measure: str = "squared"
) -> TextTable:
    """One row per stream and horizon, one column per forecaster."""
    names = list(dict.fromkeys(one.name for one in scores))
    rivals = [name for name in names if name != ours]
    cells = {(one.stream, one.horizon, one.name): getattr(one, measure) for one in scores}
    ranked = {
        (one.stream, one.horizon): one for one in against_rivals(scores, ours, horizons, measure)
    }
    streams = dict.fromkeys(one.stream for one in scores)
    keys = [*ranked, *((s, h) for s in streams for h in horizons if (s, h) not in ranked)]
    rows = []
    for stream, horizon in keys:
        against = ranked.get((stream, horizon))
        values = [cells.get((stream, horizon, name)) for name in (ours, *rivals)]
        row = [stream, str(horizon), *(number(value) for value in values)]
        if against is None:
            present = {name: value for name, value in zip(rivals, values[1:]) if value is not None}
            row += ["", min(present, key=lambda name: present[name]) if present else ""]
        else:
            row += [number(against.ratio), ours if against.first else against.rival]
        rows.append(row)
    columns = ["stream", "horizon", ours, *rivals, "ours / best rival", "first"]
    return TextTable(f"forecasts: {_WORDS[measure]} of the target", columns, rows)


def totals(scores: list[Score], ours: str, horizons: tuple[int, ...]) -> TextTable | None:
    """Ours over all rows, and by horizon."""
    rows = []
    for measure, words in _WORDS.items():
        for label, part in [("all", horizons), *((str(h), (h,)) for h in horizons)]:
            found = summary(against_rivals(scores, ours, part, measure))
            if found is not None:
                rows.append(
                    [
                        words,
                        label,
                        f"{found['first']} of {found['rows']}",
                        number(found["geometric_mean"]),
                        number(found["worst"]),
                        str(found["worst_row"]),
                    ]
                )
    columns = ["error", "horizon", "first on", "geometric mean to best", "worst", "where"]
    return TextTable(f"{ours} and the best rival of each row", columns, rows) if rows else None


def intervals(scores: list[Score], ours: str) -> TextTable | None:
    """Coverage by horizon, and the mean width over all horizons. Ours stands first, with the
    streams that are farthest from the requested coverage first."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for one in scores:
        if one.coverage is not None:
            groups.setdefault((one.name, one.stream), []).append(one)
    names = list(dict.fromkeys(one.name for one in scores))
    rows = []
    for name, stream in sorted(
        groups, key=lambda key: (key[0] != ours, names.index(key[0]), -_farthest(groups[key]))
    ):
        own = {one.horizon: one for one in groups[name, stream]}
        covered = [one.coverage for one in own.values()]
        rows.append(
            [
                stream,
                name,
                *(number(own[h].coverage) if h in own else "" for h in SHOWN),
                number(min(covered)),
                number(max(covered)),
                number(float(np.mean([one.width for one in own.values()]))),
            ]
        )
    columns = ["stream", "method", *(f"h = {h}" for h in SHOWN), "min", "max", "mean width / sd"]
    title = f"intervals meant to hold {COVERAGE:.0%}; min and max over all horizons"
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

"""Tables of `make forecasts`. Rows that AutoBank loses stand first."""

from __future__ import annotations

import math

import numpy as np
from accuracy_tables import TextTable
from forecast_scores import COVERAGE, Score, against_rivals, summary

SHOWN = (1, 2, 4, 8, 16, 24)
"""Horizons whose coverage has a column."""
_WORDS = {
    "squared": "mean squared error / variance",
    "absolute": "mean absolute error / standard deviation",
}


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

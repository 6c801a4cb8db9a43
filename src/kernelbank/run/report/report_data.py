"""The data of a report: parts by name, each a JSON text, which the page draws.

A file holds all parts; a live page gets the parts that have changed. So long data are cut into
parts that stay the same: the points of the history in groups of 32, each set of prediction curves
by itself.

- run: title, task, settings, names of slots and inputs
- status: progress, errors and times at this moment
- recent: the last rows, one by one
- forecasts: those from the last row, and scores and weights by horizon, with --horizon
- labels: confusion matrix and reliability, for classification
- changes: changes of the stream that were detected, in groups; bad_rows: rows that could not be
  used
- points/K: totals, weights and losses of the points 32 K, 32 K + 1, ...
- curves/ROW: prediction curves after that row; curves/now: the present ones

With several targets these parts are of the first; those of the others, up to DRAWN_TARGETS, have
the prefix `targets/K/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import RunRefused
from ...io.files import named_os_errors
from ..history import EXTREMES, TOTALS, History, Snapshot
from ..recent_rows import FIELDS
from ..several_targets import DRAWN_TARGETS
from ..snapshots import drawn_inputs, kept_inputs, take_snapshot
from ..status import RunStatus
from .forecast_part import forecast_part
from .lately import lately
from .page import render_page
from .regret import run_regret
from .report_json import encode, json_numbers, json_object, ten_thousandths
from .run_details import LISTED, run_details

POINTS_PER_PART = 32

SHARED = ("changes", "bad_rows")
"""Parts that are the same for all targets."""

COUNTS = ("rows", "scored", "covered")
"""Totals that are whole numbers, for regression."""

TIME_DIGITS = 13
"""Of times in seconds since 1970: milliseconds."""


class ReportData:
    """Makes the parts of a report again and again; unchanged parts are not encoded anew."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[Any, str]] = {}
        self._present_curves: str | None = None
        self._others: dict[int, ReportData] = {}
        """By the number of another target: what makes its parts."""

    def parts(self, status: RunStatus, *, curves: bool = True) -> dict[str, str]:
        """The present parts. With `curves=False`, the present curves are those of the last call."""
        parts = self._parts_of_target(status, curves=curves)
        for one in status.each_target[1:DRAWN_TARGETS]:
            data = self._others.setdefault(one.output, ReportData())
            own = data._parts_of_target(one, curves=curves)
            prefix = f"targets/{one.output}/"
            parts |= {prefix + name: text for name, text in own.items() if name not in SHARED}
        return parts

    def _parts_of_target(self, status: RunStatus, *, curves: bool) -> dict[str, str]:
        parts = {
            "run": encode(run_details(status)),
            "status": encode(_status(status)),
            "changes": encode(change_groups(_changes(status), status.rows)),
            "bad_rows": encode(_bad_rows(status)),
        }
        if status.options.horizons:
            parts["forecasts"] = encode(forecast_part(status))
        history = status.history
        if history is not None:
            parts["recent"] = _recent(history)
            if status.is_classification:
                parts["labels"] = encode(_labels(status, history))
            kept = kept_inputs(drawn_inputs(status.layout, status.bank))
            for first in range(0, history.points, POINTS_PER_PART):
                name = f"points/{first // POINTS_PER_PART}"
                count = min(history.points - first, POINTS_PER_PART)
                rows = min(history.rows - first * history.stride, count * history.stride)
                parts[name] = self._cached(name, (history.stride, rows), _points, history, first)
            for taken in history.snapshots:
                name = f"curves/{taken.row}"
                parts[name] = self._cached(name, taken, _curves, taken, kept)
            if curves or self._present_curves is None:
                layout, coverage = status.layout, status.options.coverage
                present = take_snapshot(status.bank, history, layout, coverage, kept=False)
                self._present_curves = None if present is None else _curves(present)
            if self._present_curves is not None:
                parts["curves/now"] = self._present_curves
        self._cache = {name: kept for name, kept in self._cache.items() if name in parts}
        return parts

    def _cached(self, name: str, key: Any, make: Callable[..., str], *arguments: Any) -> str:
        """The text of a part; encoded only if `key` has changed since the last call."""
        kept = self._cache.get(name)
        if kept is None or kept[0] != key:
            self._cache[name] = key, make(*arguments)
        return self._cache[name][1]


# --- the file -------------------------------------------------------------------------------------


def check_report_path(path: Path, option: str) -> None:
    """Raise RunRefused for a path that cannot be written or does not look like a page."""
    folder = path.absolute().parent
    if path.suffix.lower() not in (".html", ".htm"):
        raise RunRefused(f"{option} must end with .html; got {path}.")
    if path.is_dir():
        raise RunRefused(f"{option}: {path} is a folder. Give a file.")
    if not folder.is_dir():
        raise RunRefused(f"{option}: there is no folder {folder}. Make it first.")
    if not os.access(folder, os.W_OK):
        raise RunRefused(f"{option}: {folder} cannot be written to.")


def write_report(path: Path, status: RunStatus) -> None:
    """Write the page to a file; at any moment the old or the new file is there, whole."""
    page = render_page(ReportData().parts(status))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with named_os_errors(path):
            temporary.write_text(page, encoding="utf-8")
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# --- parts ----------------------------------------------------------------------------------------


def _status(status: RunStatus) -> dict[str, Any]:
    """The object of the JSON log, and what only the page shows."""
    history, timings = status.history, status.timings
    return {
        **status.to_json(),
        "phase": status.phase,
        "scored": status.scored,
        "stride": 1 if history is None else history.stride,
        "points": 0 if history is None else history.points,
        "lately": None if history is None else lately(history, labels=status.is_classification),
        "regret": None if history is None else run_regret(history),
        "time": [[activity, spent] for activity, spent in timings["seconds"].items()],
        "started": timings["started"],
        "starts": timings["starts"],
        "updated": timings["updated"],
    }


def _changes(status: RunStatus) -> list[list[Any]]:
    """Row, kind, and input, period or target of each change.

    The row is that after which it was noticed, with the delay.
    """
    return [
        [change.row + status.options.delay, *status.change_text(change)]
        for change in status.changes
    ]


def change_groups(changes: Sequence[Sequence[Any]], rows: int) -> list[list[Any]]:
    """Signals of change, of which those close together are one group.

    changes : [row, kind, input] of each signal, by row.
    rows : of the run. A group spans at most a fiftieth of them, or 50.

    Returns [first row, last row, [[kind, input, count], ...]] for each group.
    """
    width = max(50, rows // 50)
    groups: list[list[Any]] = []
    for row, what, column in changes:
        if not groups or row - groups[-1][0] > width:
            groups.append([row, row, []])
        groups[-1][1] = row
        kinds = groups[-1][2]
        same = next((one for one in kinds if one[:2] == [what, column]), None)
        if same is None:
            kinds.append([what, column, 1])
        else:
            same[2] += 1
    return groups


def _bad_rows(status: RunStatus) -> dict[str, Any]:
    rejected = status.rejected
    return {"count": rejected.count, "examples": [*rejected.first, *rejected.last]}


def _points(history: History, first: int) -> str:
    group = slice(first, first + POINTS_PER_PART)
    fields = {"stride": str(history.stride)}
    for name in TOTALS:
        fields[name] = json_numbers(history.totals[name][group], 12 if name in COUNTS else 7)
    for name in EXTREMES:
        digits = TIME_DIGITS if name.startswith("time") else 6
        fields[name] = json_numbers(history.extremes[name][group], digits)
    fields["weights"] = encode(ten_thousandths(history.weights[group]))
    fields["weights_high"] = encode(ten_thousandths(history.highest_weights[group]))
    losses = history.losses[group].tolist()
    fields["losses"] = f"[{','.join(json_numbers(row, 5) for row in losses)}]"
    return json_object(fields)


def _curves(taken: Snapshot, inputs: Sequence[int] | None = None) -> str:
    """The lines of a snapshot; `inputs` are the numbers of its inputs, None if it has all."""
    names = ("x", "prediction", "low", "high")
    lines = []
    for number, values in zip(inputs or range(len(taken.values)), taken.values, strict=True):
        seen = values[:, np.isfinite(values[0])]
        line = {name: json_numbers(one, 6) for name, one in zip(names, seen, strict=True)}
        lines.append(json_object({"input": str(number), **line}))
    return json_object({"row": str(taken.row), "lines": f"[{','.join(lines)}]"})


def _recent(history: History) -> str:
    recent = history.recent
    texts = {name: json_numbers(recent[name], 7) for name in FIELDS}
    return json_object({**texts, "time": json_numbers(recent["time"], TIME_DIGITS)})


def _labels(status: RunStatus, history: History) -> dict[str, Any]:
    """The confusion matrix of the most frequent labels and the others, and reliability."""
    scores, names = history.labels, [str(label) for label in status.bank.classes]
    counts = scores.confusion.sum(axis=1)[1:]
    frequent = sorted(range(scores.classes), key=lambda k: (-counts[k], k))[:LISTED]
    listed = sorted(frequent)
    rest = [0, *(k + 1 for k in range(scores.classes) if k not in frequent)]
    groups = [*([k + 1] for k in listed), rest]
    table = [[float(scores.confusion[np.ix_(a, b)].sum()) for b in groups] for a in groups]
    if not any(table[-1]) and not any(row[-1] for row in table):
        table = [row[:-1] for row in table[:-1]]
    areas = scores.areas()
    rows, probability, correct = scores.reliability
    return {
        "labels": [names[k] for k in listed],
        "confusion": table,
        "areas": [float(areas[k]) for k in listed],
        "reliability": [
            [float(p / n), float(c / n), float(n)]
            for n, p, c in zip(rows, probability, correct, strict=True)
            if n
        ],
    }

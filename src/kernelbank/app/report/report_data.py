"""The data of a report: parts by name, each a JSON text, which the page draws.

A file holds all parts; a live page gets the parts that have changed. So long data are cut into
parts that stay the same: the points of the history in groups of 32, each set of prediction curves
by itself.

- run: title, task, settings, names of slots and inputs
- status: progress, errors and times at this moment
- recent: the last rows, one by one
- labels: confusion matrix and reliability, for classification
- changes: changes of the stream that were detected, in groups; bad_rows: rows that could not be
  used
- points/K: totals, weights and losses of the points 32 K, 32 K + 1, ...
- curves/ROW: prediction curves after that row; curves/now: the present ones
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ...errors import RunRefused
from ...io.sinks.base import named_os_errors
from ...utils.validation import Floats
from ..runner.history import EXTREMES, TOTALS, History, Snapshot
from ..runner.recent_rows import FIELDS
from ..runner.snapshots import drawn_inputs, kept_inputs, take_snapshot
from ..runner.status import RunStatus
from .lately import lately
from .page import render_page
from .regret import run_regret

POINTS_PER_PART = 32

COUNTS = ("rows", "scored", "covered")
"""Totals that are whole numbers, for regression."""

LISTED = 12
"""Names that are listed before the rest is only counted."""

TIME_DIGITS = 13
"""Of times in seconds since 1970: milliseconds."""


class ReportData:
    """Makes the parts of a report again and again; unchanged parts are not encoded anew."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[Any, str]] = {}
        self._present_curves: str | None = None

    def parts(self, status: RunStatus, *, curves: bool = True) -> dict[str, str]:
        """The present parts. With `curves=False`, the present curves are those of the last call."""
        parts = {
            "run": _encode(_run(status)),
            "status": _encode(_status(status)),
            "changes": _encode(change_groups(_changes(status), status.rows)),
            "bad_rows": _encode(_bad_rows(status)),
        }
        history = status.history
        if history is not None:
            parts["recent"] = _recent(history)
            if status.is_classification:
                parts["labels"] = _encode(_labels(status, history))
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

    def _cached(self, name: str, key: Any, encode: Callable[..., str], *arguments: Any) -> str:
        """The text of a part; encoded only if `key` has changed since the last call."""
        kept = self._cache.get(name)
        if kept is None or kept[0] != key:
            self._cache[name] = key, encode(*arguments)
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


def _run(status: RunStatus) -> dict[str, Any]:
    options, bank = status.options, status.bank
    classes = [str(label) for label in bank.classes]
    source = _source(status)
    return {
        "title": f"{options.target} from {PurePath(source).name or source}",
        "task": options.task,
        "target": options.target,
        "details": _details(status),
        "slots": list(bank.names),
        "slot_terms": slot_terms(bank.names),
        "coverage": options.coverage,
        "weights_of": classes[0] if len(classes) > 2 else "",
        "classes": classes,
        "time": options.time,
        "inputs": [
            {"kind": one.kind, "name": one.name, "labels": list(one.labels)}
            for one in drawn_inputs(status.layout, bank)
        ],
    }


def _source(status: RunStatus) -> str:
    address = status.source.get("address")
    return str(status.source.get("kind", "") if address in (None, "-") else address)


def _details(status: RunStatus) -> list[list[Any]]:
    options = status.options
    data = [
        ["source", _source(status)],
        ["target", options.target],
        ["numeric inputs", _listed(status.features)],
    ]
    for column in options.categorical:
        found = [category for name, category in status.categories if name == column]
        beyond = status.categories_beyond.get(column)
        more = f"; {_beyond(beyond)}" if beyond else ""
        data.append([f"categories of {column}", _listed(found) + more])
    if options.time:
        data.append(["time", options.time])
    for address in status.predictions:
        data.append(["predictions", address])
    chosen = [
        ["task", options.task],
        ["slots", f"{len(status.bank.names)} ({options.preset}, size {options.size})"],
        ["lagged targets", options.lags],
        ["delay of targets", f"{options.delay} rows"],
        ["bad rows", "stop at the first" if options.on_bad_row == "stop" else "skip"],
        ["missing inputs", "allowed" if options.allow_missing else "are bad rows"],
        ["missing targets", "predicted" if options.predict_missing else "are bad rows"],
    ]
    if not status.is_classification:
        chosen.append(["coverage of intervals", f"{100 * options.coverage:.4g} %"])
        for name, bound in (("lower", options.lower), ("upper", options.upper)):
            if bound is not None:
                chosen.append([f"{name} bound of targets", f"{bound:.12g}"])
    versions = status.timings["versions"].items()
    sections = {"Data": data, "Settings": chosen, "Versions": versions}
    return [[name, [[a, str(b)] for a, b in pairs]] for name, pairs in sections.items()]


def _beyond(counts: Mapping[str, int]) -> str:
    return (
        f"{counts['categories']:,} more, in {counts['rows']:,} rows, have no input of their own: "
        "they count by their mean target"
    )


_SLOT_TERMS = {
    "standard": "inputs in standard units: mean 0, standard deviation 1",
    "asinh": "inputs in standard units, with large values compressed by asinh",
    "rank": "inputs by their rank among the last 1,000 rows",
    "random features": "least squares on random features of Gaussian kernels, narrow and wide, of "
    "one input, a few inputs and all inputs",
    "linear": "linear least squares",
    "no forgetting": "all rows count the same",
    "forgetting": "old rows are slowly forgotten",
    "adaptive bias": "old rows are slowly forgotten, and the constant follows the last errors",
    "tree": "a partition tree: one prediction per cell of the inputs; cells are split as rows come",
    "+ tree": "plus a partition tree that learns the residual",
}
"""What the phrases in names of default slots mean."""


def slot_terms(names: Iterable[str]) -> list[list[str]]:
    """The phrases in names such as "rank: linear, adaptive bias + tree 1", and their meanings."""
    phrases = {
        phrase.rstrip(" 0123456789")
        for name in names
        for phrase in name.replace(" + ", ", + ").replace(": ", ", ").split(", ")
    }
    return [[term, meaning] for term, meaning in _SLOT_TERMS.items() if term in phrases]


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
    """Row, kind and input of each change; the row after which it was noticed, with the delay."""
    names = status.features
    return [
        [
            change.row + status.options.delay,
            change.what,
            names[change.column] if 0 <= change.column < len(names) else "",
        ]
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
        fields[name] = _numbers(history.totals[name][group], 12 if name in COUNTS else 7)
    for name in EXTREMES:
        digits = TIME_DIGITS if name.startswith("time") else 6
        fields[name] = _numbers(history.extremes[name][group], digits)
    fields["weights"] = _encode(_ten_thousandths(history.weights[group]))
    fields["weights_high"] = _encode(_ten_thousandths(history.highest_weights[group]))
    losses = history.losses[group].tolist()
    fields["losses"] = f"[{','.join(_numbers(row, 5) for row in losses)}]"
    return _object(fields)


def _curves(taken: Snapshot, inputs: Sequence[int] | None = None) -> str:
    """The lines of a snapshot; `inputs` are the numbers of its inputs, None if it has all."""
    names = ("x", "prediction", "low", "high")
    lines = []
    for number, values in zip(inputs or range(len(taken.values)), taken.values, strict=True):
        seen = values[:, np.isfinite(values[0])]
        line = {name: _numbers(one, 6) for name, one in zip(names, seen, strict=True)}
        lines.append(_object({"input": str(number), **line}))
    return _object({"row": str(taken.row), "lines": f"[{','.join(lines)}]"})


def _recent(history: History) -> str:
    recent = history.recent
    texts = {name: _numbers(recent[name], 7) for name in FIELDS}
    return _object({**texts, "time": _numbers(recent["time"], TIME_DIGITS)})


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


# --- JSON -----------------------------------------------------------------------------------------


def _encode(value: Any) -> str:
    """JSON; numbers that are not finite become null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value


def _object(texts: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}"


def _numbers(values: Iterable[float], digits: int) -> str:
    """Numbers with `digits` significant digits: more cannot be seen, and would fill the page."""
    form = f"%.{digits}g"
    return f"[{','.join(form % v if math.isfinite(v) else 'null' for v in values)}]"


def _ten_thousandths(weights: Floats) -> list[list[int]]:
    """Weights (points, P) as whole numbers, 10,000 for a weight of 1; NaN becomes 0."""
    return np.rint(1e4 * np.clip(np.nan_to_num(weights), -1e6, 1e6)).astype(int).tolist()


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(names[:LISTED])
    return f"{some}, ... ({len(names)})" if len(names) > LISTED else some or "none"

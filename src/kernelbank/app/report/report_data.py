"""The story of a run: parts by name, each a text of JSON, for a page to draw.

A file holds all parts; a page that follows a run is sent those that have changed. So what is long
is cut into parts that stay as they are: the points of the history in runs of POINTS, and every
snapshot for itself.

- run: what ran, the names of slots and inputs; now: how far it is; changes; bad
- points/K: figures, weights and losses of the points K * POINTS, K * POINTS + 1, ...
- snapshot/ROW: the function after so many rows; snapshot/now: the present one
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from ...utils.validation import Floats
from ..runner.history import EXTREMES, TOTALS, History, Snapshot
from ..runner.snapshots import snapshot_inputs, take_snapshot
from ..runner.status import RunStatus

POINTS = 32
"""Points of a part."""

WHOLE = ("rows", "scored", "covered")
"""Figures that count something."""

CATEGORIES = 12
"""So many of a column are named."""


class Story:
    """Tells a run again and again; what has not changed is not put into words anew."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Any, str]] = {}
        self._now: str | None = None

    def parts(self, status: RunStatus, *, present: bool = True) -> dict[str, str]:
        """The present parts. Without `present`, the function of now is that told last."""
        told = {
            "run": _text(_run(status)),
            "now": _text(_now(status)),
            "changes": _text(_changes(status)),
            "bad": _text(_bad(status)),
        }
        history = status.history
        if history is not None:
            for first in range(0, history.points, POINTS):
                name = f"points/{first // POINTS}"
                count = min(history.points - first, POINTS)
                rows = min(history.rows - first * history.stride, count * history.stride)
                told[name] = self._once(name, (history.stride, rows), _points, history, first)
            for one in history.snapshots:
                name = f"snapshot/{one.row}"
                told[name] = self._once(name, one, _snapshot, one)
            coverage, features = status.options.coverage, len(status.features)
            if present or self._now is None:
                found = take_snapshot(status.bank, history, features, coverage)
                self._now = None if found is None else _snapshot(found)
            if self._now is not None:
                told["snapshot/now"] = self._now
        self._kept = {name: kept for name, kept in self._kept.items() if name in told}
        return told

    def _once(self, name: str, key: Any, tell: Any, *about: Any) -> str:
        """The part as it was told last, if it was about the same."""
        kept = self._kept.get(name)
        if kept is None or kept[0] != key:
            self._kept[name] = key, tell(*about)
        return self._kept[name][1]


# --- parts ----------------------------------------------------------------------------------------


def _run(status: RunStatus) -> dict[str, Any]:
    options, bank = status.options, status.bank
    labels = options.task == "classification"
    classes = [str(label) for label in bank.classes]
    source = _source(status)
    return {
        "title": f"{options.target} from {PurePath(source).name or source}",
        "task": options.task,
        "target": options.target,
        "status": status.phase,
        "facts": _facts(status),
        "slots": list(bank.names),
        "coverage": options.coverage,
        "weights_of": classes[0] if len(classes) > 2 else "",
        "loss": "wrong answers" if labels else "squared error",
        "classes": classes,
        "columns": snapshot_inputs(status.features, bank, options.target),
    }


def _source(status: RunStatus) -> str:
    address = status.source.get("address")
    return str(status.source.get("kind", "") if address in (None, "-") else address)


def _facts(status: RunStatus) -> list[list[Any]]:
    options, timings = status.options, status.timings
    data = [
        ["source", _source(status)],
        ["target", options.target],
        ["numeric inputs", _listed(status.features)],
    ]
    for column in options.categorical:
        levels = [level for name, level in status.categories if name == column]
        data.append([f"categories of {column}", _listed(levels)])
    if options.time:
        data.append(["time", options.time])
    for place in status.predictions:
        data.append(["predictions", place])
    told = [
        ["task", options.task],
        ["slots", f"{options.preset}, size {options.size}: {len(status.bank.names)}"],
        ["lagged targets", options.lags],
        ["delay of targets", f"{options.delay} rows"],
        ["coverage of intervals", f"{100 * options.coverage:.4g} %"],
        ["bad rows", "stop at the first" if options.on_bad_row == "stop" else "skipped"],
        ["missing inputs", "allowed" if options.allow_missing else "are bad rows"],
        ["missing targets", "predicted" if options.predict_missing else "are bad rows"],
    ]
    when = [
        ["begun", timings["started"]],
        ["as of", timings["updated"]],
        ["starts", timings["starts"]],
    ]
    sections = {
        "Data": data,
        "Settings": told,
        "Time": when,
        "Versions": timings["versions"].items(),
    }
    return [[name, [[a, str(b)] for a, b in pairs]] for name, pairs in sections.items()]


def _now(status: RunStatus) -> dict[str, Any]:
    history, timings = status.history, status.timings
    seconds = sum(timings["seconds"].values())
    return {
        "rows": status.rows,
        "stride": 1 if history is None else history.stride,
        "points": 0 if history is None else history.points,
        "bad": status.rejected.count,
        "without_target": status.rows_without_target,
        "seconds": seconds,
        "speed": status.rows / seconds if seconds else None,
        "time": [[part, spent] for part, spent in timings["seconds"].items()],
        "started": timings["started"],
        "starts": timings["starts"],
        "updated": timings["updated"],
    }


def _changes(status: RunStatus) -> list[list[Any]]:
    """Signals, at the row after which they were noticed: targets come with a delay."""
    names = status.features
    return [
        [
            change.row + status.options.delay,
            change.what,
            names[change.column] if 0 <= change.column < len(names) else "",
        ]
        for change in status.bank.ledger.changes
    ]


def _bad(status: RunStatus) -> dict[str, Any]:
    rejected = status.rejected
    return {"count": rejected.count, "examples": [*rejected.first, *rejected.last]}


def _points(history: History, first: int) -> str:
    some = slice(first, first + POINTS)
    told = {"stride": str(history.stride)}
    for name in TOTALS:
        told[name] = _numbers(history.totals[name][some], 12 if name in WHOLE else 7)
    for name in EXTREMES:
        told[name] = _numbers(history.extremes[name][some], 6)
    told["weights"] = _text(_shares(history.weights[some]))
    told["weights_high"] = _text(_shares(history.highest_weights[some]))
    told["losses"] = _rows(history.losses[some])
    return _object(told)


def _snapshot(taken: Snapshot) -> str:
    names = ("at", "middle", "low", "high")
    lines = [
        _object({name: _numbers(line, 6) for name, line in zip(names, lines, strict=True)})
        for lines in taken.values
    ]
    return _object({"row": str(taken.row), "lines": f"[{','.join(lines)}]"})


# --- texts ----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    """JSON; what is not finite is null."""
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
    """Numbers with so many digits: more cannot be seen, and would fill the page."""
    shown = f"%.{digits}g"
    return f"[{','.join(shown % v if math.isfinite(v) else 'null' for v in values)}]"


def _rows(values: Floats) -> str:
    return f"[{','.join(_numbers(row, 5) for row in values.tolist())}]"


def _shares(values: Floats) -> list[list[int]]:
    """In ten-thousandths. Before there is a bank, weights are equal."""
    return np.rint(1e4 * np.clip(np.nan_to_num(values), -1e6, 1e6)).astype(int).tolist()


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(names[:CATEGORIES])
    return f"{some}, ... ({len(names)})" if len(names) > CATEGORIES else some or "none"

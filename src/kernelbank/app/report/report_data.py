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
from ..runner.snapshots import drawn, snapshot
from .run_snapshot import Account

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

    def parts(self, account: Account, *, present: bool = True) -> dict[str, str]:
        """The present parts. Without `present`, the function of now is that told last."""
        told = {
            "run": _text(_run(account)),
            "now": _text(_now(account)),
            "changes": _text(_changes(account)),
            "bad": _text(_bad(account)),
        }
        history = account.history
        if history is not None:
            for first in range(0, history.points, POINTS):
                name = f"points/{first // POINTS}"
                count = min(history.points - first, POINTS)
                rows = min(history.rows - first * history.stride, count * history.stride)
                told[name] = self._once(name, (history.stride, rows), _points, history, first)
            for one in history.snapshots:
                name = f"snapshot/{one.row}"
                told[name] = self._once(name, one, _snapshot, one)
            coverage, features = account.settings.coverage, len(account.features)
            if present or self._now is None:
                found = snapshot(account.bank, history, features, coverage)
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


def _run(account: Account) -> dict[str, Any]:
    settings, bank = account.settings, account.bank
    labels = settings.task == "classification"
    classes = [str(label) for label in bank.classes]
    source = _source(account)
    return {
        "title": f"{settings.target} from {PurePath(source).name or source}",
        "task": settings.task,
        "target": settings.target,
        "status": account.status,
        "facts": _facts(account),
        "slots": list(bank.names),
        "coverage": settings.coverage,
        "weights_of": classes[0] if len(classes) > 2 else "",
        "loss": "wrong answers" if labels else "squared error",
        "classes": classes,
        "columns": drawn(account.features, bank, settings.target),
    }


def _source(account: Account) -> str:
    address = account.source.get("address")
    return str(account.source.get("kind", "") if address in (None, "-") else address)


def _facts(account: Account) -> list[list[Any]]:
    settings, diary = account.settings, account.diary
    data = [
        ["source", _source(account)],
        ["target", settings.target],
        ["numeric inputs", _listed(account.features)],
    ]
    for column in settings.categorical:
        levels = [level for name, level in account.levels if name == column]
        data.append([f"categories of {column}", _listed(levels)])
    if settings.time:
        data.append(["time", settings.time])
    for place in account.places:
        data.append(["predictions", place])
    told = [
        ["task", settings.task],
        ["slots", f"{settings.preset}, size {settings.size}: {len(account.bank.names)}"],
        ["lagged targets", settings.lags],
        ["delay of targets", f"{settings.delay} rows"],
        ["coverage of intervals", f"{100 * settings.coverage:.4g} %"],
        ["bad rows", "stop at the first" if settings.on_bad_row == "stop" else "set aside"],
        ["missing inputs", "allowed" if settings.allow_missing else "are bad rows"],
        ["missing targets", "predicted" if settings.predict_missing else "are bad rows"],
    ]
    when = [["begun", diary["started"]], ["as of", diary["updated"]], ["starts", diary["starts"]]]
    sections = {"Data": data, "Settings": told, "Time": when, "Versions": diary["versions"].items()}
    return [[name, [[a, str(b)] for a, b in pairs]] for name, pairs in sections.items()]


def _now(account: Account) -> dict[str, Any]:
    history, diary = account.history, account.diary
    seconds = sum(diary["seconds"].values())
    return {
        "rows": account.rows,
        "stride": 1 if history is None else history.stride,
        "points": 0 if history is None else history.points,
        "bad": account.aside.count,
        "without_target": account.without_target,
        "seconds": seconds,
        "speed": account.rows / seconds if seconds else None,
        "time": [[part, spent] for part, spent in diary["seconds"].items()],
        "started": diary["started"],
        "starts": diary["starts"],
        "updated": diary["updated"],
    }


def _changes(account: Account) -> list[list[Any]]:
    """Signals, at the row after which they were noticed: targets come with a delay."""
    names = account.features
    return [
        [
            change.row + account.settings.delay,
            change.what,
            names[change.column] if 0 <= change.column < len(names) else "",
        ]
        for change in account.bank.ledger.changes
    ]


def _bad(account: Account) -> dict[str, Any]:
    aside = account.aside
    return {"count": aside.count, "examples": [*aside.first, *aside.last]}


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

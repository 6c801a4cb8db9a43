"""The data of a report: parts by name, each a JSON text, which the page draws.

A file holds all parts; a live page gets the parts that have changed. So long data are cut into
parts that stay the same: the points of the history in groups of 32, each set of prediction curves
by itself.

- run: title, task, settings, names of slots and inputs
- status: progress, errors and times at this moment
- recent: the last rows, one by one; worst_rows: those with the largest losses
- categories: errors by category
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

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath

import numpy as np

from ...auto import AutoBank
from ...auto.inputs import ColumnEncoder
from ...errors import RunRefused
from ...io.files import named_os_errors
from ...utils.validation import Floats
from ..history import DRAWN_TARGETS, FIELDS, NO_CATEGORY, History, Snapshot
from ..scores import EXTREMES, TOTALS
from ..status import RunStatus, finite, forecast_scores, recent_errors
from .page import render_page

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
        self._cache: dict[str, tuple[object, str]] = {}
        self._present_curves: str | None = None
        self._others: dict[int, ReportData] = {}
        """By the number of another target: what makes its parts."""

    def parts(self, status: RunStatus, *, curves: bool = True) -> dict[str, str]:
        """The present parts. With `curves=False`, the present curves are those of the last call."""
        parts = self._parts_of_target(status, curves=curves)
        for target in status.each_target[1:DRAWN_TARGETS]:
            data = self._others.setdefault(target.output, ReportData())
            target_parts = data._parts_of_target(target, curves=curves)
            prefix = f"targets/{target.output}/"
            parts |= {
                prefix + name: text for name, text in target_parts.items() if name not in SHARED
            }
        return parts

    def _parts_of_target(self, status: RunStatus, *, curves: bool) -> dict[str, str]:
        rejected = status.rejected
        bad_rows = {"count": rejected.count, "examples": [*rejected.first, *rejected.last]}
        parts = {
            "run": encode(run_details(status)),
            "status": encode(_status(status)),
            "changes": encode(status.change_groups),
            "bad_rows": encode(bad_rows),
        }
        if status.options.horizons:
            parts["forecasts"] = encode(forecast_part(status))
        history = status.history
        if history is not None:
            parts["recent"] = _recent(history)
            parts["worst_rows"] = encode(_worst(status, history))
            parts["categories"] = encode(_categories(status, history))
            if status.is_classification:
                parts["labels"] = encode(_labels(status, history))
            function = status.curves
            for first in range(0, history.points, POINTS_PER_PART):
                name = f"points/{first // POINTS_PER_PART}"
                count = min(history.points - first, POINTS_PER_PART)
                rows = min(history.rows - first * history.stride, count * history.stride)
                parts[name] = self._cached(
                    name, (history.stride, rows), partial(_points, history, first)
                )
            for taken in history.snapshots:
                name = f"curves/{taken.row}"
                parts[name] = self._cached(name, taken, partial(_curves, taken, function.recorded))
            if curves or self._present_curves is None:
                present = function.snapshot(history, recorded=False)
                self._present_curves = None if present is None else _curves(present)
            if self._present_curves is not None:
                parts["curves/now"] = self._present_curves
        self._cache = {name: text for name, text in self._cache.items() if name in parts}
        return parts

    def _cached(self, name: str, key: object, make: Callable[[], str]) -> str:
        """The text of a part; encoded only if `key` has changed since the last call."""
        cached = self._cache.get(name)
        if cached is None or cached[0] != key:
            self._cache[name] = key, make()
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


def _status(status: RunStatus) -> dict[str, object]:
    """The object of the JSON log, and what only the page shows."""
    history = status.history
    return {
        **status.to_json(),
        "phase": status.phase,
        "scored": status.scored,
        "stride": 1 if history is None else history.stride,
        "points": 0 if history is None else history.points,
        "recent_errors": None if history is None else recent_errors(history),
        "updated": status.times["updated"],
    }


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
        line = {name: json_numbers(numbers, 6) for name, numbers in zip(names, seen, strict=True)}
        lines.append(json_object({"input": str(number), **line}))
    return json_object({"row": str(taken.row), "lines": f"[{','.join(lines)}]"})


def _recent(history: History) -> str:
    recent = history.recent
    texts = {name: json_numbers(recent[name], 7) for name in FIELDS}
    return json_object({**texts, "time": json_numbers(recent["time"], TIME_DIGITS)})


def _worst(status: RunStatus, history: History) -> list[dict[str, object]]:
    """The rows with the largest losses, the largest first."""
    names = [str(label) for label in status.bank.classes]
    rows = []
    for _, number, *fields in history.worst.rows.tolist():
        row: dict[str, object] = {"row": int(number), **dict(zip(FIELDS, fields, strict=True))}
        if status.is_classification:
            for name, value in zip(("target", "prediction"), fields[1:3], strict=True):
                row[name] = None if math.isnan(value) else names[int(value)]
        rows.append(row)
    return rows


LISTED_CATEGORIES = 20
"""The most categories of a column whose errors are listed."""


def _categories(status: RunStatus, history: History) -> list[dict[str, object]]:
    """For each column of categories [name, rows, error, error of the baseline] of those that cost
    most, the largest summed loss first."""
    encoder = status.bank.encoder
    tables: list[dict[str, object]] = []
    for number, column in enumerate(status.options.categorical):
        rows = [
            (losses, code, count, baseline)
            for (place, code), (count, losses, baseline) in history.categories.sums.items()
            if place == number
        ]
        rows.sort(key=lambda row: -row[0])
        listed = [
            [
                _category_name(encoder, column, code),
                int(count),
                status.error_of(losses, count),
                status.error_of(baseline, count),
            ]
            for losses, code, count, baseline in rows[:LISTED_CATEGORIES]
        ]
        tables.append({"column": column, "rows": listed, "more": len(rows) - len(listed)})
    return tables


def _category_name(encoder: ColumnEncoder | None, column: str, code: float) -> str:
    if math.isinf(code):
        return "(missing)" if code == NO_CATEGORY else "(further categories)"
    statistics = None if encoder is None else encoder.statistics_of(column)
    return statistics.name(code) if statistics and code in statistics else "(not learned yet)"


def _labels(status: RunStatus, history: History) -> dict[str, object]:
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


SHOWN_REVISIONS = 3
"""How many of the last changes of slots are listed."""

LISTED = 12
"""Names that are listed before the rest is only counted."""


def run_details(status: RunStatus) -> dict[str, object]:
    """The part "run" of a report."""
    options, bank = status.options, status.bank
    classes = [str(label) for label in bank.classes]
    source = _source(status)
    return {
        "title": f"{_first_names(options.targets)} from {PurePath(source).name or source}",
        "task": options.task,
        "target": status.target,
        "targets": list(options.targets[:DRAWN_TARGETS]),
        "more_targets": max(len(options.targets) - DRAWN_TARGETS, 0),
        "details": _details(status),
        "slots": list(bank.names),
        "slot_terms": slot_terms(bank.names),
        "coverage": options.coverage,
        "weights_of": classes[0] if len(classes) > 2 else "",
        "classes": classes,
        "positive": options.rare,
        "time": options.time,
        "timezone": options.timezone,
        "inputs": [
            {"kind": drawn.kind, "name": drawn.name, "labels": list(drawn.labels)}
            for drawn in status.curves.inputs
        ],
    }


def _first_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[:3] if more else names) + more


def _source(status: RunStatus) -> str:
    address = status.source.get("address")
    return str(status.source.get("kind", "") if address in (None, "-") else address)


def _details(status: RunStatus) -> list[tuple[str, list[list[str]]]]:
    """Sections of names and values."""
    options = status.options
    data = [
        ["source", _source(status)],
        ["target" if len(options.targets) == 1 else "targets", ", ".join(options.targets)],
        ["numeric inputs", _listed(status.features)],
    ]
    for column in options.categorical:
        categories = [category for name, category in status.categories if name == column]
        listed = _listed(categories)
        if beyond := status.categories_beyond.get(column):
            listed += (
                f"; {beyond['categories']:,} more, in {beyond['rows']:,} rows, have no input of "
                "their own: they count by their mean target"
            )
        data.append([f"categories of {column}", listed])
    if options.time:
        data.append(["time", options.time])
    data += [["predictions", address] for address in status.predictions]
    periods = ", ".join(map(str, status.bank.periods)) if options.seasons else ""
    if periods:
        periods += " rows (found)" if options.periods == "auto" else " rows"
    ahead, horizons = ", ".join(map(str, options.horizons)), options.horizons
    if len(horizons) > 2 and horizons == tuple(range(1, len(horizons) + 1)):
        ahead = f"1 to {len(horizons)}"
    forecasts = [["forecasts", f"{ahead} row{'s' * (ahead != '1')} ahead"]] if ahead else []
    forecasts += [["known in advance", _listed(options.known)]] if options.known else []
    without_target = "predicted" if options.predict_missing else "are bad rows"
    if len(options.targets) > 1:
        rows = "are predicted" if options.predict_missing else "are bad rows"
        without_target = f"rows are learned for the others; rows without any {rows}"
    bank = status.bank.bank
    running = len(status.bank.names) if bank is None else len(bank.slots)
    chosen: list[Sequence[object]] = [
        ["task", options.task],
        ["slots", f"{running} ({options.preset}, size {options.size})"],
        *_slot_changes(status),
        ["lagged targets", options.lags],
        ["seasons", periods or ("none found" if options.seasons else "none")],
        *forecasts,
        ["delay of targets", f"{options.delay} rows"],
        ["bad rows", "stop at the first" if options.on_bad_row == "stop" else "skip"],
        ["missing inputs", "allowed" if options.allow_missing else "are bad rows"],
        ["missing targets", without_target],
    ]
    if not status.is_classification:
        chosen.append(["coverage of intervals", f"{100 * options.coverage:.4g} %"])
        for name, bound in (("lower", options.lower), ("upper", options.upper)):
            if bound is not None:
                chosen.append([f"{name} bound of targets", f"{bound:.12g}"])
    if options.rare is not None:
        from_share = f"{options.rare}, predicted from a probability of {options.threshold:g} on"
        chosen.append(["positive label", from_share])
    starts = status.times["starts"]
    versions = [*status.times["versions"].items(), ("first started", status.times["started"])]
    versions += [("started", f"{starts:,} times")] if starts > 1 else []
    sections: list[tuple[str, Sequence[Sequence[object]]]] = [
        ("Data", data),
        ("Settings", chosen),
        ("Versions and times", versions),
    ]
    return [(name, [[str(a), str(b)] for a, b in pairs]) for name, pairs in sections]


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
    "relevant": "inputs, last targets and the inputs of the row before, by how much they matter",
    "past": "inputs, last targets and the inputs of the row before",
    "wide": "with kernels of larger widths",
    "medium": "with kernels of medium widths",
    "narrow": "with kernels of smaller widths",
    "all inputs": "with kernels of all inputs only",
    "last value": "the last target again",
    "nearest neighbors": "a small Gaussian process on the nearest of many past rows",
    "nearest neighbors on some inputs": "the same, near in a random half of the inputs",
    "width": "how far neighbors count, in standard deviations times the root of the inputs",
    "noise": "which part of the target's variance is taken for noise",
    "tree": "a partition tree: one prediction per cell of the inputs; cells are split as rows come",
    "+ linear": "plus linear least squares on the residual",
    "+ random features": "plus random features on the residual",
    "+ nearest neighbors": "plus nearest neighbors on the residual",
    "+ tree": "plus a partition tree that learns the residual",
    "season": "with the targets of earlier periods and the phase as inputs",
    "boosted trees": "trees on all inputs, each grown on what the ones before leave",
}
"""What the phrases in names of default slots mean."""


def _slot_changes(status: RunStatus) -> list[list[str]]:
    """Which slots were retired and added, for each of the last times, the newest first."""
    by_row: dict[int, dict[str, list[str]]] = {}
    for change in status.bank.ledger.slot_changes:
        by_row.setdefault(change.sample, {}).setdefault(change.kind, []).append(change.name)
    return [
        [f"slots {kind} after row {row:,}", _listed(kinds[kind])]
        for row, kinds in list(reversed(by_row.items()))[:SHOWN_REVISIONS]
        for kind in ("added", "retired")
        if kind in kinds
    ]


def slot_terms(names: Iterable[str]) -> list[list[str]]:
    """The phrases in names such as "rank: linear, adaptive bias + tree 1", and their meanings."""
    phrases = {
        phrase.rstrip(" .0123456789")
        for name in names
        for phrase in name.replace(" + ", ", + ").replace(": ", ", ").split(", ")
    }
    return [[term, meaning] for term, meaning in _SLOT_TERMS.items() if term in phrases]


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(names[:LISTED])
    return f"{listed}, ... ({len(names)})" if len(names) > LISTED else listed or "none"


MOST_SLOTS = 10
"""The most slots whose weights are shown; the others are summed up."""

MOST_PAST = 200
"""The most targets before the forecasts."""


BY_HORIZON = ("scored", "error", "last_value", "seasonal", "coverage", "width")
"""The scores of a horizon that the page draws."""


def forecast_part(status: RunStatus) -> dict[str, object]:
    """What the page shows of forecasts; null instead of a fan where there is none."""
    bank, options = status.bank, status.options
    scores = forecast_scores(bank)
    return {
        "horizons": list(options.horizons),
        "known": list(options.known),
        "delay": options.delay,
        "seasons": bool(bank.periods),
        "fan": _fan(bank, options.coverage) if bank.samples and not options.known else None,
        **{name: [getattr(score, name) for score in scores] for name in BY_HORIZON},
        "weights": _weights(bank) if bank.samples else [],
    }


def _fan(bank: AutoBank, coverage: float) -> dict[str, object]:
    forecast = bank.forecast(coverage=coverage)
    series = {
        "past": forecast.history[-MOST_PAST:],
        "point": forecast.point,
        "low": forecast.lower,
        "high": forecast.upper,
        "inner_low": forecast.quantiles[0.25],
        "inner_high": forecast.quantiles[0.75],
    }
    # Seven digits: more cannot be seen.
    short = {name: [float(f"{y:.7g}") for y in values] for name, values in series.items()}
    return {"rows": forecast.samples, **short}


def _weights(bank: AutoBank) -> list[list[object]]:
    """[name, weights by horizon] of the slots that matter most at some horizon; the others last."""
    weights = bank.forecast_weights
    if not weights:
        return []
    names, values = list(weights), np.array(list(weights.values()))
    sizes = np.abs(values).max(axis=1)
    order = np.argsort(-sizes, kind="stable").tolist()
    chosen = sorted(slot for slot in order[:MOST_SLOTS] if sizes[slot] > 0)
    others = [slot for slot in order[MOST_SLOTS:] if sizes[slot] > 0]
    rows = [[names[slot], shares] for slot, shares in zip(chosen, values[chosen], strict=True)]
    if others:
        rows.append([f"{len(others)} others", values[others].sum(axis=0)])
    return [[name, ten_thousandths(shares[None])[0]] for name, shares in rows]


def encode(value: object) -> str:
    """JSON; numbers that are not finite become null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(finite(value), separators=(",", ":"))


def json_object(texts: dict[str, str]) -> str:
    """A JSON object of values that are JSON already."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}"


def json_numbers(values: Iterable[float], digits: int) -> str:
    """Numbers with `digits` significant digits: more cannot be seen, and would fill the page."""
    form = f"%.{digits}g"
    return f"[{','.join(form % v if math.isfinite(v) else 'null' for v in values)}]"


def ten_thousandths(weights: Floats) -> list[list[int]]:
    """Weights (points, P) as whole numbers, 10,000 for a weight of 1; NaN becomes 0."""
    rounded = np.rint(1e4 * np.clip(np.nan_to_num(weights), -1e6, 1e6)).astype(int)
    return [row.tolist() for row in rounded]

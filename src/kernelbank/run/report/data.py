"""The data of a report, which the page draws: a JSON object of parts.

- run: title, task, settings, names of slots and inputs
- status: progress, errors and times at this moment
- recent: the last rows, one by one; worst_rows: those with the largest losses
- categories: errors by category
- forecasts: those from the last row, and scores by horizon, with --horizon
- labels: confusion matrix and reliability, for classification
- changes: changes of the stream that were detected, in groups; bad_rows: rows that could not be
  used
- points: totals, weights and losses of all points
- curves: the predictions along each numeric input

With several targets these parts are of the first; those of the others, up to DRAWN_TARGETS, have
the prefix `targets/K/`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import numpy as np

from ...auto import AutoBank
from ...auto.inputs import ColumnEncoder
from ...errors import RunRefused
from ...io.files import named_os_errors
from ...utils.validation import Floats
from ..history import DRAWN_TARGETS, FIELDS, NO_CATEGORY, History
from ..options import OPTIONS, flag, option_text
from ..status import RunStatus, finite, forecast_scores
from .page import render_page

SHARED = ("changes", "bad_rows")
"""Parts that are the same for all targets."""

COUNTS = ("rows", "scored", "covered")
"""Totals that are whole numbers, for regression."""

TIME_DIGITS = 13
"""Of times in seconds since 1970: milliseconds."""


def report_text(status: RunStatus) -> str:
    """The report of a run as JSON text."""
    parts = _parts(status)
    for target in status.each_target[1:DRAWN_TARGETS]:
        prefix = f"targets/{target.output}/"
        texts = _parts(target)
        parts |= {prefix + name: text for name, text in texts.items() if name not in SHARED}
    return json_object(parts)


def _parts(status: RunStatus) -> dict[str, str]:
    """The parts of one target, as JSON texts."""
    history, rejected = status.history, status.rejected
    parts = {
        "run": encode(run_details(status)),
        "status": encode(_status(status)),
        "changes": encode(status.change_groups),
        "bad_rows": encode({"count": rejected.count, "examples": rejected.first}),
        "recent": _recent(history),
        "worst_rows": encode(_worst(status, history)),
        "categories": encode(_categories(status, history)),
        "points": _points(history),
        "curves": _curves(status),
    }
    if status.options.horizons:
        parts["forecasts"] = encode(forecast_part(status))
    if status.is_classification:
        parts["labels"] = encode(_labels(status, history))
    return parts


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
    page = render_page(report_text(status))
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
        "stride": history.stride,
        "points": history.points,
        "updated": status.times["updated"],
    }


def _points(history: History) -> str:
    fields = {"stride": str(history.stride)}
    for name, totals in history.totals.items():
        fields[name] = json_numbers(totals, 12 if name in COUNTS else 7)
    for name, extremes in history.extremes.items():
        fields[name] = json_numbers(extremes, TIME_DIGITS if name.startswith("time") else 6)
    fields["weights"] = encode(ten_thousandths(history.weights))
    fields["weights_high"] = encode(ten_thousandths(history.highest_weights))
    fields["losses"] = f"[{','.join(json_numbers(row, 5) for row in history.losses.tolist())}]"
    return json_object(fields)


GRID = 24
"""The values of an input at which the model's function is drawn."""

MOST_INPUTS = 100
"""The most numeric inputs along which it is drawn."""


def _curves(status: RunStatus) -> str:
    """The model's function along each numeric input, the others at their medians.

    For labels the probability of the first class, three times.
    """
    bank, count = status.bank, min(len(status.features), MOST_INPUTS)
    if bank.model is None or not bank.model.banks or not count:
        return "[]"
    middle, low, high = bank.input_ranges().T  # (d,), of which numeric columns are the first
    rows = np.tile(middle, (count, GRID, 1))
    for k in range(count):
        rows[k, :, k] = np.linspace(low[k], high[k], GRID)
    values = bank.predict_inputs(rows.reshape(-1, len(middle)), status.options.coverage)
    if status.is_classification:
        values = np.repeat(values[:, :1], 3, axis=1)
    elif values.ndim == 3:  # (n, K, 3) for K targets
        values = values[:, status.output]
    names = ("x", "prediction", "low", "high")
    lines = []
    for k, line in enumerate(values.reshape(count, GRID, 3)):
        figures = dict(zip(names, (rows[k, :, k], *line.T), strict=True))
        lines.append(json_object({name: json_numbers(y, 6) for name, y in figures.items()}))
    return f"[{','.join(lines)}]"


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
    rows, probability, correct = scores.reliability
    return {
        "labels": [names[k] for k in listed],
        "confusion": table,
        "reliability": [
            [float(p / n), float(c / n), float(n)]
            for n, p, c in zip(rows, probability, correct, strict=True)
            if n
        ],
    }


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
        "coverage": options.coverage,
        "weights_of": classes[0] if len(classes) > 2 else "",
        "classes": classes,
        "positive": options.rare,
        "time": options.time,
        "timezone": options.timezone,
        "inputs": list(status.features[:MOST_INPUTS]),
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
    data = [["source", _source(status)], ["numeric inputs", _listed(status.features)]]
    for column in options.categorical:
        categories = [category for name, category in status.categories if name == column]
        listed = _listed(categories)
        if beyond := status.categories_beyond.get(column):
            listed += (
                f"; {beyond['categories']:,} more, in {beyond['rows']:,} rows, have no input of "
                "their own: they count by their mean target"
            )
        data.append([f"categories of {column}", listed])
    data += [["predictions", address] for address in status.predictions]
    if options.seasons:
        data.append(["seasons", ", ".join(map(str, status.bank.periods)) or "none found"])
    settings = [
        [flag(name), option_text(value)]
        for name, value in options.to_json().items()
        if value != OPTIONS[name].plain_default
    ]
    starts = status.times["starts"]
    versions = [*status.times["versions"].items(), ("first started", status.times["started"])]
    versions += [("started", f"{starts:,} times")] if starts > 1 else []
    times = [[name, str(text)] for name, text in versions]
    return [("Data", data), ("Settings", settings), ("Versions and times", times)]


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(names[:LISTED])
    return f"{listed}, ... ({len(names)})" if len(names) > LISTED else listed or "none"


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

"""What a run is, for the head of its page: title, inputs, settings and names of slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ..several_targets import DRAWN_TARGETS
from ..snapshots import drawn_inputs
from ..status import RunStatus

SHOWN_REVISIONS = 3
"""How many of the last changes of slots are listed."""

LISTED = 12
"""Names that are listed before the rest is only counted."""


def run_details(status: RunStatus) -> dict[str, Any]:
    """The part "run" of a report."""
    options, bank = status.options, status.bank
    classes = [str(label) for label in bank.classes]
    source = _source(status)
    return {
        "title": f"{_some(options.targets)} from {PurePath(source).name or source}",
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
        "time": options.time,
        "inputs": [
            {"kind": one.kind, "name": one.name, "labels": list(one.labels)}
            for one in drawn_inputs(status.layout, bank)
        ],
    }


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[:3] if more else names) + more


def _source(status: RunStatus) -> str:
    address = status.source.get("address")
    return str(status.source.get("kind", "") if address in (None, "-") else address)


def _details(status: RunStatus) -> list[list[Any]]:
    options = status.options
    data = [
        ["source", _source(status)],
        ["target" if len(options.targets) == 1 else "targets", ", ".join(options.targets)],
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
        ["slots", f"{_running(status)} ({options.preset}, size {options.size})"],
        *_slot_changes(status),
        ["lagged targets", options.lags],
        ["seasons", _seasons(status)],
        *_forecasts(status),
        ["delay of targets", f"{options.delay} rows"],
        ["bad rows", "stop at the first" if options.on_bad_row == "stop" else "skip"],
        ["missing inputs", "allowed" if options.allow_missing else "are bad rows"],
        ["missing targets", _missing_targets(status)],
    ]
    if not status.is_classification:
        chosen.append(["coverage of intervals", f"{100 * options.coverage:.4g} %"])
        for name, bound in (("lower", options.lower), ("upper", options.upper)):
            if bound is not None:
                chosen.append([f"{name} bound of targets", f"{bound:.12g}"])
    versions = status.timings["versions"].items()
    sections = {"Data": data, "Settings": chosen, "Versions": versions}
    return [[name, [[a, str(b)] for a, b in pairs]] for name, pairs in sections.items()]


def _missing_targets(status: RunStatus) -> str:
    options = status.options
    if len(options.targets) == 1:
        return "predicted" if options.predict_missing else "are bad rows"
    rows = "are predicted" if options.predict_missing else "are bad rows"
    return f"rows are learned for the others; rows without any {rows}"


def _seasons(status: RunStatus) -> str:
    if not status.options.seasons:
        return "none"
    found = ", ".join(map(str, status.bank.periods))
    auto = status.options.periods == "auto"
    return f"{found} rows{' (found)' if auto else ''}" if found else "none found"


def _forecasts(status: RunStatus) -> list[list[str]]:
    """How far ahead the run forecasts, and with which columns; nothing without --horizon."""
    horizons, known = status.options.horizons, status.options.known
    if not horizons:
        return []
    ahead = ", ".join(map(str, horizons))
    if len(horizons) > 2 and horizons == tuple(range(1, len(horizons) + 1)):
        ahead = f"1 to {len(horizons)}"
    found = [["forecasts", f"{ahead} row{'s' * (horizons[-1] > 1)} ahead"]]
    return found + ([["known in advance", _listed(known)]] if known else [])


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
}
"""What the phrases in names of default slots mean."""


def _running(status: RunStatus) -> int:
    """How many slots run now."""
    bank = status.bank.bank
    return len(status.bank.names) if bank is None else len(bank.slots)


def _slot_changes(status: RunStatus) -> list[list[str]]:
    """Which slots were retired and added, for each of the last times, the newest first."""
    found: dict[int, dict[str, list[str]]] = {}
    for change in status.bank.ledger.slot_changes:
        found.setdefault(change.sample, {}).setdefault(change.kind, []).append(change.name)
    return [
        [f"slots {kind} after row {row:,}", _listed(kinds[kind])]
        for row, kinds in list(reversed(found.items()))[:SHOWN_REVISIONS]
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
    some = ", ".join(names[:LISTED])
    return f"{some}, ... ({len(names)})" if len(names) > LISTED else some or "none"

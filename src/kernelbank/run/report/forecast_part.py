"""The part "forecasts" of a report: those from the last row; scores and weights by horizon."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...auto import AutoBank
from ..forecast_status import forecast_scores
from ..status import RunStatus
from .report_json import ten_thousandths

MOST_SLOTS = 10
"""The most slots whose weights are shown; the others are summed up."""

MOST_PAST = 200
"""The most targets before the forecasts."""


def forecast_part(status: RunStatus) -> dict[str, Any]:
    """What the page shows of forecasts; null instead of a fan where there is none."""
    bank, options = status.bank, status.options
    scores = forecast_scores(bank)
    return {
        "horizons": list(options.horizons),
        "known": list(options.known),
        "delay": options.delay,
        "seasons": bool(bank.periods),
        "fan": _fan(bank, options.coverage) if bank.samples and not options.known else None,
        "scored": [score.scored for score in scores],
        "error": [score.error for score in scores],
        "last_value": [score.last_value for score in scores],
        "seasonal": [score.seasonal for score in scores],
        "coverage": [score.coverage for score in scores],
        "width": [score.width for score in scores],
        "weights": _weights(bank) if bank.samples else [],
    }


def _fan(bank: AutoBank, coverage: float) -> dict[str, Any]:
    forecast = bank.forecast(coverage=coverage)
    return {
        "rows": forecast.samples,
        "past": _short(forecast.history[-MOST_PAST:]),
        "point": _short(forecast.point),
        "low": _short(forecast.lower),
        "high": _short(forecast.upper),
        "inner_low": _short(forecast.quantiles[0.25]),
        "inner_high": _short(forecast.quantiles[0.75]),
    }


def _weights(bank: AutoBank) -> list[list[Any]]:
    """[name, weights by horizon] of the slots that matter most at some horizon; the others last."""
    weights = bank.forecast_weights
    if not weights:
        return []
    names, values = list(weights), np.array(list(weights.values()))
    sizes = np.abs(values).max(axis=1)
    order = np.argsort(-sizes, kind="stable").tolist()
    chosen = sorted(slot for slot in order[:MOST_SLOTS] if sizes[slot] > 0)
    others = [slot for slot in order[MOST_SLOTS:] if sizes[slot] > 0]
    found = [[names[slot], own] for slot, own in zip(chosen, values[chosen], strict=True)]
    if others:
        found.append([f"{len(others)} others", values[others].sum(axis=0)])
    return [[name, ten_thousandths(own[None])[0]] for name, own in found]


def _short(values: np.ndarray) -> list[float]:
    """Numbers with seven digits: more cannot be seen."""
    return [float(f"{value:.7g}") for value in values]

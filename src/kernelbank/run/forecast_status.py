"""How good the forecasts of a run were, by horizon, for logs and pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..auto import AutoBank
from ..auto.forecaster import HorizonScore


def forecast_scores(bank: AutoBank) -> list[HorizonScore]:
    """The scores of all horizons with roots of mean squares as errors, in the target's units."""
    return [
        score._replace(
            error=math.sqrt(score.error),
            last_value=math.sqrt(score.last_value),
            seasonal=math.sqrt(score.seasonal),
        )
        for score in bank.ledger.horizons
    ]


def chosen_scores(scores: Sequence[HorizonScore]) -> list[HorizonScore]:
    """Those of the first, the middle and the last horizon, for a summary."""
    places = sorted({0, (len(scores) - 1) // 2, len(scores) - 1})
    return [scores[place] for place in places if 0 <= place < len(scores)]


def scores_to_json(scores: Sequence[HorizonScore]) -> list[dict[str, Any]]:
    """Scores as objects of the JSON log; None for what is unknown."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in score._asdict().items()
        }
        for score in scores
    ]


def score_text(score: HorizonScore, coverage: float, *, seasons: bool) -> str:
    """One line of a summary."""
    if not score.scored:
        return "not scored yet"
    other = f", of the period before {score.seasonal:.4g}" if seasons else ""
    inside = f"{100 * score.coverage:.1f} % inside their {100 * coverage:.4g} % intervals"
    return f"{score.error:.4g} (last value {score.last_value:.4g}{other}), {inside}"

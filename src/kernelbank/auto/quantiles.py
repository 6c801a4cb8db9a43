"""Quantiles of the target as outputs of one bank, each with its pinball loss.

All outputs have the same target. The slots learn its mean by squares, which they share; some are
shifted by gradient steps on the pinball loss of their output, and every output has its own weights.
Predictions of a row are put in order, so that no quantiles cross; this never raises the sum of
their losses (Chernozhukov, Fernandez-Val and Galichon 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..losses import Pinball
from ..utils.validation import Floats
from .config import AutoConfig
from .model import Model


class QuantileScore(NamedTuple):
    """How good the quantiles of one level were.

    level : the share of targets that should lie below.
    scored : how many.
    pinball : mean pinball loss.
    conformal : the same of the end, at this level, of the interval that is calibrated by past
        errors (`predict_interval`).
    below : the share of targets below.
    """

    level: float
    scored: int
    pinball: float
    conformal: float
    below: float


def quantile_config(config: AutoConfig) -> AutoConfig:
    """The settings of the model of quantiles: those of the AutoBank, with a loss for each level."""
    losses = tuple(Pinball(level) for level in config.quantiles)
    none: dict[str, Any] = {"seasons": None, "horizons": (), "known": (), "quantiles": ()}
    return replace(config, loss=losses[len(losses) // 2], losses=losses, **none)


class Quantiles:
    """The quantiles of a model for one target.

    Parameters
    ----------
    model : with an output for each level, all with the same target, and `quantile_config`.
    levels : between 0 and 1, ascending.
    """

    def __init__(self, model: Model, levels: Sequence[float]) -> None:
        self.model, self.levels = model, tuple(levels)
        self.totals = np.zeros((len(self.levels), 3))
        """Sums of pinball losses, of those of calibrated ends, and how many targets lay below."""
        self.scored = 0

    def predict(self, X: Floats) -> Floats:
        """(n, Q): quantiles of rows (n, d), each as the next one; changes nothing."""
        pasts = np.tile(self.model.past_row(), (len(X), 1))
        return np.sort(self.model.predict_rows(X, pasts, 0.05)[:, ::3], axis=1)

    def update(self, X: Floats, y: float) -> None:
        """Learn a row (1, d)."""
        self.model.update(X, np.full((1, len(self.levels)), y), 0.05)

    def score(self, quantiles: Floats, conformal: Floats, y: float) -> None:
        """Add up the losses of quantiles and calibrated ends (Q,) of a row."""
        if np.isnan(quantiles).any():
            return
        self.totals[:, 0] += _pinball(quantiles, y, self.levels)
        self.totals[:, 1] += _pinball(conformal, y, self.levels)
        self.totals[:, 2] += y <= quantiles
        self.scored += 1

    def scores(self) -> tuple[QuantileScore, ...]:
        """How good the quantiles were, by level."""
        if not self.scored:
            none = float("nan")
            return tuple(QuantileScore(level, 0, none, none, none) for level in self.levels)
        means = (self.totals / self.scored).tolist()
        pairs = zip(self.levels, means, strict=True)
        return tuple(QuantileScore(level, self.scored, *own) for level, own in pairs)


def _pinball(quantiles: Floats, y: float, levels: Sequence[float]) -> Floats:
    """(Q,): level * (y - q) above a quantile q, (1 - level) * (q - y) below."""
    away = y - quantiles
    return np.maximum(np.array(levels) * away, (np.array(levels) - 1.0) * away)

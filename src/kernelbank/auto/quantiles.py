"""Quantiles of the target as outputs of one bank, each with its pinball loss.

All outputs have the same target. The slots learn its mean by squares, which they share; some are
shifted by gradient steps on the pinball loss of their output, and every output has its own weights.
Predictions of a row are put in order, so that no quantiles cross; this never raises the sum of
their losses (Chernozhukov, Fernandez-Val and Galichon 2010).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..losses import Pinball
from ..utils.validation import Floats
from .config import AutoConfig
from .many_targets import TargetsModel
from .model_state import under
from .prediction import lagged_rows


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


class QuantilesModel(TargetsModel):
    """A model for several targets that are all the same, with a pinball loss for each level."""

    def __init__(self, config: AutoConfig, dimension: int, levels: Sequence[float]) -> None:
        losses = tuple(Pinball(level) for level in levels)
        own = replace(
            config,
            loss=losses[len(losses) // 2],
            losses=losses,
            seasons=None,
            horizons=(),
            known=(),
            quantiles=(),
        )
        super().__init__(own, dimension, len(levels))

    def past_size(self, config: AutoConfig) -> int:
        return config.lags

    def add_targets(self, targets: Floats) -> None:
        lags = self.config.lags
        if lags:
            newest = targets[::-1, 0]
            self.lagged[:lags] = np.concatenate([newest, self.lagged[:lags]])[:lags]

    def past_rows(self, X: Floats, targets: Floats) -> Floats:
        return lagged_rows(targets[:, 0], self.lagged)


class Quantiles:
    """The quantiles of a model for one target.

    Parameters
    ----------
    config : the settings of the AutoBank.
    dimension : number of inputs.
    levels : between 0 and 1, ascending.
    """

    def __init__(self, config: AutoConfig, dimension: int, levels: Sequence[float]) -> None:
        self.levels = tuple(levels)
        self.model = QuantilesModel(config, dimension, levels)
        self.totals = np.zeros((len(self.levels), 3))
        """Sums of pinball losses, of those of calibrated ends, and how many targets lay below."""
        self.scored = 0

    def predict(self, X: Floats) -> Floats:
        """(n, Q): quantiles of rows (n, d), each as the next one; changes nothing."""
        lagged = np.tile(self.model.lagged, (len(X), 1))
        output = self.model.predict(X, lagged, 0.05).output
        return np.sort(output[:, ::3], axis=1)

    def update(self, X: Floats, targets: Floats, fields: Collection[str] = ()) -> Floats:
        """Predict and learn rows in their order; (n, Q): the quantiles, made before each target."""
        tiled = np.repeat(targets[:, None], len(self.levels), axis=1)
        records = self.model.update(X, tiled, 0.05, fields)
        return np.sort(np.concatenate([record["predictions"] for record in records]), axis=1)

    def score(self, quantiles: Floats, conformal: Floats, targets: Floats) -> None:
        """Add up the losses of quantiles and calibrated ends, (n, Q) each, row after row."""
        for own, ends, y in zip(quantiles, conformal, targets.tolist(), strict=True):
            if np.isnan(own).any():
                continue
            self.totals[:, 0] += _pinball(own, y, self.levels)
            self.totals[:, 1] += _pinball(ends, y, self.levels)
            self.totals[:, 2] += y <= own
            self.scored += 1

    def scores(self) -> tuple[QuantileScore, ...]:
        """How good the quantiles were, by level."""
        if not self.scored:
            none = float("nan")
            return tuple(QuantileScore(level, 0, none, none, none) for level in self.levels)
        means = (self.totals / self.scored).tolist()
        pairs = zip(self.levels, means, strict=True)
        return tuple(QuantileScore(level, self.scored, *own) for level, own in pairs)

    def state(self) -> dict[str, Floats]:
        """The arrays without those of the bank, by their names in a file."""
        return {"totals": self.totals} | {f"model/{n}": a for n, a in self.model.state().items()}

    def counters(self) -> dict[str, Any]:
        """The rest of the state, as plain data."""
        return {"scored": self.scored, "model": self.model.counters()}

    def restore(self, state: dict[str, Floats], counters: dict[str, Any]) -> None:
        """Continue from what `state` and `counters` returned, without the bank."""
        self.model.restore(under("model/", state), counters["model"])
        self.totals[:] = state["totals"]
        self.scored = int(counters["scored"])


def _pinball(quantiles: Floats, y: float, levels: Sequence[float]) -> Floats:
    """(Q,): level * (y - q) above a quantile q, (1 - level) * (q - y) below."""
    away = y - quantiles
    return np.maximum(np.array(levels) * away, (np.array(levels) - 1.0) * away)

"""Predictions of a batch of rows, as a model makes them and as a trace records them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..utils.validation import Floats

Record = dict[str, Floats]
"""Predictions as rows of a trace: arrays of equal length, by field."""


class Prediction(NamedTuple):
    """Predictions for the n rows of a batch. One row may be kept until its target comes."""

    rows_before: int
    """How many rows had been learned."""
    lagged: Floats
    """(n, lags): the last targets at that time, the newest first."""
    scores: Floats
    """(n, banks): the scaled prediction of each bank."""
    slots: Floats
    """(banks, n, P): the predictions of every slot, for regression in the target's units; empty,
    (banks, 0, P), unless n is 1."""
    output: Floats
    """(n, 3): prediction, lower, upper, for each target if there are several: (n, 3 K); or
    (n, classes): probabilities."""


def lagged_rows(targets: Floats, before: Floats) -> Floats:
    """(n, lags): for each of n targets the targets before it, the newest first.

    before : (lags,), the targets before the first of them. Of several targets per row, (n, K), all
        of a row stand together.
    """
    count, lags = len(targets), len(before)
    if not lags:
        return np.zeros((count, 0))
    history = np.concatenate([targets[::-1].ravel(), before])
    each = targets.size // max(count, 1)
    rows = [history[(count - t) * each : (count - t) * each + lags] for t in range(count)]
    return np.array(rows)


def best_class(probabilities: Floats) -> np.ndarray:
    """(n,): the most probable class; -1 if no class is known."""
    if not probabilities.shape[1]:
        return np.full(len(probabilities), -1)
    return np.argmax(probabilities, axis=1)

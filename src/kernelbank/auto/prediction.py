"""Predictions of a batch of rows, as a trace records them."""

from __future__ import annotations

import numpy as np

from ..utils.validation import Floats

Record = dict[str, Floats]
"""Predictions as rows of a trace: arrays of equal length, by field."""


def best_class(probabilities: Floats) -> np.ndarray:
    """(n,): the most probable class; -1 if no class is known."""
    if not probabilities.shape[1]:
        return np.full(len(probabilities), -1)
    return np.argmax(probabilities, axis=1)

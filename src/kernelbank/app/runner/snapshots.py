"""The model's function along one input, with the other inputs at their medians."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...auto import AutoBank
from ...utils.validation import Floats
from .history import DRAWN, GRID, History, Snapshot

RECENT = 1024
"""Rows whose targets give the range along which a lagged target is drawn."""


def snapshot_inputs(features: Sequence[str], bank: AutoBank, target: str) -> list[str]:
    """The names of the inputs of a snapshot: numeric features, and lagged targets."""
    inputs, lags = _counts(len(features), bank)
    return [*features[:inputs], *(f"{target}, {k + 1} before" for k in range(lags))]


def _counts(features: int, bank: AutoBank) -> tuple[int, int]:
    """How many numeric features, and how many lagged targets, a snapshot has."""
    lags = bank.lags if bank.task == "regression" else 0  # labels have no order
    inputs = min(features, DRAWN - min(lags, 1))
    return inputs, min(lags, DRAWN - inputs)


def take_snapshot(
    bank: AutoBank, history: History, features: int, coverage: float
) -> Snapshot | None:
    """The present function along some of the first `features` inputs and the lagged targets.

    None before the model has learned. Lagged targets that are not drawn along keep their present
    values.
    """
    model = bank._model
    if model is None or not model.banks:
        return None
    inputs, lags = _counts(features, bank)
    ranges = model.scaling.input_ranges()  # (d, 3): median, low, high
    values = np.empty((inputs + lags, 4, GRID))
    rows = np.tile(ranges[:, 0], (len(values) * GRID, 1))
    lagged = np.tile(model.lagged, (len(rows), 1))
    for k in range(inputs + lags):
        own = slice(k * GRID, (k + 1) * GRID)
        if k < inputs:
            values[k, 0] = rows[own, k] = np.linspace(ranges[k, 1], ranges[k, 2], GRID)
        else:
            values[k, 0] = lagged[own, k - inputs] = np.linspace(*_target_range(history), GRID)
    if len(values):
        predictions = model.predict(rows, lagged, 0.5 * (1 - coverage)).output
        if bank.task == "classification":
            predictions = np.repeat(predictions[:, :1], 3, axis=1)
        values[:, 1:] = predictions.reshape(len(values), GRID, 3).transpose(0, 2, 1)
    return Snapshot(history.rows, values)


def _target_range(history: History) -> tuple[float, float]:
    """The lowest and the highest of the recent targets."""
    recent = slice(-max(1, RECENT // history.stride), None)
    found: list[Floats] = [history.extremes[f"target_{end}"][recent] for end in ("low", "high")]
    return float(found[0].min()), float(found[1].max())

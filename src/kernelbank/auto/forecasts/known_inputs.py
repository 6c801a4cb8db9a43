"""Inputs whose future values are known, such as the hour of the day or a price that was announced.

A model of these inputs alone predicts the target of their row. What it leaves, the residual, is a
series without such inputs: that series is forecast, and the model's prediction from the known
future inputs is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...bank.slot import Slot
from ...losses import Squared
from ...utils import validation as check
from ...utils.validation import Floats
from ..encoding import tables
from ..slots.default_slots import Size, default_slots


def known_slots(inputs: int, size: Size, seed: int) -> list[Slot]:
    """Slots that are functions of the inputs alone: none follows the last targets or errors.

    Else what they leave of the next target would be forecast with what is known only then.
    """
    squared = Squared()
    named = dict(default_slots("standard", range(inputs), (), 0, size, seed, squared))
    kept = [name for name in named if "adaptive" not in name and ", forgetting" not in name]
    place = {list(named).index(name): i for i, name in enumerate(kept)}
    found = []
    for name in kept:
        slot = named[name]
        base = None if slot.residual_of is None else place[slot.residual_of]
        found.append(replace(slot, residual_of=base))
    return found


def _or_zero(predicted: float) -> float:
    """A prediction; 0 before the first target."""
    return 0.0 if np.isnan(predicted) else float(predicted)


class KnownInputs:
    """A model of the inputs that are known in advance.

    Parameters
    ----------
    columns : their indices among the inputs of a row.
    bank, late : two `AutoBank`s that have learned nothing, without lags. The second learns every
        row so many rows later as the longest horizon is, less one: it is the first as that was when
        the target of a row was forecast at the longest horizon.
    delay : the longest horizon.
    """

    def __init__(self, columns: Sequence[int], bank: Any, late: Any, delay: int) -> None:
        self.columns = tuple(columns)
        self.bank, self.late = bank, late
        self.rows = 0
        self.waiting = np.zeros((delay, len(self.columns) + 1))
        """Inputs and targets of the last rows: those of row n in row n % delay."""

    def residuals(self, x: Floats, y: float) -> tuple[float, float]:
        """What the model, and the late one, leave of the target of a row (d,)."""
        own, row = x[list(self.columns)], self.rows % len(self.waiting)
        if self.rows >= len(self.waiting):
            self.late.learn_one(self.waiting[row, :-1], float(self.waiting[row, -1]))
        left = y - _or_zero(self.bank.predict_one(own))
        left_late = y - _or_zero(self.late.predict_at(own[None])[0, 0])
        self.bank.learn_one(own, y)
        self.waiting[row] = [*own, y]
        self.rows += 1
        return left, left_late

    def predict(self, rows: Floats) -> Floats:
        """(n,): the prediction from known inputs (n, columns); NaN where a row is not known."""
        known = ~np.isnan(rows).all(axis=1)
        out = np.full(len(rows), np.nan)
        if known.any():
            predicted = self.bank.predict(rows[known])
            out[known] = np.where(np.isnan(predicted), 0.0, predicted)  # before the first target
        return out


def known_table(
    X_future: Any, known: Sequence[Any], encoder: Any, forecaster: Any, remedy: str
) -> Floats:
    """(n, inputs): the inputs of known columns, from what a user gives for the next rows.

    X_future : a table with these columns at least, or an array with these columns or with all.
    """
    own = forecaster.known.columns
    if encoder is not None and tables.is_table(X_future):
        return _from_table(tables.read_table(X_future, "X_future"), known, encoder, own, remedy)
    array = check.floats("X_future", X_future, remedy)
    if array.ndim == 1:
        array = array[:, None] if len(known) == 1 else array[None]
    if array.ndim == 2 and array.shape[1] == forecaster.dimension != len(own):
        array = array[:, list(own)]
    if array.ndim != 2 or array.shape[1] != len(own):
        rule = f"have {len(own)} columns"
        raise check.refuse("X_future", rule, array.shape, remedy, "forecast")
    check.within_range("X_future", np.where(np.isnan(array), 0.0, array))
    return array


def _from_table(
    columns: Mapping[str, np.ndarray],
    known: Sequence[Any],
    encoder: Any,
    own: Sequence[int],
    remedy: str,
) -> Floats:
    """The same from the columns of a table; `own` are the inputs of the known ones."""
    wanted = [name if isinstance(name, str) else encoder.names[name] for name in known]
    for name in wanted:
        if name not in columns:
            rule = f"have the column {name!r}"
            raise check.refuse("X_future", rule, list(columns), remedy, "forecast")
    codes = np.full((len(columns[wanted[0]]), len(encoder.names)), np.nan)
    for index, (name, kind) in enumerate(encoder.columns):
        if name in wanted:
            codes[:, index] = tables.codes_of(name, kind, columns[name], {})
    return np.ascontiguousarray(encoder.expand(codes)[:, list(own)])

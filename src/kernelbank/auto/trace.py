"""The record of a run of an `AutoBank`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..bank.trace import BY_SLOT, Record, Trace, chosen_fields
from ..utils import validation as check
from ..utils.validation import Floats
from .forecaster import BY_HORIZON
from .model import Model
from .targets import ClassLabels, best_class

FIELDS: dict[str, tuple[str, ...]] = {
    "regression": (
        *("predictions", "lower", "upper"),
        *BY_HORIZON,
        *("quantiles", "weights", "slot_predictions"),
    ),
    "classification": (
        *("predictions", "probabilities"),
        *("weights", "slot_predictions", "slot_classes"),
    ),
}
"""The arrays that a run can record, by task."""


class AutoTrace(Trace):
    """The record of a run of an `AutoBank`: beside the arrays of `Trace`, without costs, these.

    Arrays of length n:

    - predictions: of a number made before it was known; for classes, their labels
    - lower, upper: the interval of the coverage given to `run`, for regression

    Arrays (n, H), one column per horizon (`AutoBank(horizons=...)`):

    - forecasts, forecast_lower, forecast_upper: row n holds those made after sample n was learned;
      `horizons` says how many rows ahead. NaN where known inputs of later rows were not given

    Arrays (n, Q), one column per level (`AutoBank(quantiles=...)`):

    - quantiles: of the target, made before it was known

    Arrays (n, classes):

    - probabilities, columns in the order of `classes`

    Arrays (n, P), one column per slot, in the order of `names`:

    - weights; with more than two classes, those of the first class
    - slot_predictions: of every slot alone, in the target's units; for classes the scores of the
      first class, or of the second of two: positive for it
    - slot_classes: the index in `classes` that every slot alone would have predicted, -1 before the
      first label was known

    >>> import numpy as np, kernelbank as kb
    >>> X = np.arange(40.0)
    >>> bank = kb.AutoBank("classification", size="small")
    >>> trace = bank.run(X, np.where(X % 2, "odd", "even"))
    >>> list(trace.to_frame())
    ['predictions', 'probabilities: even', 'probabilities: odd']
    """

    lower: Floats
    upper: Floats
    forecasts: Floats
    forecast_lower: Floats
    forecast_upper: Floats
    quantiles: Floats
    probabilities: Floats
    slot_classes: Floats
    by_slot = (*BY_SLOT, "slot_classes")
    _output = "target"

    def __init__(
        self,
        model: Model,
        records: Sequence[Record],
        fields: tuple[str, ...],
        labels: ClassLabels,
        target_names: Sequence[str],
        forecasts: Mapping[str, Floats] | None = None,
    ) -> None:
        """The trace of consecutive records.

        target_names : of several targets. forecasts : of a run, not of a single row.

        Where no class was known yet, the predicted label is None, and probabilities are NaN.
        """
        self.task = "regression" if model.targets else "classification"
        self.possible = FIELDS[self.task]
        self.classes: tuple[Any, ...] = tuple(labels.known)
        """The labels, in the order of the columns of `probabilities`."""
        self.horizons = () if forecasts is None else model.config.horizons
        """Of the columns of `forecasts`, in rows."""
        self.levels = () if forecasts is None else model.config.quantiles
        """Of the columns of `quantiles`."""
        arrays: dict[str, np.ndarray] = {
            name: _stack(record[name] for record in records)
            for name in fields
            if name in records[0]
        }
        samples = sum(len(next(iter(record.values()))) for record in records)
        if not model.targets and "predictions" in fields:
            numbers = np.concatenate([best_class(record["probabilities"]) for record in records])
            known_rows = np.flatnonzero(numbers >= 0)
            if len(known_rows) == samples:
                arrays["predictions"] = labels.array(numbers)
            else:
                arrays["predictions"] = np.full(samples, None, dtype=object)
                arrays["predictions"][known_rows] = labels.array(numbers[known_rows]).tolist()
        arrays |= {name: array for name, array in (forecasts or {}).items() if name in fields}
        super().__init__(
            samples,
            tuple(model.names),
            fields,
            arrays=arrays,
            outputs=max(len(target_names), 1),
            target_names=target_names,
        )

    def _columns(self) -> dict[str, list[tuple[str, ...]]]:
        columns = super()._columns()
        columns["probabilities"] = [tuple(map(str, self.classes))]
        columns["quantiles"] = [tuple(f"{level:g}" for level in self.levels)]
        ahead = [tuple(f"+{horizon}" for horizon in self.horizons)]
        return columns | dict.fromkeys(BY_HORIZON, ahead)


def trace_fields(record: object, task: str, without: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that `record` asks for, in their usual order.

    without : how the names of those begin that the bank does not have.
    """
    possible = tuple(name for name in FIELDS[task] if not name.startswith(without or "-"))
    fields = chosen_fields(record, possible, AutoTrace.by_slot)
    if not fields:
        remedy = 'Use "all", "light" (no array with one column per slot), or a list of names.'
        raise check.refuse("record", "name at least one field", record, remedy)
    return fields


def _stack(records: Iterable[Floats]) -> Floats:
    """Parts one after the other; classes that appear later have probability 0 before.

    Where no class was known, there are no probabilities: NaN.
    """
    parts = list(records)
    if parts[0].ndim != 2:
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [
            np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=0.0)
            if part.shape[1]
            else np.full((len(part), width), np.nan)
            for part in parts
        ]
    )

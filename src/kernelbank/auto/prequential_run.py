"""One call of `AutoBank.run`: each row is predicted, and learned when its target comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..bank.trace import Trace
from ..utils.validation import Floats
from ..utils.whole_steps import whole_step
from .encoding.class_labels import ClassLabels
from .model import CHUNK
from .prediction import Record, best_class

if TYPE_CHECKING:
    from .auto_bank import AutoBank


class PrequentialRun:
    """Test, then train, over the rows of a stream.

    Parameters
    ----------
    bank : its model predicts and learns.
    rows, targets : (n, d) and (n,).
    labels : the labels of the rows; None for regression.
    tail : probability beyond each end of the intervals.
    fields : what the trace records.
    delay : how many rows later a target comes.
    """

    def __init__(
        self,
        bank: AutoBank,
        rows: Floats,
        targets: Floats,
        labels: list[Any] | None,
        tail: float,
        fields: tuple[str, ...],
        delay: int,
    ) -> None:
        assert bank._model is not None
        self._bank = bank
        self._model = bank._model
        self._rows = rows
        self._targets = targets
        self._labels = labels
        self._classes = bank._classes
        self._tail = tail
        self._fields = fields
        self._delay = delay
        self._waiting: deque[tuple[int, _core.Prediction]] = deque()
        self._records: list[Record] = []

    def run(self) -> Trace:
        """The trace of all rows, predicted and learned."""
        forecasting = self._model.forecasting
        forecasting.collect(self._rows, self._tail)
        try:
            records = self.records()
        finally:
            forecasts = forecasting.collected()
        task = "regression" if self._labels is None else "classification"
        names, targets = self._model.names, self._bank.target_names
        columns = {"horizons": self._bank.horizons, "levels": self._bank.quantiles}
        return make_trace(
            task, records, self._fields, names, self._classes, targets, forecasts, columns
        )

    def records(self) -> list[Record]:
        """Predict and learn all rows, in batches that are done whole."""
        row = 0
        while row < len(self._rows):
            with whole_step(self._bank):
                end = self._batch_end(row)
                if end > row:
                    self._update(row, end)
                    row = end
                else:
                    self._predict(row)
                    row += 1
                    if len(self._waiting) > self._delay:
                        self._learn_oldest()
        while self._waiting:
            with whole_step(self._bank):
                self._learn_oldest()
        return self._records

    def _batch_end(self, start: int) -> int:
        """The end of the rows that can be learned at once: no target is delayed, no class new."""
        if self._delay:
            return start
        end = min(start + CHUNK, len(self._rows))
        if self._labels is None:
            return end
        for row in range(start, end):
            if self._labels[row] not in self._classes:
                return row
            self._targets[row] = self._classes.number(self._labels[row])
        return end

    def _update(self, start: int, end: int) -> None:
        batch = slice(start, end)
        for record in self._model.update(
            self._rows[batch], self._targets[batch], self._tail, self._fields
        ):
            self._keep(record)

    def _predict(self, row: int) -> None:
        """Predict a row whose target is delayed, or whose class is not known yet."""
        prediction = self._model.predict_next(self._rows[row], len(self._waiting), self._tail)
        self._keep(self._model.record(prediction))
        self._waiting.append((row, prediction))

    def _learn_oldest(self) -> None:
        row, past = self._waiting.popleft()
        if self._labels is not None:
            self._targets[row] = self._bank._encode(self._labels[row])
        batch = slice(row, row + 1)
        self._model.update(self._rows[batch], self._targets[batch], self._tail, made=past)

    def _keep(self, record: Record) -> None:
        wanted = (*self._fields, "predictions", "probabilities")
        self._records.append({name: record[name] for name in wanted if name in record})


def make_trace(
    task: str,
    records: Sequence[Record],
    fields: tuple[str, ...],
    names: Sequence[str],
    classes: ClassLabels,
    targets: Sequence[str] = (),
    forecasts: Mapping[str, Floats] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Trace:
    """The trace of consecutive records; `targets` are the names of several targets.

    Where no class was known yet, the predicted label is None, and probabilities are NaN.
    """
    arrays = {
        name: _stack([record[name] for record in records]) for name in fields if name in records[0]
    }
    samples = sum(len(next(iter(record.values()))) for record in records)
    if task == "classification" and "predictions" in fields:
        numbers = np.concatenate([best_class(record["probabilities"]) for record in records])
        known_rows = np.flatnonzero(numbers >= 0)
        if len(known_rows) == samples:
            arrays["predictions"] = classes.array(numbers)
        else:
            arrays["predictions"] = np.full(samples, None, dtype=object)
            arrays["predictions"][known_rows] = classes.array(numbers[known_rows]).tolist()
    known = tuple(classes.known)
    arrays |= {name: array for name, array in (forecasts or {}).items() if name in fields}
    return Trace(
        samples,
        tuple(names),
        fields,
        task=task,
        classes=known,
        arrays=arrays,
        outputs=max(len(targets), 1),
        target_names=targets,
        **(columns or {}),
    )


def _stack(parts: list[Floats]) -> Floats:
    """Parts one after the other; classes that appear later have probability 0 before.

    Where no class was known, there are no probabilities: NaN.
    """
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

"""One call of `AutoBank.run`: each row is predicted, and learned when its target comes.

Inputs of categories hold means of earlier targets, and learning may add inputs. So rows of a table
with categories are encoded just before they are predicted or learned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..bank.trace import Record, Trace
from ..utils.validation import Floats
from ..utils.whole_steps import defer_signals, whole_step
from .inputs import EncodedRows, NamedInputs
from .model import CHUNK
from .targets import ClassLabels, best_class

if TYPE_CHECKING:
    from .auto_bank import AutoBank


class _Run:
    """The bank that runs, the targets of its rows, and what is recorded of them."""

    def __init__(
        self,
        bank: AutoBank,
        targets: Floats,
        labels: list[Any] | None,
        tail: float,
        fields: tuple[str, ...],
    ) -> None:
        assert bank._model is not None
        self._bank = bank
        self._model = bank._model
        self._targets = targets
        self._labels = labels
        self._tail = tail
        self._fields = fields
        self._waiting: deque[tuple[int, _core.Prediction]] = deque()
        """Rows whose targets have not come, with their predictions."""
        self._records: list[Record] = []

    def _traced(self, steps: Callable[[], object], upcoming: Floats) -> Trace:
        """The trace of the steps; `upcoming` are the inputs of their rows, for forecasts."""
        bank, forecasting = self._bank, self._model.forecasting
        forecasting.collect(upcoming, self._tail)
        try:
            steps()
        finally:
            forecasts = forecasting.collected()
        return make_trace(
            "regression" if self._labels is None else "classification",
            self._records,
            self._fields,
            self._model.names,
            bank._classes,
            bank.target_names,
            forecasts,
            {"horizons": bank.horizons, "levels": bank.quantiles},
        )

    def _keep(self, record: Record) -> None:
        wanted = (*self._fields, "predictions", "probabilities")
        self._records.append({name: record[name] for name in wanted if name in record})


class PrequentialRun(_Run):
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
        super().__init__(bank, targets, labels, tail, fields)
        self._rows = rows
        self._classes = bank._classes
        self._delay = delay

    def run(self) -> Trace:
        """The trace of all rows, predicted and learned."""
        return self._traced(self.records, self._rows)

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


# --- rows with categories -------------------------------------------------------------------------


def learn_row(
    bank: AutoBank, named: NamedInputs, target: Floats, tail: float, past: _core.Prediction | None
) -> None:
    """Learn one row, whose target (1,) is a number or the number of a class."""
    model, encoder = bank._model, named.encoder
    assert model is not None
    if past is None and encoder.adds_inputs(named.codes):
        # Predicted before it adds inputs, as by `predict_one`: the same bits.
        past = model.predict_next(named.inputs[0], 0, tail)
    row, added = encoder.take(named.codes, encoder.as_statistic(target), named.texts)
    if added:
        model.add_inputs(added)
    model.update(row, target, tail, made=past)


class TableRun(_Run):
    """Test, then train, over the rows of a table; as `PrequentialRun`.

    Parameters
    ----------
    bank : its model predicts and learns.
    named : the rows.
    targets : (n,); zeros for labels.
    labels : the labels of the rows; None for regression.
    tail : probability beyond each end of the intervals.
    fields : what the trace records.
    """

    def __init__(
        self,
        bank: AutoBank,
        named: NamedInputs,
        targets: Floats,
        labels: list[Any] | None,
        tail: float,
        fields: tuple[str, ...],
    ) -> None:
        super().__init__(bank, targets, labels, tail, fields)
        self._named = named
        self._encoder = named.encoder

    def run(self, delay: int) -> Trace:
        """Predict each row, and learn it `delay` rows later."""
        known = self._bank._config.known
        upcoming = self._encoder.expand(self._named.codes) if known else np.zeros((0, 0))
        steps = partial(self._run_delayed, delay) if delay else self._run_pieces
        return self._traced(steps, upcoming)

    def _run_pieces(self) -> None:
        """Pieces in which no row adds inputs. Each piece is done whole."""
        done, codes = 0, self._named.codes
        while done < len(codes):
            with whole_step(self._bank):
                if self._encoder.adds_inputs(codes[done : done + 1]):
                    self._learn(done, self._predict(done))
                    done += 1
                else:
                    done = self._run_piece(done)

    def _run_piece(self, start: int) -> int:
        """Predict and learn some rows; returns the end of these rows."""
        bank, encoder, targets = self._bank, self._encoder, self._targets
        piece = slice(start, start + CHUNK)
        labels = None if self._labels is None else self._labels[piece]
        known = targets[piece] if labels is None else bank._classes.numbers_ahead(labels)
        seen = encoder.as_statistic(known)
        rows, _ = encoder.take(self._named.codes[piece], seen, self._named.texts)
        end = start + len(rows)
        self._records += PrequentialRun(
            bank,
            rows,
            targets[start:end],
            None if labels is None else labels[: len(rows)],
            self._tail,
            self._fields,
            delay=0,
        ).records()
        return end

    def _run_delayed(self, delay: int) -> None:
        """One row after the other: its inputs depend on which targets have come."""
        waiting = self._waiting
        for row in range(len(self._targets)):
            with whole_step(self._bank):
                waiting.append((row, self._predict(row, len(waiting))))
                if len(waiting) > delay:
                    self._learn(*waiting.popleft())
        while waiting:
            with whole_step(self._bank):
                self._learn(*waiting.popleft())

    def _predict(self, row: int, waiting: int = 0) -> _core.Prediction:
        inputs = self._encoder.expand(self._named.codes[row : row + 1])
        prediction = self._model.predict_next(inputs[0], waiting, self._tail)
        self._keep(self._model.record(prediction))
        return prediction

    def _learn(self, row: int, past: _core.Prediction) -> None:
        number = self._targets[row]
        if self._labels is not None:
            number = np.float64(self._bank._encode(self._labels[row]))
        one = EncodedRows(self._named.codes[row : row + 1], self._named.texts)
        named = NamedInputs(self._encoder, one)
        learn_row(self._bank, named, np.array([number]), self._tail, past)


# --- predictions of single rows -------------------------------------------------------------------

DEFAULT_LIMIT = 1000
"""How many are kept, unless a bank is set to targets that are delayed by more rows."""

LARGEST_LIMIT = 100_001
"""The largest limit that may be set."""


class PendingPredictions:
    """The newest predictions of single rows, the oldest first, by their input.

    Predicting the same input twice before anything is learned counts once.
    """

    def __init__(self) -> None:
        self.items: list[tuple[bytes, _core.Prediction]] = []
        """The bytes of each input, and its prediction. Changed by the methods below only."""
        self.limit = DEFAULT_LIMIT
        self.stale = 0
        """How many, the oldest, were made before the row that was learned last: their targets may
        never come."""

    @property
    def fresh(self) -> int:
        """How many were made after the row that was learned last."""
        return len(self.items) - self.stale

    def waiting_before(self, key: bytes, rows: int) -> int:
        """How many fresh ones are older than that of this input, after so many learned rows."""
        index = self._index(key, rows)
        return self.fresh if index is None else max(index - self.stale, 0)

    def _index(self, key: bytes, rows: int) -> int | None:
        """Where the prediction of this input is, if it was made after so many learned rows."""
        for index in range(len(self.items) - 1, -1, -1):
            other, earlier = self.items[index]
            if earlier.rows_before != rows:
                return None
            if other == key:
                return index
        return None

    def add(self, x: Floats, prediction: _core.Prediction, *, distinct: bool = False) -> None:
        """Keep a prediction; `distinct` if it is a row of its own even where the input is equal."""
        key = x.tobytes()
        index = None if distinct else self._index(key, prediction.rows_before)
        if index is not None:
            self.items[index] = (key, prediction)
            return
        if len(self.items) < self.limit:
            self.append(key, prediction)
            return
        with defer_signals():
            self.append(key, prediction)
            forgotten = len(self.items) - self.limit
            del self.items[:forgotten]
            self.stale = max(self.stale - forgotten, 0)

    def append(self, key: bytes, prediction: _core.Prediction) -> None:
        """Keep the prediction of a row of its own, whatever the limit."""
        self.items.append((key, prediction))

    def clear(self) -> None:
        """Forget all predictions."""
        self.items.clear()
        self.stale = 0

    def add_inputs(self, count: int) -> None:
        """Add `count` columns, which were missing when the predictions were made."""
        missing = np.full(count, np.nan).tobytes()
        self.items = [(key + missing, prediction) for key, prediction in self.items]

    def pop(self, x: Floats) -> _core.Prediction | None:
        """Remove and return the oldest prediction for this input, which is learned now, or None."""
        key = x.tobytes()
        for index, (other, prediction) in enumerate(self.items):
            if other == key:
                del self.items[index]
                self.stale = index
                return prediction
        self.stale = len(self.items)
        return None

"""Learning rows whose inputs depend on what was learned before: those of categories.

Inputs of categories hold means of earlier targets, and learning may add inputs. So rows are encoded
just before they are predicted or learned.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..bank.trace import Trace
from ..utils.validation import Floats
from ..utils.whole_steps import whole_step
from .encoding.column_encoder import EncodedRows
from .encoding.named_inputs import NamedInputs
from .model import CHUNK
from .prediction import Record
from .prequential_run import PrequentialRun, make_trace

if TYPE_CHECKING:
    from .auto_bank import AutoBank


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


class TableRun:
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
        assert bank._model is not None
        self._bank = bank
        self._model = bank._model
        self._named = named
        self._encoder = named.encoder
        self._targets = targets
        self._labels = labels
        self._tail = tail
        self._fields = fields
        self._records: list[Record] = []

    def run(self, delay: int) -> Trace:
        """Predict each row, and learn it `delay` rows later."""
        codes, bank = self._named.codes, self._bank
        upcoming = self._encoder.expand(codes) if bank._config.known else np.zeros((0, 0))
        forecasting = self._model.forecasting
        forecasting.collect(upcoming, self._tail)
        try:
            if delay:
                self._run_delayed(delay)
            else:
                self._run_pieces()
        finally:
            forecasts = forecasting.collected()
        task = "regression" if self._labels is None else "classification"
        names, targets = self._model.names, bank.target_names
        return make_trace(
            task,
            self._records,
            self._fields,
            names,
            bank._classes,
            targets,
            forecasts,
            {"horizons": bank.horizons, "levels": bank.quantiles},
        )

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
        waiting: deque[tuple[int, _core.Prediction]] = deque()
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
        wanted = (*self._fields, "probabilities")
        found = self._model.record(prediction)
        self._records.append({name: found[name] for name in wanted if name in found})
        return prediction

    def _learn(self, row: int, past: _core.Prediction) -> None:
        number = self._targets[row]
        if self._labels is not None:
            number = np.float64(self._bank._encode(self._labels[row]))
        one = EncodedRows(self._named.codes[row : row + 1], self._named.texts)
        named = NamedInputs(self._encoder, one)
        learn_row(self._bank, named, np.array([number]), self._tail, past)

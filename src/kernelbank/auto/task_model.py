"""`TaskModel`: predict a batch, update with a batch. What both tasks of an AutoBank share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from ..utils.validation import Floats
from . import model_state
from .model_state import ModelState
from .prediction import Prediction, Record
from .slots.slot_revision import rows_to_revision

CHUNK = 256
"""Rows that are scaled and learned in one call."""


class TaskModel(ModelState):
    """Predicts, and learns from targets, for inputs of a known width.

    There is one path: `predict` a batch, which changes nothing, and `update` with a batch, which
    predicts each row before it learns the row. A single row is a batch of one. The result does not
    depend, in any bit, on how a stream is cut into batches.
    """

    # --- what the tasks do differently ----------------------------------------------------------

    @abstractmethod
    def predict(self, X: Floats, lagged: Floats, tail: float) -> Prediction:
        """Predict rows (n, d) with their lagged targets (n, lags); changes nothing.

        tail : probability beyond each end of the intervals.
        """

    @abstractmethod
    def record(self, prediction: Prediction) -> Record:
        """A prediction as rows of a trace."""

    @abstractmethod
    def as_target(self, prediction: Prediction) -> float:
        """The prediction of a batch of one as a target, for forecasts that go on from it."""

    @abstractmethod
    def _chunk_allowed(self, target: Any) -> bool:
        """Whether the next row, which has this target, may be learned together with others."""

    @abstractmethod
    def _update_chunk(
        self, X: Floats, targets: Floats, tail: float, fields: Collection[str]
    ) -> Record:
        """Predict and learn the first rows, at least one; the predictions of as many as were."""

    @abstractmethod
    def _update_row(self, x: Floats, target: Any, prediction: Prediction) -> None:
        """Learn one row, whose prediction was made now or some rows ago."""

    def one_target(self, target: Any) -> Any:
        """The target of one row: a number."""
        return float(target)

    @abstractmethod
    def restart(self) -> None:
        """Start scaling and banks anew from the rows in the replay buffer."""

    # --- learning -------------------------------------------------------------------------------

    def update(
        self,
        X: Floats,
        targets: Floats,
        tail: float,
        fields: Collection[str] = (),
        past: Prediction | None = None,
    ) -> list[Record]:
        """Predict and learn the rows of a batch in their order; the predictions, in pieces.

        Parameters
        ----------
        X, targets : (n, d) and (n,); (n, K) for several targets.
        tail : probability beyond each end of the intervals.
        fields : which arrays of a trace will be read.
        past : for a batch of one, the prediction that was made for it some rows ago (its target is
            delayed) or before its class was known. It is scored, and slots are judged by it; the
            result is empty.
        """
        if past is not None:
            self._update_row(X[0], self.one_target(targets[0]), past)
            self._restart_if_due()
            return []
        records: list[Record] = []
        done = 0
        while done < len(X):
            if self._chunk_allowed(targets[done]):
                end = done + min(CHUNK, self._rows_to_restart())
                found = self._update_chunk(X[done:end], targets[done:end], tail, fields)
            else:
                row = X[done : done + 1]
                prediction = self.predict(row, self.past_row(), tail)
                found = self.record(prediction)
                self._update_row(row[0], self.one_target(targets[done]), prediction)
            records.append(found)
            done += len(found["weights"])
            self._restart_if_due()
        return records

    def _restart_if_due(self) -> None:
        if self.rows in model_state.RESTARTS:
            self.learn_relevance()
            self.restart()
            self.warn_if_large()
        if self.seasons is not None and self.seasons.is_due(self.rows):
            self._find_seasons()
        self._revise_if_due()

    def _revise_if_due(self) -> None:
        if self.revise_slots(self.rows):
            self.warn_if_large()

    def _rows_to_restart(self) -> int:
        """How many rows may be learned at most before a restart may be due."""
        ends = [n - self.rows for n in model_state.RESTARTS if n > self.rows]
        if self.seasons is not None and self.seasons.automatic:
            ends.append(self.seasons.rows_to_look(self.rows))
        return min([*ends, rows_to_revision(self.rows)])

    def _count_rows(self, X: Floats, lagged: Floats, targets: Floats, predicted_at: Any) -> None:
        """Count learned rows, keep them for restarts, and let their targets be the lagged ones."""
        self.rows += len(X)
        self.buffer.append(self.rows, X, lagged, targets, predicted_at)
        self.add_rows(X, targets)

    def collect_forecasts(self, rows: Floats, tail: float) -> None:
        """Begin to collect forecasts; see `Forecasting`."""

    def collected_forecasts(self) -> dict[str, Floats]:
        """The forecasts since, as arrays of a trace."""
        return {}

    # --- seasons --------------------------------------------------------------------------------

    def _find_seasons(self) -> None:
        """Look for periods; if there are new ones, the slots for seasons start anew with them."""
        assert self.seasons is not None
        new = self.seasons.find(self.rows, classes=not self._scale_target)
        if not new:
            return
        for period in new:
            self.note_change("season", self.rows, period=period)
        if self.banks:
            scaling = self._make_scaling(self.dimension, self.core)
            scaling.continue_from(self.scaling)
            self.scaling = scaling
            self.continue_with_seasons()
        else:
            self.lay_out(self.dimension)

    # --- signals of change ----------------------------------------------------------------------

    def _detect_changes(self, first: int, errors: Floats, weights: Floats) -> None:
        """Look for changes in errors (n,) and weights (n, slots), and note them.

        first : the number of the first of these rows, from 1 on.
        """
        for row, what in self.detector.detect(errors, weights):
            self.note_change(what, first + row)

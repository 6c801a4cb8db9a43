"""The model of a run with several targets: one bank, and a history for each target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..auto.inputs import EncodedRows
from ..bank.serialization import under
from ..errors import FileRefused
from ..io.sinks import Row
from ..utils.validation import Floats
from .history import History
from .model_session import ModelSession, known_prediction
from .options import RunOptions
from .recent_rows import FIELDS
from .row_scores import score_numbers
from .snapshots import InputLayout, take_snapshot
from .timings import Timings

DRAWN_TARGETS = 8
"""The most targets whose function is drawn along inputs, and that a page shows."""


def make_session(options: RunOptions, engine: Any, timings: Timings) -> ModelSession:
    """The session for one target, or for several."""
    kind = ModelSession if len(options.targets) == 1 else SeveralTargetsSession
    return kind(options, engine, timings)


class SeveralTargetsSession(ModelSession):
    """Targets are tuples of K numbers, None where one is missing.

    A row is learned for the targets that it has, and predicted for all. Of the last targets, each
    is the last one that was known.
    """

    def __init__(self, options: RunOptions, engine: Any, timings: Timings) -> None:
        super().__init__(options, engine, timings)
        self.bank._target_names = options.targets
        self._last_target = (None,) * len(options.targets)

    @property
    def _outputs(self) -> int:
        return len(self.options.targets)

    def _run_batch(self, rows: EncodedRows, targets: list[Any], times: Floats) -> list[Row]:
        Y = _as_array(targets)
        trace = self.bank.run(rows, Y, record="all", coverage=self.options.coverage)
        return self._record(trace, targets, times)

    def _learn_oldest(self) -> Row:
        x, target = self._pending.pop(0)
        if target is not None:
            self.bank.learn_one(x, _as_array([target])[0])
            self._last_target = _newest([self._last_target, target])
        return ()  # several targets have no forecasts

    def _prediction_of(self, X: EncodedRows) -> Row:
        intervals = self.bank.predict_interval(X, self.options.coverage)[0].tolist()
        found: list[Any] = []
        for value, (low, high) in zip(self.bank.predict(X)[0].tolist(), intervals, strict=True):
            found += [*known_prediction(value, low, high), None]
        return tuple(found)

    def _prediction_rows(self, trace: Any, targets: list[Any]) -> list[Row]:
        values = np.stack([trace.predictions, trace.lower, trace.upper], axis=2).tolist()
        rows = []
        for own, y in zip(values, targets, strict=True):
            cells: list[Any] = []
            for one, target in zip(own, y, strict=True):
                cells += [*known_prediction(*one), target]
            rows.append(tuple(cells))
        return rows

    # --- histories --------------------------------------------------------------------------------

    def _record(self, trace: Any, targets: list[Any], times: Floats) -> list[Row]:
        if not self.histories:
            self.histories = [History(trace.weights.shape[2]) for _ in range(self._outputs)]
            self._share_inputs()
        baseline = self._baseline(targets)
        Y, before = _as_array(targets), _as_array(baseline)
        for k, history in enumerate(self.histories):
            own, y = trace.of_output(k), Y[:, k]
            unknown = np.isnan(own.predictions) | np.isnan(y)
            last = np.where(unknown | np.isnan(before[:, k]), y, before[:, k])
            scores = score_numbers(own, y, last)
            scores.leave_out(unknown)
            scores.set_times(times)
            history.add(scores.totals, scores.extremes, own.weights, scores.losses)
        self._snapshot_due = self.histories[0].due(self.histories[0].rows)
        if not self.options.delay:
            self._last_target = _newest([*baseline, targets[-1]])
        rows = self._prediction_rows(trace, targets)
        self._add_recent(times, rows, baseline)
        return rows

    def _baseline(self, targets: list[Any]) -> list[Any]:
        """For each row the last known targets before it; with a delay those that were learned."""
        found, last = [], self._last_target
        for target in targets:
            found.append(last)
            if not self.options.delay:
                last = _newest([last, target])
        return found

    def _add_recent(self, times: Floats, predictions: list[Row], baseline: list[Any]) -> None:
        for k, history in enumerate(self.histories):
            rows = np.full((len(predictions), len(FIELDS)), np.nan)
            rows[:, 0] = times
            for out, cells, last in zip(rows, predictions, baseline, strict=True):
                predicted, low, high, target = cells[4 * k : 4 * k + 4]
                before = None if last is None else last[k]
                known = (target, predicted, low, high, before)
                out[1:] = [np.nan if value is None else value for value in known]
            history.recent.add(rows)

    def _take_snapshot(self, layout: InputLayout) -> None:
        if not self._snapshot_due:
            return
        self._snapshot_due = False
        coverage = self.options.coverage
        for k, history in enumerate(self.histories[:DRAWN_TARGETS]):
            own = layout._replace(target=self.options.targets[k], output=k)
            taken = take_snapshot(self.bank, history, own, coverage, kept=True)
            if taken is not None:
                history.add_snapshot(taken)

    def _share_inputs(self) -> None:
        """The ranges of inputs are the same for all targets."""
        for history in self.histories[1:]:
            history.seen = self.histories[0].seen

    # --- in the checkpoint ------------------------------------------------------------------------

    def describe(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        facts, state = super().describe()
        others = self.histories[1:]
        for k, history in enumerate(others, 1):
            state |= {f"history{k}/{name}": array for name, array in history.arrays().items()}
        return {**facts, "histories": [history.to_json() for history in others]}, state

    def restore(self, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> None:
        super().restore(facts, state)
        if self.bank.target_names != self.options.targets:
            raise FileRefused("its model has other targets than its options.")
        self._last_target = tuple(facts["last_target"])
        self._pending = [(x, None if y is None else tuple(y)) for x, y in self._pending]

    def _restore_histories(self, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> None:
        super()._restore_histories(facts, state)
        (first,) = self.histories
        if len(facts["histories"]) != self._outputs - 1:
            raise FileRefused("it has not one history for each target.")
        for k, own in enumerate(facts["histories"], 1):
            history = History.restore(own, under(f"history{k}/", state), len(self.bank.names))
            self._check_history(history)
            if (history.rows, history.stride) != (first.rows, first.stride):
                raise FileRefused("the histories of its targets have different lengths.")
            self.histories.append(history)
        self._share_inputs()

    def _is_target(self, value: Any) -> bool:
        if value is None:
            return True
        fits = isinstance(value, list) and len(value) == self._outputs
        return fits and all(super(SeveralTargetsSession, self)._is_target(one) for one in value)


def _as_array(targets: list[Any]) -> Floats:
    """(n, K): targets, NaN where one is missing."""
    return np.array(targets, dtype=np.float64)  # None becomes NaN


def _newest(rows: list[Any]) -> tuple[float | None, ...]:
    """Of each target the last one that is known in some rows."""
    return tuple(
        next((one for one in reversed(column) if one is not None), None)
        for column in zip(*rows, strict=True)
    )

"""The model of a run: predicts and learns batches, and records the history of the predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..auto import AutoBank
from ..auto.inputs import ColumnEncoder, EncodedRows, category_code
from ..auto.loading import check_precision, restore
from ..auto.targets import MAX_CLASSES, RefusedLabel, best_class
from ..bank.engines import as_engine
from ..bank.serialization import under
from ..bank.slot import Slot
from ..bank.trace import BY_HORIZON
from ..combiners import Simplex
from ..errors import FileRefused, RunRefused
from ..io.sinks import Row
from ..kernels.dictionary import gaussian_grid
from ..learners import Norma
from ..utils.validation import Floats
from .feature_encoder import Batch
from .forecast_options import forecast_cells, forecast_columns
from .history import EARLY, History
from .options import RunOptions
from .recent_rows import FIELDS
from .row_scores import class_numbers, score_labels, score_numbers
from .snapshots import InputLayout, drawn_inputs, kept_inputs, layout_of, take_snapshot
from .timings import MODEL, SNAPSHOTS, Timings

REGRESSION_COLUMNS = ("row", "prediction", "lower", "upper", "target")
CLASSIFICATION_COLUMNS = ("row", "prediction", "probability", "target")


def prediction_columns(options: RunOptions) -> tuple[str, ...]:
    """The columns of the predictions, without those that are copied from the source.

    Of several targets those of each have its name.
    """
    if options.task == "classification":
        return CLASSIFICATION_COLUMNS
    if len(options.targets) == 1:
        return (*REGRESSION_COLUMNS, *forecast_columns(options))
    row, *each = REGRESSION_COLUMNS
    return (row, *(f"{column}:{name}" for name in options.targets for column in each))


def make_model(options: RunOptions, engine: Any) -> AutoBank:
    """The untrained model that the options describe."""
    own: dict[str, Any] = {}
    if options.preset == "paper":
        own = {
            "slots": [Slot(kernel, Norma()) for kernel in gaussian_grid(0.1, 10, 20)],
            "combiner": Simplex(),
            "window": 10,
            "regularization": 0.01,
        }
    own |= {"lower": options.lower, "upper": options.upper}
    own |= {"seasons": options.periods}
    own |= {"horizons": options.horizons or None, "known": options.known or None}
    own |= {"classes": options.labels, "max_classes": options.max_classes}
    return AutoBank(options.task, options.lags, options.size, engine=engine, **own)


class ModelSession:
    """A model, the rows whose targets are still to come, and the history of the predictions."""

    def __init__(self, options: RunOptions, engine: Any, timings: Timings) -> None:
        self.options = options
        self.timings = timings
        self.bank: AutoBank = make_model(options, engine)
        self.histories: list[History] = []
        """One for each target, once there is a prediction."""
        self.rows_without_target = 0
        self._engine = engine
        self._snapshot_due = False
        self._last_target: Any = None
        self._pending: list[tuple[EncodedRows, Any]] = []
        """Rows that were predicted and whose target has not come: (row, target)."""
        self._raise_pending_limit()

    @property
    def history(self) -> History | None:
        """The history of the predictions of the first target, once there is one."""
        return self.histories[0] if self.histories else None

    def _raise_pending_limit(self) -> None:
        """Let the bank keep as many predicted rows as wait for their targets."""
        self.bank.expect_delay(self.options.delay)

    def set_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """Tell the bank the names and kinds of its columns; a resumed bank must have the same."""
        if self.bank._encoder is None:
            labels = self.options.task == "classification"
            self.bank._encoder = ColumnEncoder(columns, labels=labels)
        known = self.bank._encoder.columns
        if list(known) != list(columns):
            earlier, now = (", ".join(name for name, _ in some) for some in (known, columns))
            raise RunRefused(
                f"The inputs are other columns than before: they were {earlier or 'none'}, now "
                f"{now or 'none'}. Name the earlier ones with --features, or give another --state."
            )

    @property
    def max_batch(self) -> int:
        """How many rows may be learned at once: none beyond the next snapshot."""
        return EARLY[0] if self.history is None else self.history.until_snapshot

    def refused(self, targets: Sequence[Any]) -> list[RefusedLabel]:
        """Which rows of a batch the model would refuse to learn, by their targets; changes nothing.

        With `--delay` too this is known when a row comes, long before it is learned. Numbers have
        no such rule: `io/cells.py` and `FeatureEncoder` reject what a model refuses.
        """
        classes = self.bank._classes
        labels = [(row, label) for row, label in enumerate(targets) if label is not None]
        if self.options.task == "regression" or all(label in classes for _, label in labels):
            return []
        waiting = [label for _, label in self._pending if label is not None]
        found = classes.refused([label for _, label in labels], waiting)
        return [one._replace(row=labels[one.row][0]) for one in found]

    def predict_and_learn(self, batch: Batch) -> list[Row]:
        """The predictions of a batch; targets that have come are learned."""
        rows, targets = EncodedRows(batch.X, batch.texts), batch.targets
        layout = layout_of(self.options, self.bank)
        numbers = len(layout.features)
        times = batch.X[:, numbers] if layout.time else np.full(len(targets), np.nan)
        with self.timings.measure(MODEL):
            if self.options.delay:
                predictions = self._run_delayed(rows, targets, times)
            elif targets == [None]:
                predictions = [(*self._predict_only(rows, times), *self._no_forecasts)]
            else:
                predictions = self._run_batch(rows, targets, times)
        with self.timings.measure(SNAPSHOTS):
            if self.history is not None:
                self.history.seen.add(batch.X[:, :numbers], times)
            self._take_snapshot(layout)
        return predictions

    def _run_batch(self, rows: EncodedRows, targets: list[Any], times: Floats) -> list[Row]:
        trace = self.bank.run(rows, targets, record="all", coverage=self.options.coverage)
        found = self._record(trace, targets, times)
        if not self.options.horizons:
            return found
        cells = forecast_cells({n: getattr(trace, n) for n in BY_HORIZON}, self.options)
        return [(*row, *own) for row, own in zip(found, cells, strict=True)]

    def _run_delayed(self, rows: EncodedRows, targets: list[Any], times: Floats) -> list[Row]:
        predictions: list[Row] = []
        for codes, target, time in zip(rows.codes, targets, times, strict=True):
            own = {code: rows.texts[code] for code in codes.tolist() if code in rows.texts}
            x = EncodedRows(codes[None], own)
            if target is None:  # it waits like the others: targets are learned `delay` rows later
                row = self._predict_only(x, time[None])
            else:
                trace = self.bank.predict_trace_one(x, record="all", coverage=self.options.coverage)
                (row,) = self._record(trace, [target], time[None])
            self._pending.append((x, target))
            cells = self._no_forecasts
            if len(self._pending) > self.options.delay:
                cells = self._learn_oldest()
            predictions.append((*row, *cells))
        return predictions

    def _learn_oldest(self) -> Row:
        """Learn the oldest row that waits; the cells of the forecasts that are made after it."""
        x, target = self._pending.pop(0)
        if target is None:
            return self._no_forecasts
        found = self.bank.learn_and_forecast(x, target, self.options.coverage)
        self._last_target = target
        return forecast_cells(found, self.options)[0] if found else ()

    @property
    def _no_forecasts(self) -> Row:
        """Empty cells, for a row after which nothing was learned."""
        return (None,) * len(forecast_columns(self.options))

    def _predict_only(self, X: EncodedRows, times: Floats) -> Row:
        """A row without a target: predicted and not learned; the bank does not wait for it."""
        self.rows_without_target += 1
        row = self._prediction_of(X)
        self._add_recent(times, [row], [None])
        return row

    def _prediction_of(self, X: EncodedRows) -> Row:
        if self.options.task == "regression":
            low, high = self.bank.predict_interval(X, self.options.coverage)[0].tolist()
            return *known_prediction(float(self.bank.predict(X)[0]), low, high), None
        if not self.bank.classes:
            return None, None, None
        probabilities = self.bank.predict_proba(X)[0]
        return _as_python(self.bank.predict(X)[0]), float(probabilities.max()), None

    def _prediction_rows(self, trace: Any, targets: list[Any]) -> list[Row]:
        if self.options.task == "regression":
            columns = (trace.predictions.tolist(), trace.lower.tolist(), trace.upper.tolist())
            rows = zip(*columns, strict=True)
            return [(*known_prediction(*row), y) for row, y in zip(rows, targets, strict=True)]
        probabilities = trace.probabilities.max(axis=1, initial=0.0).tolist()
        labels = [_as_python(label) for label in trace.predictions]
        return [
            (label, None if label is None else probability, target)
            for label, probability, target in zip(labels, probabilities, targets, strict=True)
        ]

    # --- history ----------------------------------------------------------------------------------

    def _record(self, trace: Any, targets: list[Any], times: Floats) -> list[Row]:
        """Add the predictions of a trace to the history; the rows of the predictions."""
        if not self.histories:
            self.histories = [History(trace.weights.shape[1])]
        (history,) = self.histories
        first = self._last_target is None
        baseline = [targets[0] if first else self._last_target, *targets[:-1]]
        if self.options.task == "regression":
            scores = score_numbers(trace, targets, baseline)
        else:
            classes = class_numbers(trace, targets)
            scores = score_labels(trace, targets, baseline, classes)
            scored = slice(int(first), None)
            history.labels.add(
                classes[scored],
                best_class(trace.probabilities[scored]),
                trace.probabilities[scored],
            )
        scores.set_times(times)
        if first:  # the first prediction was made before any target was known
            scores.leave_out_first()
        if not self.options.delay:  # else it is the last target that has been learned
            self._last_target = targets[-1]
        history.add(scores.totals, scores.extremes, trace.weights, scores.losses)
        self._snapshot_due = history.due(history.rows)
        rows = self._prediction_rows(trace, targets)
        self._add_recent(times, rows, [None, *baseline[1:]] if first else baseline)
        return rows

    def _add_recent(self, times: Floats, predictions: list[Row], baseline: list[Any]) -> None:
        """Add rows to the last rows."""
        if self.history is None:
            return
        numbers = {label: number for number, label in enumerate(self.bank.classes)}
        labels = self.options.task == "classification"
        rows = np.full((len(predictions), len(FIELDS)), np.nan)
        rows[:, 0] = times
        for out, (predicted, *ends, target), last in zip(rows, predictions, baseline, strict=True):
            values = [target, predicted, last]
            values = [numbers.get(label) for label in values] if labels else values
            known = [*values[:2], ends[0], ends[-1], values[2]]
            out[1:] = [np.nan if value is None else value for value in known]
        self.history.recent.add(rows)

    def _take_snapshot(self, layout: InputLayout) -> None:
        if self.history is not None and self._snapshot_due:
            self._snapshot_due = False
            coverage = self.options.coverage
            taken = take_snapshot(self.bank, self.history, layout, coverage, kept=True)
            if taken is not None:
                self.history.add_snapshot(taken)

    # --- in the checkpoint ------------------------------------------------------------------------

    def describe(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Everything that the next prediction depends on: JSON data, and arrays."""
        header, arrays = self.bank.describe()
        state = {f"bank/{name}": array for name, array in arrays.items()}
        if self.history is not None:
            state |= {f"history/{name}": array for name, array in self.history.arrays().items()}
        state["pending"] = np.array([x.codes[0] for x, _ in self._pending] or np.zeros((0, 0)))
        facts = {
            "rows_without_target": self.rows_without_target,
            "pending_targets": [y for _, y in self._pending],
            "pending_categories": [list(x.texts.values()) for x, _ in self._pending],
            "last_target": self._last_target,
            "bank": header,
            "history": None if self.history is None else self.history.to_json(),
        }
        return facts, state

    def restore(self, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> None:
        """Continue from what `describe` returned."""
        options, engine = self.options, as_engine(self._engine)
        bank = restore(facts["bank"], under("bank/", state), engine, {}, None)
        wanted = (options.task, options.lags, options.periods, options.horizons, options.known)
        if not isinstance(bank, AutoBank) or wanted != (
            *(bank.task, bank.lags, bank.seasons, bank.horizons),
            bank._config.known,
        ):
            raise FileRefused("its model does not fit its options.")
        if bank._encoder is not None and bank._encoder.tentative:  # a run knows its columns
            raise FileRefused("its columns are tentative.")
        check_precision({n: array for n, array in state.items() if not n.startswith("bank/")})
        self.bank = bank
        self._raise_pending_limit()
        if facts["history"] is not None:
            self._restore_histories(facts, state)
        self.rows_without_target = saved_count(facts["rows_without_target"], "rows without target")
        targets = facts["pending_targets"]
        if not all(self._is_target(target) for target in (facts["last_target"], *targets)):
            raise FileRefused("its last targets are not targets.")
        self._last_target = facts["last_target"]
        codes, texts = state["pending"], facts["pending_categories"]
        columns = 0 if bank._encoder is None else len(bank._encoder.columns)
        if len(codes) > options.delay or (len(codes) and codes.shape[1:] != (columns,)):
            raise FileRefused("its waiting rows do not fit its options.")
        rows = [
            EncodedRows(own[None].copy(), {category_code(str(text)): str(text) for text in some})
            for own, some in zip(codes, texts, strict=True)
        ]
        self._pending = list(zip(rows, targets, strict=True))

    def _restore_histories(self, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> None:
        history = History.restore(facts["history"], under("history/", state), len(self.bank.names))
        self._check_history(history)
        self.histories = [history]

    def _is_target(self, value: Any) -> bool:
        """Whether a value from a file can be a target; None where it is missing."""
        kinds = (int, float) if self.options.task == "regression" else (str,)
        return value is None or (isinstance(value, kinds) and not isinstance(value, bool))

    def _check_history(self, history: History) -> None:
        """Refuse a history whose inputs or labels are not those of the model."""
        layout = layout_of(self.options, self.bank)
        drawn = len(kept_inputs(drawn_inputs(layout, self.bank)))
        if (
            any(len(snapshot.values) != drawn for snapshot in history.snapshots)
            or len(history.seen.ranges) not in (0, len(layout.features))
            or history.labels.classes > len(self.bank.classes)
        ):
            raise FileRefused("its history belongs to another model.")

    def allow_labels(self) -> None:
        """After `restore`: let the labels occur that the options allow now, which may be more."""
        if self.options.task == "regression":
            return
        known, named = self.bank._classes, self.options.labels
        known.named = named is not None
        known.limit = self.options.max_classes or MAX_CLASSES
        if named is None:
            return
        waiting = [label for _, label in self._pending if label is not None]
        for label in (*known.known, *waiting):
            if label not in named:
                raise RunRefused(
                    f"--classes must name every label that the model knows; {label!r} is not among "
                    "them. Add it, or give another --state."
                )
        self.bank.add_classes(named)


def saved_count(value: Any, what: str) -> int:
    """A number from the state of a run, checked."""
    if type(value) is not int or not 0 <= value < 2**53:
        raise FileRefused(f"it claims {value!r} {what}.")
    return value


def known_prediction(value: float, lower: float, upper: float) -> Row:
    """A prediction and its interval; nothing (an empty cell) before the first target is known."""
    return (None, None, None) if math.isnan(value) else (value, lower, upper)


def _as_python(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label

"""The model of a run: predicts and learns batches, and records the history of the predictions.

A row has K >= 1 targets: numbers, or one label. It is learned for the targets that it has, and
predicted for all. There is a history for each target.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..auto import AutoBank
from ..auto.forecaster import BY_HORIZON
from ..auto.inputs import NUMBER, EncodedRows, category_code
from ..auto.loading import check_precision, restore
from ..auto.model import AutoTrace
from ..auto.targets import MAX_CLASSES, RefusedLabel, best_class
from ..bank.engines import Engine, as_engine
from ..bank.serialization import under
from ..bank.slot import Slot
from ..combiners import Simplex
from ..errors import FileRefused, KernelBankWarning, RunRefused
from ..io.sinks import Row
from ..kernels import gaussian_grid
from ..learners import Norma
from ..utils.validation import Floats
from . import Saved
from .encoder import Batch, Targets
from .history import FIELDS, History
from .options import OTHER, PROBABILITY, RunOptions, forecast_columns
from .scores import RowScores, probability_of, score_labels, score_numbers
from .state_folder import require, saved_count


def make_model(options: RunOptions, engine: Engine | str) -> AutoBank:
    """The untrained model that the options describe."""
    settings: dict[str, Any] = {}
    if options.preset == "paper":
        settings = {
            "slots": [Slot(kernel, Norma()) for kernel in gaussian_grid(0.1, 10, 20)],
            "combiner": Simplex(),
            "window": 10,
            "regularization": 0.01,
        }
    return AutoBank(
        options.task,
        options.lags,
        options.size,
        engine=engine,
        lower=options.lower,
        upper=options.upper,
        seasons=options.periods,
        horizons=options.horizons or None,
        known=options.known or None,
        classes=options.labels,
        max_classes=options.max_classes,
        **settings,
    )


class Session:
    """A model, the rows whose targets are still to come, and the history of the predictions."""

    def __init__(self, options: RunOptions, engine: Engine | str) -> None:
        self.options = options
        self.bank = make_model(options, engine)
        self.histories: list[History] = []
        """One for each target, once there is a prediction."""
        self.rows_without_target = 0
        self.named_labels: list[str] | None = None
        """Labels whose probabilities have a column in the predictions, once that is decided."""
        self._outputs = len(options.targets)
        self._labels = options.task == "classification"
        self._engine = engine
        self._no_forecasts: Row = (None,) * len(forecast_columns(options))
        """Empty cells, for a row after which nothing was learned."""
        self._noted_unnamed = False
        self._last_target: Targets = (None,) * self._outputs
        """Of each target the last one that was known; with a delay, that was learned."""
        self._pending: list[tuple[EncodedRows, Targets | None]] = []
        """Rows that were predicted and whose targets have not come."""
        if self._outputs > 1:
            self.bank.name_targets(options.targets)
        self.bank.expect_delay(options.delay)

    def set_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """Tell the bank the names and kinds of its columns; a resumed bank must have the same."""
        earlier = self.bank.use_columns(columns)
        if list(earlier) != list(columns):
            before, now = (", ".join(name for name, _ in pairs) for pairs in (earlier, columns))
            raise RunRefused(
                f"The inputs are other columns than before: they were {before or 'none'}, now "
                f"{now or 'none'}. Name the earlier ones with --features, or give another --state."
            )

    def name_labels(self, first: Sequence[str]) -> None:
        """Decide which labels have a column: of --classes, or of the first rows; and --positive."""
        options = self.options
        if not self._labels:
            return
        named = [*(options.labels or first), *([] if options.rare is None else [options.rare])]
        named = [label for label in dict.fromkeys(named) if label != OTHER]
        self.named_labels = named if options.labels else named[: options.max_classes or MAX_CLASSES]

    def refused(self, targets: Sequence[Targets | None]) -> list[RefusedLabel]:
        """Which rows of a batch the model would refuse to learn, by their targets; changes nothing.

        With `--delay` too this is known when a row comes, long before it is learned. Numbers have
        no such rule: `io/cells.py` and `FeatureEncoder` reject what a model refuses.
        """
        classes = self.bank.class_labels
        labels = {row: target[0] for row, target in enumerate(targets) if target is not None}
        if not self._labels or all(label in classes for label in labels.values()):
            return []
        rows, refused = list(labels), classes.refused(list(labels.values()), self._waiting_labels)
        return [label._replace(row=rows[label.row]) for label in refused]

    @property
    def _waiting_labels(self) -> list[Any]:
        """The labels of the rows that are still to be learned."""
        return [target[0] for _, target in self._pending if target is not None]

    def predict_and_learn(self, batch: Batch) -> list[Row]:
        """The predictions of a batch; targets that have come are learned."""
        rows, targets = EncodedRows(batch.X, batch.texts), batch.targets
        numbers = self._numbers()
        times = batch.X[:, numbers] if self.options.time else np.full(len(targets), np.nan)
        categories = batch.X[:, batch.X.shape[1] - len(self.options.categorical) :]
        keys = np.column_stack([batch.first + np.array(batch.rows), times, categories])
        if self.options.delay:
            predictions = self._run_delayed(rows, targets, keys)
        elif targets == [None]:
            predictions = [(*self._predict_only(rows, keys), *self._no_forecasts)]
        else:
            predictions = self._run_batch(rows, [t for t in targets if t is not None], keys)
        return predictions

    def _run_batch(self, rows: EncodedRows, targets: list[Targets], keys: Floats) -> list[Row]:
        coverage = self.options.coverage
        trace = self.bank.run(rows, self._for_model(targets), record="all", coverage=coverage)
        predictions = self._record(trace, targets, keys)
        if not self._no_forecasts:
            return predictions
        forecasts = self._forecast_cells({name: getattr(trace, name) for name in BY_HORIZON})
        return [(*row, *cells) for row, cells in zip(predictions, forecasts, strict=True)]

    def _for_model(self, targets: Sequence[Targets]) -> Any:
        """The targets of n rows as a model takes them: (n,), or (n, K) for several."""
        return [y for (y,) in targets] if self._outputs == 1 else _as_array(targets)

    def _run_delayed(
        self, rows: EncodedRows, targets: Sequence[Targets | None], keys: Floats
    ) -> list[Row]:
        predictions: list[Row] = []
        for codes, target, key in zip(rows.codes, targets, keys, strict=True):
            texts = {code: rows.texts[code] for code in codes.tolist() if code in rows.texts}
            x = EncodedRows(codes[None], texts)
            if target is None:  # it waits like the others: targets are learned `delay` rows later
                row = self._predict_only(x, key[None])
            else:
                trace = self.bank.predict_trace_one(x, record="all", coverage=self.options.coverage)
                (row,) = self._record(trace, [target], key[None])
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
        y = self._for_model([target])[0]
        forecasts = self.bank.learn_and_forecast(x, y, self.options.coverage)
        self._last_target = _newest([self._last_target, target])
        return self._forecast_cells(forecasts)[0] if self._no_forecasts else ()

    def _forecast_cells(self, forecasts: Mapping[str, Floats]) -> list[Row]:
        """The cells of n rows, horizon by horizon, from arrays (n, H) of a trace."""
        values = np.stack([forecasts[name] for name in BY_HORIZON], axis=-1)
        return [tuple(row) for row in values.reshape(len(values), -1).tolist()]

    # --- predictions ------------------------------------------------------------------------------

    def _predict_only(self, X: EncodedRows, keys: Floats) -> Row:
        """A row without a target: predicted and not learned; the bank does not wait for it."""
        self.rows_without_target += 1
        no_targets: list[Targets] = [(None,) * self._outputs]
        if self._labels:
            probabilities = self.bank.predict_proba(X) if self.bank.classes else np.zeros((1, 0))
            rows = self._label_cells(probabilities, no_targets)
        else:
            ends = self.bank.predict_interval(X, self.options.coverage).reshape(1, -1, 2)
            values = self.bank.predict(X).reshape(1, -1, 1)
            rows = _number_cells(np.concatenate([values, ends], axis=2), no_targets)
        self._add_recent(keys, rows, no_targets)
        return rows[0]

    def _label_cells(self, probabilities: Floats, targets: Sequence[Targets]) -> list[Row]:
        """Prediction, probability, target and the probabilities of all labels with a column.

        probabilities : (n, K), of which a row before any label was known has none above zero.
        """
        classes, columns = self.bank.classes, self.named_labels
        predicted = self._predicted(probabilities)
        of_predicted = probability_of(probabilities, predicted).tolist()
        cells = np.zeros((len(targets), 0 if columns is None else len(columns) + 1))
        if columns is not None:
            self._note_unnamed()
            places: dict[object, int] = {label: place for place, label in enumerate(columns)}
            # Labels that are new in the last row have no probability yet.
            for label, of_label in zip(classes, probabilities.T, strict=False):
                cells[:, places.get(label, len(columns))] += of_label
        return [
            (classes[number], probability, target, *more)
            if number >= 0
            else (None, None, target, *[None] * len(more))
            for number, probability, (target,), more in zip(
                predicted.tolist(), of_predicted, targets, cells.tolist(), strict=True
            )
        ]

    def _predicted(self, probabilities: Floats) -> np.ndarray:
        """(n,): the number of the predicted class; -1 before any is known.

        It is the most probable one; with --positive that label from --threshold on, else the most
        probable of the others.
        """
        probabilities = np.nan_to_num(probabilities)  # they are NaN before any label is known
        best = best_class(probabilities)
        best[~probabilities.any(axis=1)] = -1
        options, classes = self.options, list(self.bank.classes)
        if options.rare not in classes:
            return best
        place = classes.index(options.rare)
        others = probabilities.copy()
        others[:, place] = 0.0
        other = np.where(others.any(axis=1), best_class(others), best)
        return np.where(probabilities[:, place] >= options.threshold, place, other)

    def _note_unnamed(self) -> None:
        """Say once that a label has come that has no column of its own."""
        named = {*(self.named_labels or ()), OTHER}
        label = next((label for label in self.bank.classes if label not in named), None)
        if label is not None and self.options.predictions and not self._noted_unnamed:
            self._noted_unnamed = True
            warnings.warn(
                f"label {label!r} came after the first rows: its probability is in the column "
                f"{PROBABILITY}{OTHER}. For one of its own, begin anew and name all labels with "
                "--classes.",
                KernelBankWarning,
                stacklevel=2,
            )

    # --- histories --------------------------------------------------------------------------------

    def _record(self, trace: AutoTrace, targets: list[Targets], keys: Floats) -> list[Row]:
        """Add the predictions of a trace to the histories; the rows of the predictions.

        keys : (n, 2 + C), the number of each row, its time, and the codes of its C categories.
        """
        if not self.histories:
            self.histories = [History(trace.weights.shape[-1]) for _ in range(self._outputs)]
        # For each row the last known targets before it; with a delay those that were learned.
        baseline = [self._last_target] * len(targets)
        if not self.options.delay:
            newest = accumulate(targets, lambda *two: _newest(two), initial=self._last_target)
            *baseline, self._last_target = newest
        scores: list[RowScores] = []
        for k, history in enumerate(self.histories):
            of_target, times = trace.of_output(k), keys[:, 1]
            y, last = ([row[k] for row in rows] for rows in (targets, baseline))
            if self._labels:
                predicted = self._predicted(trace.probabilities)
                scores.append(score_labels(trace, y, last, predicted, times, history.labels))
            else:
                scores.append(score_numbers(of_target, _as_array(y), _as_array(last), times))
            totals, extremes, losses = scores[k]
            history.add(totals, extremes, of_target.weights, losses)
            scored = totals[:, 1] > 0
            history.categories.add(keys[scored, 2:], totals[scored, 2:4])
        if self._labels:
            rows = self._label_cells(trace.probabilities, targets)
        else:
            values = np.stack([trace.predictions, trace.lower, trace.upper], axis=-1)
            rows = _number_cells(values.reshape(len(targets), self._outputs, 3), targets)
        self._add_recent(keys, rows, baseline, scores)
        return rows

    def _add_recent(
        self,
        keys: Floats,
        predictions: list[Row],
        baseline: list[Targets],
        scores: Sequence[RowScores] = (),
    ) -> None:
        """Add rows to the last rows and, if they are scored, to the worst."""
        numbers = {label: number for number, label in enumerate(self.bank.classes)}
        width = 3 if self._labels else 4  # cells of a target: its prediction, ..., itself
        for k, history in enumerate(self.histories):
            rows = np.full((len(predictions), len(FIELDS)), np.nan)
            rows[:, 0] = keys[:, 1]
            for out, cells, last in zip(rows, predictions, baseline, strict=True):
                predicted, *ends, target = cells[width * k : width * (k + 1)]
                values = [target, predicted, last[k]]
                if self._labels:
                    values = [numbers.get(label) for label in values]
                fields = (*values[:2], ends[0], ends[-1], values[2])
                out[1:] = [np.nan if value is None else value for value in fields]
            history.recent.add_last(rows)
            for of_target in scores[k : k + 1]:
                losses = of_target.totals[:, 8 if self._labels else 2]
                history.worst.add_worst(np.column_stack([losses, keys[:, 0], rows]))

    def _numbers(self) -> int:
        """How many columns are numbers."""
        columns = [] if self.bank.encoder is None else self.bank.encoder.columns
        return sum(kind == NUMBER for _, kind in columns)

    # --- in the checkpoint ------------------------------------------------------------------------

    def describe(self) -> tuple[dict[str, object], dict[str, Floats]]:
        """Everything that the next prediction depends on: JSON data, and arrays."""
        header, arrays = self.bank.describe()
        state = {f"bank/{name}": array for name, array in arrays.items()}
        for k, history in enumerate(self.histories):
            prefix = f"history{k or ''}/"
            state |= {prefix + name: array for name, array in history.arrays().items()}
        state["pending"] = np.array([x.codes[0] for x, _ in self._pending] or np.zeros((0, 0)))
        histories = [history.to_json() for history in self.histories]
        facts = {
            "rows_without_target": self.rows_without_target,
            "pending_targets": [self._to_json(target) for _, target in self._pending],
            "pending_categories": [list(x.texts.values()) for x, _ in self._pending],
            "last_target": self._to_json(self._last_target),
            "bank": header,
            "named_labels": self.named_labels,
            "history": histories[0] if histories else None,
        }
        return facts if self._outputs == 1 else {**facts, "histories": histories[1:]}, state

    def restore(self, facts: Saved, state: Mapping[str, Floats]) -> None:
        """Continue from what `describe` returned."""
        options, engine = self.options, as_engine(self._engine)
        bank = restore(facts["bank"], under("bank/", state), engine, {}, None)
        wanted = (options.task, options.lags, options.periods, options.horizons, options.known)
        if not isinstance(bank, AutoBank) or wanted != (
            *(bank.task, bank.lags, bank.seasons, bank.horizons, bank.config.known),
        ):
            raise FileRefused("its model does not fit its options.")
        encoder = bank.encoder
        # A run knows its columns.
        require(encoder is None or not encoder.tentative, "its columns are tentative.")
        check_precision({n: array for n, array in state.items() if not n.startswith("bank/")})
        self.bank = bank
        bank.expect_delay(options.delay)
        if facts["history"] is not None:
            self._restore_histories(facts, state)
        self.rows_without_target = saved_count(facts["rows_without_target"], "rows without target")
        labels = self.named_labels = facts.get("named_labels")  # None in earlier versions
        are_labels = labels is None or (
            self._labels
            and isinstance(labels, list)
            and all(isinstance(label, str) for label in labels)
            and len({*labels, OTHER}) > len(labels)
        )
        require(are_labels, "the labels of its probabilities are not labels.")
        self._last_target = self._from_json(facts["last_target"]) or (None,) * self._outputs
        targets = [self._from_json(target) for target in facts["pending_targets"]]
        codes, texts = state["pending"], facts["pending_categories"]
        columns = 0 if encoder is None else len(encoder.columns)
        shapes = len(codes) <= options.delay and (not len(codes) or codes.shape[1:] == (columns,))
        require(shapes, "its waiting rows do not fit its options.")
        rows = [
            EncodedRows(row[None].copy(), {category_code(str(name)): str(name) for name in names})
            for row, names in zip(codes, texts, strict=True)
        ]
        self._pending = list(zip(rows, targets, strict=True))
        same_targets = self._outputs == 1 or bank.target_names == options.targets
        require(same_targets, "its model has other targets than its options.")

    def _restore_histories(self, facts: Saved, state: Mapping[str, Floats]) -> None:
        saved = [facts["history"], *(facts["histories"] if self._outputs > 1 else ())]
        require(len(saved) == self._outputs, "it has not one history for each target.")
        for k, of_target in enumerate(saved):
            arrays = under(f"history{k or ''}/", state)
            history = History.restore(of_target, arrays, len(self.bank.names))
            fits = history.labels.classes <= len(self.bank.classes)
            require(fits, "its history belongs to another model.")
            self.histories.append(history)
        lengths = {(history.rows, history.stride) for history in self.histories}
        require(len(lengths) == 1, "the histories of its targets have different lengths.")

    def _to_json(self, targets: Targets | None) -> object:
        """The only target of a row, or a list of several."""
        if targets is None:
            return None
        return targets[0] if self._outputs == 1 else list(targets)

    def _from_json(self, value: Any) -> Targets | None:
        """What `_to_json` returned, checked."""
        if value is None:
            return None
        targets = [value] if self._outputs == 1 else value
        kinds = (str, type(None)) if self._labels else (int, float, type(None))
        require(
            isinstance(targets, list)
            and len(targets) == self._outputs
            and all(isinstance(y, kinds) and not isinstance(y, bool) for y in targets),
            "its last targets are not targets.",
        )
        return tuple(targets)

    def allow_labels(self) -> None:
        """After `restore`: let the labels occur that the options allow now, which may be more."""
        if not self._labels:
            return
        classes, named = self.bank.class_labels, self.options.labels
        classes.named = named is not None
        classes.limit = self.options.max_classes or MAX_CLASSES
        if named is None:
            return
        for label in (*classes.labels, *self._waiting_labels):
            if label not in named:
                raise RunRefused(
                    f"--classes must name every label that the model knows; {label!r} is not among "
                    "them. Add it, or give another --state."
                )
        self.bank.add_classes(named)


def _as_array(targets: Sequence[object]) -> Floats:
    """(n,) or (n, K): targets, NaN where one is missing."""
    return np.array(targets, dtype=np.float64)  # None becomes NaN


def _newest(rows: Sequence[Targets]) -> Targets:
    """Of each target the last one that is known in some rows."""
    columns = zip(*rows, strict=True)
    return tuple(next((y for y in reversed(column) if y is not None), None) for column in columns)


def _number_cells(values: Floats, targets: Sequence[Targets]) -> list[Row]:
    """For each target of n rows its prediction, the ends of its interval, and the target itself.

    values : (n, K, 3), NaN before the first target is known: then cells are empty.
    """
    return [
        tuple(
            cell
            for numbers, target in zip(row, row_targets, strict=True)
            for cell in (*([None] * 3 if math.isnan(numbers[0]) else numbers), target)
        )
        for row, row_targets in zip(values.tolist(), targets, strict=True)
    ]

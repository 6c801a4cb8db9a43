"""`AutoBank`: a stream in, predictions out, nothing to tune."""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.engines import Engine
from ..bank.serialization import under
from ..bank.slot import Slot
from ..bank.status import Status
from ..bank.trace import Record
from ..combiners import Combiner
from ..errors import FileRefused, HalfLearned, InvalidArgument
from ..io import checkpoint
from ..io.cells import MissingValues
from ..losses import Loss
from ..utils import validation as check
from ..utils.validation import Floats
from ..utils.whole_steps import CutOff, defer_signals, new_turn, whole_step
from .config import AutoConfig, config_arguments
from .forecaster import Forecast, Forecaster, KnownInputs, known_slots
from .inputs import (
    NUMBER,
    ColumnEncoder,
    NamedInputs,
    checked_inputs,
    is_table,
    read_named,
    with_gaps,
)
from .model import (
    CHUNK,
    REPLAY,
    AutoTrace,
    ClassModel,
    Model,
    NumberModel,
    Quantiles,
    trace_fields,
)
from .slots import SIZES, WIDE
from .state import Arrays, Json, Reading, describe_parts, whole_number
from .status import AutoLedger, auto_status
from .targets import ClassLabels, Label, checked_labels, checked_targets

COVERAGE = 0.9  # of intervals, by default
_SETTINGS = ("_turn", "_config")  # attributes that no step changes


class AutoBank:
    """A bank that needs no parameters: scaling, slots, weights and intervals all run online.

    Inputs are scaled in three ways, the target by its running mean and standard deviation. Slots
    are of several kinds (`names` explains them): least squares on random features of low order with
    three kinds of memory, linear ones, partition trees on the target and on the residuals of other
    slots, nearest neighbors, the last value, and functions of the inputs and past targets that
    matter most. `kb.combiners.RobustStacking`, for labels `Stacking`, weighs them by their
    predictions. After 5, 16, 32 and 128 rows everything starts anew from all rows so far: their
    first scaling need not have been right. After 512 rows and more, slots without weight give way
    to others.

    Parameters
    ----------
    task : "regression", or "classification" (labels as they are: numbers, booleans, text; more
        than two are learned one against the rest).
    lags : how many of the last targets are inputs too.
    size : "small", "default" or "large": how many slots and features, so how much time.
    classes : the labels that may occur, in the order of the columns of probabilities; all are known
        from the start, and another one is refused. By default they are found in the stream, in the
        order in which they appear.
    slots : slots of your own instead of the default ones. They see the scalings side by side.
    combiner : the rule for the weights instead of the default one.
    loss : the loss to minimise, or its name: on the target in its standard deviations, or on labels
        of -1 and 1. For other losses than the squared one the default slots still learn by the
        squared loss; some are also shifted, by gradient steps on the loss, and
        `kb.combiners.Joint` weighs them by it. `Pinball(0.9)` makes `predict` a quantile.
    window, regularization : of the inner bank; see `KernelBank`. The default slots need neither.
    scalings : some of "standard", "asinh", "rank" and "none" (inputs as they are, for kernels that
        know their units); by default those of the size, or "standard" alone for slots of your own.
    lower, upper : numbers that no target lies below or above, such as lower=0 for a load that
        cannot be negative. Predictions and intervals stay within; a target beyond is refused.
    seasons : periods in rows after which the stream repeats, such as 24 or (24, 168) for the hours
        of days and weeks; "auto" finds up to two in the stream, after 200, 500, 1,000 and every
        2,000 rows. Some slots then know the targets of earlier periods and the phase. A row counts
        when its target was learned, or waits for it.
    horizons : how many rows ahead to forecast, such as (1, 6, 24), or 24 for 1 to 24, for
        regression: `forecast` then returns direct forecasts from what is known after the last
        learned row, each with an interval calibrated from the past errors of its horizon. The
        predictions are the same with and without.
    known : with horizons, the names or indices of columns of numbers or times whose future values
        are known in advance, such as the hour or a price; `forecast` is then given them.
    quantiles : levels such as (0.05, 0.5, 0.95), for regression: `predict_quantiles` and the trace
        then have these quantiles of the target, learned by pinball losses, which never cross.
        The ends of intervals are calibrated by past errors, as always: `ledger.quantiles` compares
        both. Takes about as long again as everything else.
    max_classes : how many labels may be found in the stream, by default 100: a target with more may
        be a number. Beyond two, the model grows with each class (docs/auto.md, "How large a model
        is"); `kb.errors.LargeModel` warns when its file is larger than 500 MB.
    missing : values that mean that there is none, such as -999 or (-999, "NA"): numbers in arrays,
        numbers and texts in tables, in inputs and in the target.
    engine : where the slots run: "serial", "threads", or "ray" for other processes and machines.
        Same bits.
    seed : whole number from which random features and random cuts follow.

    An input may be missing (NaN): it is filled in from the last values of its column, by their
    correlation from row to row, and no row is lost. A missing target is an error, but for one of
    several targets.

    Rows may have several targets, for regression: the first that are learned, (n, K) or (K,), say
    how many. All are outputs of one inner bank, whose slots share what they compute from inputs.
    Predictions are then (n, K), intervals (n, K, 2); lagged targets are those of all targets. A
    target that is missing in a row (NaN) is not learned for that target only.

    >>> import numpy as np, kernelbank as kb
    >>> draw = np.random.default_rng(0)
    >>> X = draw.uniform(-2, 2, (300, 2))
    >>> y = 100 + 10 * np.sin(2 * X[:, 0]) * X[:, 1]
    >>> bank = kb.AutoBank()
    >>> trace = bank.run(X, y)
    >>> bool(np.mean((trace.predictions[200:] - y[200:]) ** 2) < 0.1 * y[200:].var())
    True
    >>> len(bank.bank.slots), type(bank.bank.combiner).__name__
    (63, 'RobustStacking')
    """

    def __init__(
        self,
        task: str = "regression",
        lags: int = 0,
        size: str = "default",
        classes: Iterable[object] | None = None,
        *,
        slots: Iterable[Slot] | None = None,
        combiner: Combiner | None = None,
        loss: Loss | str = "squared",
        window: int = 1,
        regularization: float = 0.0,
        scalings: str | Iterable[str] | None = None,
        lower: float | None = None,
        upper: float | None = None,
        seasons: str | int | Iterable[int] | None = None,
        horizons: int | Iterable[int] | None = None,
        known: str | int | Iterable[str | int] | None = None,
        quantiles: Iterable[float] | None = None,
        max_classes: int | None = None,
        missing: float | str | Iterable[float | str] | None = None,
        engine: Engine | str = "serial",
        seed: int = 0,
    ) -> None:
        self._config = AutoConfig.checked(locals())
        self._config.check()
        self._task = self._config.task
        for name, setting in (("classes", classes), ("max_classes", max_classes)):
            if setting is not None and task == "regression":
                remedy = f'Use task="classification", or leave {name} out.'
                raise check.refuse(name, "be left out for regression", setting, remedy, "AutoBank")
        self._classes = ClassLabels(classes, max_classes)
        self._model: Model | None = None
        self._target_names: tuple[str, ...] | None = None
        """Of the targets, once several or one with a name were given."""
        self._encoder: ColumnEncoder | None = None
        """Of rows with names, once one was learned."""
        self._pending = _core.Pending()
        """Predictions whose targets have not come."""
        config = self._config
        self._is_plain = not (config.missing or config.horizons or config.quantiles)
        """Whether the core can predict and learn rows of numbers alone."""
        self._turn = new_turn(self)

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: object, y: object, *, added: int = 0) -> None:
        """Learn one row. Its target may come any number of rows after `predict_one(x)`.

        y : a number or a label; for several targets (K,), NaN where one is missing.

        added : how many of the row's numbers, the last ones, are new from now on: `add_inputs`,
            once it is clear that nothing is wrong with the row.

        If the same input was predicted before (among the last 1,000 predictions whose targets have
        not come), then that prediction is scored, and the lagged targets of that moment are learned
        from; else the present ones.
        """
        with self._turn:
            if self._is_plain and not added and self._learn_plain(x, y):
                return
            rows = self._checked_rows(x, y, added, single=True)
            with whole_step(self):
                new = rows.labels is not None and rows.labels[0] not in self._classes
                self._begin(rows, added)
                past = self._pending.pop(np.ascontiguousarray(rows.keys[0]))
                if past is None and new:  # predicted without its class
                    past = rows.model.predict_next(rows.inputs_of(0)[0], 0, rows.tail)
                rows.learn(0, past)

    def _learn_plain(self, x: object, y: object) -> bool:
        """Learn a row that the core can learn alone; False, and nothing has changed, for others.

        It needs no `whole_step`: no Python runs before its end, so that no signal is handled.
        """
        model, names = self._model, self._number_names
        target = self._classes.known_number(y) if self._config.labels else y
        if model is None or names is None or target is None:
            return False
        try:
            return model.core.learn_one(x, names, target, self._pending, TAIL)
        except MemoryError as error:
            self._failed_step(None, error)
            raise

    @property
    def _number_names(self) -> list[str] | None:
        """The names of the columns, if they have some; None if one does not hold numbers."""
        encoder = self._encoder
        return [] if encoder is None else encoder.names if encoder.is_numeric else None

    def _checked_rows(
        self, X: object, y: object, added: int, *, single: bool = False, coverage: float = COVERAGE
    ) -> _Rows:
        """Rows and their targets, checked; changes nothing that was learned."""
        named, inputs = self._read(X, "x" if single else "X", single=single, added=added)
        names, labels = None, None
        if self._task == "regression":
            of_bank = (self._outputs, self._target_names, self._config)
            targets, names = checked_targets(y, len(inputs), *of_bank, single=single)
        else:
            length, targets = None if single else len(inputs), np.zeros(len(inputs))
            labels = self._classes.check(y, length, self._config.missing_values)
        return _Rows(self, named, inputs, targets, names, labels, tail_of(coverage))

    def _begin(self, rows: _Rows, added: int) -> None:
        """Take columns, names of targets and inputs for those of all later rows."""
        if rows.labels is None and self._target_names is None and rows.targets.ndim == 1:
            self._target_names = rows.names
        elif rows.labels is None and self._outputs is None and rows.targets.ndim == 2:
            numbered = tuple(f"target {k}" for k in range(rows.targets.shape[1]))
            self._target_names = rows.names or numbered
        self._add_inputs(added)
        rows.model = self._model_for(rows.inputs.shape[1])
        if rows.named is not None:
            self._encoder, rows.named.encoder.tentative = rows.named.encoder, False

    def run(
        self,
        X: object,
        y: object,
        delay: int = 0,
        record: str | Iterable[str] = "light",
        coverage: float = COVERAGE,
        *,
        added: int = 0,
    ) -> AutoTrace:
        """Predict every row, and learn it when its target comes.

        Parameters
        ----------
        X : (n, d), or (n,) for inputs of one number. NaN where a value is missing. None for a
            series without inputs, with lags, seasons or horizons.
        y : (n,) targets or labels; (n, K) for several targets, NaN where one is missing.
        delay : how many rows later a target comes; row t is learned after row t + delay was
            predicted, and the last ones after the last prediction.
        record : "light", "all" (also the arrays with one column per slot) or a list of names.
        coverage : of the intervals in the trace.
        added : how many columns, the last ones, are new from now on; see `add_inputs`.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and of
        `predict_one` and `learn_one`.
        """
        with self._turn:
            if X is None:
                count = np.asarray(y).shape
                X = np.zeros((count[0] if count else 1, 1))
            steps = check.count("delay", delay, "run", "Give how many rows later.", least=0)
            fields = trace_fields(record, self._config)
            share = checked_coverage(coverage)
            rows = self._checked_rows(X, y, added, coverage=share)
            self._pending.expire()
            self._begin(rows, added)
            return rows.run(steps, fields)

    # --- predicting ---------------------------------------------------------------------------
    def predict_one(self, x: object) -> Any:
        """The prediction for one input: a number, or a label; for several targets (K,).
        Learns nothing.

        Before the first target is known there is none: NaN, or None without known classes.

        The prediction is kept until its target comes, so that a delayed target is learned with what
        was known when the prediction was made (see `learn_one`).
        """
        output = self._predict_one(x, TAIL)
        if self._config.labels:
            return self._classes.labels[output.index(max(output))] if output else None
        return np.array(output[::3]) if self._several else output[0]

    def predict_interval_one(self, x: object, coverage: float = COVERAGE) -> Any:
        """The ends of an interval that holds the target with this probability: two numbers, or
        (K, 2) for several targets.

        Calibrated online on the predictions so far, also under drift: in the long run a share of
        `coverage` of the targets lies inside, whatever the stream does.
        """
        output = self._predict_one(x, tail_of(self._interval_coverage(coverage)))
        return np.reshape(output, (-1, 3))[:, 1:].copy() if self._several else tuple(output[1:])

    def predict_proba_one(self, x: object) -> dict[Label, float]:
        """The probability of each label so far, in the order of `classes`."""
        self._need("classification", "predict_proba_one")
        return dict(zip(self.classes, self._predict_one(x, TAIL), strict=True))

    def predict_trace_one(
        self, x: object, record: str | Iterable[str] = "light", coverage: float = COVERAGE
    ) -> AutoTrace:
        """The prediction for one input, as the row that `run` would record. Learns nothing.

        The prediction is kept, as by `predict_one`, but each call counts as a row of its own, even
        if inputs are equal.
        """
        with self._turn:
            # Forecasts are made after learning.
            fields = trace_fields(record, replace(self._config, horizons=()))
            tail = tail_of(checked_coverage(coverage))
            prediction = self._predict_checked(x, tail, distinct=True)
            model = self._model
            assert model is not None
            records = [model.record(prediction)]
            return AutoTrace(model, records, fields, self._classes, self.target_names)

    def predict(self, X: object) -> np.ndarray:
        """(n,): predictions for the rows of an (n, d) array; (n, K) for several targets.
        Learns nothing.

        Without lags and seasons, each row is predicted as the next one of the stream. With them,
        the rows are the next n of the stream in their order: each prediction is a lagged target of
        later rows, and each row has its own phase.
        """
        output = self._predict_many(X, COVERAGE)
        if self._task == "regression":
            return self._by_target(output)[..., 0].copy()
        self._need_classes("predict")
        return self._classes.array(np.argmax(output, axis=1))

    def predict_interval(self, X: object, coverage: float = COVERAGE) -> Floats:
        """(n, 2): the ends of the intervals, each as of a prediction one step ahead; (n, K, 2) for
        several targets.

        With lags or seasons for one row only: later rows would go on from predictions, and be less
        certain than one step ahead. `forecast` has an interval for every step.
        """
        share = self._interval_coverage(coverage)
        return self._by_target(self._predict_many(X, share, intervals=True))[..., 1:].copy()

    def predict_quantiles(self, X: object) -> Floats:
        """(n, Q): the quantiles of the targets of rows (n, d), at the levels `quantiles`.

        (n, K, Q) for several targets.

        >>> import numpy as np, kernelbank as kb
        >>> draw = np.random.default_rng(0)
        >>> x = draw.uniform(0, 1, 500)
        >>> bank = kb.AutoBank(quantiles=(0.1, 0.9), size="small")
        >>> trace = bank.run(x, x * draw.normal(size=500))
        >>> low, high = bank.predict_quantiles([[0.1], [0.9]]).T
        >>> bool(high[1] - low[1] > high[0] - low[0])
        True
        """
        levels = self._config.quantiles
        if not levels:
            raise InvalidArgument(
                "predict_quantiles needs quantiles, which this AutoBank does not have. Make one "
                "with kb.AutoBank(quantiles=(0.05, 0.5, 0.95))."
            )
        with self._turn:
            rows = self._read(X, "X")[1]
            part = self._model_for(rows.shape[1]).quantile_part
            assert part is not None
            quantiles = part.predict(rows)
            return quantiles if self._several else quantiles[:, 0]

    def predict_proba(self, X: object) -> Floats:
        """(n, classes): probabilities, columns in the order of `classes`."""
        self._need("classification", "predict_proba")
        output = self._predict_many(X, COVERAGE)
        self._need_classes("predict_proba")
        return output

    def predict_at(self, X: object, coverage: float = COVERAGE) -> Floats:
        """Predict every row as if it were the next of the stream, with the present lagged targets.

        (n, 3): prediction and the ends of its interval, (n, K, 3) for several targets; for classes
        (n, classes): probabilities. So the function can be drawn along an input. Without lags,
        `predict` does the same.
        """
        with self._turn:
            return self.predict_inputs(self._read(X, "X")[1], coverage)

    def forecast(self, X_future: object = None, coverage: float = COVERAGE) -> Forecast:
        """Direct forecasts of the targets after the last learned row, one for each of `horizons`.

        Parameters
        ----------
        X_future : with `known`, the values of these columns in the next rows: a row for each of the
            next max(horizons) rows, or for each horizon. An array has the known columns only, in
            their order, or all columns. Where they are not given, or had not made forecasts better
            lately, forecasts are made without them.
        coverage : of the intervals, which are calibrated for each horizon from its past errors.

        Learns nothing. Before the first rows are learned forecasts are the last value.

        >>> import numpy as np, kernelbank as kb
        >>> hours = np.arange(400) % 24
        >>> y = 10 + np.sin(hours / 24 * 2 * np.pi)
        >>> bank = kb.AutoBank(horizons=(1, 12), known=[0], size="small")
        >>> trace = bank.run(hours, y)
        >>> forecast = bank.forecast((400 + np.arange(12)) % 24)
        >>> bool(abs(forecast.point[1] - (10 + np.sin(411 % 24 / 24 * 2 * np.pi))) < 0.1)
        True
        """
        with self._turn:
            forecaster = self._forecaster()
            coverage = checked_coverage(coverage)
            if forecaster.known is None and X_future is not None:
                remedy = "Leave it out, or name such columns: kb.AutoBank(horizons=..., known=...)."
                rule = "be left out for a bank without known columns"
                raise check.refuse("X_future", rule, np.asarray(X_future).shape, remedy, "forecast")
            future = None
            if forecaster.known is not None and X_future is not None:
                future = self._known_rows(X_future, forecaster.known)
            return forecaster.forecast(coverage, tail_of(coverage), future)

    @property
    def forecast_weights(self) -> dict[str, Floats]:
        """(H,) by slot: the weights of the forecasts at every horizon; empty before the first rows.

        They tell which kernels matter at which distance.
        """
        with self._turn:
            return self._forecaster().weights()

    # --- internals --------------------------------------------------------------------------------

    def predict_inputs(self, rows: Floats, coverage: float) -> Floats:
        """`predict_at` for inputs of the model, which have been encoded."""
        with self._turn:
            model = self._model_for(rows.shape[1])
            pasts = np.tile(model.core.past_row(self._pending.fresh), (len(rows), 1))
            late = self._pending.fresh > 0
            output = model.predict_rows(rows, pasts, tail_of(checked_coverage(coverage)), late)
            return self._by_target(output)

    def _by_target(self, output: Floats) -> Floats:
        """Predictions and ends of intervals (..., 3 K) as (..., K, 3) for several targets."""
        return output.reshape(*output.shape[:-1], -1, 3) if self._several else output

    def _predict_one(self, x: object, tail: float) -> list[float]:
        """(3 K,) or (classes,): the prediction for one input, kept until its target comes."""
        with self._turn:
            model, names = self._model, self._number_names
            if self._is_plain and model is not None and names is not None:
                output = model.core.predict_one(x, names, self._pending, tail)
                if output is not None:
                    return output
            return self._predict_checked(x, tail).output.tolist()  # type: ignore[no-any-return]

    def _predict_checked(
        self, x: object, tail: float, *, distinct: bool = False
    ) -> _core.Prediction:
        """The same after checks in Python.

        distinct : the row is one of its own, even where its input is equal to another one's.
        """
        named, row = self._read(x, "x", single=True)
        model, pending = self._model_for(row.shape[1]), self._pending
        key = row[0] if named is None else np.ascontiguousarray(named.codes[0])
        waiting = pending.fresh if distinct else pending.waiting_before(key, model.rows)
        prediction = model.predict_next(row[0], waiting, tail)
        pending.add(key, prediction, distinct)
        return prediction

    def _predict_many(self, X: object, coverage: float, *, intervals: bool = False) -> Floats:
        with self._turn:
            rows = self._read(X, "X")[1]
            if intervals and len(rows) > 1 and (self.lags or self.seasons is not None):
                rule = "be one row for predict_interval with lags or seasons"
                remedy = (
                    "Use kb.AutoBank(..., horizons=24) and forecast(), which has an interval for "
                    "every step, or predict_at for rows that are each the next one."
                )
                raise check.refuse("X", rule, rows.shape, remedy)
            model, fresh = self._model_for(rows.shape[1]), self._pending.fresh
            waiting = range(fresh, fresh + len(rows))
            pasts = np.array([model.core.past_row(n) for n in waiting]).reshape(len(rows), -1)
            tail = tail_of(coverage)
            if not (self.lags or (model.previous and self.seasons is not None)):
                outputs = [model.predict_rows(rows[:1], pasts[:1], tail, fresh > 0)]
                if len(rows) > 1:
                    outputs.append(model.predict_rows(rows[1:], pasts[1:], tail, late=True))
                return np.concatenate(outputs)
            targets, inputs_at = model.core.known_targets, pasts.shape[1] - model.previous
            lagged, before = pasts[0, :targets], pasts[0, inputs_at:]
            outputs = []
            for count, row, past in zip(waiting, rows, pasts, strict=True):
                past[:targets], past[inputs_at:] = lagged, before
                output = model.predict_rows(row[None], past[None], tail, count > 0)
                newest = [np.argmax(output)] if self._config.labels else output[0, ::3]
                lagged = np.append(newest, lagged)[:targets]  # later rows go on from predictions
                before = row[: model.previous]
                outputs.append(output)
            return np.concatenate(outputs)

    def _forecaster(self) -> Forecaster:
        if not self.horizons:
            raise InvalidArgument(
                "forecast needs horizons, which this AutoBank does not have. Make one with "
                "kb.AutoBank(lags=24, horizons=24)."
            )
        forecaster = None if self._model is None else self._model.forecaster
        if forecaster is None or not forecaster.samples:
            raise InvalidArgument("forecast needs targets. Learn some rows first.")
        return forecaster

    def _known_rows(self, X_future: object, known: KnownInputs) -> Floats:
        """(H, known): the known inputs at each horizon, from a table or an array of later rows."""
        horizons, columns = self.horizons, self._config.known
        missing = self._config.missing_values
        remedy = f"Give the columns {', '.join(map(str, columns))} of the next {horizons[-1]} rows."
        if self._encoder is not None and is_table(X_future):
            rows = self._encoder.expand_columns(X_future, columns, remedy, missing)
            rows = rows[:, known.columns]
        else:
            rows = check.floats("X_future", X_future, remedy)
            rows = with_gaps(rows, missing)
            if rows.ndim == 1:
                rows = rows[:, None] if len(columns) == 1 else rows[None]
            if rows.ndim == 2 and rows.shape[1] == self._dimension:
                rows = rows[:, known.columns]
            if rows.ndim != 2 or rows.shape[1] != len(known.columns):
                rule = f"have {len(known.columns)} columns"
                raise check.refuse("X_future", rule, rows.shape, remedy, "forecast")
            check.within_range("X_future", np.where(np.isnan(rows), 0.0, rows))
        if len(rows) >= horizons[-1]:
            return np.asarray(rows[np.array(horizons) - 1])
        if len(rows) != len(horizons):
            rule = f"have {horizons[-1]} rows, or one for each of {len(horizons)} horizons"
            raise check.refuse("X_future", rule, len(rows), remedy, "forecast")
        return np.ascontiguousarray(rows)

    def _need_classes(self, method: str) -> None:
        if not len(self._classes):
            raise InvalidArgument(
                f"{method} needs to know the labels. Learn some rows first, or name them: "
                "kb.AutoBank(classes=[...])."
            )

    def _interval_coverage(self, coverage: object) -> float:
        self._need("regression", "an interval")
        return checked_coverage(coverage)

    # --- new columns and classes ------------------------------------------------------------------

    def name_columns(self, names: Iterable[str]) -> None:
        """Name the columns of a bank that will learn arrays of numbers.

        Then tables and dictionaries with these names can be given too, and messages have the names.
        A bank that learns tables takes the names from them.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> bank.name_columns(["load", "wind"])
        >>> bank.learn_one([1.0, 2.0], 3.0)
        >>> bank.predict_one({"wind": 2.0, "load": 1.0})
        3.0
        """
        remedy = 'Give one name for each column, such as ["load", "wind"], none twice.'
        is_list = isinstance(names, Iterable) and not isinstance(names, str)
        columns = [str(name) for name in names] if is_list else []
        if not columns or len(set(columns)) < len(columns):
            raise check.refuse("names", "be a list of different names", names, remedy)
        with self._turn:
            if self._encoder is not None and not self._encoder.tentative:
                remedy = "Start a new bank for other names."
                raise check.refuse("names", "be given once, before any row", columns, remedy)
            check.check_width(len(columns), self._dimension, "names")
            pairs = [(name, NUMBER) for name in columns]
            self._encoder = ColumnEncoder(pairs, labels=self._config.labels)

    def add_inputs(self, count: int = 1) -> None:
        """From now on, every input has `count` more numbers, behind the others.

        Nothing that was learned is lost: all is as if they had been missing (NaN) so far. Linear
        slots and trees take them up as they come; random features keep to the first inputs until
        the next restart (after 5, 16, 32 and 128 rows). Predictions that wait for
        targets are kept.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> for n in range(300):
        ...     bank.learn_one([n % 7], n % 7)
        >>> bank.add_inputs()
        >>> round(bank.predict_one([6.0, float("nan")]), 1)
        6.0
        """
        if self._encoder is not None and not self._encoder.tentative:
            remedy = "Start a new bank with the new columns, NaN in rows without them."
            raise check.refuse("add_inputs", "have names for new columns", count, remedy)
        remedy = "Give how many inputs are added."
        self._add_inputs(check.count("count", count, "add_inputs", remedy, least=1, most=10**6))

    def add_classes(self, classes: Iterable[object]) -> None:
        """Add labels that may occur from now on, also beyond those named and beyond max_classes.

        Nothing that was learned is lost. A class beyond two starts from the last 512 rows, as one
        that first appears there. Known labels may be among them.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank("classification", classes=["no", "yes"])
        >>> bank.learn_one([1.0], "yes")
        >>> bank.add_classes(["perhaps"])
        >>> bank.classes
        ('no', 'yes', 'perhaps')
        """
        self._need("classification", "add_classes")
        labels = checked_labels(classes)
        with self._turn, whole_step(self):
            for label in labels:
                self._encode(label)
            self._classes.limit = max(self._classes.limit, len(self._classes))

    # --- saving -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next prediction depends on to one file, atomically.

        `kb.load(path)` continues bit for bit. The file holds arrays and JSON, no code.
        """
        header, arrays = self.describe()
        checkpoint.write(path, header, arrays)

    def to_bytes(self) -> bytes:
        """The same as bytes, for a database or a message; `kb.from_bytes` is the way back."""
        return checkpoint.to_bytes(*self.describe())

    def describe(self) -> tuple[Json, Arrays]:
        """Everything that the next prediction depends on: settings as JSON data, and arrays."""
        with self._turn:
            names, classes = self._target_names, self._classes
            header = self._config.describe() | {
                "classes": classes.labels,
                "max_classes": classes.limit,
                "classes_named": classes.named,
                "targets": None if names is None else list(names),
            }
            parts: dict[str, Any] = {"columns": self._encoder}
            if (model := self._model) is not None:
                header["dimension"] = model.dimension
                parts |= {"model": model, "pending": self._pending} | model.extra_parts
            facts, arrays = describe_parts(parts)
            if model is not None:
                facts["pending"] = {"expired": self._pending.expired}
            return header | facts, arrays

    @classmethod
    def restored(cls, header: Json, arrays: Arrays, reading: Reading) -> AutoBank:
        """The bank that `describe` described, checked in every respect; see `kb.load`."""
        bank = cls(**config_arguments(header, reading))
        bank._classes.restore(header)
        names = header.get("targets")
        if names is not None:
            texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
            if header["task"] != "regression" or not texts or not 0 < len(set(names)) == len(names):
                raise FileRefused("its targets are not different names.")
            bank._target_names = tuple(names)
        if header["columns"] is not None:
            labels = bank._config.labels
            state = under("columns/", arrays)
            bank._encoder = ColumnEncoder.restored(header["columns"], state, labels=labels)
        if header["dimension"] is not None:
            bank._restore_model(header, arrays, reading)
        elif any(not name.startswith("columns/") for name in arrays):
            raise FileRefused("it has arrays but no inputs.")
        if not bank.banks:
            config, model = bank._config, bank._model
            scaling = config.make_scaling(1) if model is None else model.scaling
            config.first_bank(scaling).check_memory(scaling.width, reading.most_memory)
        return bank

    def _restore_model(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        """The model of a file, with all that belongs to it."""
        dimension = whole_number(header["dimension"], 1, 10**6, "inputs")
        facts, state = header["model"], under("model/", arrays)
        targets = len(self._target_names or (0,))
        # Before anything is made for so many inputs: the largest arrays that depend on them alone.
        rows = REPLAY if self._config.keeps_rows else self._config.restarts[-1]
        for name, width in (("inputs", dimension), ("targets", targets)):
            if state[f"core/replay/{name}"].shape != (rows, width):
                raise FileRefused(f"its {name} do not fit its arrays.")
        most = min(dimension, WIDE) if self._config.knows_previous else 0
        previous = whole_number(facts["previous"], 0, most, "inputs of the row before")
        self._model = model = self._new_model(dimension, targets, previous)
        model.restore(facts, state, reading)
        encoder = self._encoder
        if encoder is not None and (
            encoder.width != dimension or (encoder.tentative and model.rows)
        ):
            raise FileRefused("its columns do not fit its inputs.")
        if model.forecaster is not None:
            model.forecaster = model.forecaster.with_periods(model.periods)
        reading.restore(model.extra_parts, header, arrays)
        quantiles = model.quantile_part
        if quantiles is not None and quantiles.model.rows != model.rows:
            raise FileRefused("its quantiles do not fit its rows.")
        # A pending input has as many numbers as columns, where they have names.
        width, pending = dimension if encoder is None else len(encoder.columns), self._pending
        pending.restore(under("pending/", arrays))
        model.core.check_pending(pending, width)
        expired = header["pending"]["expired"]
        pending.expired = whole_number(expired, 0, len(pending), "old predictions")

    def __getstate__(self) -> dict[str, object]:
        """For copy and pickle: everything but the lock."""
        with self._turn:
            return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._turn = new_turn(self)

    # --- whole steps --------------------------------------------------------------------------

    def _before_step(self) -> dict[str, object] | None:
        """A copy of the state where users' functions may fail; else None."""
        if self._config.has_own_parts and (
            not self._model
            or not self._model.banks
            or any(bank.calls_python for bank in self._model.banks)
        ):
            copied: dict[int, object] = {id(part): part for part in (self, self._config)}
            state = {name: value for name, value in self.__dict__.items() if name not in _SETTINGS}
            return copy.deepcopy(state, copied)
        return None

    def _failed_step(self, before: dict[str, object] | None, error: BaseException) -> None:
        if before is None:
            self._cut_off(f"a step was cut off by {error!r}")
        else:
            self.__dict__.update(before)

    def _cut_off(self, why: str) -> None:
        self._model = cast(Model, CutOff(why))

    # --- columns and the model --------------------------------------------------------------------

    def _read(
        self, X: object, name: str, *, single: bool = False, added: int = 0
    ) -> tuple[NamedInputs | None, Floats]:
        """Rows with names, None for arrays that have none; and inputs of the model (n, d).

        added : how many columns, the last ones, are new.
        """
        named, width = None, self._dimension
        missing = self._config.missing_values
        if self._encoder is not None or type(X) is not np.ndarray:
            labels = self._config.labels
            encoder = None if self._encoder is None or self._encoder.tentative else self._encoder
            named = read_named(X, encoder, width, name, labels, missing, single=single)
            if encoder is None and width is None:
                self._try_columns(None if named is None else named.encoder)
        if added and named is not None:
            remedy = "Leave it out: columns with names are known."
            raise check.refuse("added", "be 0 for rows with names", added, remedy)
        remedy = "Give how many of the last columns are new."
        added = check.count("added", added, "AutoBank", remedy, least=0, most=10**6)
        if named is not None:
            return named, named.inputs
        width = None if width is None else width + added
        return None, checked_inputs(X, width, name, single=single, missing=missing)

    def _try_columns(self, encoder: ColumnEncoder | None) -> None:
        """Take the columns of rows that are not learned yet, in place of others."""
        before = None if self._encoder is None else self._encoder.columns
        if before != (None if encoder is None else encoder.columns):
            self._pending.clear()  # of other columns
        self._encoder = encoder
        if encoder is not None:
            encoder.tentative = True

    @property
    def _outputs(self) -> int | None:
        """How many targets a row has; None before the first row was learned."""
        if self._model is None or not self._model.rows:
            return None if self._target_names is None else len(self._target_names)
        return self._model.target_count

    def _model_for(self, dimension: int) -> Model:
        """The model for inputs of this width; a new one if nothing has been learned yet."""
        outputs = self._outputs or 1
        if (
            self._model is None
            or self._model.dimension != dimension
            or (self._task == "regression" and self._model.target_count != outputs)
        ):
            same_inputs = self._model is not None and self._model.dimension == dimension
            waiting = self._pending.rows() if same_inputs else []
            self._pending.clear()
            self._model = self._new_model(dimension, outputs)
            if self._task == "regression":  # predicted before the number of targets was known
                unknown = np.full(dimension, np.nan)
                for number, key in enumerate(waiting):
                    self._pending.append(key, self._model.predict_next(unknown, number, 0.5))
        return self._model

    def _new_model(self, dimension: int, outputs: int, previous: int | None = None) -> Model:
        config = self._config
        if self._config.labels:
            return ClassModel(config, dimension, len(self._classes), previous)
        model = NumberModel(config, dimension, outputs, previous)
        if config.horizons:
            model.forecaster = Forecaster(config, dimension, model.periods, self._known(dimension))
        if config.quantiles:
            model.quantile_part = Quantiles(config, dimension, outputs)
        return model

    def _known(self, dimension: int) -> KnownInputs | None:
        """The model of the inputs that are known in advance, with nothing learned."""
        config, encoder, inputs = self._config, self._encoder, list[int]()
        for column in config.known:
            if encoder is not None:
                places = encoder.inputs_of(column)
            else:
                places = [column] if isinstance(column, int) and column < dimension else []
            if not places:
                names = range(dimension) if encoder is None else encoder.names
                remedy = f"Columns are {', '.join(map(str, list(names)[:10]))}."
                rule = "name columns of numbers or times among the inputs"
                raise check.refuse("known", rule, column, remedy, "AutoBank")
            inputs += places
        if not inputs:
            return None
        slots = known_slots(len(inputs), SIZES[config.size], config.seed)
        bank, late = (AutoBank(slots=slots, scalings="standard") for _ in range(2))
        return KnownInputs(inputs, bank, late, config.horizons[-1])

    def _add_inputs(self, count: int) -> None:
        if count:
            with self._turn, defer_signals():
                if self._dimension is not None and self._model is not None:
                    self._model.add_inputs(count)
                    self._pending.add_inputs(count)

    def _encode(self, label: Label) -> int:
        """The number of a label's class, which may be new."""
        if label not in self._classes:
            self._classes.add([label])
            if isinstance(self._model, ClassModel):
                self._model.add_class()
        return self._classes.number(label)

    # --- what it is ---------------------------------------------------------------------------

    @property
    def task(self) -> str:
        """ "regression" or "classification"."""
        return self._task

    @property
    def lags(self) -> int:
        """How many of the last targets are inputs."""
        return self._config.lags

    @property
    def seasons(self) -> str | tuple[int, ...] | None:
        """The periods that were named, in rows; "auto" if they are found, None for no seasons."""
        return self._config.seasons

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The levels of `predict_quantiles`; empty without quantiles."""
        return self._config.quantiles

    @property
    def _several(self) -> bool:
        """Whether rows have several targets."""
        return self._model is not None and self._model.target_count > 1

    @property
    def horizons(self) -> tuple[int, ...]:
        """How many rows ahead `forecast` goes; empty without horizons."""
        return self._config.horizons

    @property
    def periods(self) -> tuple[int, ...]:
        """The periods in use, in rows: those that were named, or found so far."""
        if self._model is not None:
            return self._model.periods
        return self.seasons if isinstance(self.seasons, tuple) else ()

    @property
    def size(self) -> str:
        """ "small", "default" or "large"."""
        return self._config.size

    @property
    def lower(self) -> float | None:
        """What no target lies below; None for no bound."""
        return self._config.lower

    @property
    def upper(self) -> float | None:
        """What no target lies above; None for no bound."""
        return self._config.upper

    @property
    def missing_values(self) -> MissingValues | None:
        """The values that mean that there is none; None without such values."""
        return self._config.missing_values

    @property
    def samples(self) -> int:
        """How many rows have been learned."""
        return 0 if self._model is None else self._model.rows

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels, in the order of the columns of probabilities."""
        return tuple(self._classes.labels)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the targets: those of the columns of y, or "target 0", ... of several.

        Empty for one target without a name.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> bank.learn_one([1.0], {"load": 2.0, "price": 3.0})
        >>> bank.target_names
        ('load', 'price')
        """
        return self._target_names or ()

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns, if the bank has learned rows with names."""
        if self._encoder is None or self._encoder.tentative:
            raise AttributeError("this AutoBank has learned no rows with names")
        return np.array(self._encoder.names, dtype=object)

    @property
    def ledger(self) -> AutoLedger:
        """Errors so far, and signals of change."""
        return AutoLedger(self)

    @property
    def bank(self) -> KernelBank | None:
        """The inner bank, on scaled inputs; None before the fifth row.

        With more than two classes, these are its outputs; but with lagged labels or seasons each
        class has a bank, all of which are in `banks`, and this is the first.
        """
        return self.banks[0] if self.banks else None

    @property
    def banks(self) -> tuple[KernelBank, ...]:
        """The inner banks: one; with lags or seasons one per class if there are more than two."""
        return () if self._model is None else tuple(self._model.banks)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all slots that may run; empty before the first row.

        A default slot is named `scaling: method`; "a + b" is slot a plus one that learns its
        residual. The scalings are "standard" (deviations from the running mean), "asinh" (the same,
        for heavy tails) and "rank". The methods:

        - "random features, no forgetting": least squares on random features of the kernels;
          "..., forgetting": old rows count less; "..., adaptive bias": and the constant follows the
          last errors; "narrow", "all inputs": with other kernels;
        - "linear, no forgetting" and "linear, adaptive bias": least squares on the inputs;
        - "tree 1", "tree 2", ...: a partition tree;
        - "nearest neighbors, width w, noise v": a small Gaussian process on the nearest rows;
        - "last value": the last target again;
        - "slow shift", "fast shift": gradient steps on the loss, for other losses than the squared
          one.

        Instead of a scaling stand "relevant" (the inputs, past targets and inputs of the row before
        that matter most), "past" (the same columns, all alike) and, with seasons, "season" (the
        targets of earlier periods, and the phase).

        >>> import numpy as np, kernelbank as kb
        >>> X = np.random.default_rng(0).normal(size=(10, 2))
        >>> bank = kb.AutoBank()
        >>> _ = bank.run(X, X[:, 0])
        >>> sorted({name.split(":")[0].split(" + ")[0] for name in bank.names})
        ['asinh', 'boosted trees', 'last value', 'past', 'rank', 'relevant', 'standard']
        >>> bank.names[0]
        'standard: random features, no forgetting'
        """
        return () if self._model is None else tuple(self._model.names)

    @property
    def weights(self) -> Floats:
        """(slots,): the weights of the next prediction, in the order of `names`.

        0 for slots that do not run; with more than two classes the mean over them; empty
        before the slots start, after the fifth row.
        """
        with self._turn:
            if self._model is None or not self._model.banks:
                return np.zeros(0)
            return self._model.mean_weights_of_outputs()

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank(size="small")
        >>> for n in range(101):
        ...     bank.learn_one([n, n % 2], n)
        >>> bank.input_ranges()[0]
        array([ 50.,   0., 100.])
        """
        with self._turn:
            if self._model is None or not self._model.rows:
                raise InvalidArgument("input_ranges() needs inputs. Learn some rows first.")
            return self._model.scaling.input_ranges()

    @property
    def input_names(self) -> tuple[str, ...]:
        """A name for every input of the model, in the order of `input_ranges`.

        A column of times or categories gives several inputs; columns without names are numbered.
        """
        width = self._dimension or 0
        if self._encoder is None or self._encoder.tentative or not width:
            return tuple(f"input {k}" for k in range(width))
        return tuple(self._encoder.input_names)

    # --- for `kernelbank run` ---------------------------------------------------------------------

    @property
    def model(self) -> Model | None:
        """What predicts rows that are encoded; None before the first row."""
        return self._model

    @property
    def encoder(self) -> ColumnEncoder | None:
        """How rows with names become inputs; None before the first one."""
        return self._encoder

    @property
    def class_labels(self) -> ClassLabels:
        """The labels so far, and which other ones may occur."""
        return self._classes

    @property
    def config(self) -> AutoConfig:
        """The settings, checked."""
        return self._config

    def use_columns(self, columns: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Set the names and kinds of the columns of all rows, if none are set; those that are."""
        if self._encoder is None:
            self._encoder = ColumnEncoder(columns, labels=self._config.labels)
        return self._encoder.columns

    def name_targets(self, names: Sequence[str]) -> None:
        """Name several targets before any of them is learned."""
        self._target_names = tuple(names)

    def expect_delay(self, rows: int) -> None:
        """Keep at least so many predictions until their targets come."""
        self._pending.limit = max(self._pending.limit, rows + 1)

    def learn_and_forecast(self, x: object, y: object, coverage: float) -> dict[str, Floats]:
        """Learn one row that was predicted; the forecasts after it, as `run` records them."""
        assert self._model is not None
        if self._model.forecaster is None:
            self.learn_one(x, y)
            return {}
        self._model.forecaster.collect(np.zeros((0, 0)), tail_of(coverage))
        try:
            self.learn_one(x, y)
        finally:
            forecasts = self._model.forecaster.collected()
        return forecasts

    # --- how it is shown ------------------------------------------------------------------------

    def __repr__(self) -> str:
        try:
            return self.status().text()
        except HalfLearned as error:
            return f"AutoBank: {error}"

    def _repr_html_(self) -> str:
        return self.status().html()

    def status(self) -> Status:
        """What the model is, how well it does and which slots carry it, at this moment."""
        with self._turn:
            return auto_status(self)

    @property
    def _dimension(self) -> int | None:
        """The width of the inputs, once something was learned: a prediction fixes nothing."""
        return None if self._model is None or not self._model.rows else self._model.dimension

    def _need(self, task: str, method: str) -> None:
        if self._task != task:
            raise InvalidArgument(
                f"{method} needs task={task!r}; this AutoBank does {self._task}. "
                f"Make one with kb.AutoBank(task={task!r})."
            )


TAIL = 0.5 * (1 - COVERAGE)  # `tail_of(COVERAGE)`


def checked_coverage(coverage: object) -> float:
    """The coverage of an interval, between 0 and 1."""
    remedy = "Give a share between 0 and 1, such as 0.9."
    return check.number("coverage", coverage, "AutoBank", remedy, above=0, below=1)


def tail_of(coverage: float) -> float:
    """The probability beyond each end of an interval."""
    return 0.5 * (1 - coverage)


@dataclass
class _Rows:
    """Rows with targets that a bank learns, and predicts before they are known.

    Inputs of categories hold means of earlier targets, and learning may add inputs. So rows of a
    table with categories are encoded just before they are predicted or learned.

    Parameters
    ----------
    bank : that learns them.
    named : rows with names; None for others.
    inputs : (n, d), by what was known before the first row.
    targets : (n,) or (n, K); zeros for labels.
    names : of the targets, if they have some.
    labels : of the rows; None for regression.
    tail : probability beyond each end of the intervals.
    """

    bank: AutoBank
    named: NamedInputs | None
    inputs: Floats
    targets: Floats
    names: tuple[str, ...] | None
    labels: list[Label] | None
    tail: float
    model: Model = field(init=False)
    records: list[Record] = field(default_factory=list)

    @property
    def keys(self) -> Floats:
        """(n, columns): the rows as they were given, by which predictions are found again."""
        return self.inputs if self.named is None else self.named.codes

    @property
    def table(self) -> NamedInputs | None:
        """The rows, if learning changes the inputs that follow from their codes."""
        return self.named if self.named is not None and self.named.encoder.statistics else None

    def run(self, delay: int, fields: tuple[str, ...]) -> AutoTrace:
        """The trace of all rows: each is predicted, and learned so many rows later."""
        waiting: deque[tuple[int, _core.Prediction]] = deque()
        row, count, forecasts = 0, len(self.inputs), dict[str, Floats]()
        if self.model.forecaster is not None:
            self.model.forecaster.collect(self.inputs, self.tail)
        try:
            while row < count or waiting:
                with whole_step(self.bank):
                    if row < count and not delay and not self._changes_model(row):
                        row = self._update(row, fields)
                        continue
                    if row < count:
                        x = self.inputs_of(row)[0]
                        prediction = self.model.predict_next(x, len(waiting), self.tail)
                        self._keep(self.model.record(prediction), fields)
                        waiting.append((row, prediction))
                        row += 1
                    if len(waiting) > delay or row == count:
                        self.learn(*waiting.popleft())
        finally:
            if self.model.forecaster is not None:  # another one, if periods were found
                forecasts = self.model.forecaster.collected()
        names, labels = self.bank.target_names, self.bank._classes
        return AutoTrace(self.model, self.records, fields, labels, names, forecasts)

    def _changes_model(self, row: int) -> bool:
        """Whether learning a row adds a class or inputs."""
        if self.labels is not None and self.labels[row] not in self.bank._classes:
            return True
        table = self.table
        return table is not None and table.encoder.adds_inputs(table.codes[row : row + 1])

    def inputs_of(self, row: int) -> Floats:
        """(1, d): the inputs of one row, by what is known now."""
        if self.table is None:
            return self.inputs[row : row + 1]
        return self.table.encoder.expand(self.table.codes[row : row + 1])

    def _update(self, start: int, fields: tuple[str, ...]) -> int:
        """Predict and learn a batch in which no row changes the model; its end."""
        end = min(start + CHUNK, len(self.inputs))
        if self.labels is not None:
            for row in range(start, end):
                if self.labels[row] not in self.bank._classes:
                    end = row
                    break
                self.targets[row] = self.bank._classes.number(self.labels[row])
        X, _ = self._take(start, end)
        end = start + len(X)
        for record in self.model.update(X, self.targets[start:end], self.tail, fields):
            self._keep(record, fields)
        return end

    def _take(self, start: int, end: int) -> tuple[Floats, int]:
        """The inputs of rows that are learned now, or of the first ones; how many are new."""
        table = self.table
        if table is None:
            return self.inputs[start:end], 0
        statistic = table.encoder.as_statistic(self.targets[start:end])
        return table.encoder.take(table.codes[start:end], statistic, table.texts)

    def learn(self, row: int, past: _core.Prediction | None) -> None:
        """Learn one row, which was predicted some rows ago or not."""
        if self.labels is not None:
            self.targets[row] = self.bank._encode(self.labels[row])
        if past is None and self.table is not None and self._changes_model(row):
            # Predicted before it adds inputs, as by `predict_one`: the same bits.
            past = self.model.predict_next(self.inputs_of(row)[0], 0, self.tail)
        X, added = self._take(row, row + 1)
        if added:
            self.model.add_inputs(added)
        self.model.update(X, self.targets[row : row + 1], self.tail, earlier=past)

    def _keep(self, record: Record, fields: tuple[str, ...]) -> None:
        wanted = (*fields, "predictions", "probabilities")
        self.records.append({name: record[name] for name in wanted if name in record})

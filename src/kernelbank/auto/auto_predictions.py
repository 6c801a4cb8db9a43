"""The predicting part of an AutoBank."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bank.trace import Trace, chosen_fields
from ..errors import InvalidArgument
from ..utils import validation as check
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from .arguments import checked_coverage
from .auto_state import AutoBankState
from .encoding.plain_inputs import checked_inputs
from .forecasts.forecast import LEVELS, Forecast, ordered
from .forecasts.forecaster import Forecaster
from .forecasts.known_inputs import known_table
from .prediction import Prediction
from .prequential_run import make_trace

COVERAGE = 0.9
"""Of intervals, by default."""


class AutoBankPredictions(AutoBankState):
    """The part of `AutoBank` that predicts: it learns nothing, but keeps what it has predicted."""

    def predict_one(self, x: Any) -> Any:
        """The prediction for one input: a number, or a label; for several targets (K,).
        Learns nothing.

        Before the first target is known there is none: NaN, or None without known classes.

        The prediction is kept until its target comes, so that a delayed target is learned with what
        was known when the prediction was made (see `learn_one`).
        """
        output = self._output_one(x, COVERAGE)
        if self._task == "regression":
            return np.array(output[::3]) if self._several else output[0]
        return self._classes.known[output.index(max(output))] if output else None

    def predict_interval_one(self, x: Any, coverage: float = COVERAGE) -> Any:
        """The ends of an interval that holds the target with this probability: two numbers, or
        (K, 2) for several targets.

        Calibrated online on the predictions so far, also under drift: in the long run a share of
        `coverage` of the targets lies inside, whatever the stream does.
        """
        output = self._output_one(x, self._interval_coverage(coverage))
        if self._several:
            return np.array(output).reshape(-1, 3)[:, 1:].copy()
        return output[1], output[2]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label so far, in the order of `classes`."""
        self._need("classification", "predict_proba_one")
        output = self._output_one(x, COVERAGE)
        return dict(zip(self.classes, output, strict=True))

    def predict_trace_one(self, x: Any, record: Any = "light", coverage: float = COVERAGE) -> Trace:
        """The prediction for one input, as the row that `run` would record. Learns nothing.

        The prediction is kept, as by `predict_one`, but each call counts as a row of its own, even
        if inputs are equal.
        """
        with self._turn:
            missing = ("forecast", *self._no_fields)  # forecasts are made after learning
            fields = chosen_fields(record, self._task, without=missing)
            prediction = self._predict_one(x, checked_coverage(coverage), distinct=True)
            assert self._model is not None
            found = self._model.record(prediction)
            names, targets = self._model.names, self.target_names
            return make_trace(self._task, [found], fields, names, self._classes, targets)

    def predict(self, X: Any) -> np.ndarray:
        """(n,): predictions for the rows of an (n, d) array; (n, K) for several targets.
        Learns nothing.

        Without lags and seasons, each row is predicted as the next one of the stream. With them,
        the rows are the next n of the stream in their order: each prediction is a lagged target of
        later rows, and each row has its own phase.
        """
        output = self._predict_many(X, COVERAGE)
        if self._task == "regression":
            return output[:, ::3].copy() if self._several else output[:, 0].copy()
        self._need_classes("predict")
        return self._classes.array(np.argmax(output, axis=1))

    def predict_interval(self, X: Any, coverage: float = COVERAGE) -> Floats:
        """(n, 2): the ends of the intervals, each as of a prediction one step ahead; (n, K, 2) for
        several targets.

        With lags or seasons for one row only: later rows would go on from predictions, and be less
        certain than one step ahead. `forecast` has an interval for every step.
        """
        share = self._interval_coverage(coverage)
        output = self._predict_many(X, share, intervals=True)
        if self._several:
            return output.reshape(len(output), -1, 3)[:, :, 1:].copy()
        return output[:, 1:3].copy()

    def predict_quantiles(self, X: Any) -> Floats:
        """(n, Q): the quantiles of the targets of rows (n, d), at the levels `quantiles`.

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
        return self._predict_many(X, COVERAGE)[:, 3 : 3 + len(levels)].copy()

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes): probabilities, columns in the order of `classes`."""
        self._need("classification", "predict_proba")
        output = self._predict_many(X, COVERAGE)
        self._need_classes("predict_proba")
        return output

    def predict_at(self, X: Any, coverage: float = COVERAGE) -> Floats:
        """Predict every row as if it were the next of the stream, with the present lagged targets.

        (n, 3): prediction and the ends of its interval, (n, K, 3) for several targets; for classes
        (n, classes): probabilities. So the function can be drawn along an input. Without lags,
        `predict` does the same.
        """
        with self._turn:
            return self._predict_inputs(self._inputs(X, "X"), coverage)

    def forecast(self, X_future: Any = None, coverage: float = COVERAGE) -> Forecast:
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
            tail = tail_of(checked_coverage(coverage))
            if forecaster.known is None and X_future is not None:
                remedy = "Leave it out, or name such columns: kb.AutoBank(horizons=..., known=...)."
                rule = "be left out for a bank without known columns"
                raise check.refuse("X_future", rule, np.shape(X_future), remedy, "forecast")
            history = forecaster.observed[~np.isnan(forecaster.observed)]
            future = None if X_future is None else self._known_rows(X_future, forecaster)
            output = forecaster.forecast(tail, future)
            levels = np.array([forecaster.quantile(level, future) for level in LEVELS]).T
            quantiles = dict(zip(LEVELS, ordered(levels).T.copy(), strict=True))
            point, lower, upper = output.T.copy()
            return Forecast(
                self.samples,
                self.horizons,
                point,
                lower,
                upper,
                checked_coverage(coverage),
                quantiles,
                history,
            )

    @property
    def forecast_weights(self) -> dict[str, Floats]:
        """(H,) by slot: the weights of the forecasts at every horizon; empty before the first rows.

        They tell which kernels matter at which distance; see `kb.plots.horizon_weights`.
        """
        with self._turn:
            forecaster = self._forecaster()
            if not forecaster.model.banks:
                return {}
            return dict(zip(forecaster.model.names, forecaster.weights().T.copy(), strict=True))

    # --- internals --------------------------------------------------------------------------------

    def _predict_inputs(self, rows: Floats, coverage: float) -> Floats:
        """`predict_at` for inputs of the model, which have been encoded."""
        with self._turn:
            model = self._model_for(rows.shape[1])
            past = model.past_row(self._pending.fresh)
            lagged = np.tile(past, (len(rows), 1))
            output = model.predict(rows, lagged, tail_of(checked_coverage(coverage))).output
            if self._several:
                return output.reshape(len(output), -1, 3)
            return output[:, :3] if self._config.quantiles else output

    def _output_one(self, x: Any, coverage: float) -> list[float]:
        """Prediction and ends of the interval, or probabilities."""
        return self._predict_one(x, coverage).output[0].tolist()

    def _predict_one(self, x: Any, coverage: float, *, distinct: bool = False) -> Prediction:
        with self._turn:
            named = self._named(x, "x", one=True)
            row = (
                checked_inputs(x, self._dimension, "x", one=True) if named is None else named.inputs
            )
            model = self._model_for(row.shape[1])
            key = row if named is None else named.codes
            pending = self._pending
            waiting = (
                pending.fresh if distinct else pending.waiting_before(key[0].tobytes(), model.rows)
            )
            prediction = model.predict(row, model.past_row(waiting), tail_of(coverage))
            with defer_signals():
                self._pending.add(key[0], prediction, distinct=distinct)
            return prediction

    def _predict_many(self, X: Any, coverage: float, *, intervals: bool = False) -> Floats:
        with self._turn:
            rows = self._inputs(X, "X")
            if intervals and len(rows) > 1 and (self.lags or self.seasons is not None):
                rule = "be one row for predict_interval with lags or seasons"
                remedy = (
                    "Use kb.AutoBank(..., horizons=24) and forecast(), which has an interval for "
                    "every step, or predict_at for rows that are each the next one."
                )
                raise check.refuse("X", rule, rows.shape, remedy)
            model = self._model_for(rows.shape[1])
            past = model.forecast_rows(len(rows), self._pending.fresh)
            goes_on = self.lags or (model.previous and self.seasons is not None)
            if not goes_on:
                return model.predict(rows, past, tail_of(coverage)).output
            known, own_inputs = model.remembered * model.target_count, model.past - model.previous
            lagged, before = model.lagged[:known], model.last_inputs
            outputs = []
            for row, own in zip(rows, past, strict=True):
                own[:known], own[own_inputs:] = lagged, before
                prediction = model.predict(row[None], own[None], tail_of(coverage))
                lagged = np.append(model.as_target(prediction), lagged)[:known]
                before = row[: model.previous]
                outputs.append(prediction.output)
            return np.concatenate(outputs)

    def _forecaster(self) -> Forecaster:
        forecaster = getattr(self._model, "forecaster", None)
        if not self.horizons:
            raise InvalidArgument(
                "forecast needs horizons, which this AutoBank does not have. Make one with "
                "kb.AutoBank(lags=24, horizons=24)."
            )
        if forecaster is None or not forecaster.samples:
            raise InvalidArgument("forecast needs targets. Learn some rows first.")
        assert isinstance(forecaster, Forecaster)
        return forecaster

    def _known_rows(self, X_future: Any, forecaster: Forecaster) -> Floats:
        """(H, known): the known inputs at each horizon."""
        horizons, known = self.horizons, forecaster.known
        assert known is not None
        names = ", ".join(map(str, self._config.known))
        remedy = f"Give the columns {names} of the next {horizons[-1]} rows."
        rows = known_table(X_future, self._config.known, self._encoder, forecaster, remedy)
        if len(rows) >= horizons[-1]:
            return rows[np.array(horizons) - 1]
        if len(rows) != len(horizons):
            rule = f"have {horizons[-1]} rows, or one for each of {len(horizons)} horizons"
            raise check.refuse("X_future", rule, len(rows), remedy, "forecast")
        return rows

    def _need_classes(self, method: str) -> None:
        if not len(self._classes):
            raise InvalidArgument(
                f"{method} needs to know the labels. Learn some rows first, or name them: "
                "kb.AutoBank(classes=[...])."
            )

    def _interval_coverage(self, coverage: Any) -> float:
        self._need("regression", "an interval")
        return checked_coverage(coverage)


def tail_of(coverage: float) -> float:
    """The probability beyond each end of an interval."""
    return 0.5 * (1 - coverage)

"""Predicting with the runtime of a bank, which learns nothing."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from ..native.workspace import SLIDE_PERIOD
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from . import slot_metrics
from .runtime_state import RuntimeState


class RuntimeQueries(RuntimeState):
    """The part of `Runtime` that predicts."""

    def predict_plain(self, x: Any) -> float:
        """The prediction at x by one compiled call if x is plain floats; NaN if it is not."""
        calls = self.single_sample_calls
        return nan if calls is None else calls.predict(x)

    @property
    def last_prediction(self) -> float:
        """What the last query has predicted."""
        return self._query_prediction.item()

    def predict_one(self, x: Floats) -> float:
        """The prediction at (d,) x of an open runtime. Leaves (P,) workspace.slot_values.

        What it computes about x is used again if x is learned next.
        """
        self.workspace.query_point[:] = x
        if not self._callbacks:
            self.executor.predict_query(self.ledger.samples)
            return float(self._query_prediction[0])
        self.busy = True
        try:
            with defer_signals():
                self.executor.predict_query(self.ledger.samples)
                self._raise_callback_error()
        except BaseException:
            self.executor.forget_query()
            raise
        finally:
            self.busy = False
        return float(self._query_prediction[0])

    def predict(self, X: Floats) -> Floats:
        """(n,): the predictions at the rows of X."""
        out = np.empty(len(X))
        for start in range(0, len(X), SLIDE_PERIOD):  # so that (n, P) arrays stay small
            some = X[start : start + SLIDE_PERIOD]
            values = self.evaluate(some, self.weights)
            weights = np.repeat(self.weights[None, :], len(some), axis=0)
            if not np.isfinite(values[weights != 0]).all():
                values = self.evaluate(some, np.ones(len(self.weights)))
            out[start : start + SLIDE_PERIOD] = self._combine(weights, values)
        return out

    def _combine(self, weights: Floats, values: Floats) -> Floats:
        """(n,): sum_p w_p f_p; weights (n, P) of values (n, P) that are not finite become 0."""
        count, out = len(values), np.empty(len(values))
        if not np.isfinite(values[weights != 0]).all():
            slot_metrics.mask_nonfinite(
                count,
                slots=len(self.weights),
                on_simplex=self._combiner.on_simplex,
                weights=weights,
                predictions=values,
            )
        slot_metrics.combine_rows(
            count, weights=weights, values=values, columns=self._columns, out=out
        )
        return out

    def evaluate(self, X: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the rows of X, for leaves that have wanted[p] != 0."""
        self.open_for_queries()
        if not self.is_open:
            return np.zeros((len(X), len(self.weights)))
        values = self.executor.evaluate(self.ledger.samples, X, wanted)
        self._raise_callback_error()
        return values

    def variance(self, X: Floats) -> Floats:
        """(n, P): the slots' predictive variances, NaN where there is none."""
        if not self.is_open:
            return np.full((len(X), len(self.weights)), np.nan)
        variances = self.executor.variance(self.ledger.samples, X)
        self._raise_callback_error()
        return variances

    def evidence(self) -> dict[str, Floats]:
        """The combiner's diagnostics after the last sample."""
        shapes = self._combiner.shapes(len(self.weights))
        state = (
            self._combiner_state if self.is_open else {n: np.zeros(s) for n, s in shapes.items()}
        )
        return self._combiner.diagnostics(state, self.weights.copy())

    def _raise_callback_error(self) -> None:
        """Raise what a user's function has raised."""
        errors = [e for callback in self._callbacks if (e := callback.take_error()) is not None]
        if errors:
            raise errors[0]

    @property
    def query_slots(self) -> Floats:
        """(P,): the slots' predictions at the point of the last `predict_one`."""
        return self.workspace.slot_values.copy()

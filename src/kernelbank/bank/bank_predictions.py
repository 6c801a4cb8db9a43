"""Predicting with a KernelBank, which learns nothing."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from .bank_view import BankView
from .exclusive import exclusive, refuse_inside


class BankPredictions(BankView):
    """The part of `KernelBank` that predicts."""

    def predict_one(self, x: Any) -> Any:
        """The prediction at one input, a number or a (d,) array. Learns nothing.

        A float; for several outputs (K,).

        `learn_one` of the same input right afterwards does not evaluate the kernels again.
        """
        runtime = self._runtime
        if runtime.busy:
            refuse_inside()
        with self._turn:
            if isfinite(value := runtime.predict_plain(x)):
                return value
            point = check.one_sample(x, self._dimension)
            self._check_inputs(point, "x")
            runtime.open_for_queries()
            if not runtime.is_open:
                return runtime.predict(point)[0] if self.outputs > 1 else 0.0
            return runtime.predict_one(point[0])

    def predict_slots_one(self, x: Any) -> tuple[Any, Floats]:
        """The prediction at one input, and (P,) the predictions of all slots. Learns nothing.

        For several outputs (K,) and (K, P).

        The slots' predictions can be given to `learn_one` later, if the target is delayed.
        """
        with self._turn:
            prediction = self.predict_one(x)
            if not self._runtime.is_open:
                return prediction, np.zeros(self.weights.shape)
            return prediction, self._runtime.query_slots

    @exclusive
    def predict(self, X: Any) -> Floats:
        """(n,): the predictions at the rows of an (n, d) array. Learns nothing.

        For several outputs (n, K).
        """
        return self._runtime.predict(self._checked_inputs(X))

    @exclusive
    def predict_slots(self, X: Any) -> Floats:
        """(n, P): the prediction of every slot at the rows of an (n, d) array. Learns nothing.

        For several outputs (n, K, P).
        """
        return self._runtime.evaluate(self._checked_inputs(X), np.ones(len(self.slots)))

    @exclusive
    def predict_variance_slots(self, X: Any) -> Floats:
        """(n, P): predictive variance of every slot's function, NaN for methods without one.

        Without the noise, and in units of the noise's variance. Learns nothing.
        """
        return self._runtime.variance(self._checked_inputs(X))

    def _checked_inputs(self, X: Any) -> Floats:
        points = check.samples(X, self._dimension)
        self._check_inputs(points, "X")
        return points

    def _check_inputs(self, X: Floats, name: str) -> None:
        self._settings.check_inputs(X, name, first=not self._runtime.is_open)

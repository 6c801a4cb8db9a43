"""The part of a model for numbers that forecasts: it hands every learned row to a `Forecaster`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...bank.trace import BY_HORIZON
from ...utils.validation import Floats
from .forecaster import Forecaster

_USUAL_TAIL = 0.5 * (1 - 0.9)
"""Of rows that are learned outside of a run: `tail_of(COVERAGE)`, to the bit."""


class HorizonScore(NamedTuple):
    """How good the forecasts of one horizon were, over all whose targets have come.

    horizon : in rows.
    scored : how many.
    error : mean squared error.
    last_value, seasonal : the same of the last value, and of the last value of the same phase (of
        the longest period; equal to the first without seasons).
    absolute_error : mean absolute error.
    coverage : the share of targets within their intervals.
    width : mean width of the intervals.
    """

    horizon: int
    scored: int
    error: float
    last_value: float
    seasonal: float
    absolute_error: float
    coverage: float
    width: float


class Forecasting:
    """Forecasts beside predictions; without horizons it does nothing."""

    def __init__(self) -> None:
        self.forecaster: Forecaster | None = None
        self.forecasts: list[Floats] | None = None
        """The forecasts (H, 3) after each learned row, while a run collects them."""
        self._tail = _USUAL_TAIL
        self._upcoming = np.zeros((0, 0))
        self._done = 0

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: a copy collects no forecasts."""
        return self.__dict__ | self._not_collecting()

    @staticmethod
    def _not_collecting() -> dict[str, Any]:
        """The attributes of a model outside of a run."""
        none = np.zeros((0, 0))
        return {"forecasts": None, "_tail": _USUAL_TAIL, "_upcoming": none, "_done": 0}

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        if self.forecaster is not None:
            self.forecaster.add_inputs(count)

    def use_periods(self, periods: tuple[int, ...]) -> None:
        """Go on with these periods; the forecasts start anew if they are others."""
        if self.forecaster is not None:
            self.forecaster = self.forecaster.with_periods(periods, self._tail)

    def collect(self, rows: Floats, tail: float) -> None:
        """Begin to collect forecasts; rows (n, d) are those that will be learned, in their order.

        tail : probability beyond each end of the intervals.
        """
        if self.forecaster is not None:
            self.forecasts, self._tail = [], tail
            self._upcoming, self._done = rows, 0

    def collected(self) -> dict[str, Floats]:
        """What was collected since, as arrays of a trace (n, H); nothing without horizons."""
        found = self.forecasts
        self.__dict__ |= self._not_collecting()
        if not found:
            return {}
        parts = np.moveaxis(np.array(found), 2, 0).copy()
        return dict(zip(BY_HORIZON, parts, strict=True))

    def forecast_after(self, X: Floats, targets: Floats) -> None:
        """Forecast after each of these rows, which have just been learned."""
        if self.forecaster is None:
            return
        for x, y in zip(X, targets.tolist(), strict=True):
            made = self.forecaster.learn(x, y, self._tail, self._future())
            if self.forecasts is not None:
                self.forecasts.append(made)

    def _future(self) -> Floats | None:
        """The inputs that are known in advance, of the rows after the present one."""
        forecaster, rows = self.forecaster, self._upcoming
        assert forecaster is not None
        if forecaster.known is None or self.forecasts is None:
            return None
        columns = list(forecaster.known.columns)
        found = np.full((len(forecaster.horizons), len(columns)), np.nan)
        for k, horizon in enumerate(forecaster.horizons):
            if self._done + horizon < len(rows):
                found[k] = rows[self._done + horizon, columns]
        self._done += 1
        return found

    def horizon_scores(self) -> tuple[HorizonScore, ...]:
        """How good the forecasts were, by horizon."""
        if self.forecaster is None:
            return ()
        known: Any = self.forecaster.intervals.sums
        pairs = zip(self.forecaster.horizons, known.tolist(), strict=True)
        return tuple(_score(horizon, *sums) for horizon, sums in pairs)


def _score(horizon: int, count: float, *sums: float) -> HorizonScore:
    """From the number of scored forecasts, and sums in the order of HorizonScore."""
    means = [total / count if count else float("nan") for total in sums]
    return HorizonScore(horizon, int(count), *means)

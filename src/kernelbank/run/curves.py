"""The model's function along each of its inputs, as the page of a run draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..auto import AutoBank
from ..auto.inputs import NUMBER, PERIODS, CategoryStatistics, encode_time
from ..auto.scaling import MEAN
from ..utils.validation import Floats
from .history import History
from .options import RunOptions

GRID = 24
"""The most values of an input at which the function is drawn."""

MOST_INPUTS = 100
"""The most inputs along which it is drawn."""

MOST_LABELS = 1000
"""The most categories of a column whose names are in a page."""

_MONDAY = 345_600.0
"""Seconds from the beginning of 1970, a Thursday, to a Monday."""

STARTS = {"day": 0.0, "week": _MONDAY, "year": 0.0}
"""Seconds since 1970 at which a period starts."""


class DrawnInput(NamedTuple):
    """An input along which the function is drawn."""

    kind: str
    """number; day, week or year, in shares of the period; category, by its number."""
    name: str
    first: int
    """Its number among the model's inputs, or that of its first one; of a category 0."""
    labels: Sequence[str] = ()
    """The categories."""


class FunctionCurves:
    """The model's function along each of its inputs, for one of its targets.

    The other inputs have usual values: of a number its median, of a category the most frequent one,
    of the time the last one, of lagged targets the present ones. Numbers are drawn over the range
    of their last values, periods of the time if the run is as long.
    """

    def __init__(
        self, options: RunOptions, bank: AutoBank, history: History | None, output: int = 0
    ) -> None:
        self._options, self._bank, self._output = options, bank, output
        self._last_time = np.nan if history is None else history.last_time
        columns = [] if bank.encoder is None else bank.encoder.columns
        names = [name for name, kind in columns if kind == NUMBER]
        numbers = [DrawnInput("number", name, k) for k, name in enumerate(names)]
        self._first_wave = len(numbers)
        others = [
            DrawnInput(period, f"{options.time}: time of {period}", len(numbers) + 2 * k)
            for k, (period, seconds) in enumerate(PERIODS.items())
            if history is not None and history.seconds >= seconds
        ]
        for column in options.categorical:
            statistics, codes = self._categories(column)
            labels = [statistics.name(code) for code in codes] if statistics else []
            others.append(DrawnInput("category", column, 0, labels))
        others = others[:MOST_INPUTS]
        self.inputs = [*numbers[: MOST_INPUTS - len(others)], *others]

    def lines(self) -> list[Floats] | None:
        """For each input (4, n): n values, predictions, and the ends of their intervals.

        For labels the probability of the first class, three times. None before the model has
        learned.
        """
        bank, model = self._bank, self._bank.model
        if model is None or not model.banks:
            return None
        ranges = bank.input_ranges()  # (d, 3): median, low, high
        usual = self._usual_row(ranges[:, 0])
        rows = np.tile(usual, (len(self.inputs), GRID, 1))
        values = [
            self._set_values(drawn, ranges, part)
            for drawn, part in zip(self.inputs, rows, strict=True)
        ]
        if not values:
            return []
        predictions = bank.predict_inputs(rows.reshape(-1, len(usual)), self._options.coverage)
        if bank.task == "classification":
            predictions = np.repeat(predictions[:, :1], 3, axis=1)
        elif predictions.ndim == 3:
            predictions = predictions[:, self._output]
        return [
            np.vstack([xs, line[: len(xs)].T])
            for xs, line in zip(values, predictions.reshape(len(rows), GRID, 3), strict=True)
        ]

    def _set_values(self, drawn: DrawnInput, ranges: Floats, rows: Floats) -> Floats:
        """Set an input in rows (GRID, d) to its values, which are returned: at most GRID."""
        if drawn.kind == "number":
            low, high = ranges[drawn.first, 1:]
            rows[:, drawn.first] = np.linspace(low, high, GRID)
            return rows[:, drawn.first]
        if drawn.kind == "category":
            frequent = sorted(self._frequent(drawn.name)[:GRID])
            for category, row in zip(frequent, rows, strict=False):
                self._set_category(drawn.name, category, row)
            return np.array(frequent, dtype=float)
        shares = (np.arange(GRID) + 0.5) / GRID
        wave = drawn.first - self._first_wave
        for share, row in zip(shares.tolist(), rows, strict=True):
            waves = encode_time(STARTS[drawn.kind] + share * PERIODS[drawn.kind])
            row[drawn.first : drawn.first + 2] = waves[wave : wave + 2]
        return shares

    def _usual_row(self, medians: Floats) -> Floats:
        """(d,): a usual value for every input."""
        row, first = medians.copy(), self._first_wave
        if self._options.time and np.isfinite(self._last_time):
            row[first : first + 2 * len(PERIODS)] = encode_time(self._last_time)
        for column in self._options.categorical:
            for category in self._frequent(column)[:1]:
                self._set_category(column, category, row)
        return row

    def _categories(self, column: str) -> tuple[CategoryStatistics | None, Sequence[float]]:
        """What is known of a column of categories, and the codes of the first MOST_LABELS."""
        encoder = self._bank.encoder
        if encoder is None:
            return None, ()
        statistics = encoder.statistics_of(column)
        return statistics, statistics.codes[:MOST_LABELS]

    def _set_category(self, column: str, number: int, row: Floats) -> None:
        assert self._bank.encoder is not None
        self._bank.encoder.set_category(column, self._categories(column)[1][number], row)

    def _frequent(self, column: str) -> list[int]:
        """The numbers of the categories of a column, the most frequent one first.

        The mean of a category's own input is its share of the rows; others have counts up to a
        limit.
        """
        encoder, model = self._bank.encoder, self._bank.model
        statistics, codes = self._categories(column)
        if encoder is None or model is None or statistics is None:
            return []
        shares, inputs = model.scaling.columns[:, MEAN], statistics.inputs

        def rank(k: int) -> tuple[float, float, int]:
            share = float(shares[inputs[codes[k]]]) if codes[k] in inputs else 0.0
            return -share, -statistics.count(codes[k]), k

        return sorted(range(len(codes)), key=rank)

"""Forecasts at several horizons, as one would write them down: lists of all rows, no rings."""

import math
from statistics import NormalDist

from support.naive.auto import Calibration

TAILS = [0.0005, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5]


def phase_value(targets, horizon, period):
    """The newest target of the same phase as the one `horizon` rows after the last; None if none.

    targets : all so far, the newest last.
    """
    row = len(targets) - 1 + horizon
    while row >= len(targets):
        row -= period
    return targets[row] if row >= 0 else None


def forecast_row(targets, lags, horizons, periods, iterated, recalled):
    """What is known at one moment."""
    missing = math.nan
    row = [targets[-1 - lag] if lag < len(targets) else missing for lag in range(lags)]
    for period in periods:
        for horizon in horizons:
            value = phase_value(targets, horizon, period)
            row.append(missing if value is None else value)
    return [*row, *iterated, *recalled]


def iterated(predict, targets, back, steps, mean, sd):
    """Forecasts that go on from their own predictions.

    predict : of scaled inputs, the scaled next target.
    back : how many rows before the next one each input is; 0 where there is none.
    """

    def scaled(value):
        return min(max((value - mean) / sd, -10.0), 10.0)

    series = list(targets)
    for _ in range(steps):
        inputs = [scaled(series[-b]) if b <= len(series) else 0.0 for b in back]
        series.append(mean + sd * min(max(predict(inputs), -10.0), 10.0))
    return series[len(targets) :]


class HorizonCalibration(Calibration):
    """The interval of one horizon: every forecast keeps what its interval was made with."""

    def __init__(self, horizon):
        normal = [NormalDist().inv_cdf(1 - tail) for tail in TAILS]
        super().__init__(TAILS, [normal, normal])
        self.horizon = horizon
        self.covered = 0
        self.made = []

    def forecast(self, value, tail):
        """The ends of the interval around a forecast, which is kept."""
        low, high = self.interval(value, tail)
        self.made.append((value, low, high, (math.sqrt(self.variance), self.ends()[1])))
        return low, high

    def score(self, y, sd):
        """The target of the forecast made `horizon` rows ago has come, if there was one."""
        if len(self.made) < self.horizon:
            return
        value, low, high, ends = self.made[-self.horizon]
        error = y - value
        if not self.targets:
            self.variance = max(sd * sd, error * error)
        self.covered += low <= y <= high
        self.move(error, math.sqrt(self.variance), self.horizon - 1, ends, self.rows)
        self.add_square(error, self.horizon - 1)
        self.targets.append(y)


def stacking_matrix(errors, horizon, prices):
    """The matrix Q of the weights of one horizon, which minimise w'Q w on the simplex.

    errors : (n, slots), of all forecasts so far, the newest last.
    """
    discount = 1 - 1 / (500 * math.sqrt(horizon))
    shares = [discount ** (len(errors) - 1 - i) for i in range(len(errors))]
    slots = range(len(prices))
    total = [
        [sum(s * e[p] * e[q] for s, e in zip(shares, errors, strict=True)) for q in slots]
        for p in slots
    ]
    least = min(total[p][p] for p in slots)
    price = 2 * least * horizon / (sum(shares) + horizon)
    return [
        [
            total[p][q] + 0.005 * least * (p == q) + price * (prices[p] + prices[q]) / 2
            for q in slots
        ]
        for p in slots
    ]

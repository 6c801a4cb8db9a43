"""The period of the first sentence, and its errors."""

import numpy as np
import pytest

from kernelbank.run.history import EXTREMES, FIELDS, TOTALS, History
from kernelbank.run.status import lately

DRAW = np.random.default_rng(0)


def history_of(count, step=None, labels=False):
    """Rows with errors of random size; `step` seconds between them."""
    history = History(1)
    error, baseline = DRAW.exponential(size=(2, count))
    if labels:
        error, baseline = np.floor(error), np.floor(baseline)
    totals = np.zeros((count, len(TOTALS)))
    totals[:, :2] = 1.0
    losses = [(error > 0) * 1.0, (baseline > 0) * 1.0] if labels else [error**2, baseline**2]
    values = {"loss": losses[0], "baseline_loss": losses[1]}
    if not labels:
        values |= {"absolute_error": error, "baseline_absolute_error": baseline}
    for name, value in values.items():
        totals[:, TOTALS.index(name)] = value
    extremes = np.zeros((count, len(EXTREMES)))
    times = np.full(count, np.nan) if step is None else 1e9 + step * np.arange(count)
    extremes[:, EXTREMES.index("time_high")] = extremes[:, EXTREMES.index("time_low")] = times
    history.add(totals, extremes, np.zeros((count, 1)), np.zeros((count, 1)))
    recent = np.zeros((count, len(FIELDS)))
    recent[:, 0], recent[:, 2], recent[:, 5] = times, error, baseline
    history.recent.add(recent)
    return history, values


@pytest.mark.parametrize(
    ("count", "step", "period", "rows"),
    [
        (3000, 3600, "24 hours", 24),  # row by row
        (3000, 60, "24 hours", 1440),  # by points
        (300, 86400, "30 days", 30),
        (100_000, 300, "7 days", 2016),  # a point is nearly a day
        (3000, 1, None, 300),  # shorter than an hour
        (3000, None, None, 300),
        (100, None, None, 100),
    ],
)
def test_period_is_natural_and_errors_are_those_of_its_rows(count, step, period, rows):
    history, values = history_of(count, step)
    found = lately(history, labels=False)
    assert found["period"] == period
    assert abs(found["rows"] - rows) <= history.stride
    for name, all_values in values.items():
        assert found[name] == pytest.approx(all_values[-found["rows"] :].mean()), name


def test_labels_are_right_or_wrong():
    history, values = history_of(500, 3600, labels=True)
    found = lately(history, labels=True)
    assert (found["period"], found["rows"]) == ("24 hours", 24)
    assert found["loss"] == values["loss"][-24:].mean()


def test_few_rows_are_not_judged():
    assert lately(history_of(19)[0], labels=False) is None
    assert lately(history_of(20)[0], labels=False)["whole"]


def test_times_that_go_back_are_not_used():
    history, _ = history_of(300, -3600)
    assert lately(history, labels=False)["period"] is None

"""The function along every input: numbers, times, categories and lagged targets."""

import numpy as np
import pytest

from kernelbank.auto.inputs import PERIODS, encode_time
from kernelbank.auto.status import Change
from kernelbank.run.history import (
    DRAWN,
    MOST_INPUTS,
    InputLayout,
    drawn_inputs,
    kept_inputs,
    take_snapshot,
)
from kernelbank.run.report.data import ReportData
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, succeed, write_csv

ROWS = 700
X, Y = make_rows(ROWS)
SITES = np.array(["south", "north", "hill"])[(np.arange(ROWS) % 7 + 1) // 3 % 3]
TIMES = 1704067200.0 + 3600.0 * (24 * (np.arange(ROWS) // 10) + 8 + np.arange(ROWS) % 10)
"""Ten rows a day, from 8 to 17 o'clock."""


@pytest.fixture(scope="module")
def status(tmp_path_factory):
    folder = tmp_path_factory.mktemp("snapshots")
    table = np.column_stack([X.astype(object), SITES, TIMES.astype(object), Y.astype(object)])
    source = write_csv(folder / "s.csv", ["a", "b", "site", "when", "y"], table)
    options = ["--categorical", "site", "--time", "when", "--lags", 2, "--state", folder / "state"]
    succeed(source, "--target", "y", *options)
    return RunStatus.of_state(folder / "state")


def present(status):
    taken = take_snapshot(status.bank, status.history, status.layout, 0.9, kept=False)
    inputs = drawn_inputs(status.layout, status.bank)
    return {one.name: (one, values) for one, values in zip(inputs, taken.values, strict=True)}


def usual_row(status):
    """Medians, waves of the last time, the most frequent category."""
    medians = status.bank.input_ranges()[:, 0]
    row = medians.copy()
    row[2:8] = encode_time(TIMES[-1])
    set_site(status, 1, row)  # north is the most frequent
    return row


def set_site(status, number, row):
    """The mean target of a category, and one input for each."""
    known = status.bank._encoder.statistics[3]
    row[8] = known.mean(known.codes[number])[0]
    row[9:] = np.eye(3)[number]


def predict_at(status, rows):
    """Predictions of inputs as the model has them."""
    model = status.bank._model
    return model.predict_rows(rows, np.tile(model.past_row(), (len(rows), 1)), 0.05)


def test_every_input_is_drawn(status):
    kinds = [(one.kind, one.name) for one in drawn_inputs(status.layout, status.bank)]
    assert kinds == [
        ("number", "a"),
        ("number", "b"),
        ("day", "when: time of day"),
        ("week", "when: time of week"),
        ("year", "when: time of year"),
        ("category", "site"),
        ("lag", "y, 1 before"),
        ("lag", "y, 2 before"),
    ]
    assert status.categories == [("site", "south"), ("site", "north"), ("site", "hill")]


def test_categories_are_drawn_one_by_one(status):
    one, (numbers, prediction, low, high) = present(status)["site"]
    assert list(one.labels) == ["south", "north", "hill"]
    assert numbers[:3].tolist() == [0.0, 1.0, 2.0]
    assert np.isnan(numbers[3:]).all()
    rows = np.tile(usual_row(status), (3, 1))
    for number, row in enumerate(rows):
        set_site(status, number, row)
    expected = predict_at(status, rows)
    assert np.allclose(np.column_stack([prediction, low, high])[:3], expected, rtol=1e-12)


def test_time_is_drawn_where_there_were_rows(status):
    _, (shares, prediction, _, _) = present(status)["when: time of day"]
    seen = np.isfinite(shares)
    assert np.flatnonzero(seen).tolist() == list(range(8, 18))
    assert np.array_equal(np.isfinite(prediction), seen)
    rows = np.tile(usual_row(status), (24, 1))
    rows[:, 2:4] = [encode_time(3600.0 * (hour + 0.5))[:2] for hour in range(24)]
    expected = predict_at(status, rows)
    assert np.allclose(prediction[seen], expected[seen, 0], rtol=1e-12)
    _, (weeks, *_) = present(status)["when: time of week"]
    assert np.isfinite(weeks).sum() < 24  # never at night


def test_numbers_are_drawn_inside_the_range_in_which_they_were_seen(tmp_path):
    """Also where the model keeps too few values to know it."""
    positive = np.abs(X[:, :1]) ** 3
    source = write_csv(tmp_path / "s.csv", ["a", "y"], np.column_stack([positive, Y]))
    succeed(source, "--target", "y", "--preset", "paper", "--state", tmp_path / "state")
    given = RunStatus.of_state(tmp_path / "state")
    median, low, _ = given.bank.input_ranges()[0]
    assert low < 0 <= median  # the model would go there
    values = present(given)["a"][1]
    assert values[0].min() >= positive.min()
    assert values[0].max() <= positive.max()


@pytest.mark.parametrize(
    ("numbers", "time", "categories", "lags"),
    [(3, True, 1, 2), (50, True, 2, 30), (500, False, 0, 0), (0, False, 200, 1), (0, True, 0, 0)],
)
def test_kept_inputs_are_some_of_every_kind(status, numbers, time, categories, lags):
    layout = InputLayout(
        "y",
        [f"x{k}" for k in range(numbers)],
        "when" if time else None,
        [f"c{k}" for k in range(categories)],
        {},
    )

    class Bank:
        task, _encoder = "regression", None

    Bank.lags = lags
    inputs = drawn_inputs(layout, Bank)
    kept = [inputs[k] for k in kept_inputs(inputs)]
    total = numbers + 3 * time + categories + lags
    assert len(inputs) == min(total, MOST_INPUTS)
    assert len(kept) == min(total, DRAWN)
    for some in (inputs, kept):
        kinds = {"time" if one.kind in PERIODS else one.kind for one in some}
        wanted = {"number": numbers, "time": time, "category": categories, "lag": lags}
        assert kinds == {kind for kind, count in wanted.items() if count}


def test_signals_of_encoded_inputs_are_not_shown(status):
    model = status.bank._model
    before = model.changes
    model.changes = [
        Change(100, "input level", 1),
        Change(200, "input level", 4),  # a wave of the time
        Change(300, "input level", 9),  # a category
        Change(350, "weights"),
    ]
    try:
        assert [c.row for c in status.changes] == [100, 350]
        assert '[[100,100,[["input level","b",1]]],' in ReportData().parts(status)["changes"]
    finally:
        model.changes = before

"""The history of a run: bounded, exact, and the same however the rows came."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelbank.auto.status import Change
from kernelbank.errors import FileRefused
from kernelbank.run.history import EXTREMES, FIELDS, POINTS, RECENT, TOTALS, History
from kernelbank.run.report.data import report_text
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, read_state, same_bits, succeed, write_csv

SLOTS = 3
MOST = 4 * POINTS + 5
DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(MOST, len(TOTALS) + 2 * SLOTS))
ROWS[:, 0] = 1.0
TOPS = DRAW.normal(size=(MOST, len(EXTREMES)))
TOPS[DRAW.uniform(size=TOPS.shape) < 0.3] = np.nan


def add(history, rows, tops=None):
    cut = len(TOTALS)
    tops = np.zeros((len(rows), len(EXTREMES))) if tops is None else tops
    history.add(rows[:, :cut], tops, rows[:, cut : cut + SLOTS], rows[:, cut + SLOTS :])


def filled(count, cuts=()):
    history = History(SLOTS)
    for begin, end in zip([0, *cuts], [*cuts, count], strict=True):
        add(history, ROWS[begin:end], TOPS[begin:end])
    return history


def row_by_row(count):
    """Points from their definition: stretches of doubling length, joined pair by pair."""
    points, stride = [], 1
    for row in ROWS[:count]:
        if points and points[-1][0] < stride:
            points[-1] = (points[-1][0] + 1, points[-1][1] + row)
            continue
        if len(points) == POINTS:
            pairs = zip(points[::2], points[1::2], strict=True)
            points = [(a + b, x + y) for (a, x), (b, y) in pairs]
            stride *= 2
        points.append((1, 0.0 + row))
    return stride, np.array([sums for _, sums in points])


@given(st.integers(1, MOST), st.lists(st.integers(0, MOST), max_size=6))
@example(POINTS, [])
@example(POINTS + 1, [POINTS])
@example(2 * POINTS + 1, [1, 2, 3])
@example(MOST, [POINTS - 1, POINTS + 1])
@example(MOST, [2 * POINTS + 5, 4 * POINTS + 1])  # inside of points of several rows
def test_points_do_not_depend_on_blocks(count, cuts):
    cuts = sorted(min(cut, count) for cut in cuts)
    history = filled(count, cuts)
    stride, sums = row_by_row(count)
    assert (history.stride, history.rows) == (stride, count)
    assert same_bits(history.arrays()["sums"], sums)
    assert history.points <= POINTS
    assert history.points > POINTS // 2 or history.stride == 1


FORGED = {
    "stride": [0, -1, 1, 3, 8, 2.0, True, "2", None, 2**60],
    "rows": [-1, 0, 10, 10**6, 2**70, 1.5, True, "9", None],
    "slots": [-1, 0, SLOTS + 1, 2**60, True, "3", 3.0],
}


@pytest.mark.parametrize("name", FORGED)
def test_history_with_forged_facts_is_refused(name):
    history = filled(1024)
    facts, state = history.to_json(), history.arrays()
    History.restore(facts, state, SLOTS)
    for value in FORGED[name]:
        with pytest.raises(FileRefused):
            History.restore({**facts, name: value}, state, SLOTS)


def test_history_with_forged_arrays_is_refused():
    history = filled(1024)
    facts, state = history.to_json(), history.arrays()
    other = state["sums"].copy()
    other[0, 0] += 1
    for forged in (
        {"sums": state["sums"][:-1]},
        {"sums": state["sums"][:, :-1]},
        {"sums": other},
        {"tops": state["tops"][:-1]},
        {"tops": state["tops"][:, :-1]},
    ):
        with pytest.raises(FileRefused):
            History.restore(facts, {**state, **forged}, SLOTS)


# --- The last rows of a run ---


EMPTY = History(SLOTS).arrays()


@pytest.mark.parametrize("shape", [(3,), (2, len(FIELDS) + 1), (RECENT + 1, len(FIELDS))])
def test_forged_last_rows_are_refused(shape):
    with pytest.raises(FileRefused):
        History.restore(History(SLOTS).to_json(), {**EMPTY, "recent": np.zeros(shape)}, SLOTS)


# --- The history of a run that was resumed is that of a run in one go, to the bit ---


RUN_ROWS = 300
X, Y = make_rows(RUN_ROWS)
KINDS = np.array(["low", "middle", "high"])
NUMBERS = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def table(targets):
    sites = np.array(["north", "south", "hill"])[np.arange(RUN_ROWS) // 40 % 3]
    times = [f"2024-01-{1 + n // 24:02}T{n % 24:02}:00" for n in range(RUN_ROWS)]
    columns = [X[:, 0].astype(object), sites, np.array(times, dtype=object), targets]
    return np.column_stack(columns)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_history_of_a_resumed_run_has_the_same_bits(task, delay, tmp_path, light):
    targets = (Y if task == "regression" else KINDS[NUMBERS]).astype(object)
    targets[[50, 51, 200]] = ""
    source = write_csv(tmp_path / "s.csv", ["a", "site", "when", "y"], table(targets))
    options = ["--target", "y", "--task", task, "--delay", delay, "--predict-missing"]
    options += ["--time", "when", "--categorical", "site"]
    for name, cuts in (("whole", [RUN_ROWS]), ("pieces", [1, 52, 65, 130, 255, RUN_ROWS])):
        for rows in cuts:
            succeed(source, *options, "--state", tmp_path / name, "--max-rows", rows)
    (mine, arrays), (other, others) = (read_state(tmp_path / name) for name in ("whole", "pieces"))
    assert mine["history"] == other["history"]
    names = [name for name in arrays if name.startswith("history/")]
    assert {"history/recent", "history/confusion"} <= set(names)
    assert arrays.keys() == others.keys()
    assert all(same_bits(arrays[name], others[name]) for name in arrays)
    parts = [
        json.loads(report_text(RunStatus.of_state(tmp_path / name))) for name in ("whole", "pieces")
    ]
    assert {name for name in parts[0] if parts[0][name] != parts[1][name]} <= {"status", "run"}


def test_last_rows_are_those_of_the_predictions(tmp_path, light):
    targets = KINDS[NUMBERS].astype(object)
    targets[290] = ""
    source = write_csv(tmp_path / "s.csv", ["a", "site", "when", "y"], table(targets))
    options = ["--target", "y", "--task", "classification", "--predict-missing", "--time", "when"]
    succeed(source, *options, "--categorical", "site", "--state", tmp_path / "state")
    status = RunStatus.of_state(tmp_path / "state")
    recent, classes = status.history.recent, list(status.bank.classes)
    assert len(recent.rows) == 200
    numbers = [classes.index(label) if label else np.nan for label in targets[-200:]]
    assert np.array_equal(recent["target"], numbers, equal_nan=True)
    assert np.isnan(recent["baseline"][-10])
    known = ~np.isnan(recent["target"])
    assert np.array_equal(recent["baseline"][known][1:], recent["target"][known][:-1])
    assert recent["time"][-1] - recent["time"][-2] == 3600.0
    wrong = recent["prediction"][known] != recent["target"][known]
    assert 0 < wrong.mean() < 0.6
    assert ((recent["low"] > 0.3) & (recent["low"] <= 1)).all()


# --- Signals of change ---


def test_signals_of_encoded_inputs_are_not_shown(tmp_path):
    rows = np.column_stack([X.astype(object), table(Y.astype(object))[:, 1:]])
    source = write_csv(tmp_path / "s.csv", ["a", "b", "site", "when", "y"], rows)
    options = ["--categorical", "site", "--time", "when", "--state", tmp_path / "state"]
    succeed(source, "--target", "y", *options)
    status = RunStatus.of_state(tmp_path / "state")
    model = status.bank.model
    before = model.changes.copy()
    model.changes[:] = [
        Change(100, "input level", 1),
        Change(200, "input level", 4),  # a wave of the time
        Change(300, "input level", 9),  # a category
        Change(350, "weights"),
    ]
    try:
        assert [c.row for c in status.changes] == [100, 350]
        assert '[[100,100,[["input level","b",1]],' in report_text(status)
    finally:
        model.changes[:] = before

"""The history of a run: bounded, exact, and the same however the rows came."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelbank.auto.inputs import encode_time
from kernelbank.auto.status import Change
from kernelbank.errors import FileRefused
from kernelbank.run.history import (
    CLOCK,
    DRAWN,
    EARLY,
    EXTREMES,
    FIELDS,
    FIRST_SNAPSHOT,
    GRID,
    MOST_INPUTS,
    POINTS,
    RECENT,
    SNAPSHOTS,
    TOTALS,
    DrawnInput,
    History,
    SeenInputs,
    Snapshot,
    chosen_of_each_kind,
)
from kernelbank.run.report.data import ReportData
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


def taken(history, count):
    """Play on to `count` rows, taking every snapshot that is due."""
    while history.rows < count:
        some = min(history.until_snapshot, count - history.rows)
        add(history, np.resize(ROWS, (some, ROWS.shape[1])))
        if history.due(history.rows):
            history.add_snapshot(Snapshot(history.rows, np.full((2, 4, GRID), float(history.rows))))
    return history


def test_snapshots_beyond_the_limit_are_thinned_out():
    history = History(SLOTS)
    for steps in range(1, 5 * SNAPSHOTS):
        taken(history, steps * FIRST_SNAPSHOT)
        rows = [snapshot.row for snapshot in history.snapshots]
        stride = history.snapshot_stride
        # The early ones, all that are due at the present stride, and no others.
        later = list(range(stride, history.rows + 1, stride))
        assert rows == [*EARLY, *later]
        assert len(later) <= SNAPSHOTS
        assert len(later) >= SNAPSHOTS // 2 or stride == FIRST_SNAPSHOT
    assert history.snapshot_stride == 8 * FIRST_SNAPSHOT
    assert all((s.values == s.row).all() for s in history.snapshots)


BEYOND = [FIRST_SNAPSHOT] * (SNAPSHOTS + len(EARLY) + 1)
FORGED = {
    "stride": [0, -1, 1, 3, 8, 2.0, True, "2", None, 2**60],
    "rows": [-1, 0, 10, 10**6, 2**70, 1.5, True, "9", None],
    "slots": [-1, 0, SLOTS + 1, 2**60, True, "3", 3.0],
    "snapshot_stride": [0, -FIRST_SNAPSHOT, 1, 3 * FIRST_SNAPSHOT, 2 * FIRST_SNAPSHOT, "x", 1e3],
    "snapshots": [
        *([FIRST_SNAPSHOT + 1], [0], [-FIRST_SNAPSHOT], [EARLY[0] - 1], [100 * FIRST_SNAPSHOT]),
        *([float(FIRST_SNAPSHOT)], [True], [FIRST_SNAPSHOT, FIRST_SNAPSHOT], BEYOND),
        [FIRST_SNAPSHOT, EARLY[0]],
    ],
}


@pytest.mark.parametrize("name", FORGED)
def test_history_with_forged_facts_is_refused(name):
    history = taken(History(SLOTS), FIRST_SNAPSHOT)
    state = history.arrays() | {f"snapshot{n}": history.snapshots[0].values for n in range(40)}
    facts = history.to_json()
    History.restore(facts, state, SLOTS)
    for value in FORGED[name]:
        with pytest.raises(FileRefused):
            History.restore({**facts, name: value}, state, SLOTS)


def test_history_with_forged_arrays_is_refused():
    history = taken(History(SLOTS), FIRST_SNAPSHOT)
    facts, state = history.to_json(), history.arrays()
    other = state["sums"].copy()
    other[0, 0] += 1
    for forged in (
        {"sums": state["sums"][:-1]},
        {"sums": state["sums"][:, :-1]},
        {"sums": other},
        {"tops": state["tops"][:-1]},
        {"tops": state["tops"][:, :-1]},
        {"snapshot0": state["snapshot0"][:, :, :-1]},
        {"snapshot0": state["snapshot0"][0]},
        {"snapshot0": np.zeros((DRAWN + 1, 4, GRID))},
    ):
        with pytest.raises(FileRefused):
            History.restore(facts, {**state, **forged}, SLOTS)


# --- The last rows of a run, and where its inputs have been ---


EMPTY = History(SLOTS).arrays()


@pytest.mark.parametrize("shape", [(3,), (2, len(FIELDS) + 1), (RECENT + 1, len(FIELDS))])
def test_forged_last_rows_are_refused(shape):
    with pytest.raises(FileRefused):
        History.restore(History(SLOTS).to_json(), {**EMPTY, "recent": np.zeros(shape)}, SLOTS)


def hours(first, count):
    return 1704067200.0 + 3600.0 * np.arange(first, first + count)  # from a Monday on


def test_seen_inputs_are_restored_and_forged_ones_refused():
    seen = SeenInputs()
    seen.add(np.random.default_rng(0).normal(size=(9, 2)), hours(0, 9))
    state = seen.arrays()
    again = SeenInputs.restore(state).arrays()
    assert all(same_bits(state[name], again[name]) for name in state)
    for forged in ({"seen_ranges": np.zeros((2, 3))}, {"seen_clock": np.zeros((2, CLOCK))}):
        with pytest.raises(FileRefused):
            SeenInputs.restore({**state, **forged})


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
    assert {"history/recent", "history/odds", "history/seen_clock"} <= set(names)
    assert arrays.keys() == others.keys()
    assert all(same_bits(arrays[name], others[name]) for name in arrays)
    parts = [
        ReportData().parts(RunStatus.of_state(tmp_path / name)) for name in ("whole", "pieces")
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


# --- The function along every input: numbers, times, categories and lagged targets ---


DRAWN_ROWS = 700
DRAWN_X, DRAWN_Y = make_rows(DRAWN_ROWS)
SITES = np.array(["south", "north", "hill"])[(np.arange(DRAWN_ROWS) % 7 + 1) // 3 % 3]
TIMES = 1704067200.0 + 3600.0 * (
    24 * (np.arange(DRAWN_ROWS) // 10) + 8 + np.arange(DRAWN_ROWS) % 10
)
"""Ten rows a day, from 8 to 17 o'clock."""


@pytest.fixture(scope="module")
def status(tmp_path_factory):
    folder = tmp_path_factory.mktemp("snapshots")
    table = np.column_stack(
        [DRAWN_X.astype(object), SITES, TIMES.astype(object), DRAWN_Y.astype(object)]
    )
    source = write_csv(folder / "s.csv", ["a", "b", "site", "when", "y"], table)
    options = ["--categorical", "site", "--time", "when", "--lags", 2, "--state", folder / "state"]
    succeed(source, "--target", "y", *options)
    return RunStatus.of_state(folder / "state")


def present(status):
    taken = status.curves.snapshot(status.history, recorded=False)
    return {one.name: (one, v) for one, v in zip(status.curves.inputs, taken.values, strict=True)}


def usual_row(status):
    """Medians, waves of the last time, the most frequent category."""
    medians = status.bank.input_ranges()[:, 0]
    row = medians.copy()
    row[2:8] = encode_time(TIMES[-1])
    set_site(status, 1, row)  # north is the most frequent
    return row


def set_site(status, number, row):
    """The mean target of a category, and one input for each."""
    known = status.bank.encoder.statistics[3]
    row[8] = known.mean(known.codes[number])[0]
    row[9:] = np.eye(3)[number]


def predict_at(status, rows):
    """Predictions of inputs as the model has them."""
    model = status.bank.model
    return model.predict_rows(rows, np.tile(model.core.past_row(), (len(rows), 1)), 0.05)


def test_every_input_is_drawn(status):
    kinds = [(one.kind, one.name) for one in status.curves.inputs]
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


def test_lagged_targets_are_drawn_alone(status):
    _, (where, prediction, _, _) = present(status)["y, 2 before"]
    model = status.bank.model
    lagged = np.tile(model.core.past_row(), (len(where), 1))
    lagged[:, 1] = where
    rows = np.tile(usual_row(status), (len(where), 1))
    expected = model.predict_rows(rows, lagged, 0.05)
    assert np.allclose(prediction, expected[:, 0], rtol=1e-12)


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
    positive = np.abs(DRAWN_X[:, :1]) ** 3
    source = write_csv(tmp_path / "s.csv", ["a", "y"], np.column_stack([positive, DRAWN_Y]))
    succeed(source, "--target", "y", "--preset", "paper", "--state", tmp_path / "state")
    given = RunStatus.of_state(tmp_path / "state")
    median, low, _ = given.bank.input_ranges()[0]
    assert low < 0 <= median  # the model would go there
    values = present(given)["a"][1]
    assert values[0].min() >= positive.min()
    assert values[0].max() <= positive.max()


@pytest.mark.parametrize(
    ("numbers", "times", "categories", "lags"),
    [(3, 3, 1, 2), (50, 3, 2, 30), (500, 0, 0, 0), (0, 0, 200, 1), (0, 3, 0, 0)],
)
@pytest.mark.parametrize("most", [DRAWN, MOST_INPUTS])
def test_drawn_inputs_are_some_of_every_kind(numbers, times, categories, lags, most):
    counts = {"number": numbers, "day": times, "category": categories, "lag": lags}
    inputs = [DrawnInput(kind, "x", k) for kind, count in counts.items() for k in range(count)]
    chosen = chosen_of_each_kind(inputs, most)
    assert len(chosen) == min(len(inputs), most)
    assert {inputs[k].kind for k in chosen} == {kind for kind, count in counts.items() if count}


def test_signals_of_encoded_inputs_are_not_shown(status):
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
        assert '[[100,100,[["input level","b",1]],' in ReportData().parts(status)["changes"]
    finally:
        model.changes[:] = before

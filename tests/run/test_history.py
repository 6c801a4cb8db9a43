"""The history of a run: bounded, exact, and the same however the rows came."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelbank.errors import FileRefused
from kernelbank.run.history import (
    DRAWN,
    EARLY,
    EXTREMES,
    FIRST_SNAPSHOT,
    GRID,
    POINTS,
    SNAPSHOTS,
    TOTALS,
    History,
    Snapshot,
)
from support.run_command import same_bits

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


@pytest.mark.parametrize("count", [1, POINTS, POINTS + 1, 3 * POINTS, MOST])
def test_totals_are_sums_over_the_rows_of_a_point(count):
    history = filled(count)
    edges = np.arange(0, count, history.stride)
    plain = np.add.reduceat(ROWS[:count], edges)
    for place, name in enumerate(TOTALS):
        assert np.allclose(history.totals[name], plain[:, place], rtol=1e-12, atol=1e-12)
    cut = len(TOTALS)
    means = plain[:, cut : cut + SLOTS] / plain[:, :1]
    assert np.allclose(history.weights, means, rtol=1e-12, atol=1e-12)
    assert np.allclose(history.losses, plain[:, cut + SLOTS :], rtol=1e-12, atol=1e-12)
    assert history.totals["rows"].sum() == count


@pytest.mark.parametrize("count", [1, POINTS, POINTS + 1, 3 * POINTS, MOST])
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_extremes_are_taken_over_the_rows_of_a_point(count):
    history = filled(count, [count // 3])
    cuts = np.arange(history.stride, count, history.stride)
    for place, name in enumerate(EXTREMES):
        low = name.endswith("_low")
        found = [(np.nanmin if low else np.nanmax)(p) for p in np.split(TOPS[:count, place], cuts)]
        wanted = np.nan_to_num(found, nan=np.inf if low else -np.inf)
        assert same_bits(history.extremes[name], wanted)
    weights = ROWS[:count, len(TOTALS) : len(TOTALS) + SLOTS]
    assert same_bits(
        history.highest_weights, [part.max(axis=0) for part in np.split(weights, cuts)]
    )


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


@pytest.mark.parametrize("count", [1, 700, POINTS * 2, 40 * FIRST_SNAPSHOT])
def test_restored_history_continues_with_the_same_bits(count):
    history = taken(History(SLOTS), count)
    copy = History.restore(history.to_json(), history.arrays(), SLOTS)
    for one in (history, copy):
        taken(one, count + 900)
    assert copy.to_json() == history.to_json()
    mine, other = copy.arrays(), history.arrays()
    assert mine.keys() == other.keys()
    assert all(same_bits(mine[name], other[name]) for name in mine)


def test_empty_history_is_restored():
    history = History(SLOTS)
    assert (
        History.restore(history.to_json(), history.arrays(), SLOTS).to_json() == history.to_json()
    )


FORGED = {
    "stride": [0, -1, 1, 3, 8, 2.0, True, "2", None, 2**60],
    "rows": [-1, 0, 10, 10**6, 2**70, 1.5, True, "9", None],
    "slots": [-1, 0, SLOTS + 1, 2**60, True, "3", 3.0],
    "snapshot_stride": [0, -FIRST_SNAPSHOT, 1, 3 * FIRST_SNAPSHOT, 2 * FIRST_SNAPSHOT, "x", 1e3],
    "snapshots": [
        [FIRST_SNAPSHOT + 1],
        [0],
        [-FIRST_SNAPSHOT],
        [EARLY[0] - 1],
        [100 * FIRST_SNAPSHOT],
        [float(FIRST_SNAPSHOT)],
        [True],
        [FIRST_SNAPSHOT, FIRST_SNAPSHOT],
        [FIRST_SNAPSHOT, EARLY[0]],
        [FIRST_SNAPSHOT] * (SNAPSHOTS + len(EARLY) + 1),
    ],
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in FORGED.items() for v in values]
)
def test_history_with_forged_facts_is_refused(name, value):
    history = taken(History(SLOTS), FIRST_SNAPSHOT)
    state = history.arrays() | {f"snapshot{n}": history.snapshots[0].values for n in range(40)}
    facts = history.to_json()
    assert repr(facts[name]) != repr(value)
    History.restore(facts, state, SLOTS)
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

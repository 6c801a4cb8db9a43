"""The last rows of a run, and where its inputs have been."""

import numpy as np
import pytest

from kernelbank.errors import FileRefused
from kernelbank.run.history import CLOCK, FIELDS, RECENT, RecentRows, SeenInputs
from support.run_command import same_bits

ROWS = np.random.default_rng(0).normal(size=(3 * RECENT, len(FIELDS)))


@pytest.mark.parametrize("cuts", [[], [1], [RECENT - 1, RECENT + 1], [5, 2 * RECENT]])
def test_last_rows_are_kept_however_they_came(cuts):
    recent = RecentRows()
    for some in np.split(ROWS, cuts):
        recent.add(some)
    assert len(recent) == RECENT
    assert same_bits(recent.array(), ROWS[-RECENT:])
    assert same_bits(recent["target"], ROWS[-RECENT:, 1])
    assert same_bits(RecentRows.restore(recent.array()).array(), recent.array())


@pytest.mark.parametrize("shape", [(3,), (2, len(FIELDS) + 1), (RECENT + 1, len(FIELDS))])
def test_forged_last_rows_are_refused(shape):
    with pytest.raises(FileRefused):
        RecentRows.restore(np.zeros(shape))


def hours(first, count):
    return 1704067200.0 + 3600.0 * np.arange(first, first + count)  # from a Monday on


def test_ranges_and_hours_are_those_that_were_seen():
    X = np.array([[1.0, np.nan], [-3.0, 5.0], [2.0, -0.0]])
    seen = SeenInputs()
    seen.add(X[:1], hours(8, 1))
    seen.add(X[1:], hours(9, 2))
    assert seen.ranges.tolist() == [[-3.0, 2.0], [0.0, 5.0]]
    assert np.flatnonzero(seen.clock[0]).tolist() == [8, 9, 10]
    assert np.flatnonzero(seen.clock[1]).tolist() == [1]  # the second seven hours of the week
    assert np.flatnonzero(seen.clock[2]).tolist() == [0]


def test_every_part_of_a_week_is_seen_after_a_week():
    seen = SeenInputs()
    seen.add(np.zeros((168, 0)), hours(0, 168))
    assert seen.clock[:2].sum() == 2 * CLOCK
    assert seen.clock[2].sum() <= 2
    empty = SeenInputs()
    empty.add(np.zeros((3, 1)), np.full(3, np.nan))
    assert not empty.clock.any()


def test_seen_inputs_are_restored_and_forged_ones_refused():
    seen = SeenInputs()
    seen.add(ROWS[:9, :2], hours(0, 9))
    state = seen.arrays()
    again = SeenInputs.restore(state).arrays()
    assert all(same_bits(state[name], again[name]) for name in state)
    for forged in ({"seen_ranges": np.zeros((2, 3))}, {"seen_clock": np.zeros((2, CLOCK))}):
        with pytest.raises(FileRefused):
            SeenInputs.restore({**state, **forged})

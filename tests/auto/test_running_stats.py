"""Running statistics of a column against their naive form, on ordinary and hostile data."""

import numpy as np
import pytest

from kernelbank.auto import scaling as names
from support.column_pair import NAN, ColumnPair, hostile_values, standard_deviation, target_scale
from support.naive import auto as naive


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e149])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1e6])
@pytest.mark.parametrize("memory", [5, 50])
def test_ordinary_column_equals_the_naive_form(scale, offset, memory):
    draw = np.random.default_rng(3)
    values = scale * (draw.normal(size=300) + offset) / (1 + abs(offset))
    pair = ColumnPair(memory)
    pair.fit(values[:32])
    pair.feed(values[32:])
    assert pair.levels == 0


@pytest.mark.slow
@pytest.mark.parametrize("memory", [5, 7, 100])
def test_hostile_column_equals_the_naive_form(memory):
    levels = 0
    for seed in range(40):
        values = hostile_values(seed)
        pair = ColumnPair(memory)
        pair.fit(values[:32])
        pair.feed(values[32:])
        levels += pair.levels
    assert levels > 20  # the streams do what they are for


def test_column_from_few_or_missing_values_equals_the_naive_form():
    for start in ([], [NAN] * 4, [2.5], [0.0] * 8):
        pair = ColumnPair(20)
        if start:
            pair.fit(start)
        pair.feed([3.0, 3.0, NAN, 3.0, 4.0, 3.5, NAN, NAN, 2.0, 1.0])


def test_rank_is_among_the_last_thousand_values():
    """Among the last 1,000 values only, whatever came before them."""
    draw = np.random.default_rng(0)
    values = np.concatenate([draw.normal(size=700) + 3, draw.normal(size=1100)])
    pair = ColumnPair(1000)
    pair.fit(values[:32])
    for value in values[32:]:
        pair.add(value)
    for value in [*values[-1100:-1090], *values[-3:], -9.0, 9.0]:
        share = ((values[-1000:] < value).sum() + (values[-1000:] == value).sum() / 2 + 0.5) / 1001
        expected = np.interp(share, naive.PROBABILITIES, naive.QUANTILES)
        assert abs(pair.forms(value)[2] - expected) <= 1e-13
    assert pair.column[names.SEEN] == len(values)


def test_mean_and_deviation_forget_after_ten_thousand_rows():
    """Before 10,000 rows plain mean and variance; afterwards both forget by 1 / 10,000 per row."""
    draw = np.random.default_rng(1)
    values = draw.normal(size=25_000) + 7
    values[10_000:] = 2 * (values[10_000:] - 7) + 8
    pair = ColumnPair(5, target=True)
    pair.begin(values[:32])
    # The first rows are clipped: start from what they left.
    for value in values[32:10_000]:
        pair.add_target(value)
    mean, sd = pair.column[names.MEAN], standard_deviation(pair.column)
    assert pair.column[names.COUNT] == 10_000
    assert abs(mean - values[:10_000].mean()) < 1e-3
    assert abs(sd / values[:10_000].std(ddof=1) - 1) < 1e-3
    squares = pair.column[names.SQUARES]
    for value in values[10_000:]:
        pair.add_target(value)
    keep = 1 - 1e-4
    for value in values[10_000:]:
        away = value - mean
        mean += away / 10_000
        squares = (squares + away * (value - mean)) * keep
    assert pair.column[names.COUNT] == 10_000
    assert abs(pair.column[names.MEAN] - mean) <= 1e-12
    assert abs(pair.column[names.SQUARES] / squares - 1) <= 1e-11
    # After n rows of a new scale the old one has the share keep^n, up to chance and the levels.
    share = keep**15_000
    between = share * (1 - share)
    assert standard_deviation(pair.column) ** 2 == pytest.approx(4 - 3 * share + between, rel=0.05)


def test_column_beyond_its_memory_equals_the_naive_form():
    draw = np.random.default_rng(2)
    pair = ColumnPair(5)
    pair.fit(draw.normal(size=32))
    pair.naive.weight = 9_990
    pair.set(names.COUNT, 9_990)
    pair.naive.squares = 9_989.0
    pair.set(names.SQUARES, 9_989.0)
    pair.feed(draw.normal(size=60) * 2)
    assert pair.naive.weight == 10_000


def test_missing_value_of_an_alternating_column_is_its_mean():
    """r is at least 0: an alternating column predicts nothing."""
    values = [(-1.0) ** t for t in range(40)]
    pair = ColumnPair(50)
    pair.fit(values[:32])
    pair.feed([*values[32:], NAN, NAN, NAN, NAN])
    assert pair.naive.correlation() == 0.0
    assert np.array_equal(pair.forms(NAN), [0.0, 0.0, 0.0])


def test_missing_value_of_a_slow_column_follows_its_correlation():
    values = np.cumsum(np.random.default_rng(0).normal(size=200))
    pair = ColumnPair(200)
    pair.fit(values[:32])
    pair.feed([*values[32:], *[NAN] * 5])
    r = pair.naive.correlation()
    assert 0.8 < r < 1
    assert pair.forms(NAN)[0] == pytest.approx(pair.naive.last[0] * r**6, rel=1e-9)


def level_of(values, changes):
    pair = ColumnPair(50)
    pair.fit(np.random.default_rng(5).normal(size=1000))  # five far values must not make the sd
    pair.feed(values)
    assert pair.levels == changes
    return target_scale(pair.column), pair


def test_five_far_values_in_a_row_are_a_new_level():
    usual = target_scale(level_of([], 0)[1].column)[1]
    (mean, sd), _ = level_of([100.0, 101.0, NAN, 100.5, 102.0, 99.0], 1)
    assert mean == pytest.approx(100.5)
    assert usual < sd < 2 * usual  # that after the five have entered at 10 sd each
    (mean, sd), _ = level_of([100.0, -300.0, 500.0, -900.0, 70.0], 1)  # a new scale, on any side
    assert sd == pytest.approx(np.std([100.0, -300.0, 500.0, -900.0, 70.0], ddof=1))
    assert mean == pytest.approx(-106)
    (mean, sd), pair = level_of([64.0] * 5, 1)
    assert mean + sd == pytest.approx(64)
    assert sorted(pair.ring[:5]) == [64.0] * 5
    assert pair.column[names.SEEN] == 5
    level_of([100.0, 101.0, 100.5, 102.0, 0.0, 99.0], 0)
    level_of([1e9, 2e9, 1e10, 1e9], 0)  # glitches count
    level_of([1e9, 2e9, 1e10, 1e9, 3e9], 1)


@pytest.mark.parametrize("memory", [5, 1000])
def test_column_that_steps_through_a_few_values_has_no_new_level(memory):
    pair = ColumnPair(memory)
    pair.fit([0.0] * 128)
    pair.feed([0.0] * 500 + [1.0] * 20 + [0.0] * 900 + [1.0] * 50 + [2.0] * 50)
    assert pair.levels == 0
    pair = ColumnPair(1000)
    pair.fit(np.arange(128.0) % 6)
    pair.feed([1000.0] * 6)  # six different values before: a sensor that is stuck
    assert pair.levels == 1


def test_extreme_value_at_the_end_of_the_first_rows_is_not_the_last_value():
    """Within 1,000 of the usual distance, so it counts, but beyond 1,000 sd of what that gives."""
    pair = ColumnPair(50)
    pair.fit([*[0.0] * 27, 1.0, 1.0, -1.0, -1.0, 700.0])
    assert pair.naive.age == 1
    pair.feed([NAN, 0.5, NAN])
    assert pair.forms(NAN)[2] != 0.0


def test_outlier_level_is_far_beyond_ten_and_extreme_beyond_a_thousand():
    pair = ColumnPair(5, target=True)
    pair.set([names.COUNT, names.CENTER, names.SCALE], [9.0, 5.0, 2.0])
    for z, kind in [
        (0, 0),
        (9.9, 0),
        (-10.1, names.FAR),
        (999, names.FAR),
        (-1001, names.EXTREME),
    ]:
        assert pair.scaling.outlier_level(5.0 + 2.0 * z) == kind
    pair.set(names.SCALE, 0.0)
    assert pair.scaling.outlier_level(5.0) == pair.scaling.outlier_level(5.0 + 1e-11) == 0
    assert pair.scaling.outlier_level(1e20) == names.FAR

"""Fewer points of long runs, against plain loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelbank.research.plots.style import (
    interval_band,
    interval_means,
    interval_starts,
    line_indices,
)


def naive_line_indices(values, most):
    if len(values) <= most:
        return list(range(len(values)))
    begin = [*interval_starts(len(values), most // 2), len(values)]
    kept = {0, len(values) - 1}
    for low, high in pairwise(begin):
        finite = [i for i in range(low, high) if np.isfinite(values[i])]
        if finite:
            kept |= {min(finite, key=lambda p: values[p]), max(finite, key=lambda p: values[p])}
        else:
            kept |= {low}
    return sorted(kept)


values = st.lists(
    st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf]) | st.floats(-9, 9), min_size=1
)


@given(values, st.integers(2, 12))
def test_line_keeps_the_extremes_of_every_interval(given_values, most):
    array = np.array(given_values)
    assert line_indices(array, most).tolist() == naive_line_indices(array, most)


@given(st.integers(1, 300), st.integers(1, 40))
def test_intervals_are_nearly_equal(length, most):
    begin = interval_starts(length, most)
    sizes = np.diff(begin, append=length)
    assert begin[0] == 0
    assert len(begin) == min(length, most)
    assert sizes.max() - sizes.min() <= 1


def test_interval_means_and_bands_equal_plain_numpy():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    means = interval_means(rows, 10)
    assert means == pytest.approx(rows.reshape(10, 100, 3).mean(axis=1))
    assert interval_means(rows, 501) is not rows
    assert np.array_equal(interval_means(rows, 501), rows)
    x, low, high = interval_band(rows[:, 0], rows[:, 1], 20)
    assert np.array_equal(low, rows[:, 0].reshape(10, 100).min(axis=1))
    assert np.array_equal(high, rows[:, 1].reshape(10, 100).max(axis=1))
    assert x[0] == 49.5

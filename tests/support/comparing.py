"""Comparisons of banks and traces, bit by bit."""

import numpy as np


def assert_same_trace(one, other):
    """The recorded fields of two traces have the same bits."""
    for name in one.fields:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def assert_same_state(one, other):
    """The states of two banks have the same bits."""
    first, second = one.state(), other.state()
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True), name

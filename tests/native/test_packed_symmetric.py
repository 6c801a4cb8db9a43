"""Packed symmetric matrices. Products and updates are tested by the least squares that use them."""

import numpy as np
import pytest

from kernelbank.native.packed_symmetric import pack, packed_size, padded_length, row_start, unpack


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 17])
def test_a_packed_matrix_unpacks_to_itself(count):
    draw = np.random.default_rng(count).normal(size=(count, count))
    matrix = draw + draw.T
    packed = pack(matrix)
    assert len(packed) == packed_size(padded_length(count))
    assert np.array_equal(unpack(packed, count), matrix)


def test_rows_are_one_behind_the_other():
    matrix = np.arange(1.0, 82.0).reshape(9, 9)
    packed = pack(matrix + matrix.T)
    for i in range(9):
        kept = 4 * (i // 4) + 4  # up to the block on the diagonal
        start = row_start.py_func(i) if hasattr(row_start, "py_func") else row_start(i)
        row = packed[start : start + kept]
        known = min(kept, 9)
        assert np.array_equal(row[:known], (matrix + matrix.T)[i, :known])
        assert not row[known:].any()

"""Arrays that begin where a line of the cache does."""

import numpy as np
import pytest

from kernelbank.native.aligned import aligned_zeros


@pytest.mark.parametrize("shape", [(), (0,), (3,), (1000, 104), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_aligned_array_is_zero_and_begins_a_line_of_the_cache(shape, dtype):
    array = aligned_zeros(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.ctypes.data % 64 == 0 or array.size == 0
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not np.any(array)

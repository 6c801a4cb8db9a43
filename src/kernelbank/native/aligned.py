"""Arrays that begin where a line of the cache does.

NumPy aligns arrays to 16 bytes, so that every other SIMD vector of four numbers would lie in two
lines of the cache, and loads of such vectors take twice as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_LINE = 64


def aligned_zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """An array of zeros that is aligned to a line of the cache."""
    kind = np.dtype(dtype)
    bytes_needed = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    memory = np.zeros(bytes_needed + _LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + bytes_needed].view(kind).reshape(shape)

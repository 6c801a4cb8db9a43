"""Arrays that are mostly zero on their way between processes: only rows with something travel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....utils.validation import Floats

Packed = tuple[tuple[int, ...], np.ndarray | None, Floats]
"""Shape; the places of the rows that are not zero, None for all; these rows."""

Parts = tuple[tuple[int, ...], np.ndarray, Floats]
"""The same, with places in any case: what leaves with weight add to the proposals."""


def pack(array: Floats) -> Packed:
    """Rows of one number. What is not sent is zero: the sign of a zero is lost."""
    places = np.flatnonzero(array)
    if len(places) * (4 + 8) >= array.size * 8 or array.size >= 2**31:
        return array.shape, None, np.ascontiguousarray(array).reshape(-1, 1)
    return array.shape, places.astype(np.int32), array.reshape(-1)[places][:, None]


def singles(packed: Packed) -> tuple[tuple[int, ...], np.ndarray, Floats]:
    """Shape, places and values of the numbers that are not zero, where rows are one number."""
    shape, places, rows = packed
    if places is None:
        places = np.flatnonzero(rows)
        rows = rows[places]
    return shape, places, rows[:, 0]


def weight_of(thing: Any) -> int:
    """Bytes of the arrays in something that travels."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, (tuple, list)):
        return sum(weight_of(part) for part in thing)
    if isinstance(thing, dict):
        return sum(weight_of(part) for part in thing.values())
    return 0

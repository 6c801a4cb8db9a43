"""Arrays that are mostly zero on their way between processes: only rows with something travel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validate import Floats

Packed = tuple[tuple[int, ...], np.ndarray | None, Floats]
"""Shape; the places of the rows that are not zero, None for all; these rows."""


def pack(array: Floats, *, singly: bool = False) -> Packed:
    """A row is along the last axis, or one number with `singly`. A zero comes back as +0.0."""
    rows = array.reshape(-1, 1 if singly else array.shape[-1])
    places = np.flatnonzero((rows != 0).any(axis=1))
    whole = rows.size * 8
    if len(places) * (4 + 8 * rows.shape[1]) >= whole or len(rows) >= 2**31:
        return array.shape, None, np.ascontiguousarray(rows)
    return array.shape, places.astype(np.int32), rows[places]


def unpack(packed: Packed) -> Floats:
    """The array, which may be read only."""
    shape, places, rows = packed
    if places is None:
        return rows.reshape(shape)
    whole = np.zeros(shape)
    whole.reshape(-1, rows.shape[1])[places] = rows
    return whole


def weight_of(thing: Any) -> int:
    """Bytes of the arrays in something that travels."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, (tuple, list)):
        return sum(weight_of(part) for part in thing)
    if isinstance(thing, dict):
        return sum(weight_of(part) for part in thing.values())
    return 0

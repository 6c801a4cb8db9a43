"""The wire format: sparse arrays between driver and shards, and the bytes that they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....combiners import distributed_threshold as native
from ....utils.validation import Floats

PackedWeights = tuple[tuple[int, int], np.ndarray | None, Floats]
"""Shape (n, P); flat indices of the weights that are not zero, None for all; the weights."""

LeafSums = tuple[tuple[int, int, int], np.ndarray, Floats]
"""Shape (L, n, window + 3); flat indices over (L, n) of the rows that are sent; these rows.

A row is a leaf's part of the bank's prediction before one sample. Leaves without weight send none.
"""


@dataclass
class Traffic:
    """Bytes of arrays between the driver and the shards, and the number of samples and calls.

    A block of samples counts once, although every node fetches its own copy.
    """

    samples: int = 0
    calls: int = 0
    sent: int = 0
    received: int = 0


def array_bytes(value: Any) -> int:
    """Bytes of all arrays in nested tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (tuple, list)):
        return sum(array_bytes(part) for part in value)
    if isinstance(value, dict):
        return sum(array_bytes(part) for part in value.values())
    return 0


def index_type(size: int) -> type[np.signedinteger[Any]]:
    """The smallest integer type for indices into an array of `size` elements."""
    return np.int32 if size < 2**31 else np.int64


def pack_weights(weights: Floats) -> PackedWeights:
    """Pack (n, P) weights: sparse if that is smaller. The sign of a zero is lost."""
    indices = np.flatnonzero(weights)
    if len(indices) * (4 + 8) >= weights.size * 8 or weights.size >= 2**31:
        return weights.shape, None, np.ascontiguousarray(weights).reshape(-1)
    return weights.shape, indices.astype(np.int32), weights.reshape(-1)[indices]


def unpack_weights(packed: PackedWeights) -> tuple[tuple[int, int], np.ndarray, Floats]:
    """Return shape, flat indices and values of the weights that are not zero."""
    shape, indices, values = packed
    if indices is None:
        indices = np.flatnonzero(values)
        values = values[indices]
    return shape, indices, values


def add_leaf_sums(sums: list[LeafSums], leaves: list[list[int]], totals: Floats) -> None:
    """totals[t] = sum of the leaves' rows for sample t, in leaf order whatever the shards.

    sums, leaves : by shard; `leaves` are the leaf numbers of each. totals : (n, window + 3). A leaf
    without a row for a sample has no weight there: it adds an exact zero.
    """
    totals[...] = 0.0
    if all(len(rows) == shape[0] * shape[1] for shape, _, rows in sums):
        by_leaf = {
            leaf: part
            for (shape, _, rows), own in zip(sums, leaves, strict=True)
            for leaf, part in zip(own, rows.reshape(shape), strict=True)
        }
        for leaf in sorted(by_leaf):
            totals += by_leaf[leaf]
        return
    numbers, samples, parts = [], [], []
    for (shape, indices, rows), own in zip(sums, leaves, strict=True):
        numbers.append(np.asarray(own)[indices // shape[1]])
        samples.append(indices % shape[1])
        parts.append(rows)
    order = np.argsort(np.concatenate(numbers), kind="stable")
    rows = np.concatenate(parts)[order]
    native.add_rows(
        rows=len(rows),
        width=rows.shape[1],
        samples=np.concatenate(samples).astype(np.int64)[order],
        values=rows,
        totals=totals,
    )

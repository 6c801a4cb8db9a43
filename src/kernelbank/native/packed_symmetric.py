"""Symmetric matrices of which half is kept, in blocks of four rows.

Rows and columns are padded with zeros to n, a multiple of four. Rows 4b .. 4b + 3 are kept up to
column 4b + 3, one behind the other: the blocks below the diagonal, and the whole of the diagonal
one. So loops run in steps of four, with nothing left over. The matrix has n (n + 4) / 2 numbers.

All sums have a fixed order: a product has the same bits whether it is computed alone or together
with others.
"""

from typing import Any

import numpy as np

from .jit import inline
from .simd import WIDTH, broadcast, fma, four, lane
from .views import load_four, store_four

RANK = 8
"""Vectors of an update."""


def padded_length(count: int) -> int:
    """The least multiple of four that is not below `count`."""
    return -(-count // WIDTH) * WIDTH


def packed_size(length: int) -> int:
    """How many numbers a matrix of padded length has."""
    return length * (length + WIDTH) // 2


def _places(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of a (count, count) matrix that are kept, and where."""
    blocks = np.arange(count) // WIDTH
    rows, columns = np.nonzero(blocks <= blocks[:, None])
    lengths = WIDTH * (blocks + 1)  # of the rows
    starts = np.cumsum(lengths) - lengths
    return rows, columns, starts[rows] + columns


def pack(matrix: Any) -> Any:
    """The packed form of a symmetric matrix (count, count)."""
    count = len(matrix)
    out = np.zeros(packed_size(padded_length(count)))
    rows, columns, places = _places(count)
    out[places] = matrix[rows, columns]
    return out


def unpack(packed: Any, count: int) -> Any:
    """The symmetric matrix (count, count) of a packed one."""
    full = np.zeros((count, count))
    rows, columns, places = _places(count)
    full[rows, columns] = packed[places]
    full[columns, rows] = packed[places]
    return full


@inline
def row_start(i):
    """Where row i begins."""
    block = i // WIDTH
    return WIDTH * (block + 1) * (2 * block + i % WIDTH)


@inline
def _sum(v):
    return (lane(v, 0) + lane(v, 1)) + (lane(v, 2) + lane(v, 3))


@inline
def multiply(matrix, length, vectors, first, count, out):
    """out[k] = matrix @ vectors[k], for k = first .. first + count - 1.

    matrix: packed, of padded `length`; vectors, out: (rows, length). Each block of four rows is
    used for all vectors while it is in the cache.
    """
    for k in range(first, first + count):
        for j in range(length):
            out[k, j] = 0.0
    for i in range(0, length, WIDTH):
        start, distance = row_start(i), i + WIDTH
        r0, r1 = matrix[start:], matrix[start + distance :]
        r2, r3 = matrix[start + 2 * distance :], matrix[start + 3 * distance :]
        for k in range(first, first + count):
            vector, result = vectors[k], out[k]
            v0, v1 = broadcast(vector[i]), broadcast(vector[i + 1])
            v2, v3 = broadcast(vector[i + 2]), broadcast(vector[i + 3])
            # The block on the diagonal, then those to its left, which stand for those above too.
            own = load_four(vector, i)
            s0, s1 = load_four(r0, i) * own, load_four(r1, i) * own
            s2, s3 = load_four(r2, i) * own, load_four(r3, i) * own
            for j in range(0, i, WIDTH):
                m0, m1, m2, m3 = (
                    load_four(r0, j),
                    load_four(r1, j),
                    load_four(r2, j),
                    load_four(r3, j),
                )
                x = load_four(vector, j)
                total = fma(v0, m0, load_four(result, j))
                total = fma(v1, m1, total)
                total = fma(v2, m2, total)
                store_four(result, j, fma(v3, m3, total))
                s0, s1 = fma(m0, x, s0), fma(m1, x, s1)
                s2, s3 = fma(m2, x, s2), fma(m3, x, s3)
            sums = four(_sum(s0), _sum(s1), _sum(s2), _sum(s3))
            store_four(result, i, load_four(result, i) + sums)


@inline
def update(matrix, length, scales, factors, vectors):
    """matrix <- S matrix S + sum_k factors[k] vectors[k] vectors[k]', S the diagonal of `scales`.

    matrix: packed; scales: (length,); factors: (RANK,); vectors: (RANK, length).
    """
    v0, v1, v2, v3 = vectors[0], vectors[1], vectors[2], vectors[3]
    v4, v5, v6, v7 = vectors[4], vectors[5], vectors[6], vectors[7]
    for i in range(length):
        row = matrix[row_start(i) :]
        scale = broadcast(scales[i])
        f0, f1 = broadcast(factors[0] * v0[i]), broadcast(factors[1] * v1[i])
        f2, f3 = broadcast(factors[2] * v2[i]), broadcast(factors[3] * v3[i])
        f4, f5 = broadcast(factors[4] * v4[i]), broadcast(factors[5] * v5[i])
        f6, f7 = broadcast(factors[6] * v6[i]), broadcast(factors[7] * v7[i])
        for j in range(0, i - i % WIDTH + WIDTH, WIDTH):
            # Two sums, which the processor computes side by side.
            value = scale * load_four(scales, j) * load_four(row, j)
            other = f4 * load_four(v4, j)
            value = fma(f0, load_four(v0, j), value)
            other = fma(f5, load_four(v5, j), other)
            value = fma(f1, load_four(v1, j), value)
            other = fma(f6, load_four(v6, j), other)
            value = fma(f2, load_four(v2, j), value)
            other = fma(f7, load_four(v7, j), other)
            value = fma(f3, load_four(v3, j), value)
            store_four(row, j, value + other)
        # Rounding must not make the block on the diagonal unsymmetric.
        for j in range(i - i % WIDTH, i):
            matrix[row_start(j) + i] = row[j]


@inline
def copy_column(matrix, length, j, out):
    """out = column j. out: (length,)."""
    own = matrix[row_start(j) :]
    end = j - j % WIDTH + WIDTH
    for i in range(end):
        out[i] = own[i]
    for i in range(end, length):
        out[i] = matrix[row_start(i) + j]

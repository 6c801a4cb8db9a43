"""Small dense matrices: the first (count, count) of square arrays, by rows.

Loops run along rows, so that the compiler can vectorise without reordering a sum: the order of
every sum is fixed, and so are the bits.
"""

import numpy as np

from .jit import inline
from .simd import WIDTH, broadcast, fma, lane
from .views import load_four, store_four


@inline
def dot(one, other, count):
    """The dot product of two (count,) vectors, by four interleaved partial sums."""
    total = broadcast(0.0)
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        total = fma(load_four(one, m), load_four(other, m), total)
    result = (lane(total, 0) + lane(total, 1)) + (lane(total, 2) + lane(total, 3))
    for m in range(even, count):
        result += one[m] * other[m]
    return result


@inline
def add_and_dot_two(out, factor, vector, rows, count):
    """`add_multiple`, then `norm_and_dot_two` of `out`, in one loop."""
    s0, s1, s2 = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        x = fma(factor, load_four(vector, m), load_four(out, m))
        store_four(out, m, x)
        s0 = fma(x, x, s0)
        s1, s2 = fma(x, load_four(rows[0], m), s1), fma(x, load_four(rows[1], m), s2)
    d0, d1, d2 = _add_lanes(s0), _add_lanes(s1), _add_lanes(s2)
    for m in range(even, count):
        out[m] += factor * vector[m]
        x1 = out[m]
        d0 += x1 * x1
        d1 += x1 * rows[0, m]
        d2 += x1 * rows[1, m]
    return d0, d1, d2


@inline
def norm_and_dot_two(one, rows, count):
    """The dot products of a (count,) vector with itself and two rows, each as by `dot`."""
    s0, s1, s2 = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        x = load_four(one, m)
        s0 = fma(x, x, s0)
        s1, s2 = fma(x, load_four(rows[0], m), s1), fma(x, load_four(rows[1], m), s2)
    d0, d1, d2 = _add_lanes(s0), _add_lanes(s1), _add_lanes(s2)
    for m in range(even, count):
        d0 += one[m] * one[m]
        d1 += one[m] * rows[0, m]
        d2 += one[m] * rows[1, m]
    return d0, d1, d2


@inline
def dot_three(one, rows, count):
    """The dot products of a (count,) vector with the first three rows, each as by `dot`.

    Three sums at once: an addition to one need not wait for the last one.
    """
    s0, s1, s2 = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        x = load_four(one, m)
        s0, s1 = fma(x, load_four(rows[0], m), s0), fma(x, load_four(rows[1], m), s1)
        s2 = fma(x, load_four(rows[2], m), s2)
    d0, d1, d2 = _add_lanes(s0), _add_lanes(s1), _add_lanes(s2)
    for m in range(even, count):
        d0 += one[m] * rows[0, m]
        d1 += one[m] * rows[1, m]
        d2 += one[m] * rows[2, m]
    return d0, d1, d2


@inline
def dot_nine(one, rows, count):
    """`dot_three` for the first nine rows."""
    s0, s1, s2 = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    s3, s4, s5 = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    s6, s7, s8 = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        x = load_four(one, m)
        s0, s1 = fma(x, load_four(rows[0], m), s0), fma(x, load_four(rows[1], m), s1)
        s2, s3 = fma(x, load_four(rows[2], m), s2), fma(x, load_four(rows[3], m), s3)
        s4, s5 = fma(x, load_four(rows[4], m), s4), fma(x, load_four(rows[5], m), s5)
        s6, s7 = fma(x, load_four(rows[6], m), s6), fma(x, load_four(rows[7], m), s7)
        s8 = fma(x, load_four(rows[8], m), s8)
    d0, d1, d2 = _add_lanes(s0), _add_lanes(s1), _add_lanes(s2)
    d3, d4, d5 = _add_lanes(s3), _add_lanes(s4), _add_lanes(s5)
    d6, d7, d8 = _add_lanes(s6), _add_lanes(s7), _add_lanes(s8)
    for m in range(even, count):
        d0 += one[m] * rows[0, m]
        d1 += one[m] * rows[1, m]
        d2 += one[m] * rows[2, m]
        d3 += one[m] * rows[3, m]
        d4 += one[m] * rows[4, m]
        d5 += one[m] * rows[5, m]
        d6 += one[m] * rows[6, m]
        d7 += one[m] * rows[7, m]
        d8 += one[m] * rows[8, m]
    return d0, d1, d2, d3, d4, d5, d6, d7, d8


@inline
def _add_lanes(total):
    return (lane(total, 0) + lane(total, 1)) + (lane(total, 2) + lane(total, 3))


@inline
def add_multiple(out, factor, vector, count):
    """out += factor * vector. out, vector: (count,)."""
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        store_four(out, m, fma(factor, load_four(vector, m), load_four(out, m)))
    for m in range(even, count):
        out[m] += factor * vector[m]


@inline
def multiply_by(vector, factor, count):
    """vector *= factor. vector: (count,)."""
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        store_four(vector, m, factor * load_four(vector, m))
    for m in range(even, count):
        vector[m] *= factor


@inline
def symmetric_matvec(matrix, vector, count, out):
    """out = matrix @ vector, for a symmetric matrix. vector, out: (count,)."""
    for i in range(count):
        out[i] = 0.0
    for j in range(count):
        row = matrix[j]
        factor = vector[j]
        for i in range(count):
            out[i] += row[i] * factor


@inline
def add_outer(matrix, vector, count, factor):
    """matrix += factor * vector vector'."""
    for i in range(count):
        row = matrix[i]
        own = factor * vector[i]
        for j in range(count):
            row[j] += own * vector[j]


@inline
def append_row_column(matrix, count, vector, corner):
    """Append a row and a column: `vector`, (count,), and the diagonal element `corner`."""
    for i in range(count):
        matrix[count, i] = vector[i]
        matrix[i, count] = vector[i]
    matrix[count, count] = corner


@inline
def delete_row_column(matrix, count, j):
    """Delete row and column j; the later ones move up."""
    for i in range(count):
        if i == j:
            continue
        source = matrix[i]
        target = matrix[i - 1 if i > j else i]
        for k in range(j):
            target[k] = source[k]
        for k in range(j, count - 1):
            target[k] = source[k + 1]


@inline
def copy_matrix(source, count, target):
    """target = source."""
    for i in range(count):
        for j in range(count):
            target[i, j] = source[i, j]


@inline
def append_to_inverse(inverse, count, solved, rest):
    """Update the inverse after row b and diagonal element c were appended.

    solved = inverse @ b; rest = c - b' solved, the Schur complement.
    """
    add_outer(inverse, solved, count, 1.0 / rest)
    for i in range(count):
        own = -solved[i] / rest
        inverse[count, i] = own
        inverse[i, count] = own
    inverse[count, count] = 1.0 / rest


@inline
def delete_from_inverse(inverse, count, j, column):
    """Update the inverse after row and column j were deleted; `column`, (count,), is scratch."""
    for i in range(count):
        column[i] = inverse[i, j]
    add_outer(inverse, column, count, -1.0 / column[j])
    delete_row_column(inverse, count, j)


@inline
def invert(matrix, count, jitter, factor, inverse):
    """inverse = the inverse of a positive definite matrix by Cholesky; False if it is not one.

    Its diagonal is first multiplied by 1 + jitter. `factor` is scratch of the same size and holds
    the Cholesky factor afterwards.
    """
    for i in range(count):
        own = factor[i]
        for j in range(i + 1):
            other = factor[j]
            value = matrix[i, j] - dot(own, other, j)
            if i == j:
                value += jitter * matrix[i, i]
                if not value > 0.0:
                    return False
                own[i] = np.sqrt(value)
            else:
                own[j] = value / other[j]
    # Columns of the factor's inverse, kept as rows of `inverse`, above the diagonal.
    for i in range(count):
        row = inverse[i]
        for j in range(i):
            row[j] = 0.0
        row[i] = 1.0 / factor[i, i]
        for j in range(i + 1, count):
            own = factor[j]
            row[j] = -dot(own[i:], row[i:], j - i) / own[j]
    for i in range(count):  # inverse = these rows times their transposes, from the top down
        row = inverse[i]
        for j in range(i, count):
            row[j] = dot(row[j:], inverse[j][j:], count - j)
    for i in range(count):
        for j in range(i):
            inverse[i, j] = inverse[j, i]
    return True


@inline
def delete_element(vector, count, j):
    """Delete element j of a (count,) vector; the later ones move up."""
    for i in range(j, count - 1):
        vector[i] = vector[i + 1]


@inline
def argmin(vector, count):
    """The index of the least element, the first of equals."""
    best = 0
    for i in range(count):
        if vector[i] < vector[best]:
            best = i
    return best

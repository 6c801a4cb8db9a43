"""Small dense matrices of slots, row by row in arrays with room for `stride` rows and columns.

Loops run along rows, so that the compiler can take several members at once without reordering a
sum: every member of a result is added up in the same order for ever.
"""

import numpy as np

from .formulas import pointer
from .jit import inline
from .simd import WIDTH, broadcast, fma, lane, load


@inline
def dot(one, other, count):
    """Sum of products, over four interleaved partial sums: the same bits for ever."""
    total = broadcast(0.0)
    even = count - count % WIDTH
    for m in range(0, even, WIDTH):
        total = fma(load(pointer(one, m), 0), load(pointer(other, m), 0), total)
    result = (lane(total, 0) + lane(total, 1)) + (lane(total, 2) + lane(total, 3))
    for m in range(even, count):
        result += one[m] * other[m]
    return result


@inline
def matrix_times(matrix, stride, vector, count, out):
    """out = matrix @ vector, for a symmetric matrix."""
    for i in range(count):
        out[i] = 0.0
    for j in range(count):
        row = pointer(matrix, j * stride)
        factor = vector[j]
        for i in range(count):
            out[i] += row[i] * factor


@inline
def add_outer(matrix, stride, vector, count, factor):
    """matrix += factor * vector vector'."""
    for i in range(count):
        row = pointer(matrix, i * stride)
        own = factor * vector[i]
        for j in range(count):
            row[j] += own * vector[j]


@inline
def border(matrix, stride, count, vector, corner):
    """Add a last row and column: `vector`, and `corner` where they meet."""
    last = pointer(matrix, count * stride)
    for i in range(count):
        last[i] = vector[i]
        matrix[i * stride + count] = vector[i]
    last[count] = corner


@inline
def strike(matrix, stride, count, j):
    """Take out row and column j; those behind move up."""
    for i in range(count):
        if i == j:
            continue
        source = pointer(matrix, i * stride)
        target = pointer(matrix, (i - 1 if i > j else i) * stride)
        for k in range(j):
            target[k] = source[k]
        for k in range(j, count - 1):
            target[k] = source[k + 1]


@inline
def grow_inverse(inverse, stride, count, solved, rest):
    """The inverse after a border (b, c) was added: solved = inverse @ b, rest = c - b' solved."""
    add_outer(inverse, stride, solved, count, 1.0 / rest)
    last = pointer(inverse, count * stride)
    for i in range(count):
        own = -solved[i] / rest
        last[i] = own
        inverse[i * stride + count] = own
    last[count] = 1.0 / rest


@inline
def shrink_inverse(inverse, stride, count, j, column):
    """The inverse after row and column j were taken out; `column` is scratch."""
    for i in range(count):
        column[i] = inverse[i * stride + j]
    add_outer(inverse, stride, column, count, -1.0 / column[j])
    strike(inverse, stride, count, j)


@inline
def invert(matrix, stride, count, raised, factor, inverse):
    """inverse = that of a positive definite matrix by Cholesky; False if it is not one.

    Its diagonal is raised by a share `raised` of itself first. `factor` is scratch of the same size
    and holds the Cholesky factor afterwards.
    """
    for i in range(count):
        own = pointer(factor, i * stride)
        for j in range(i + 1):
            other = pointer(factor, j * stride)
            value = matrix[i * stride + j] - dot(own, other, j)
            if i == j:
                value += raised * matrix[i * stride + i]
                if not value > 0.0:
                    return False
                own[i] = np.sqrt(value)
            else:
                own[j] = value / other[j]
    # Columns of the factor's inverse, kept as rows of `inverse`, above the diagonal.
    for i in range(count):
        row = pointer(inverse, i * stride)
        for j in range(i):
            row[j] = 0.0
        row[i] = 1.0 / factor[i * stride + i]
        for j in range(i + 1, count):
            own = pointer(factor, j * stride)
            row[j] = -dot(pointer(own, i), pointer(row, i), j - i) / own[j]
    for i in range(count):  # inverse = those rows times their transposes, from the top down
        row = pointer(inverse, i * stride)
        for j in range(i, count):
            other = pointer(inverse, j * stride)
            row[j] = dot(pointer(row, j), pointer(other, j), count - j)
    for i in range(count):
        for j in range(i):
            inverse[i * stride + j] = inverse[j * stride + i]
    return True


@inline
def strike_member(vector, count, j):
    """Take out member j; those behind move up."""
    for i in range(j, count - 1):
        vector[i] = vector[i + 1]


@inline
def least(vector, count):
    """The place of the least member, the first of equals."""
    best = 0
    for i in range(count):
        if vector[i] < vector[best]:
            best = i
    return best

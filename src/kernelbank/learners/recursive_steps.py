"""Recursive least squares on features, in one pass over the covariance a sample.

The covariance P of the weights is symmetric: only rows up to the diagonal are kept, packed one
behind the other. A step needs u = P phi and then changes P everywhere; it leaves that change
*pending* (what to multiply with, two vectors whose squares to take off, what to put on the
diagonal) and the next step makes it while it multiplies. So the matrix, which is what costs, is
read and written once a sample. The pending change is part of the state: it does not matter whether
the next sample is in the same block.
"""

import numpy as np

from ..native.dense import dot
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array
from ..native.simd import WIDTH, broadcast, fma, lane, load, store
from .feature_steps import ERROR, NORM, SINGLE, WEIGHT, coefficients_of

RECURSIVE = argument_fields("covariance", "pending", "scaling", "first_vector", "second_vector")
"""Names that tables of such learners add."""

FIRST, SECOND, DIAGONAL = range(3)
PENDING = 3

NEVER, EXPONENTIAL, PRIOR = range(3)


@inline
def multiply_pending(covariance, pending, scaling, first, second, vector, count, out):
    """Make the pending change of P, and out = P vector with the changed one.

    P_ij <- s_i s_j P_ij + a u_i u_j + b v_i v_j, and c (1 - s_i^2) on the diagonal: s is `scaling`,
    u and v the two vectors, a, b and c the members of `pending`.
    """
    for i in range(count):
        out[i] = 0.0
    for i in range(count):
        row = pointer(covariance, i * (i + 1) // 2)
        scale = scaling[i]
        one = pending[FIRST] * first[i]
        two = pending[SECOND] * second[i]
        own = vector[i]
        total = broadcast(0.0)
        even = i - i % WIDTH
        for j in range(0, even, WIDTH):
            value = scale * load(pointer(scaling, j), 0) * load(pointer(row, j), 0)
            value = fma(one, load(pointer(first, j), 0), value)
            value = fma(two, load(pointer(second, j), 0), value)
            store(pointer(row, j), 0, value)
            store(pointer(out, j), 0, fma(own, value, load(pointer(out, j), 0)))
            total = fma(value, load(pointer(vector, j), 0), total)
        result = (lane(total, 0) + lane(total, 1)) + (lane(total, 2) + lane(total, 3))
        for j in range(even, i):
            value = scale * scaling[j] * row[j] + one * first[j] + two * second[j]
            row[j] = value
            out[j] += own * value
            result += value * vector[j]
        value = scale * scale * row[i] + one * first[i] + two * second[i]
        value += pending[DIAGONAL] * (1.0 - scale * scale)
        row[i] = value
        out[i] += result + own * value


@inline
def column(covariance, count, j, out):
    """out = column j of P as it is kept, without what is pending."""
    row = pointer(covariance, j * (j + 1) // 2)
    for i in range(j + 1):
        out[i] = row[i]
    for i in range(j + 1, count):
        out[i] = covariance[i * (i + 1) // 2 + j]


@inline
def recursive_step(
    args,
    leaf,
    number,
    size,
    covariance,
    pending,
    scaling,
    first,
    second,
    forget,
    forgetting,
    constant,
    constant_forgetting,
    ridge,
):
    """One sample of least squares, then some forgetting (see `FourierRLS`).

    `constant` is the place of the constant feature, which may have a forgetting of its own.
    """
    sample = float_array(args, SINGLE.sample)
    now = float_array(args, SINGLE.now)
    gain = float_array(args, SINGLE.work)
    weights = coefficients_of(args, leaf)
    multiply_pending(covariance, pending, scaling, first, second, now, size, gain)
    inner = dot(now, gain, size)
    spread = 1.0 / sample[WEIGHT] + inner
    informed = inner > 0.0  # otherwise rounding is all there is
    change = sample[ERROR] / spread if informed else 0.0
    scale = 1.0
    if forget == EXPONENTIAL:
        scale = 1.0 / np.sqrt(forgetting)
    elif forget == PRIOR:
        scale = np.sqrt(forgetting)
    pending[FIRST] = -1.0 / spread if informed else 0.0
    pending[SECOND] = 0.0
    pending[DIAGONAL] = 1.0 / ridge if forget == PRIOR else 0.0
    for m in range(size):
        weights[m] += gain[m] * change
        scaling[m] = scale
        first[m] = scale * gain[m]
        second[m] = 0.0
    if forget == PRIOR:
        if constant < size:
            scaling[constant] = np.sqrt(constant_forgetting)
            first[constant] = scaling[constant] * gain[constant]
        for m in range(size):
            weights[m] *= scaling[m]
    if forget == EXPONENTIAL:
        # P / forgetting, and a dummy observation of one weight, in turn, that it is zero: as much
        # in `size` samples as the prior loses, so that the ridge never fades.
        j = number % size
        column(covariance, size, j, second)
        share = pending[FIRST] * first[j]
        for m in range(size):
            second[m] = scale * scale * second[m] + share * first[m]
        spread = 1.0 / (size * (1.0 - forgetting) * ridge) + second[j]
        pending[SECOND] = -1.0 / spread
        change = weights[j] / spread
        for m in range(size):
            weights[m] -= second[m] * change
    sample[NORM] = dot(weights, weights, size)

"""Rows of statistics, and rows of kernel values from them.

A *row* holds the kernel values of one input against the terms of the expansion, oldest first and
the input itself last, four slots side by side: shape (terms, 4). The kernel of a group of slots
is a small program in postfix order, because sums and products of kernels need more than one
statistic; a plain kernel is a program of one instruction.
"""

import numpy as np

from ..native.formulas import CONSTANTS, call_kernel, call_statistic, int_pointer, pointer
from ..native.jit import entry, inline
from ..native.phases import argument_fields, float_array, int_array, read_int
from ..native.simd import WIDTH, load, store

EVALUATE, ADD, MULTIPLY, SCALE = 0, 1, 2, 3
"""Instructions: push the values of a profile; combine the two topmost; scale the topmost."""


ADD_SAMPLES = argument_fields(
    "slide_period",
    "history_length",
    "dimension",
    "points",
    "new_targets",
    "inputs",
    "targets",
    "sources",
    "addresses",
    "parameters",
    "coordinates",
    "starts",
    "statistics",
    "steps",
    "repeated",
    "memo",
    "memo_point",
    "memo_statistics",
)

QUERY = argument_fields(
    "slide_period",
    "history_length",
    "dimension",
    "inputs",
    "sources",
    "addresses",
    "parameters",
    "coordinates",
    "starts",
    "statistics",
    "steps",
    "terms",
    "point",
    "memo",
    "memo_point",
    "memo_statistics",
    "memo_repeated",
)

VALID, SEEN, USED = 0, 1, 2
"""The memo of the last look: is there one, after how many samples, and does this block use it?"""


@inline
def _equal(one, other, count):
    for m in range(count):
        if one[m] != other[m]:
            return False
    return True


@inline
def _recalled(args, first, count):
    """Whether the block is the one sample that was looked at last, with nothing learned since."""
    memo = int_array(args, ADD_SAMPLES.memo)
    same = count == 1 and memo[VALID] == 1 and memo[SEEN] == first
    same = same and _equal(
        float_array(args, ADD_SAMPLES.points),
        float_array(args, ADD_SAMPLES.memo_point),
        read_int(args, ADD_SAMPLES.dimension),
    )
    memo[VALID] = 0
    memo[USED] = 1 if same else 0
    return same


def add_samples(args, first, count):
    """Write the block into the sliding tables, and compare each sample with those before it.

    Statistic s looks at coordinates[starts[s]] up to, and without, coordinates[starts[s + 1]].
    statistics[s, t + 1] is the row of sample t, statistics[s, 0] that of the sample before the
    block. repeated[s, t] tells whether a row equals the one before bit for bit, as on a regular
    grid: then the kernel values are the same too and need no new exponential.
    """
    slide_period = read_int(args, ADD_SAMPLES.slide_period)
    history_length = read_int(args, ADD_SAMPLES.history_length)
    dimension = read_int(args, ADD_SAMPLES.dimension)
    points = float_array(args, ADD_SAMPLES.points)
    inputs = float_array(args, ADD_SAMPLES.inputs)
    targets = float_array(args, ADD_SAMPLES.targets)
    statistics = float_array(args, ADD_SAMPLES.statistics)
    coordinates = int_array(args, ADD_SAMPLES.coordinates)
    starts = int_array(args, ADD_SAMPLES.starts)
    steps = read_int(args, ADD_SAMPLES.steps)
    stride = history_length + slide_period
    position = history_length + first % slide_period
    if first > 0 and first % slide_period == 0:
        for m in range(history_length):
            for k in range(dimension):
                inputs[k * stride + m] = inputs[k * stride + slide_period + m]
            store(targets, m, load(targets, slide_period + m))
    for t in range(count):
        for k in range(dimension):
            inputs[k * stride + position + t] = points[t * dimension + k]
        store(targets, position + t, float_array(args, ADD_SAMPLES.new_targets)[t])
    recalled = _recalled(args, first, count)
    for s in range(read_int(args, ADD_SAMPLES.sources)):
        for t in range(count):
            row = pointer(statistics, (s * steps + t + 1) * (history_length + 1))
            last = pointer(statistics, (s * steps + t) * (history_length + 1))
            if recalled:
                for m in range(history_length + 1):
                    row[m] = float_array(args, ADD_SAMPLES.memo_statistics)[
                        s * (history_length + 1) + m
                    ]
            else:
                call_statistic(
                    int_array(args, ADD_SAMPLES.addresses)[s],
                    pointer(points, t * dimension),
                    pointer(inputs, position + t - history_length),
                    stride,
                    history_length + 1,
                    int_pointer(coordinates, starts[s]),
                    starts[s + 1] - starts[s],
                    pointer(float_array(args, ADD_SAMPLES.parameters), s),
                    row,
                )
            same = 1 if _equal(row, last, history_length + 1) else 0
            int_array(args, ADD_SAMPLES.repeated)[s * (steps - 1) + t] = same
        for m in range(history_length + 1):  # for the next block
            place = s * steps * (history_length + 1) + m
            statistics[place] = statistics[place + count * (history_length + 1)]


@inline
def _terms(inputs, stride, start, history_length, dimension, terms):
    """terms[k, m] = the last `history_length` inputs, with room for one more."""
    for k in range(dimension):
        for m in range(history_length):
            terms[k * (history_length + 1) + m] = inputs[k * stride + start + m]


@inline
def _append(point, dimension, terms, history_length):
    """The point itself is the last of the terms that it is compared with, as in `take`."""
    for k in range(dimension):
        terms[k * (history_length + 1) + history_length] = point[k]


def query(args, first, count):
    """Compare the point that is looked at with the last inputs, and remember that."""
    slide_period = read_int(args, QUERY.slide_period)
    history_length = read_int(args, QUERY.history_length)
    dimension = read_int(args, QUERY.dimension)
    point = float_array(args, QUERY.point)
    memo = int_array(args, QUERY.memo)
    memo[VALID] = 0
    start = 0 if first == 0 else (first - 1) % slide_period + 1
    terms = float_array(args, QUERY.terms)
    _terms(
        float_array(args, QUERY.inputs),
        history_length + slide_period,
        start,
        history_length,
        dimension,
        terms,
    )
    _append(point, dimension, terms, history_length)
    coordinates = int_array(args, QUERY.coordinates)
    starts = int_array(args, QUERY.starts)
    for s in range(read_int(args, QUERY.sources)):
        row = pointer(float_array(args, QUERY.memo_statistics), s * (history_length + 1))
        call_statistic(
            int_array(args, QUERY.addresses)[s],
            point,
            terms,
            history_length + 1,
            history_length + 1,
            int_pointer(coordinates, starts[s]),
            starts[s + 1] - starts[s],
            pointer(float_array(args, QUERY.parameters), s),
            row,
        )
        last = pointer(
            float_array(args, QUERY.statistics),
            s * read_int(args, QUERY.steps) * (history_length + 1),
        )
        same = 1 if _equal(row, last, history_length + 1) else 0
        int_array(args, QUERY.memo_repeated)[s] = same
    for k in range(dimension):
        float_array(args, QUERY.memo_point)[k] = point[k]
    memo[SEEN] = first
    memo[VALID] = 1


@entry
def compare(
    addresses, parameters, coordinates, starts, points, inputs, start, history_length, statistics
):
    """statistics[s, t + 1] = points[t] against columns start .. of `inputs` and itself."""
    dimension = points.shape[1]
    terms = np.empty((dimension, history_length + 1))
    _terms(pointer(inputs, 0), inputs.shape[1], start, history_length, dimension, pointer(terms, 0))
    for t in range(points.shape[0]):
        point = pointer(points, t * dimension)
        _append(point, dimension, pointer(terms, 0), history_length)
        for s in range(statistics.shape[0]):
            call_statistic(
                addresses[s],
                point,
                pointer(terms, 0),
                history_length + 1,
                history_length + 1,
                int_pointer(coordinates, starts[s]),
                starts[s + 1] - starts[s],
                pointer(parameters, s),
                pointer(statistics, (s * statistics.shape[1] + t + 1) * (history_length + 1)),
            )


@inline
def kernel_row(
    instructions,
    program,
    constants,
    leaf,
    statistics,
    steps,
    width,
    t,
    column,
    count,
    row,
    stack,
):
    """Run a group's program for one leaf: `row` receives (count, 4) kernel values.

    statistics[s, steps, width] is read at step t + 1, from `column` on.
    """
    depth = 0
    for i in range(instructions):
        operation = program[3 * i]
        if operation == EVALUATE:
            target = row if depth == 0 else pointer(stack, (depth - 1) * count * WIDTH)
            source = (program[3 * i + 1] * steps + t + 1) * width + column
            own = (leaf * instructions + i) * CONSTANTS * WIDTH
            call_kernel(
                program[3 * i + 2],
                pointer(statistics, source),
                count,
                pointer(constants, own),
                target,
            )
            depth += 1
            continue
        if operation == SCALE:
            top = row if depth == 1 else pointer(stack, (depth - 2) * count * WIDTH)
            factor = load(constants, (leaf * instructions + i) * CONSTANTS)
            for m in range(count):
                store(top, m, load(top, m) * factor)
            continue
        depth -= 1
        below = row if depth == 1 else pointer(stack, (depth - 2) * count * WIDTH)
        top = pointer(stack, (depth - 1) * count * WIDTH)
        if operation == ADD:
            for m in range(count):
                store(below, m, load(below, m) + load(top, m))
        else:
            for m in range(count):
                store(below, m, load(below, m) * load(top, m))


@inline
def repeats(instructions, program, repeated, width, t):
    """Whether every statistic of the program repeats at t, so that the kernel row does."""
    for i in range(instructions):
        if program[3 * i] == EVALUATE and repeated[program[3 * i + 1] * width + t] == 0:
            return False
    return True


@entry
def kernel_matrix(program, constants, statistics, depth, values):
    """values[i, j] = the kernel of the first slot of the first leaf: for calls by hand."""
    count = values.shape[1]
    buffer = np.zeros((depth + 1, max(count, 1), WIDTH))
    code = np.zeros(program.size, np.int64)
    code[:] = program.ravel()
    for i in range(values.shape[0]):
        kernel_row(
            program.shape[0],
            code,
            constants,
            0,
            statistics,
            statistics.shape[1],
            statistics.shape[2],
            i,
            0,
            count,
            pointer(buffer, 0),
            pointer(buffer, count * WIDTH),
        )
        for j in range(count):
            values[i, j] = buffer[0, j, 0]

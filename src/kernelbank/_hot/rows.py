"""Rows of statistics, and rows of kernel values from them.

A *row* holds the kernel values of one input against the terms of the expansion, oldest first and
the input itself last, four slots side by side: shape (terms, 4). The kernel of a group of slots
is a small program in postfix order, because sums and products of kernels need more than one
statistic; a plain kernel is a program of one instruction.
"""

import numpy as np

from .formulas import CONSTANTS, call_profile, call_statistic, pointer
from .jit import hot, part
from .lanes import WIDTH, load, store
from .table import fields, floats, whole, wholes

EVALUATE, ADD, MULTIPLY, SCALE = 0, 1, 2, 3
"""Instructions: push the values of a profile; combine the two topmost; scale the topmost."""


TAKE = fields(
    "page",
    "reach",
    "dimension",
    "points",
    "new_targets",
    "inputs",
    "targets",
    "sources",
    "addresses",
    "parameters",
    "statistics",
    "steps",
    "repeated",
)


@part
def _statistic_row(address, parameter, point, inputs, stride, start, count, dimension, row):
    """row[m] = the statistic of the point and column start + m of `inputs`, for m < count."""
    call_statistic(address, point, pointer(inputs, start), stride, count, dimension, parameter, row)


@part
def _equal(one, other, count):
    for m in range(count):
        if one[m] != other[m]:
            return False
    return True


def take(table, first, count):
    """Write the block into the sliding tables, and compare each sample with those before it.

    statistics[s, t + 1] is the row of sample t, statistics[s, 0] that of the sample before the
    block. repeated[s, t] tells whether a row equals the one before bit for bit, as on a regular
    grid: then the kernel values are the same too and need no new exponential.
    """
    page = whole(table, TAKE.page)
    reach = whole(table, TAKE.reach)
    dimension = whole(table, TAKE.dimension)
    points = floats(table, TAKE.points)
    inputs = floats(table, TAKE.inputs)
    targets = floats(table, TAKE.targets)
    statistics = floats(table, TAKE.statistics)
    steps = whole(table, TAKE.steps)
    stride = reach + page
    position = reach + first % page
    if first > 0 and first % page == 0:
        for m in range(reach):
            for k in range(dimension):
                inputs[k * stride + m] = inputs[k * stride + page + m]
            store(targets, m, load(targets, page + m))
    for t in range(count):
        for k in range(dimension):
            inputs[k * stride + position + t] = points[t * dimension + k]
        store(targets, position + t, floats(table, TAKE.new_targets)[t])
    for s in range(whole(table, TAKE.sources)):
        for t in range(count):
            row = pointer(statistics, (s * steps + t + 1) * (reach + 1))
            last = pointer(statistics, (s * steps + t) * (reach + 1))
            _statistic_row(
                wholes(table, TAKE.addresses)[s],
                pointer(floats(table, TAKE.parameters), s),
                pointer(points, t * dimension),
                inputs,
                stride,
                position + t - reach,
                reach + 1,
                dimension,
                row,
            )
            same = 1 if _equal(row, last, reach + 1) else 0
            wholes(table, TAKE.repeated)[s * (steps - 1) + t] = same
        for m in range(reach + 1):  # for the next block
            place = s * steps * (reach + 1) + m
            statistics[place] = statistics[place + count * (reach + 1)]


@hot
def compare(addresses, parameters, points, inputs, start, count, statistics):
    """statistics[s, t + 1, m] = statistic of points[t] and column start + m of `inputs`."""
    for s in range(statistics.shape[0]):
        for t in range(points.shape[0]):
            place = (s * statistics.shape[1] + t + 1) * statistics.shape[2]
            _statistic_row(
                addresses[s],
                pointer(parameters, s),
                pointer(points, t * points.shape[1]),
                pointer(inputs, 0),
                inputs.shape[1],
                start,
                count,
                points.shape[1],
                pointer(statistics, place),
            )


@part
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
            call_profile(
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


@part
def repeats(instructions, program, repeated, width, t):
    """Whether every statistic of the program repeats at t, so that the kernel row does."""
    for i in range(instructions):
        if program[3 * i] == EVALUATE and repeated[program[3 * i + 1] * width + t] == 0:
            return False
    return True


@hot
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

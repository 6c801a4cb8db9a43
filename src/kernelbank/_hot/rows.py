"""Rows of statistics, and rows of kernel values from them.

A *row* holds the kernel values of one input against the terms of the expansion, oldest first and
the input itself last, four slots side by side: shape (terms, 4). The kernel of a group of slots
is a small program in postfix order, because sums and products of kernels need more than one
statistic; a plain kernel is a program of one instruction.
"""

import numpy as np

from .formulas import CONSTANTS, call_profile, call_statistic, pointer, shifted
from .jit import hot, part
from .lanes import WIDTH, load, store

EVALUATE, ADD, MULTIPLY, SCALE = 0, 1, 2, 3
"""Instructions: push the values of a profile; combine the two topmost; scale the topmost."""


@hot
def statistic_rows(address, parameters, points, inputs, start, step, count, rows, repeated):
    """rows[t + 1, m] = statistic of points[t] and column start + step * t + m of `inputs`.

    rows[0] holds the row before. repeated[t] tells whether a row equals the one before bit for
    bit, as on a regular grid: then the kernel values are the same too and need no new exponential.
    """
    stride = inputs.shape[1]
    width = rows.shape[1]
    for t in range(points.shape[0]):
        call_statistic(
            address,
            pointer(points, t * points.shape[1]),
            pointer(inputs, start + step * t),
            stride,
            count,
            points.shape[1],
            pointer(parameters, 0),
            pointer(rows, (t + 1) * width),
        )
        same = True
        for m in range(count):
            if rows[t + 1, m] != rows[t, m]:
                same = False
                break
        repeated[t] = same


@part
def kernel_row(program, constants, leaf, statistics, t, column, count, row, stack):
    """Run a group's program for one leaf: `row`, a pointer, receives (count, 4) kernel values."""
    depth = 0
    instructions = program.shape[0]
    for i in range(instructions):
        operation = program[i, 0]
        if operation == EVALUATE:
            target = row if depth == 0 else shifted(stack, (depth - 1) * count * WIDTH)
            source = (program[i, 1] * statistics.shape[1] + t + 1) * statistics.shape[2] + column
            own = (leaf * instructions + i) * CONSTANTS * WIDTH
            call_profile(
                program[i, 2], pointer(statistics, source), count, pointer(constants, own), target
            )
            depth += 1
            continue
        if operation == SCALE:
            top = row if depth == 1 else shifted(stack, (depth - 2) * count * WIDTH)
            factor = load(constants, (leaf * instructions + i) * CONSTANTS)
            for m in range(count):
                store(top, m, load(top, m) * factor)
            continue
        depth -= 1
        below = row if depth == 1 else shifted(stack, (depth - 2) * count * WIDTH)
        top = shifted(stack, (depth - 1) * count * WIDTH)
        if operation == ADD:
            for m in range(count):
                store(below, m, load(below, m) + load(top, m))
        else:
            for m in range(count):
                store(below, m, load(below, m) * load(top, m))


@part
def repeats(program, repeated, t):
    """Whether every statistic of the program repeats at t, so that the kernel row does."""
    for i in range(program.shape[0]):
        if program[i, 0] == EVALUATE and not repeated[program[i, 1], t]:
            return False
    return True


@hot
def kernel_matrix(program, constants, statistics, depth, values):
    """values[i, j] = the kernel of the first slot of the first leaf: for calls by hand."""
    count = values.shape[1]
    buffer = np.zeros((depth + 1, max(count, 1), WIDTH))
    for i in range(values.shape[0]):
        row = pointer(buffer, 0)
        kernel_row(
            program, constants, 0, statistics, i, 0, count, row, pointer(buffer, count * WIDTH)
        )
        for j in range(count):
            values[i, j] = buffer[0, j, 0]

"""The phases of a partition tree: one slot a leaf of the bank, so only the first lane is used."""

import numpy as np

from ..native.formulas import call_loss, int_pointer, pointer
from ..native.hash_rng import stirred
from ..native.phases import argument_fields, float_array, int_array, read_float, read_int
from ..native.simd import WIDTH, store
from .feature_learner import curvature_above
from .tree_inference import SIZE, squared_norm, walk
from .tree_split import BESIDE, take_in

COUNTERS = 2

LEARN = argument_fields(
    "leaves",
    "steps",
    "window",
    "slide_period",
    "history_length",
    "dimension",
    "start",
    "stride",
    "offsets",
    "limit",
    "capacity",
    "most_levels",
    "levels",
    "variances",
    "noise",
    "seed",
    "columns",
    "squared",
    "derivative",
    "parameters",
    "inputs",
    "targets",
    "paths",
    "scratch",
    "cells",
    "entries",
    "counters",
    "values",
    "norms",
    "predictions",
)


def learn(args, first, count):
    """Run every tree through samples first .. first + count - 1, which lie in one slide_period."""
    steps = read_int(args, LEARN.steps)
    window = read_int(args, LEARN.window)
    history_length = read_int(args, LEARN.history_length)
    slide_period = read_int(args, LEARN.slide_period)
    dimension = read_int(args, LEARN.dimension)
    limit = read_int(args, LEARN.limit)
    capacity = read_int(args, LEARN.capacity)
    most_levels = read_int(args, LEARN.most_levels)
    noise = read_float(args, LEARN.noise)
    inputs = pointer(float_array(args, LEARN.inputs), read_int(args, LEARN.start))
    targets = float_array(args, LEARN.targets)
    path = int_array(args, LEARN.paths)
    other_path = int_pointer(path, most_levels)
    scratch = float_array(args, LEARN.scratch)
    slope = pointer(scratch, WIDTH)
    values = float_array(args, LEARN.values)
    stride = read_int(args, LEARN.stride)
    offsets = int_array(args, LEARN.offsets)
    position = history_length + first % slide_period
    room = (limit + 1) // 2 * capacity * (dimension + BESIDE)
    for leaf in range(read_int(args, LEARN.leaves)):
        cells = pointer(float_array(args, LEARN.cells), leaf * limit * SIZE)
        entries = pointer(float_array(args, LEARN.entries), leaf * room)
        counters = pointer(float_array(args, LEARN.counters), leaf * COUNTERS)
        variances = pointer(float_array(args, LEARN.variances), leaf * most_levels)
        levels = int_array(args, LEARN.levels)[leaf]
        column = int_array(args, LEARN.columns)[leaf * WIDTH]
        key = stirred(stirred(np.uint64(0), read_int(args, LEARN.seed)), column)
        for t in range(count):
            point = pointer(inputs, position + t)
            depth, value = walk(cells, limit, levels, dimension, point, stride, offsets, path)
            store(float_array(args, LEARN.predictions), leaf * (steps - 1) + t, value)

            # The loss as a square around the working response, with half its curvature as weight.
            target = targets[(position + t) * WIDTH]
            precision = 1.0 / noise
            if read_int(args, LEARN.squared) == 0:
                store(scratch, 0, value)
                call_loss(
                    read_int(args, LEARN.derivative),
                    scratch,
                    pointer(targets, (position + t) * WIDTH),
                    1,
                    float_array(args, LEARN.parameters),
                    slope,
                )
                curvature = curvature_above(value)
                target = value - slope[0] / curvature
                precision = 0.5 * curvature / noise

            take_in(
                cells,
                limit,
                counters,
                entries,
                capacity,
                dimension,
                variances,
                levels,
                path,
                depth,
                other_path,
                point,
                stride,
                offsets,
                precision,
                target,
                first + t,
                key,
            )
            seen = min(first + t + 1, window)
            row = (leaf * steps + t + 1) * window
            for i in range(window):
                value = 0.0
                if i >= window - seen:
                    point = pointer(inputs, position + t - (window - 1 - i))
                    _, value = walk(cells, limit, levels, dimension, point, stride, offsets, path)
                store(values, row + i, value)
            store(float_array(args, LEARN.norms), leaf * steps + t + 1, squared_norm(cells))


EVALUATE = argument_fields(
    "leaves",
    "width",
    "dimension",
    "start",
    "stride",
    "offsets",
    "limit",
    "levels",
    "paths",
    "cells",
    "wanted",
    "points",
    "room",
    "out",
)


def evaluate(args, first, count):
    """out[leaf, t] = f at point t < count, for leaves with wanted[leaf]; changes nothing."""
    width = read_int(args, EVALUATE.width)
    dimension = read_int(args, EVALUATE.dimension)
    stride = read_int(args, EVALUATE.stride)
    offsets = int_array(args, EVALUATE.offsets)
    points = pointer(float_array(args, EVALUATE.points), read_int(args, EVALUATE.start))
    limit = read_int(args, EVALUATE.limit)
    path = int_array(args, EVALUATE.paths)
    for leaf in range(read_int(args, EVALUATE.leaves)):
        if int_array(args, EVALUATE.wanted)[leaf] == 0:
            continue
        cells = pointer(float_array(args, EVALUATE.cells), leaf * limit * SIZE)
        levels = int_array(args, EVALUATE.levels)[leaf]
        for t in range(count):
            point = pointer(points, t * width)
            _, value = walk(cells, limit, levels, dimension, point, stride, offsets, path)
            store(float_array(args, EVALUATE.out), leaf * read_int(args, EVALUATE.room) + t, value)

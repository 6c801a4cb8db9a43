"""The phases of a partition tree: one slot a leaf of the bank, so only the first lane is used."""

import numpy as np

from ..native.formulas import call_loss, pointer, whole_pointer
from ..native.hash_rng import stirred
from ..native.phases import fields, floats, real, whole, wholes
from ..native.simd import WIDTH, store
from .feature_steps import curvature_above
from .tree_inference import SIZE, squared_norm, walk
from .tree_split import BESIDE, take_in

COUNTERS = 2

LEARN = fields(
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


def learn(table, first, count):
    """Run every tree through samples first .. first + count - 1, which lie in one slide_period."""
    steps = whole(table, LEARN.steps)
    window = whole(table, LEARN.window)
    history_length = whole(table, LEARN.history_length)
    slide_period = whole(table, LEARN.slide_period)
    dimension = whole(table, LEARN.dimension)
    limit = whole(table, LEARN.limit)
    capacity = whole(table, LEARN.capacity)
    most_levels = whole(table, LEARN.most_levels)
    noise = real(table, LEARN.noise)
    inputs = pointer(floats(table, LEARN.inputs), whole(table, LEARN.start))
    targets = floats(table, LEARN.targets)
    path = wholes(table, LEARN.paths)
    other_path = whole_pointer(path, most_levels)
    scratch = floats(table, LEARN.scratch)
    slope = pointer(scratch, WIDTH)
    values = floats(table, LEARN.values)
    stride = whole(table, LEARN.stride)
    offsets = wholes(table, LEARN.offsets)
    position = history_length + first % slide_period
    room = (limit + 1) // 2 * capacity * (dimension + BESIDE)
    for leaf in range(whole(table, LEARN.leaves)):
        cells = pointer(floats(table, LEARN.cells), leaf * limit * SIZE)
        entries = pointer(floats(table, LEARN.entries), leaf * room)
        counters = pointer(floats(table, LEARN.counters), leaf * COUNTERS)
        variances = pointer(floats(table, LEARN.variances), leaf * most_levels)
        levels = wholes(table, LEARN.levels)[leaf]
        column = wholes(table, LEARN.columns)[leaf * WIDTH]
        key = stirred(stirred(np.uint64(0), whole(table, LEARN.seed)), column)
        for t in range(count):
            point = pointer(inputs, position + t)
            depth, value = walk(cells, limit, levels, dimension, point, stride, offsets, path)
            store(floats(table, LEARN.predictions), leaf * (steps - 1) + t, value)

            # The loss as a square around the working response, with half its curvature as weight.
            target = targets[(position + t) * WIDTH]
            precision = 1.0 / noise
            if whole(table, LEARN.squared) == 0:
                store(scratch, 0, value)
                call_loss(
                    whole(table, LEARN.derivative),
                    scratch,
                    pointer(targets, (position + t) * WIDTH),
                    1,
                    floats(table, LEARN.parameters),
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
            store(floats(table, LEARN.norms), leaf * steps + t + 1, squared_norm(cells))


EVALUATE = fields(
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


def evaluate(table, first, count):
    """out[leaf, t] = f at point t < count, for leaves with wanted[leaf]; changes nothing."""
    width = whole(table, EVALUATE.width)
    dimension = whole(table, EVALUATE.dimension)
    stride = whole(table, EVALUATE.stride)
    offsets = wholes(table, EVALUATE.offsets)
    points = pointer(floats(table, EVALUATE.points), whole(table, EVALUATE.start))
    limit = whole(table, EVALUATE.limit)
    path = wholes(table, EVALUATE.paths)
    for leaf in range(whole(table, EVALUATE.leaves)):
        if wholes(table, EVALUATE.wanted)[leaf] == 0:
            continue
        cells = pointer(floats(table, EVALUATE.cells), leaf * limit * SIZE)
        levels = wholes(table, EVALUATE.levels)[leaf]
        for t in range(count):
            point = pointer(points, t * width)
            _, value = walk(cells, limit, levels, dimension, point, stride, offsets, path)
            store(floats(table, EVALUATE.out), leaf * whole(table, EVALUATE.room) + t, value)

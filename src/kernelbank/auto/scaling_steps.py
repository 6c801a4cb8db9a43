"""Rows of a stream in their standings: several scalings of the inputs, and the target's.

What a column is, and how values enter it, is in `standing`. The target is a column whose far values
wait until it is clear what they mean.
"""

import math

import numpy as np

from ..native.jit import entry, inline
from .running_stats import (
    BASE,
    LIMIT,
    MEAN,
    MOVING,
    PATIENCE,
    RANK,
    SEEN,
    STANDINGS,
    STILL,
    STREAK,
    UNIT,
    begin,
    change_level,
    clipped,
    deviation,
    enter,
    held_values,
    is_glitch,
    push,
    remember,
    standing,
    take,
)


@entry
def begin_columns(columns, rings, quantiles, rows):
    """Start every column from the rows (n, columns)."""
    for k in range(len(columns)):
        begin(columns[k], rings[k], quantiles, rows[:, k].copy())


@inline
def scale_row(x, lagged, columns, rings, target, target_ring, quantiles, starts, shown, out):
    """The scalings of one input side by side: deviations, their asinh, ranks.

    starts[v] is where scaling v begins in `out`, -1 if it is not wanted; starts[4] is that of the
    inputs as they are, or as they are expected if they are missing. Deviations, ranks and inputs as
    they are are followed by the lagged targets, in the target's own figures; asinh is of the input
    alone, unless starts[3] is where the asinh of the lagged targets begins. shown[k] holds the
    standings of input k afterwards.
    """
    dimension = len(x)
    for k in range(dimension):
        standing(columns[k], rings[k], quantiles, x[k], shown[k])
        if starts[0] >= 0:
            out[starts[0] + k] = shown[k, STILL]
        if starts[1] >= 0:
            out[starts[1] + k] = math.asinh(shown[k, MOVING])
        if starts[2] >= 0:
            out[starts[2] + k] = shown[k, RANK]
        if starts[4] >= 0:
            value = x[k]
            if math.isnan(value) or is_glitch(columns[k], value):
                value = columns[k, BASE] + columns[k, UNIT] * shown[k, STILL]
            out[starts[4] + k] = value
    pair = np.zeros(STANDINGS)
    for i in range(len(lagged)):
        pair[:] = 0.0
        if not math.isnan(lagged[i]):
            standing(target, target_ring, quantiles, lagged[i], pair)
        if starts[0] >= 0:
            out[starts[0] + dimension + i] = pair[STILL]
        if starts[2] >= 0:
            out[starts[2] + dimension + i] = pair[RANK]
        if starts[4] >= 0:
            out[starts[4] + dimension + i] = pair[STILL]
        if starts[3] >= 0:
            out[starts[3] + i] = math.asinh(pair[MOVING])


@entry
def scale_rows(X, lagged, columns, rings, target, target_ring, quantiles, starts, out):
    """`scale_row` of each row with its own lagged targets; nothing is taken in."""
    shown = np.zeros((X.shape[1], STANDINGS))
    for t in range(len(X)):
        scale_row(
            X[t], lagged[t], columns, rings, target, target_ring, quantiles, starts, shown, out[t]
        )


@entry
def take_row(x, columns, rings, quantiles, changed):
    """Let an input enter the figures of its columns; changed[k] tells of new levels."""
    shown = np.zeros(STANDINGS)
    for k in range(len(x)):
        standing(columns[k], rings[k], quantiles, x[k], shown)
        changed[k] = take(columns[k], rings[k], x[k], shown)


# --- the target ---------------------------------------------------------------------------------


@inline
def _take_target(target, ring, y, wait, shown):
    """Let a target enter its figures, or let it wait until one that does not have to lets it in.

    True if PATIENCE wait: then one of the three below has to follow.
    """
    remember(target, y, shown)
    if wait:
        push(target, ring, y)
        # A file may say anything: no streak may wait for ever.
        target[STREAK] = target[STREAK] + 1.0 if 0.0 <= target[STREAK] < PATIENCE else 1.0
        return target[STREAK] >= PATIENCE and target[SEEN] >= PATIENCE
    _let_in(target, ring, LIMIT)
    enter(target, y, LIMIT)
    push(target, ring, y)
    return False


@inline
def _let_in(target, ring, most):
    """The targets that wait enter, as if they were at most so many deviations away."""
    waiting = min(int(clipped(target[STREAK], PATIENCE)), held_values(target, ring))
    newest = int(target[SEEN])
    for i in range(waiting):
        enter(target, ring[(newest - waiting + i) % len(ring)], most)
    target[STREAK] = 0.0


@entry
def take_target(y, wait, target, ring, quantiles):
    """`_take_target` with the standings of y."""
    shown = np.zeros(STANDINGS)
    standing(target, ring, quantiles, y, shown)
    return _take_target(target, ring, y, wait, shown)


@entry
def new_scale(target, ring):
    """The targets that wait have a level and a scale of their own: figures start from them."""
    change_level(target, ring)


@entry
def new_level(target, ring, shift):
    """The targets that wait are as before, but for a shift: move the mean and all that is kept."""
    target[MEAN] += shift
    target[BASE] += shift
    older = held_values(target, ring) - PATIENCE
    newest = int(target[SEEN])
    for i in range(older):
        ring[(newest - PATIENCE - 1 - i) % len(ring)] += shift
    _let_in(target, ring, LIMIT)


@entry
def wider(target, ring):
    """The targets that wait are no surprise: the figures were too narrow for them."""
    _let_in(target, ring, np.inf)


@entry
def target_scale(target):
    """The target's base and unit."""
    return target[BASE], target[UNIT]


FAR, WILD = 1, 2
"""What a target may be: beyond LIMIT; a glitch, unless it is one of PATIENCE in a row."""


@entry
def farness(target, y):
    """0 for a usual target, else FAR or WILD."""
    if is_glitch(target, y):
        return WILD
    return FAR if abs(deviation(target, y)) > LIMIT else 0


@entry
def scale_stream(
    X, y, columns, rings, target, target_ring, quantiles, starts, lagged, out, scaled, scale, news
):
    """Rows one after the other: scale, then take in. Stops before a target that is far.

    scaled[t] and scale[t] are the target and its (base, unit) before it; `lagged` holds the last
    targets, the newest first, and is moved on. news[t, k] tells whether column k made a new level.
    Returns how many rows were done.
    """
    shown = np.zeros((X.shape[1], STANDINGS))
    pair = np.zeros(STANDINGS)
    for t in range(len(X)):
        z = deviation(target, y[t])
        if abs(z) > LIMIT:
            return t
        scale_row(
            X[t], lagged, columns, rings, target, target_ring, quantiles, starts, shown, out[t]
        )
        scaled[t] = z
        scale[t, 0] = target[BASE]
        scale[t, 1] = target[UNIT]
        for k in range(X.shape[1]):
            news[t, k] = take(columns[k], rings[k], X[t, k], shown[k])
        standing(target, target_ring, quantiles, y[t], pair)
        _take_target(target, target_ring, y[t], False, pair)
        for i in range(len(lagged) - 1, 0, -1):
            lagged[i] = lagged[i - 1]
        if len(lagged) > 0:
            lagged[0] = y[t]
    return len(X)

"""Rows of a stream scaled in several ways, and the statistics of its target.

What a column is, and how values enter it, is in `running_stats`. The target is a column whose far
values are held back until it is clear what they mean (`held_targets`).

Arrays: X (n, d), lagged (n, lags), columns (d, STATS), rings (d, ring), target (STATS,),
target_ring (ring,), quantiles: a table of normal quantiles, starts (5,), out (n, width).
"""

import math

import numpy as np

from ..native.jit import entry, inline
from .running_stats import (
    CENTER,
    CHANGE_AFTER,
    FAR_DEVIATIONS,
    FIXED,
    FORMS,
    MEAN,
    MOVING,
    RANK,
    SCALE,
    SEEN,
    STREAK,
    add_to_moments,
    clipped,
    deviation,
    fit_column,
    is_extreme,
    normalize,
    push,
    remember_last,
    restart_column,
    ring_count,
    update_column,
)


@entry
def fit_columns(columns, rings, quantiles, rows):
    """Start every column from rows (n, d)."""
    for k in range(len(columns)):
        fit_column(columns[k], rings[k], quantiles, rows[:, k].copy())


@inline
def scale_row(x, lagged, columns, rings, target, target_ring, quantiles, starts, forms, out):
    """out (width,): the scalings of one row side by side; forms (d, FORMS): those of its inputs.

    starts[v] is the first column of scaling v in `out`, -1 if it is not wanted: 0 deviations, 1
    their asinh, 2 ranks, 4 the inputs as they are, filled in where they are missing. Scalings 0, 2
    and 4 are followed by the lagged targets, normalized by the target's own statistics. Scaling 1
    has the inputs alone, unless starts[3] is the first column of the asinh of the lagged targets.
    """
    dimension = len(x)
    for k in range(dimension):
        normalize(columns[k], rings[k], quantiles, x[k], forms[k])
        if starts[0] >= 0:
            out[starts[0] + k] = forms[k, FIXED]
        if starts[1] >= 0:
            out[starts[1] + k] = math.asinh(forms[k, MOVING])
        if starts[2] >= 0:
            out[starts[2] + k] = forms[k, RANK]
        if starts[4] >= 0:
            value = x[k]
            if math.isnan(value) or is_extreme(columns[k], value):
                value = columns[k, CENTER] + columns[k, SCALE] * forms[k, FIXED]
            out[starts[4] + k] = value
    lag_forms = np.zeros(FORMS)
    for i in range(len(lagged)):
        lag_forms[:] = 0.0
        if not math.isnan(lagged[i]):
            normalize(target, target_ring, quantiles, lagged[i], lag_forms)
        if starts[0] >= 0:
            out[starts[0] + dimension + i] = lag_forms[FIXED]
        if starts[2] >= 0:
            out[starts[2] + dimension + i] = lag_forms[RANK]
        if starts[4] >= 0:
            out[starts[4] + dimension + i] = lag_forms[FIXED]
        if starts[3] >= 0:
            out[starts[3] + i] = math.asinh(lag_forms[MOVING])


@entry
def scale_rows(X, lagged, columns, rings, target, target_ring, quantiles, starts, out):
    """`scale_row` of each row with its own lagged targets; the statistics do not change."""
    forms = np.zeros((X.shape[1], FORMS))
    for t in range(len(X)):
        scale_row(
            X[t], lagged[t], columns, rings, target, target_ring, quantiles, starts, forms, out[t]
        )


@entry
def update_inputs(x, columns, rings, quantiles, new_levels):
    """Add one input x (d,) to the statistics; new_levels (d,): which columns have a new level."""
    forms = np.zeros(FORMS)
    for k in range(len(x)):
        normalize(columns[k], rings[k], quantiles, x[k], forms)
        new_levels[k] = update_column(columns[k], rings[k], x[k], forms)


# --- the target ---------------------------------------------------------------------------------


@inline
def _update_target(target, ring, y, hold, forms):
    """Add a target to its statistics, after those that are held back; or hold it back.

    True if CHANGE_AFTER are held back: then `restart_target`, `shift_target` or `widen_target` has
    to follow.
    """
    remember_last(target, y, forms)
    if hold:
        push(target, ring, y)
        # A forged file may claim anything: no streak may last for ever.
        target[STREAK] = target[STREAK] + 1.0 if 0.0 <= target[STREAK] < CHANGE_AFTER else 1.0
        return target[STREAK] >= CHANGE_AFTER and target[SEEN] >= CHANGE_AFTER
    _add_held(target, ring, FAR_DEVIATIONS)
    add_to_moments(target, y, FAR_DEVIATIONS)
    push(target, ring, y)
    return False


@inline
def _add_held(target, ring, most):
    """Add the targets that are held back, as if they were at most `most` deviations away."""
    held = min(int(clipped(target[STREAK], CHANGE_AFTER)), ring_count(target, ring))
    newest = int(target[SEEN])
    for i in range(held):
        add_to_moments(target, ring[(newest - held + i) % len(ring)], most)
    target[STREAK] = 0.0


@entry
def update_target(y, hold, target, ring, quantiles):
    """`_update_target` with the forms of y."""
    forms = np.zeros(FORMS)
    normalize(target, ring, quantiles, y, forms)
    return _update_target(target, ring, y, hold, forms)


@entry
def restart_target(target, ring):
    """The held targets have a level and a scale of their own: the statistics start from them."""
    restart_column(target, ring)


@entry
def shift_target(target, ring, shift):
    """The held targets are as before but for a shift: move the mean and all values in the ring."""
    target[MEAN] += shift
    target[CENTER] += shift
    older = ring_count(target, ring) - CHANGE_AFTER
    newest = int(target[SEEN])
    for i in range(older):
        ring[(newest - CHANGE_AFTER - 1 - i) % len(ring)] += shift
    _add_held(target, ring, FAR_DEVIATIONS)


@entry
def widen_target(target, ring):
    """The held targets were predicted: the standard deviation was too small for them."""
    _add_held(target, ring, np.inf)


FAR, EXTREME = 1, 2
"""Outlier levels of a target: beyond FAR_DEVIATIONS, beyond EXTREME_DEVIATIONS."""


@entry
def outlier_level(target, y):
    """0 for a usual target, else FAR or EXTREME."""
    if is_extreme(target, y):
        return EXTREME
    return FAR if abs(deviation(target, y)) > FAR_DEVIATIONS else 0


@entry
def scale_and_update(
    X,
    lagged,
    y,
    columns,
    rings,
    target,
    target_ring,
    quantiles,
    starts,
    out,
    scaled,
    scale,
    new_levels,
):
    """Scale each row, then add it to the statistics. Stops before a far target.

    Fills scaled (n,), the targets; scale (n, 2), the target's center and scale before each row;
    new_levels (n, d), whether a column made a new level. Returns how many rows were done.
    """
    forms = np.zeros((X.shape[1], FORMS))
    target_forms = np.zeros(FORMS)
    for t in range(len(X)):
        z = deviation(target, y[t])
        if abs(z) > FAR_DEVIATIONS:
            return t
        scale_row(
            X[t], lagged[t], columns, rings, target, target_ring, quantiles, starts, forms, out[t]
        )
        scaled[t] = z
        scale[t, 0] = target[CENTER]
        scale[t, 1] = target[SCALE]
        for k in range(X.shape[1]):
            new_levels[t, k] = update_column(columns[k], rings[k], X[t, k], forms[k])
        normalize(target, target_ring, quantiles, y[t], target_forms)
        _update_target(target, target_ring, y[t], False, target_forms)
    return len(X)

"""Rows of a stream scaled in several ways, and the statistics of its target.

What a column is, and how values enter it, is in `running_stats`. The target is a column whose far
values are held back until it is clear what they mean (`held_targets`).
"""

import math

import numpy as np

from ...native.arguments import Arguments, floats, ints
from ...native.functions import native
from ...native.jit import inline
from ...native.scalar_math import asinh
from ...transforms import shifted_log
from ..season_steps import INPUTS, PAST, RECALLED, fill_phases
from .running_stats import (
    CENTER,
    CHANGE_AFTER,
    CLIP,
    FAR_DEVIATIONS,
    FIXED,
    FORMS,
    MEAN,
    MOVING,
    RANK,
    SCALE,
    SEEN,
    STATS,
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

STANDARD, ASINH, RANKS, PLAIN = range(4)
"""The scalings of a row: deviations, their asinh, ranks, and the inputs as they are."""

SCALINGS = 4

BATCH = Arguments(
    "scaling_batch",
    inputs=int,
    lags=int,
    past=int,  # numbers that a row knows of the past: targets, those of seasons, inputs
    shown=int,  # how many of the targets are columns of the scalings
    previous=int,  # how many of the numbers are inputs of the row before
    previous_column=int,  # the first of their columns in a scaled row
    relevant=int,  # relevant columns
    relevant_column=int,  # the first of them
    relevant_sources=ints("relevant"),  # the columns that they repeat,
    relevance=floats("relevant"),  # each times this factor
    relevant_targets=ints("relevant"),  # 1 for a past target, which is transformed:
    target_shift=floats(1),  # by a shifted logarithm, with this shift unless it is 0
    seasons=int,  # places for periods
    season_column=int,  # the first of their columns in a scaled row
    width=int,
    has_target=int,  # whether the target is a number, which has statistics
    # The rows of a batch:
    X=floats(None, "inputs"),
    lagged=floats(None, "past"),
    y=floats(None),
    # Running statistics:
    columns=floats("inputs", STATS),
    rings=floats("inputs", None),
    target=floats(STATS),
    target_ring=floats(None),
    # Constants: normal quantiles over equal steps of probability, and the column of a scaled row
    # for each scaling of each input and lagged target, -1 where it is not wanted.
    quantiles=floats(None),
    places=ints(SCALINGS, "inputs + lags"),
    # Results:
    out=floats(None, "width"),  # scaled rows
    scaled=floats(None),  # scaled targets
    scale=floats(None, 2),  # the target's center and scale before each row
    new_levels=ints(None, "inputs"),  # 1 where a column has a new level
    levels=ints(None),  # outlier levels of targets
    result=ints(2),
    # An argument of `shift_target`, and scratch:
    shift=floats(1),
    forms=floats("inputs", FORMS),
    target_forms=floats(FORMS),
    kept=floats(CHANGE_AFTER),
)

FIT = Arguments(
    "fit_columns",
    inputs=int,
    columns=floats("inputs", STATS),
    rings=floats("inputs", None),
    quantiles=floats(None),
    values=floats("inputs", None),  # the first values of each input
    middles=floats("inputs"),
    usual=floats("inputs"),
    forms=floats(FORMS),
)


@native(FIT)
def fit_columns(a, first, count):
    """Start every column from its first values; see `fit_column`."""
    for k in range(a.inputs):
        fit_column(
            a.columns[k], a.rings[k], a.quantiles, a.values[k], a.middles[k], a.usual[k], a.forms
        )


# --- rows ---------------------------------------------------------------------------------------


@inline
def _scale_row(a, t):
    """out[t]: the scalings of row t, and forms[k]: those of its inputs.

    Lagged targets are normalized by the target's own statistics; a missing one is 0.
    """
    out, places = a.out[t], a.places
    for k in range(a.inputs):
        column, value, forms = a.columns[k], a.X[t, k], a.forms[k]
        normalize(column, a.rings[k], a.quantiles, value, forms)
        if places[STANDARD, k] >= 0:
            out[places[STANDARD, k]] = forms[FIXED]
        if places[ASINH, k] >= 0:
            out[places[ASINH, k]] = asinh(forms[MOVING])
        if places[RANKS, k] >= 0:
            out[places[RANKS, k]] = forms[RANK]
        if places[PLAIN, k] >= 0:
            if math.isnan(value) or is_extreme(column, value):  # filled in
                value = column[CENTER] + column[SCALE] * forms[FIXED]
            out[places[PLAIN, k]] = value
    # Lagged classes are written by the caller: each bank has labels of its own.
    for i in range(a.lags if a.has_target else 0):
        own = a.target_forms
        for form in range(FORMS):
            own[form] = 0.0
        # A far target is held back until it is clear what it means: only columns that the user
        # asked for have it meanwhile.
        far = i >= a.shown and abs(deviation(a.target, a.lagged[t, i])) > FAR_DEVIATIONS
        if not (math.isnan(a.lagged[t, i]) or far):
            normalize(a.target, a.target_ring, a.quantiles, a.lagged[t, i], own)
        k = a.inputs + i
        if places[STANDARD, k] >= 0:
            out[places[STANDARD, k]] = own[FIXED]
        if places[ASINH, k] >= 0:
            out[places[ASINH, k]] = asinh(own[MOVING])
        if places[RANKS, k] >= 0:
            out[places[RANKS, k]] = own[RANK]
        if places[PLAIN, k] >= 0:
            out[places[PLAIN, k]] = own[FIXED]
    for place in range(a.seasons):
        past = a.lagged[t][a.lags + place * PAST :]
        own = out[a.season_column + place * INPUTS :]
        fill_phases(past, own)
        if a.has_target:
            _fill_recalled(a.target, past, own)
    for k in range(a.previous):
        value = a.lagged[t, a.past - a.previous + k]
        known = not (math.isnan(value) or is_extreme(a.columns[k], value))
        z = clipped(deviation(a.columns[k], value), CLIP) if known else 0.0
        out[a.previous_column + k] = z
    shift = a.target_shift[0]
    for j in range(a.relevant):
        value = out[a.relevant_sources[j]]
        if a.relevant_targets[j] != 0 and shift != 0.0:
            value = shifted_log(value, shift)
        out[a.relevant_column + j] = a.relevance[j] * value


@inline
def _fill_recalled(target, past, out):
    """out[0], out[1]: the last target of the phase and the mean of those known, as deviations."""
    out[0] = out[1] = 0.0
    known = 0.0
    for i in range(RECALLED):
        value = past[i]
        if math.isnan(value) or is_extreme(target, value):
            continue
        z = clipped(deviation(target, value), CLIP)
        if i == 0:
            out[0] = z
        out[1] += z
        known += 1.0
    if known > 0.0:
        out[1] /= known


@native(BATCH)
def scale_rows(a, first, count):
    """out: scaled rows; the statistics do not change."""
    for t in range(first, first + count):
        _scale_row(a, t)


@inline
def _update_inputs(a, t):
    """Add the inputs of row t, with their forms, to the statistics; new_levels[t]."""
    for k in range(a.inputs):
        new = update_column(a.columns[k], a.rings[k], a.X[t, k], a.forms[k], a.kept)
        a.new_levels[t, k] = new
        a.result[1] += new


@native(BATCH)
def update_inputs(a, first, count):
    """Add inputs to the statistics, row after row; new_levels, result[1]: how many there are."""
    a.result[1] = 0
    for t in range(first, first + count):
        for k in range(a.inputs):
            normalize(a.columns[k], a.rings[k], a.quantiles, a.X[t, k], a.forms[k])
        _update_inputs(a, t)


@native(BATCH)
def scale_and_update(a, first, count):
    """Scale each row, then add it to the statistics, up to the first far target.

    Fills out, scaled, scale and new_levels; result: how many rows were done, and how many columns
    made a new level in them.
    """
    a.result[0], a.result[1] = count, 0
    for t in range(first, first + count):
        if a.has_target:
            z = deviation(a.target, a.y[t])
            if abs(z) > FAR_DEVIATIONS:
                a.result[0] = t - first
                return
            a.scaled[t] = z
            a.scale[t, 0] = a.target[CENTER]
            a.scale[t, 1] = a.target[SCALE]
        _scale_row(a, t)
        _update_inputs(a, t)
        if a.has_target:
            normalize(a.target, a.target_ring, a.quantiles, a.y[t], a.target_forms)
            _add_target(a.target, a.target_ring, a.y[t], a.target_forms)


@native(BATCH)
def update_scaled_row(a, first, count):
    """Add row 0, which has just been scaled, to the statistics; scaled[0], scale[0], new_levels.

    Its target is not far; out[0] and forms are those of `scale_rows`.
    """
    a.result[0], a.result[1] = 1, 0
    if a.has_target:
        a.scaled[0] = deviation(a.target, a.y[0])
        a.scale[0, 0] = a.target[CENTER]
        a.scale[0, 1] = a.target[SCALE]
    _update_inputs(a, 0)
    if a.has_target:
        normalize(a.target, a.target_ring, a.quantiles, a.y[0], a.target_forms)
        _add_target(a.target, a.target_ring, a.y[0], a.target_forms)


# --- the target ---------------------------------------------------------------------------------


@inline
def _add_target(target, ring, y, forms):
    """Add a target to its statistics, after those that are held back."""
    remember_last(target, y, forms)
    _add_held(target, ring, FAR_DEVIATIONS)
    add_to_moments(target, y, FAR_DEVIATIONS)
    push(target, ring, y)


@inline
def _add_held(target, ring, most):
    """Add the targets that are held back, as if they were at most `most` deviations away."""
    held = min(int(clipped(target[STREAK], CHANGE_AFTER)), ring_count(target, ring))
    newest = int(target[SEEN])
    for i in range(held):
        add_to_moments(target, ring[(newest - held + i) % len(ring)], most)
    target[STREAK] = 0.0


@native(BATCH)
def add_target(a, first, count):
    """Add the target y[first] to its statistics, after those that are held back."""
    normalize(a.target, a.target_ring, a.quantiles, a.y[first], a.target_forms)
    _add_target(a.target, a.target_ring, a.y[first], a.target_forms)


@native(BATCH)
def hold_target(a, first, count):
    """Hold the target y[first] back. result[0]: whether these are CHANGE_AFTER by now.

    Then `restart_target`, `shift_target` or `widen_target` has to follow.
    """
    target, y = a.target, a.y[first]
    normalize(target, a.target_ring, a.quantiles, y, a.target_forms)
    remember_last(target, y, a.target_forms)
    push(target, a.target_ring, y)
    # A forged file may claim anything: no streak may last for ever.
    target[STREAK] = target[STREAK] + 1.0 if 0.0 <= target[STREAK] < CHANGE_AFTER else 1.0
    a.result[0] = target[STREAK] >= CHANGE_AFTER and target[SEEN] >= CHANGE_AFTER


@native(BATCH)
def restart_target(a, first, count):
    """The held targets have a level and a scale of their own: the statistics start from them."""
    restart_column(a.target, a.target_ring, a.kept)


@native(BATCH)
def shift_target(a, first, count):
    """The held targets are as before but for shift[0]: move the mean and all values in the ring."""
    target, ring = a.target, a.target_ring
    target[MEAN] += a.shift[0]
    target[CENTER] += a.shift[0]
    older = ring_count(target, ring) - CHANGE_AFTER
    newest = int(target[SEEN])
    for i in range(older):
        ring[(newest - CHANGE_AFTER - 1 - i) % len(ring)] += a.shift[0]
    _add_held(target, ring, FAR_DEVIATIONS)


@native(BATCH)
def widen_target(a, first, count):
    """The held targets were predicted: the standard deviation was too small for them."""
    _add_held(a.target, a.target_ring, np.inf)


FAR, EXTREME = 1, 2
"""Outlier levels of a target: beyond FAR_DEVIATIONS, beyond EXTREME_DEVIATIONS."""


@native(BATCH)
def outlier_levels(a, first, count):
    """levels[t]: 0 for a usual target y[t], else FAR or EXTREME."""
    for t in range(first, first + count):
        if is_extreme(a.target, a.y[t]):
            a.levels[t] = EXTREME
        else:
            a.levels[t] = FAR if abs(deviation(a.target, a.y[t])) > FAR_DEVIATIONS else 0

"""Running standings of numbers: how far from usual, in standard deviations and in ranks.

A column is a row of figures (COUNT .. POWER) and a ring of its last values. A value's *deviation*
is z = (value - mean) / sd by the figures of the values before it; its *rank* is the normal quantile
of its mid-rank among the values in the ring. Nothing is frozen, and nothing moves far at once:

- a value enters mean and sd as if it were at most LIMIT deviations away, so one glitch of a million
  deviations does what a value at LIMIT does;
- PATIENCE values in a row beyond LIMIT are a change of level or scale: mean and sd are taken from
  these values, and the ring forgets the others.

A missing value (NaN) stands where an autoregressive process of the column's own correlation would
expect it: at r^k times the standing seen k rows ago. It changes no figure. A *glitch*, a value
beyond GLITCH deviations, stands there too, since it says nothing.
"""

import math

import numpy as np

from .jit import hot, part

COUNT, MEAN, SQUARES, STREAK, SEEN, LAST, LAST_RANK, AGE, PRODUCT, POWER = range(10)
FIGURES = 10
"""Figures of a column. COUNT is the weight of MEAN and SQUARES, which stops growing at LONGEST;
SEEN counts values since the ring was last emptied; AGE is how many rows ago LAST was seen."""

LIMIT = 10.0
"""Deviations beyond which a value counts as far as this, and may be a change of level."""

GLITCH = 1000.0
"""Deviations beyond which a value is no measurement."""

CLIP = 8.0
"""Deviations as they are shown to learners end here."""

PATIENCE = 5
"""So many values in a row beyond LIMIT are a new level or scale."""

LONGEST = 10_000.0
"""Rows after which mean and sd forget: old levels fade."""

KINDRED = 4.0
"""Standard deviations of old and new level that differ by less are one: five values tell no more.
"""

_RELATIVE = 1e-10  # an sd below this share of the mean is rounding
_MEMORY = 0.999  # of the correlation between a row and the next


@part
def spread(column):
    """The standard deviation; 0 for a constant column."""
    if not column[COUNT] > 1.0:
        return 0.0
    result = math.sqrt(max(column[SQUARES], 0.0) / (column[COUNT] - 1.0))
    return result if result > _RELATIVE * abs(column[MEAN]) else 0.0


@part
def deviation(column, value):
    """z, infinite where a column that was constant moves."""
    away = value - column[MEAN]
    width = spread(column)
    if width > 0.0:
        return away / width
    # A constant column's mean has the rounding of its sum.
    return 0.0 if abs(away) <= _RELATIVE * abs(column[MEAN]) else math.copysign(np.inf, away)


@part
def is_glitch(column, value):
    """Whether a value is no measurement. A constant column that moves is none: it has no scale."""
    return abs(value - column[MEAN]) > GLITCH * spread(column) > 0.0


@part
def clipped(z, most):
    return min(max(z, -most), most)


@part
def _held(column, ring):
    """How many values the ring holds; a file may say anything."""
    seen = column[SEEN]
    if not 0.0 <= seen < 2.0**53:
        return 0
    return min(int(seen), len(ring))


@part
def rank(column, ring, quantiles, value):
    """The normal quantile of the mid-rank, from a table over equal steps of probability."""
    held = _held(column, ring)
    less = 0
    same = 0
    for i in range(held):
        less += ring[i] < value
        same += ring[i] == value
    share = (less + 0.5 * same + 0.5) / (held + 1.0)
    place = share * (len(quantiles) - 1)
    low = min(int(place), len(quantiles) - 2)
    return quantiles[low] + (place - low) * (quantiles[low + 1] - quantiles[low])


@part
def _fading(column):
    """What is left of the last standing: the correlation, at least 0, to the power of its age."""
    if not column[POWER] > 0.0:
        return 0.0
    # Clipped before the power is taken: that of a negative number would come and go with the age.
    return min(max(column[PRODUCT] / column[POWER], 0.0), 1.0) ** (column[AGE] + 1.0)


@part
def standing(column, ring, quantiles, value, out):
    """out = clipped deviation and rank of a value that is not yet taken in; NaN for missing."""
    if math.isnan(value) or is_glitch(column, value):
        fading = _fading(column)
        out[0] = column[LAST] * fading
        out[1] = column[LAST_RANK] * fading
    else:
        out[0] = clipped(deviation(column, value), CLIP)
        out[1] = rank(column, ring, quantiles, value)


@part
def _push(column, ring, value):
    seen = column[SEEN] if 0.0 <= column[SEEN] < 2.0**53 else 0.0
    ring[int(seen) % len(ring)] = value
    column[SEEN] = seen + 1.0


@part
def _change_level(column, ring):
    """Take mean and sd from the last PATIENCE values, and forget the others."""
    newest = int(column[SEEN])
    size = len(ring)
    kept = np.empty(PATIENCE)
    mean = 0.0
    for i in range(PATIENCE):
        kept[i] = ring[(newest - PATIENCE + i) % size]
        mean += kept[i] / PATIENCE
    squares = 0.0
    for i in range(PATIENCE):
        squares += (kept[i] - mean) ** 2
    width = math.sqrt(squares / (PATIENCE - 1))
    before = spread(column)
    if width <= _RELATIVE * abs(mean):
        # The new level is constant: the step itself is the scale.
        width = 0.5 * abs(mean - column[MEAN])
        mean = 0.5 * (mean + column[MEAN])
    elif before / KINDRED < width < before * KINDRED:
        width = before
    column[MEAN] = mean
    column[COUNT] = PATIENCE
    column[SQUARES] = width * width * (PATIENCE - 1)
    column[STREAK] = 0.0
    column[SEEN] = 0.0
    for i in range(PATIENCE):
        _push(column, ring, kept[i])


@part
def take(column, ring, value, shown):
    """Let a value enter the figures; `shown` are its standings. True if it made a new level."""
    if math.isnan(value):
        column[AGE] += 1.0
        return False
    if is_glitch(column, value):
        column[AGE] += 1.0
    else:
        if column[AGE] == 0.0:
            column[PRODUCT] = _MEMORY * column[PRODUCT] + column[LAST] * shown[0]
            column[POWER] = _MEMORY * column[POWER] + column[LAST] ** 2
        column[LAST] = shown[0]
        column[LAST_RANK] = shown[1]
        column[AGE] = 0.0

    z = deviation(column, value)
    width = spread(column)
    entering = value
    if width > 0.0:
        entering = column[MEAN] + clipped(z, LIMIT) * width
    count = min(column[COUNT] + 1.0, LONGEST)
    keeping = (count - 1.0) / column[COUNT] if column[COUNT] + 1.0 > LONGEST else 1.0
    away = entering - column[MEAN]
    column[MEAN] += away / count
    column[SQUARES] = (column[SQUARES] + away * (entering - column[MEAN])) * keeping
    column[COUNT] = count
    _push(column, ring, value)

    if abs(z) > LIMIT:
        # A file may say anything: no streak may wait for ever.
        column[STREAK] = column[STREAK] + 1.0 if 0.0 <= column[STREAK] < PATIENCE else 1.0
        if column[STREAK] >= PATIENCE and column[SEEN] >= PATIENCE:
            _change_level(column, ring)
            return True
    else:
        column[STREAK] = 0.0
    return False


@part
def begin(column, ring, quantiles, values):
    """Figures from some first values, as if they had always been the usual ones.

    Values farther from the median than three times the distance that an eighth of them exceeds
    count as far as that: a few outliers, but not the start of a signal that was at rest. Glitches
    count not at all.
    """
    for k in range(FIGURES):
        column[k] = 0.0
    present = values[~np.isnan(values)]
    count = len(present)
    if count == 0:
        return
    middle = np.median(present)
    distances = np.sort(np.abs(present - middle))
    usual = distances[count - 1 - count // 8]
    if usual > 0.0:
        present = present[np.abs(present - middle) <= GLITCH * usual]
        count = len(present)
    reach = 3.0 * usual if usual > 0.0 else np.inf
    mean = 0.0
    for value in present:
        mean += clipped(value - middle, reach) / count
    mean += middle
    squares = 0.0
    for value in present:
        squares += (middle + clipped(value - middle, reach) - mean) ** 2
    column[COUNT] = count
    column[MEAN] = mean
    column[SQUARES] = squares
    shown = np.zeros(2)
    newest = middle
    for value in values:
        if math.isnan(value) or is_glitch(column, value):
            column[AGE] += 1.0
            continue
        standing(column, ring, quantiles, value, shown)
        if column[AGE] == 0.0:
            column[PRODUCT] += column[LAST] * shown[0]
            column[POWER] += column[LAST] ** 2
        column[LAST] = shown[0]
        column[AGE] = 0.0
        _push(column, ring, value)
        newest = value
    column[LAST_RANK] = rank(column, ring, quantiles, newest)


@hot
def begin_columns(columns, rings, quantiles, rows):
    """Start every column from the rows (n, columns)."""
    for k in range(len(columns)):
        begin(columns[k], rings[k], quantiles, rows[:, k].copy())


@part
def scale_row(x, lagged, columns, rings, target, target_ring, quantiles, starts, shown, out):
    """The scalings of one input side by side: deviations, their asinh, ranks.

    starts[v] is where scaling v begins in `out`, -1 if it is not wanted. Deviations and ranks are
    followed by those of the lagged targets, in the target's own figures; asinh is of the input
    alone, unless starts[3] is where the asinh of the lagged targets begins. shown[k] holds the
    standings of input k afterwards.
    """
    dimension = len(x)
    for k in range(dimension):
        standing(columns[k], rings[k], quantiles, x[k], shown[k])
        if starts[0] >= 0:
            out[starts[0] + k] = shown[k, 0]
        if starts[1] >= 0:
            out[starts[1] + k] = math.asinh(shown[k, 0])
        if starts[2] >= 0:
            out[starts[2] + k] = shown[k, 1]
    pair = np.zeros(2)
    for i in range(len(lagged)):
        pair[0] = pair[1] = 0.0
        if not math.isnan(lagged[i]):
            standing(target, target_ring, quantiles, lagged[i], pair)
        if starts[0] >= 0:
            out[starts[0] + dimension + i] = pair[0]
        if starts[2] >= 0:
            out[starts[2] + dimension + i] = pair[1]
        if starts[3] >= 0:
            out[starts[3] + i] = math.asinh(pair[0])


@hot
def scale_rows(X, lagged, columns, rings, target, target_ring, quantiles, starts, out):
    """`scale_row` of each row with its own lagged targets; nothing is taken in."""
    shown = np.zeros((X.shape[1], 2))
    for t in range(len(X)):
        scale_row(
            X[t], lagged[t], columns, rings, target, target_ring, quantiles, starts, shown, out[t]
        )


@hot
def take_row(x, columns, rings, quantiles, changed):
    """Let an input enter the figures of its columns; changed[k] tells of new levels."""
    shown = np.zeros(2)
    for k in range(len(x)):
        standing(columns[k], rings[k], quantiles, x[k], shown)
        changed[k] = take(columns[k], rings[k], x[k], shown)


@hot
def take_target(y, target, target_ring, quantiles):
    """Let a target enter its figures; True if it made a new level."""
    shown = np.zeros(2)
    standing(target, target_ring, quantiles, y, shown)
    return take(target, target_ring, y, shown)


@hot
def target_scale(target):
    """The target's mean and standard deviation."""
    return target[MEAN], spread(target)


FAR, WILD = 1, 2
"""What a target may be: beyond LIMIT; a glitch, unless it is one of PATIENCE in a row."""


@hot
def farness(target, y):
    """0 for a usual target, else FAR or WILD."""
    if is_glitch(target, y):
        return WILD
    return FAR if abs(deviation(target, y)) > LIMIT else 0


@hot
def scale_stream(
    X, y, columns, rings, target, target_ring, quantiles, starts, lagged, out, scaled, scale, news
):
    """Rows one after the other: scale, then take in. Stops before a target that is far.

    scaled[t] and scale[t] are the target and its (mean, sd) before it; `lagged` holds the last
    targets, the newest first, and is moved on. news[t, k] tells whether column k made a new level.
    Returns how many rows were done.
    """
    shown = np.zeros((X.shape[1], 2))
    pair = np.zeros(2)
    for t in range(len(X)):
        z = deviation(target, y[t])
        if abs(z) > LIMIT:
            return t
        scale_row(
            X[t], lagged, columns, rings, target, target_ring, quantiles, starts, shown, out[t]
        )
        scaled[t] = z
        scale[t, 0] = target[MEAN]
        scale[t, 1] = spread(target)
        for k in range(X.shape[1]):
            news[t, k] = take(columns[k], rings[k], X[t, k], shown[k])
        standing(target, target_ring, quantiles, y[t], pair)
        take(target, target_ring, y[t], pair)
        for i in range(len(lagged) - 1, 0, -1):
            lagged[i] = lagged[i - 1]
        if len(lagged) > 0:
            lagged[0] = y[t]
    return len(X)

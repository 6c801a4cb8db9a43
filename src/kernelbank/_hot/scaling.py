"""Running standings of numbers: how far from usual, in standard deviations and in ranks.

A column is a row of figures and a ring of its last values. A value has three *standings*:

- its deviation from what stands still, z = (value - base) / unit. Base and unit are the mean and sd
  of some time ago: they follow when the mean has moved by a tenth of the sd, or the sd by a tenth
  of itself. So a function of z keeps its meaning while nothing much changes;
- its deviation from what moves, by the mean and sd of all values before it;
- its rank: the normal quantile of its mid-rank among the values in the ring.

Nothing is frozen, and nothing moves far at once:

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

(
    COUNT, MEAN, SQUARES, BASE, UNIT, STREAK, SEEN, AGE, LAST, LAST_MOVING, LAST_RANK, PRODUCT, POWER,
) = range(13)  # fmt: skip
FIGURES = 13
"""Figures of a column. COUNT is the weight of MEAN and SQUARES, which stops growing at LONGEST;
STREAK counts values in a row beyond LIMIT, SEEN values since the ring was last emptied; AGE is how
many rows ago the LAST standings were seen, PRODUCT and POWER are sums over pairs of rows."""

STILL, MOVING, RANK = range(3)
STANDINGS = 3

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

DRIFT = 0.1
"""How far mean and sd may move, in sds, before base and unit follow."""

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
def _away(column, value, base, unit):
    """(value - base) / unit, infinite where a column that was constant moves."""
    away = value - base
    if unit > 0.0:
        return away / unit
    # A constant column's mean has the rounding of its sum.
    return 0.0 if abs(away) <= _RELATIVE * abs(base) else math.copysign(np.inf, away)


@part
def deviation(column, value):
    """The deviation from what stands still."""
    return _away(column, value, column[BASE], column[UNIT])


@part
def _follow(column):
    """Base and unit come after, if mean or sd have moved."""
    width = spread(column)
    moved = abs(column[MEAN] - column[BASE])
    if moved > DRIFT * width or not abs(width - column[UNIT]) <= DRIFT * width:
        column[BASE] = column[MEAN]
        column[UNIT] = width


@part
def is_glitch(column, value):
    """Whether a value is no measurement. A constant column that moves is none: it has no scale."""
    return abs(value - column[BASE]) > GLITCH * column[UNIT] > 0.0


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
    """What is left of the last standing: the correlation to the power of its age."""
    if not column[POWER] > 0.0:
        return 0.0
    correlation = min(max(column[PRODUCT] / column[POWER], 0.0), 1.0)
    return correlation ** (column[AGE] + 1.0)


@part
def standing(column, ring, quantiles, value, out):
    """out = the standings, deviations clipped, of a value not yet taken in; NaN for missing."""
    if math.isnan(value) or is_glitch(column, value):
        fading = _fading(column)
        out[STILL] = column[LAST] * fading
        out[MOVING] = column[LAST_MOVING] * fading
        out[RANK] = column[LAST_RANK] * fading
    else:
        out[STILL] = clipped(deviation(column, value), CLIP)
        out[MOVING] = clipped(_away(column, value, column[MEAN], spread(column)), CLIP)
        out[RANK] = rank(column, ring, quantiles, value)


@part
def _push(column, ring, value):
    seen = column[SEEN] if 0.0 <= column[SEEN] < 2.0**53 else 0.0
    ring[int(seen) % len(ring)] = value
    column[SEEN] = seen + 1.0


@part
def _last_values(column, ring):
    """The last PATIENCE values, the oldest first, their mean and standard deviation."""
    newest = int(column[SEEN])
    kept = np.empty(PATIENCE)
    mean = 0.0
    for i in range(PATIENCE):
        kept[i] = ring[(newest - PATIENCE + i) % len(ring)]
        mean += kept[i] / PATIENCE
    squares = 0.0
    for i in range(PATIENCE):
        squares += (kept[i] - mean) ** 2
    return kept, mean, math.sqrt(squares / (PATIENCE - 1))


@part
def _change_level(column, ring):
    """Take mean and sd from the last PATIENCE values, and forget the others."""
    kept, mean, width = _last_values(column, ring)
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
    column[BASE] = mean
    column[UNIT] = width
    column[STREAK] = 0.0
    column[SEEN] = 0.0
    for i in range(PATIENCE):
        _push(column, ring, kept[i])


@part
def _enter(column, value, most):
    """Let a value change mean and sd, as if it were at most so many deviations away."""
    width = spread(column)
    if width > 0.0:
        value = column[MEAN] + clipped((value - column[MEAN]) / width, most) * width
    count = min(column[COUNT] + 1.0, LONGEST)
    keeping = (count - 1.0) / column[COUNT] if column[COUNT] + 1.0 > LONGEST else 1.0
    away = value - column[MEAN]
    column[MEAN] += away / count
    column[SQUARES] = (column[SQUARES] + away * (value - column[MEAN])) * keeping
    column[COUNT] = count
    _follow(column)


@part
def _remember(column, value, shown):
    """Keep the standings, from which missing values are filled in."""
    if math.isnan(value) or is_glitch(column, value):
        column[AGE] += 1.0
        return
    if column[AGE] == 0.0:
        column[PRODUCT] = _MEMORY * column[PRODUCT] + column[LAST] * shown[STILL]
        column[POWER] = _MEMORY * column[POWER] + column[LAST] ** 2
    column[LAST] = shown[STILL]
    column[LAST_MOVING] = shown[MOVING]
    column[LAST_RANK] = shown[RANK]
    column[AGE] = 0.0


@part
def take(column, ring, value, shown):
    """Let a value enter the figures; `shown` are its standings. True if it made a new level."""
    _remember(column, value, shown)
    if math.isnan(value):
        return False
    z = deviation(column, value)
    _enter(column, value, LIMIT)
    _push(column, ring, value)
    if abs(z) > LIMIT:
        column[STREAK] += 1.0
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
    column[BASE] = mean
    column[UNIT] = spread(column)
    shown = np.zeros(STANDINGS)
    last = middle
    for value in values:
        standing(column, ring, quantiles, value, shown)
        _remember(column, value, shown)
        if column[AGE] == 0.0:
            _push(column, ring, value)
            last = value
    column[LAST_RANK] = rank(column, ring, quantiles, last)


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
    alone. shown[k] holds the standings of input k afterwards.
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
    pair = np.zeros(STANDINGS)
    for i in range(len(lagged)):
        pair[:] = 0.0
        if not math.isnan(lagged[i]):
            standing(target, target_ring, quantiles, lagged[i], pair)
        if starts[0] >= 0:
            out[starts[0] + dimension + i] = pair[STILL]
        if starts[2] >= 0:
            out[starts[2] + dimension + i] = pair[RANK]


@hot
def scale_rows(X, lagged, columns, rings, target, target_ring, quantiles, starts, out):
    """`scale_row` of each row with its own lagged targets; nothing is taken in."""
    shown = np.zeros((X.shape[1], STANDINGS))
    for t in range(len(X)):
        scale_row(
            X[t], lagged[t], columns, rings, target, target_ring, quantiles, starts, shown, out[t]
        )


@hot
def take_row(x, columns, rings, quantiles, changed):
    """Let an input enter the figures of its columns; changed[k] tells of new levels."""
    shown = np.zeros(STANDINGS)
    for k in range(len(x)):
        standing(columns[k], rings[k], quantiles, x[k], shown)
        changed[k] = take(columns[k], rings[k], x[k], shown)


# --- the target ---------------------------------------------------------------------------------


@part
def _take_target(target, ring, y, wait, shown):
    """Let a target enter its figures, or let it wait until one that does not have to lets it in.

    True if PATIENCE wait: then one of the three below has to follow.
    """
    _remember(target, y, shown)
    if wait:
        _push(target, ring, y)
        target[STREAK] += 1.0
        return target[STREAK] >= PATIENCE and target[SEEN] >= PATIENCE
    _let_in(target, ring, LIMIT)
    _enter(target, y, LIMIT)
    _push(target, ring, y)
    return False


@part
def _let_in(target, ring, most):
    """The targets that wait enter, as if they were at most so many deviations away."""
    waiting = min(int(clipped(target[STREAK], PATIENCE)), _held(target, ring))
    newest = int(target[SEEN])
    for i in range(waiting):
        _enter(target, ring[(newest - waiting + i) % len(ring)], most)
    target[STREAK] = 0.0


@hot
def take_target(y, wait, target, ring, quantiles):
    """`_take_target` with the standings of y."""
    shown = np.zeros(STANDINGS)
    standing(target, ring, quantiles, y, shown)
    return _take_target(target, ring, y, wait, shown)


@hot
def new_scale(target, ring):
    """The targets that wait have a level and a scale of their own: figures start from them."""
    _change_level(target, ring)


@hot
def new_level(target, ring, shift):
    """The targets that wait are as before, but for a shift: move the mean and all that is kept."""
    target[MEAN] += shift
    target[BASE] += shift
    older = _held(target, ring) - PATIENCE
    newest = int(target[SEEN])
    for i in range(older):
        ring[(newest - PATIENCE - 1 - i) % len(ring)] += shift
    _let_in(target, ring, LIMIT)


@hot
def wider(target, ring):
    """The targets that wait are no surprise: the figures were too narrow for them."""
    _let_in(target, ring, np.inf)


@hot
def target_scale(target):
    """The target's base and unit."""
    return target[BASE], target[UNIT]


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
    targets, the newest first, and is moved on. news[t] is the number, from 1, of the first column
    that made a new level. Returns how many rows were done.
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
        news[t] = 0
        for k in range(X.shape[1]):
            if take(columns[k], rings[k], X[t, k], shown[k]) and news[t] == 0:
                news[t] = k + 1
        standing(target, target_ring, quantiles, y[t], pair)
        _take_target(target, target_ring, y[t], False, pair)
        for i in range(len(lagged) - 1, 0, -1):
            lagged[i] = lagged[i - 1]
        if len(lagged) > 0:
            lagged[0] = y[t]
    return len(X)

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

from ..native.jit import inline

(
    COUNT, MEAN, SQUARES, BASE, UNIT, STREAK, SEEN,
    AGE, LAST, LAST_MOVING, LAST_RANK, PRODUCT, POWER,
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


@inline
def spread(column):
    """The standard deviation; 0 for a constant column."""
    if not column[COUNT] > 1.0:
        return 0.0
    result = math.sqrt(max(column[SQUARES], 0.0) / (column[COUNT] - 1.0))
    return result if result > _RELATIVE * abs(column[MEAN]) else 0.0


@inline
def _away(column, value, base, unit):
    """(value - base) / unit, infinite where a column that was constant moves."""
    away = value - base
    if unit > 0.0:
        return away / unit
    # A constant column's mean has the rounding of its sum.
    return 0.0 if abs(away) <= _RELATIVE * abs(base) else math.copysign(np.inf, away)


@inline
def deviation(column, value):
    """The deviation from what stands still."""
    return _away(column, value, column[BASE], column[UNIT])


@inline
def _follow(column):
    """Base and unit come after, if mean or sd have moved."""
    width = spread(column)
    moved = abs(column[MEAN] - column[BASE])
    if moved > DRIFT * width or not abs(width - column[UNIT]) <= DRIFT * width:
        column[BASE] = column[MEAN]
        column[UNIT] = width


@inline
def is_glitch(column, value):
    """Whether a value is no measurement. A constant column that moves is none: it has no scale."""
    return abs(value - column[BASE]) > GLITCH * column[UNIT] > 0.0


@inline
def clipped(z, most):
    return min(max(z, -most), most)


@inline
def held_values(column, ring):
    """How many values the ring holds; a file may say anything."""
    seen = column[SEEN]
    if not 0.0 <= seen < 2.0**53:
        return 0
    return min(int(seen), len(ring))


@inline
def rank(column, ring, quantiles, value):
    """The normal quantile of the mid-rank, from a table over equal steps of probability."""
    held = held_values(column, ring)
    less = 0
    same = 0
    for i in range(held):
        less += ring[i] < value
        same += ring[i] == value
    share = (less + 0.5 * same + 0.5) / (held + 1.0)
    place = share * (len(quantiles) - 1)
    low = min(int(place), len(quantiles) - 2)
    return quantiles[low] + (place - low) * (quantiles[low + 1] - quantiles[low])


@inline
def _fading(column):
    """What is left of the last standing: the correlation, at least 0, to the power of its age."""
    if not column[POWER] > 0.0:
        return 0.0
    correlation = min(max(column[PRODUCT] / column[POWER], 0.0), 1.0)
    return correlation ** (column[AGE] + 1.0)


@inline
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


@inline
def push(column, ring, value):
    seen = column[SEEN] if 0.0 <= column[SEEN] < 2.0**53 else 0.0
    ring[int(seen) % len(ring)] = value
    column[SEEN] = seen + 1.0


@inline
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


@inline
def change_level(column, ring):
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
        push(column, ring, kept[i])


@inline
def enter(column, value, most):
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


@inline
def remember(column, value, shown):
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


@inline
def take(column, ring, value, shown):
    """Let a value enter the figures; `shown` are its standings. True if it made a new level."""
    remember(column, value, shown)
    if math.isnan(value):
        return False
    z = deviation(column, value)
    enter(column, value, LIMIT)
    push(column, ring, value)
    if abs(z) > LIMIT:
        # A file may say anything: no streak may wait for ever.
        column[STREAK] = column[STREAK] + 1.0 if 0.0 <= column[STREAK] < PATIENCE else 1.0
        if column[STREAK] >= PATIENCE and column[SEEN] >= PATIENCE:
            change_level(column, ring)
            return True
    else:
        column[STREAK] = 0.0
    return False


@inline
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
        remember(column, value, shown)
        if column[AGE] == 0.0:
            push(column, ring, value)
            last = value
    column[LAST_RANK] = rank(column, ring, quantiles, last)

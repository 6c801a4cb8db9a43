"""Running statistics of one column: normalized values, outliers and changes of level.

A column is an array of STATS statistics and a ring buffer of its last values. A value has three
normalized *forms*:

- FIXED: its deviation (value - center) / scale. Center and scale are the mean and standard
  deviation of some time ago. They follow when the mean has moved by a tenth of the standard
  deviation, or the standard deviation by a tenth of itself. So a function of this form keeps its
  meaning while nothing much changes;
- MOVING: its deviation by the mean and standard deviation of all values before it;
- RANK: the normal quantile of its mid-rank among the values in the ring.

Nothing is frozen, and nothing moves far at once:

- a value enters mean and standard deviation as if it were at most FAR_DEVIATIONS away, so one
  value of a million deviations does no more than one of ten;
- CHANGE_AFTER values in a row beyond FAR_DEVIATIONS are a change of level or scale: mean and
  standard deviation are taken from these values, and the ring forgets the others.

A missing value (NaN) is filled in as an autoregressive process with the column's own correlation
would predict it: by r^k times the forms seen k rows ago. It changes no other statistic. An
*extreme* value, beyond EXTREME_DEVIATIONS, is filled in likewise: it is not a measurement.
"""

import math

import numpy as np

from ...native.jit import inline
from ...native.scalar_math import power

(
    COUNT, MEAN, SQUARES, CENTER, SCALE, STREAK, SEEN,
    AGE, LAST_FIXED, LAST_MOVING, LAST_RANK, PRODUCT, POWER,
) = range(13)  # fmt: skip
STATS = 13
"""Statistics of a column. COUNT is the weight of MEAN and SQUARES (the sum of squared deviations),
which stops growing at MAX_COUNT; STREAK counts values in a row beyond FAR_DEVIATIONS, SEEN values
since the ring was last emptied; AGE is how many rows ago the LAST_ forms were seen; PRODUCT and
POWER are sums over pairs of rows, whose ratio is the correlation."""

FIXED, MOVING, RANK = range(3)
FORMS = 3

FAR_DEVIATIONS = 10.0
"""Deviations beyond which a value is far: it counts as 10, and may be a change of level."""

EXTREME_DEVIATIONS = 1000.0
"""Deviations beyond which a value is not a measurement."""

CLIP = 8.0
"""Deviations are clipped here for the learners."""

CHANGE_AFTER = 5
"""How many far values in a row are a new level or scale."""

MAX_COUNT = 10_000.0
"""Rows after which mean and standard deviation forget: old levels fade."""

DRIFT = 0.1
"""How far mean and standard deviation may move, in the latter, before center and scale follow."""

SAME_SCALE = 4.0
"""Standard deviations before and after a change that differ by a smaller factor count as equal:
five values do not tell more."""

_RELATIVE = 1e-10  # a standard deviation below this share of the mean is rounding
_MEMORY = 0.999  # forgetting factor of the correlation between a row and the next


@inline
def standard_deviation(column):
    """The standard deviation; 0 for a constant column."""
    if not column[COUNT] > 1.0:
        return 0.0
    result = math.sqrt(max(column[SQUARES], 0.0) / (column[COUNT] - 1.0))
    return result if result > _RELATIVE * abs(column[MEAN]) else 0.0


@inline
def _deviation_from(column, value, center, scale):
    """(value - center) / scale, infinite where a column that was constant moves."""
    away = value - center
    if scale > 0.0:
        return away / scale
    # A constant column's mean has the rounding of its sum.
    return 0.0 if abs(away) <= _RELATIVE * abs(center) else math.copysign(np.inf, away)


@inline
def deviation(column, value):
    """The deviation by center and scale, not clipped."""
    return _deviation_from(column, value, column[CENTER], column[SCALE])


@inline
def _follow_moments(column):
    """Let center and scale follow, if mean or standard deviation have moved."""
    width = standard_deviation(column)
    moved = abs(column[MEAN] - column[CENTER])
    if moved > DRIFT * width or not abs(width - column[SCALE]) <= DRIFT * width:
        column[CENTER] = column[MEAN]
        column[SCALE] = width


@inline
def is_extreme(column, value):
    """Whether a value is not a measurement; never in a constant column, which has no scale."""
    return abs(value - column[CENTER]) > EXTREME_DEVIATIONS * column[SCALE] > 0.0


@inline
def clipped(z, most):
    """z within [-most, most]."""
    return min(max(z, -most), most)


@inline
def ring_count(column, ring):
    """How many values the ring holds; a forged file may claim anything."""
    seen = column[SEEN]
    if not 0.0 <= seen < 2.0**53:
        return 0
    return min(int(seen), len(ring))


@inline
def rank(column, ring, quantiles, value):
    """The normal quantile of the mid-rank, from a table over equal steps of probability."""
    held = ring_count(column, ring)
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
def _remaining(column):
    """The remaining share of the last forms: the correlation, at least 0, to the power of age."""
    if not column[POWER] > 0.0:
        return 0.0
    correlation = min(max(column[PRODUCT] / column[POWER], 0.0), 1.0)
    return power(correlation, column[AGE] + 1.0)


@inline
def normalize(column, ring, quantiles, value, out):
    """out (FORMS,): the forms of a value before it enters the statistics, deviations clipped."""
    if math.isnan(value) or is_extreme(column, value):
        share = _remaining(column)
        out[FIXED] = column[LAST_FIXED] * share
        out[MOVING] = column[LAST_MOVING] * share
        out[RANK] = column[LAST_RANK] * share
    else:
        out[FIXED] = clipped(deviation(column, value), CLIP)
        sd = standard_deviation(column)
        out[MOVING] = clipped(_deviation_from(column, value, column[MEAN], sd), CLIP)
        out[RANK] = rank(column, ring, quantiles, value)


@inline
def push(column, ring, value):
    """Add a value to the ring."""
    seen = column[SEEN] if 0.0 <= column[SEEN] < 2.0**53 else 0.0
    ring[int(seen) % len(ring)] = value
    column[SEEN] = seen + 1.0


@inline
def _last_moments(column, ring, kept):
    """Mean and standard deviation of the last values; kept (CHANGE_AFTER,): the oldest first."""
    newest = int(column[SEEN])
    mean = 0.0
    for i in range(CHANGE_AFTER):
        kept[i] = ring[(newest - CHANGE_AFTER + i) % len(ring)]
        mean += kept[i] / CHANGE_AFTER
    squares = 0.0
    for i in range(CHANGE_AFTER):
        squares += (kept[i] - mean) ** 2
    return mean, math.sqrt(squares / (CHANGE_AFTER - 1))


@inline
def restart_column(column, ring, kept):
    """Start mean and standard deviation anew from the last values; `kept` is scratch."""
    mean, width = _last_moments(column, ring, kept)
    before = standard_deviation(column)
    if width <= _RELATIVE * abs(mean):
        # The new level is constant: the step itself is the scale.
        width = 0.5 * abs(mean - column[MEAN])
        mean = 0.5 * (mean + column[MEAN])
    elif before / SAME_SCALE < width < before * SAME_SCALE:
        width = before
    column[MEAN] = mean
    column[COUNT] = CHANGE_AFTER
    column[SQUARES] = width * width * (CHANGE_AFTER - 1)
    column[CENTER] = mean
    column[SCALE] = width
    column[STREAK] = 0.0
    column[SEEN] = 0.0
    for i in range(CHANGE_AFTER):
        push(column, ring, kept[i])


@inline
def add_to_moments(column, value, most):
    """Add a value to mean and standard deviation, as if it were at most `most` deviations away."""
    width = standard_deviation(column)
    if width > 0.0:
        value = column[MEAN] + clipped((value - column[MEAN]) / width, most) * width
    count = min(column[COUNT] + 1.0, MAX_COUNT)
    keeping = (count - 1.0) / column[COUNT] if column[COUNT] + 1.0 > MAX_COUNT else 1.0
    away = value - column[MEAN]
    column[MEAN] += away / count
    column[SQUARES] = (column[SQUARES] + away * (value - column[MEAN])) * keeping
    column[COUNT] = count
    _follow_moments(column)


@inline
def remember_last(column, value, forms):
    """Keep the forms of a value, from which missing values are filled in."""
    if math.isnan(value) or is_extreme(column, value):
        column[AGE] += 1.0
        return
    if column[AGE] == 0.0:
        column[PRODUCT] = _MEMORY * column[PRODUCT] + column[LAST_FIXED] * forms[FIXED]
        column[POWER] = _MEMORY * column[POWER] + column[LAST_FIXED] ** 2
    column[LAST_FIXED] = forms[FIXED]
    column[LAST_MOVING] = forms[MOVING]
    column[LAST_RANK] = forms[RANK]
    column[AGE] = 0.0


@inline
def _only_steps(column, ring, kept):
    """Whether the column steps through a few values, as an encoded category or a switch does.

    That is so if the last CHANGE_AFTER values are equal, and the ring holds at most as many
    different values as `kept`, which is scratch. Such a step is no change of the stream.
    """
    newest = int(column[SEEN])
    last = ring[(newest - 1) % len(ring)]
    for i in range(2, CHANGE_AFTER + 1):
        if ring[(newest - i) % len(ring)] != last:
            return False
    different = 0
    for i in range(ring_count(column, ring)):
        known = False
        for j in range(different):
            known = known or kept[j] == ring[i]
        if not known:
            if different == len(kept):
                return False
            kept[different] = ring[i]
            different += 1
    return True


@inline
def update_column(column, ring, value, forms, kept):
    """Add a value with its `forms` to the statistics; 1 if it made a new level, else 0.

    A column that only steps through a few values makes none, though its statistics start anew.
    """
    remember_last(column, value, forms)
    if math.isnan(value):
        return 0
    z = deviation(column, value)
    add_to_moments(column, value, FAR_DEVIATIONS)
    push(column, ring, value)
    if abs(z) > FAR_DEVIATIONS:
        # A forged file may claim anything: no streak may last for ever.
        column[STREAK] = column[STREAK] + 1.0 if 0.0 <= column[STREAK] < CHANGE_AFTER else 1.0
        if column[STREAK] >= CHANGE_AFTER and column[SEEN] >= CHANGE_AFTER:
            steps = _only_steps(column, ring, kept)
            restart_column(column, ring, kept)
            return 0 if steps else 1
    else:
        column[STREAK] = 0.0
    return 0


@inline
def _is_usual(value, middle, usual):
    """Whether one of the first values counts: it is neither missing nor extreme."""
    if math.isnan(value):
        return False
    return not usual > 0.0 or abs(value - middle) <= EXTREME_DEVIATIONS * usual


@inline
def fit_column(column, ring, quantiles, values, middle, usual, forms):
    """Start the statistics from some first values (n,), as if these had always been the usual ones.

    middle : their median.
    usual : the distance from it that an eighth of them exceeds. Values farther away than three
        times this distance count as far as that: a few outliers, but not the start of a signal
        that was at rest. Extreme values do not count.
    forms : (FORMS,), scratch.
    """
    for k in range(STATS):
        column[k] = 0.0
    count = 0
    for t in range(len(values)):
        count += _is_usual(values[t], middle, usual)
    if count == 0:
        return
    reach = 3.0 * usual if usual > 0.0 else np.inf
    mean = 0.0  # of the clipped values
    for t in range(len(values)):
        if _is_usual(values[t], middle, usual):
            mean += clipped(values[t] - middle, reach) / count
    mean += middle
    squares = 0.0
    for t in range(len(values)):
        if _is_usual(values[t], middle, usual):
            squares += (middle + clipped(values[t] - middle, reach) - mean) ** 2
    column[COUNT] = count
    column[MEAN] = mean
    column[SQUARES] = squares
    column[CENTER] = mean
    column[SCALE] = standard_deviation(column)
    last = middle
    for t in range(len(values)):
        normalize(column, ring, quantiles, values[t], forms)
        remember_last(column, values[t], forms)
        if column[AGE] == 0.0:
            push(column, ring, values[t])
            last = values[t]
    column[LAST_RANK] = rank(column, ring, quantiles, last)

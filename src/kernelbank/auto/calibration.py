"""Answers in the target's own units, how far off they usually are, and probabilities.

Intervals are conformal: the quantiles of the error, in units of its running root mean square, are
moved after every sample towards their level, each by itself (Gibbs and Candes 2021; Angelopoulos,
Candes and Tibshirani 2023). Whatever the stream does, the share of errors beyond a quantile is off
its level by (how far the quantile has moved) * sqrt(level) / (step * samples).
"""

import math

from ..native.jit import entry, inline
from .running_stats import LIMIT

LOW, HIGH, VARIANCE, WEIGHT, ROWS, LOSS, LAST_TARGET, NAIVE_LOSS = range(8)
ANSWERS = 8
"""Figures: the range of the targets; the running mean square of the errors and its weight; how many
rows were answered, the sum of their squared errors, and that of the last target as an answer."""

MARGIN = 0.05
"""Answers stay within the targets' range and this share of it more."""

FEWEST = 30.0
"""Rows after which the targets' range is known well enough to hold answers in it."""

_STEP = 0.05
_START = 10.0  # the first steps are larger: 1 / (rows + this)
_MEMORY = 50.0  # rows of the running mean square
_LEAP = 100.0  # a squared error counts as at most so many times the mean


@inline
def answer(f, mean, sd, figures):
    """The prediction for the scaled value f."""
    value = mean + sd * f
    if not math.isfinite(value):
        value = mean
    if figures[ROWS] >= FEWEST:
        room = MARGIN * (figures[HIGH] - figures[LOW])
        value = min(max(value, figures[LOW] - room), figures[HIGH] + room)
    return value


@inline
def quantile(levels, quantiles, tail):
    """The error's quantile at a tail, between the levels that are followed, linear in log(tail).

    Levels ascend; a smaller tail must not have a smaller quantile, though each moves by itself.
    Below the smallest level the last line goes on.
    """
    count = len(levels)
    high = quantiles[count - 1]
    for g in range(count - 2, -1, -1):
        low = high
        high = max(high, quantiles[g])
        if tail >= levels[g] or g == 0:
            share = math.log(tail / levels[g + 1]) / math.log(levels[g] / levels[g + 1])
            return low + max(share, 0.0) * (high - low)
    return high


@inline
def bounds(value, figures, levels, quantiles, tail, out):
    """The interval around an answer that leaves `tail` beyond each end; empty if they cross."""
    width = math.sqrt(figures[VARIANCE])
    out[0] = value - width * quantile(levels, quantiles[0], tail)
    out[1] = value + width * quantile(levels, quantiles[1], tail)
    if not (math.isfinite(out[0]) and math.isfinite(out[1])) or out[0] > out[1]:
        out[0] = out[1] = value


@inline
def settle(value, mean, sd, y, figures, levels, quantiles):
    """Learn how far the answer was off; the target's mean and sd are those before it."""
    error = y - value
    usual = y if sd == 0.0 else mean + min(max((y - mean) / sd, -LIMIT), LIMIT) * sd
    if figures[ROWS] == 0.0:
        figures[LOW] = figures[HIGH] = usual
        figures[VARIANCE] = sd * sd
        figures[WEIGHT] = 1.0
    else:
        figures[LOW] = min(figures[LOW], usual)
        figures[HIGH] = max(figures[HIGH], usual)
        figures[NAIVE_LOSS] += (y - figures[LAST_TARGET]) ** 2
    figures[LAST_TARGET] = y
    figures[LOSS] += error * error
    step = max(_STEP, 1.0 / (figures[ROWS] + _START))
    width = math.sqrt(figures[VARIANCE])
    # Without a unit no error is beyond a quantile: a target that never moved would drive all
    # quantiles down, as far as it is long.
    for g in range(len(levels) if width > 0.0 else 0):
        move = step / math.sqrt(levels[g])
        below = 1.0 if -error > width * quantiles[0, g] else 0.0
        above = 1.0 if error > width * quantiles[1, g] else 0.0
        quantiles[0, g] += move * (below - levels[g])
        quantiles[1, g] += move * (above - levels[g])
    figures[WEIGHT] = min(figures[WEIGHT] + 1.0, _MEMORY)
    square = error * error
    if figures[VARIANCE] > 0.0:
        square = min(square, _LEAP * figures[VARIANCE])
    figures[VARIANCE] += (square - figures[VARIANCE]) / figures[WEIGHT]
    figures[ROWS] += 1.0


@entry
def forget_range(figures, low, high):
    """A new level: answers need not stay in the range of the old one."""
    figures[LOW] = low
    figures[HIGH] = high


@entry
def answer_row(f, mean, sd, figures, levels, quantiles, tail, out):
    """out = the answer and the ends of its interval; learns nothing."""
    out[0] = answer(f, mean, sd, figures)
    bounds(out[0], figures, levels, quantiles, tail, out[1:])


@entry
def settle_row(value, mean, sd, y, figures, levels, quantiles):
    """`settle`, for one row."""
    settle(value, mean, sd, y, figures, levels, quantiles)


@entry
def settle_rows(scaled, scale, y, figures, levels, quantiles, tail, values, ends):
    """Answer and settle row after row."""
    for t in range(len(scaled)):
        values[t] = answer(scaled[t], scale[t, 0], scale[t, 1], figures)
        bounds(values[t], figures, levels, quantiles, tail, ends[t])
        settle(values[t], scale[t, 0], scale[t, 1], y[t], figures, levels, quantiles)


# --- labels ---------------------------------------------------------------------------------------

SLOPE, OFFSET, FIRST, MIXED, SECOND = range(5)
PLATT = 5
"""Figures of a score's calibration: p = 1 / (1 + exp(-SLOPE f - OFFSET)) and its matrix."""

PLATT_START = (2.0, 0.0, 1.0, 0.0, 1.0)
"""p = (1 + f) / 2 near f = 0, which is right for a score that is the mean of labels of -1 and 1."""

_FORGET = 0.998
_FLAT = 1e-3  # the least curvature a sample is given: confident answers must not freeze the matrix
_FARTHEST = 1.5  # scores beyond say no more: labels are -1 and 1
_SUREST = 1e-6  # probabilities stay within this of 0 and 1


@inline
def probability(f, platt):
    """The calibrated probability of a score."""
    z = platt[SLOPE] * min(max(f, -_FARTHEST), _FARTHEST) + platt[OFFSET]
    if not math.isfinite(z):
        return 0.5
    p = 1.0 / (1.0 + math.exp(-min(max(z, -40.0), 40.0)))
    return min(max(p, _SUREST), 1.0 - _SUREST)


@inline
def calibrate(f, label, platt):
    """One step of Newton's method for the logistic loss, with forgetting back to the start."""
    f = min(max(f, -_FARTHEST), _FARTHEST)
    p = probability(f, platt)
    error = label - p
    weight = max(p * (1.0 - p), _FLAT)
    platt[FIRST] = _FORGET * platt[FIRST] + (1.0 - _FORGET) + weight * f * f
    platt[MIXED] = _FORGET * platt[MIXED] + weight * f
    platt[SECOND] = _FORGET * platt[SECOND] + (1.0 - _FORGET) + weight
    determinant = platt[FIRST] * platt[SECOND] - platt[MIXED] * platt[MIXED]
    if determinant > 0.0:
        platt[SLOPE] += (platt[SECOND] * f - platt[MIXED]) * error / determinant
        platt[OFFSET] += (platt[FIRST] - platt[MIXED] * f) * error / determinant
    if not (math.isfinite(platt[SLOPE]) and math.isfinite(platt[OFFSET]) and determinant > 0.0):
        for k in range(PLATT):
            platt[k] = PLATT_START[k]


@inline
def probabilities(scores, platt, out):
    """One probability a class, from one score for the second of two, or one a class."""
    heads = len(scores)
    if heads == 1:
        out[1] = probability(scores[0], platt[0])
        out[0] = 1.0 - out[1]
        return
    total = 0.0
    for k in range(heads):
        out[k] = probability(scores[k], platt[k])
        total += out[k]
    for k in range(heads):
        out[k] /= total


@entry
def probability_rows(scores, platt, out):
    """Probabilities of rows of scores; learns nothing."""
    for t in range(len(scores)):
        probabilities(scores[t], platt, out[t])


@entry
def calibrate_row(scores, label, platt):
    """Learn from one label, the number of its class."""
    heads = len(scores)
    for k in range(heads):
        own = 1 if heads == 1 else k
        calibrate(scores[k], 1.0 if label == own else 0.0, platt[k])


@entry
def calibrate_rows(scores, labels, platt, out):
    """Probabilities, then learning, row after row."""
    heads = scores.shape[1]
    for t in range(len(scores)):
        probabilities(scores[t], platt, out[t])
        for k in range(heads):
            own = 1 if heads == 1 else k
            calibrate(scores[t, k], 1.0 if labels[t] == own else 0.0, platt[k])

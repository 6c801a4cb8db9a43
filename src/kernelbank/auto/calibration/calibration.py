"""From scaled predictions to predictions in the target's units, intervals and probabilities.

*Intervals* are conformal: the quantiles of the error, in units of its running root mean square, are
moved after every sample towards their tail probability, each by itself (Gibbs and Candes 2021;
Angelopoulos, Candes and Tibshirani 2023). Whatever the stream does, the share of errors beyond a
quantile differs from its tail by (how far the quantile has moved) * sqrt(tail) / (step * samples).
At first the aim is a smaller share: a quantile with a share s of n errors beyond it has the next
one beyond it with probability (s n + 1) / (n + 1), as in split conformal prediction.

*Probabilities* of two classes are a logistic curve of one score, fitted online (Platt 1999), and
those of more classes a softmax of one score per class, fitted online too (see `softmax`).
"""

import math

import numpy as np

from ...native.arguments import Arguments, floats
from ...native.functions import native
from ...native.jit import inline
from ...native.scalar_math import exp, log
from ...utils.validation import Floats
from ..scaling.running_stats import FAR_DEVIATIONS
from .softmax import (
    FARTHEST,
    FIRST,
    FORGET,
    MIXED,
    OFFSET,
    PAIR,
    PROBABILITY,
    SECOND,
    SLOPE,
    SUREST,
    WORK,
    late_curve,
    softmax,
    start_curves,
    update_softmax,
)

LOW, HIGH, VARIANCE, WEIGHT, ROWS, LOSS, LAST_TARGET, BASELINE_LOSS = range(8)
ERROR_STATS = 8
"""Statistics of a stream: the range of the targets; the running mean square of the errors and its
weight; the number of rows, the sum of their squared errors, the last target, and the sum of squared
errors of the baseline, which predicts the last target."""

MARGIN = 0.05
"""Predictions stay within the range of the targets, widened by this share of it on both sides."""

AGREEMENT = 2.0
"""They may lie farther beyond it where the slots agree: by what is left of the distance after this
many times the spread of the slots' predictions is subtracted."""

RANGE_AFTER = 30.0
"""Rows after which the range of the targets limits predictions."""

_STEP = 0.05
_START = 10.0  # the first steps are larger: 1 / (rows + this)
_MEMORY = 50.0  # rows of the running mean square
_LEAP = 100.0  # a squared error counts as at most this many times the mean

INTERVALS = Arguments(
    "intervals",
    tracked=int,
    stats=floats(ERROR_STATS),
    tails=floats("tracked"),  # tail probabilities, ascending
    quantiles=floats(2, "tracked"),  # of the errors below and above
    tail=floats(1),  # the probability beyond each end of an interval
    bounds=floats(2),  # of targets, known beforehand; infinite for none
    scores=floats(None),  # scaled predictions
    spreads=floats(None),  # weighted standard deviations of the slots' scaled predictions
    scale=floats(None, 2),  # the target's mean and standard deviation before each row
    targets=floats(None),
    output=floats(None, 3),  # predictions, lower and upper ends
    errors=floats(None),  # |target - prediction|
)


@inline
def within(value, bounds):
    """The value, or the bound that it lies beyond."""
    if value < bounds[0]:
        return bounds[0]
    return bounds[1] if value > bounds[1] else value


@inline
def predict_value(f, spread, mean, sd, stats, bounds):
    """The prediction mean + sd * f, within the widened range of the targets and the bounds.

    Beyond the range it is held back by the spread of the slots' predictions, in units of f.
    """
    value = mean + sd * f
    if not math.isfinite(value):
        value = mean
    if stats[ROWS] >= RANGE_AFTER:
        room = MARGIN * (stats[HIGH] - stats[LOW])
        beyond = max(stats[LOW] - value, value - stats[HIGH])
        room = max(room, beyond - AGREEMENT * sd * spread)
        value = min(max(value, stats[LOW] - room), stats[HIGH] + room)
    return within(value, bounds)


@inline
def quantile(tails, quantiles, tail):
    """The quantile of the error at a tail, interpolated between the tracked ones in log(tail).

    A smaller tail must not have a smaller quantile, though each moves by itself: the running
    maximum is taken. Below the smallest tail the last line is extrapolated.
    """
    count = len(tails)
    high = quantiles[count - 1]
    for g in range(count - 2, -1, -1):
        low = high
        high = max(high, quantiles[g])
        if tail >= tails[g] or g == 0:
            share = log(tail / tails[g + 1]) / log(tails[g] / tails[g + 1])
            return low + max(share, 0.0) * (high - low)
    return high


@inline
def _predict(a, t):
    """output[t]: the prediction, and an interval that leaves tail[0] beyond each of its ends.

    Both ends are at the prediction if they cross. All three lie within the bounds.
    """
    out, stats = a.output[t], a.stats
    scale = a.scale[t]
    value = predict_value(a.scores[t], a.spreads[t], scale[0], scale[1], stats, a.bounds)
    width = math.sqrt(stats[VARIANCE])
    low = value - width * quantile(a.tails, a.quantiles[0], a.tail[0])
    high = value + width * quantile(a.tails, a.quantiles[1], a.tail[0])
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        low = high = value
    out[0], out[1], out[2] = value, within(low, a.bounds), within(high, a.bounds)


@inline
def _score(a, t):
    """Score the prediction of row t; errors[t].

    Each quantile q of tail p moves by step / sqrt(p) * ((error > width q) - s), s near p.
    """
    stats, tails, quantiles = a.stats, a.tails, a.quantiles
    y, mean, sd = a.targets[t], a.scale[t, 0], a.scale[t, 1]
    error = y - a.output[t, 0]
    a.errors[t] = abs(error)
    usual = (
        y if sd == 0.0 else mean + min(max((y - mean) / sd, -FAR_DEVIATIONS), FAR_DEVIATIONS) * sd
    )
    if stats[ROWS] == 0.0:
        stats[LOW] = usual
        stats[HIGH] = usual
        stats[VARIANCE] = sd * sd
        stats[WEIGHT] = 1.0
    else:
        stats[LOW] = min(stats[LOW], usual)
        stats[HIGH] = max(stats[HIGH], usual)
        stats[BASELINE_LOSS] += (y - stats[LAST_TARGET]) ** 2
    stats[LAST_TARGET] = y
    stats[LOSS] += error * error
    step = max(_STEP, 1.0 / (stats[ROWS] + _START))
    width = math.sqrt(stats[VARIANCE])
    # A target that never moved has no width; its quantiles stay, else they would fall for ever.
    for g in range(a.tracked if width > 0.0 else 0):
        tail = tails[g]
        move = step / math.sqrt(tail)
        # s = p - (1 - p) / n leaves p for the next error; at least half of p
        tail -= min(0.5 * tail, (1.0 - tail) / (stats[ROWS] + 1.0))
        below = 1.0 if -error > width * quantiles[0, g] else 0.0
        above = 1.0 if error > width * quantiles[1, g] else 0.0
        quantiles[0, g] += move * (below - tail)
        quantiles[1, g] += move * (above - tail)
    stats[WEIGHT] = min(stats[WEIGHT] + 1.0, _MEMORY)
    square = error * error
    if stats[VARIANCE] > 0.0:
        square = min(square, _LEAP * stats[VARIANCE])
    stats[VARIANCE] += (square - stats[VARIANCE]) / stats[WEIGHT]
    stats[ROWS] += 1.0


@native(INTERVALS)
def predict_rows(a, first, count):
    """output: predictions and the ends of their intervals; learns nothing."""
    for t in range(first, first + count):
        _predict(a, t)


@native(INTERVALS)
def score_rows(a, first, count):
    """Score the predictions in output[:, 0], row after row; errors."""
    for t in range(first, first + count):
        _score(a, t)


@native(INTERVALS)
def predict_and_score_rows(a, first, count):
    """Predict, then score, row after row; output and errors."""
    for t in range(first, first + count):
        _predict(a, t)
        _score(a, t)


# --- classes -------------------------------------------------------------------------------------

PLATT = PAIR
"""The curve of a bank's score f, p = 1 / (1 + exp(-SLOPE f - OFFSET)), and its Hessian."""

PLATT_START = (2.0, 0.0, 1.0, 0.0, 1.0)
"""p = (1 + f) / 2 near f = 0, which is right for a score that is the mean of labels of -1 and 1."""

_FLAT = 1e-3  # the least curvature of a sample: confident predictions must not freeze the Hessian


def grow_curves(platt: Floats, banks: int) -> Floats:
    """(banks, PLATT): the curves of all scores, with new ones for scores that have none.

    One score has the curve of two classes. With a third class all begin anew, because the softmax
    has other parameters.
    """
    if banks <= 1:
        return np.tile(np.array(PLATT_START), (banks, 1))
    known = platt
    if len(platt) < 2:
        known = start_curves(2 if len(platt) else banks)
    late = [late_curve() for _ in range(len(known), banks)]
    return np.vstack([known, *late])


PROBABILITIES = Arguments(
    "probabilities",
    banks=int,
    classes=int,
    platt=floats("banks", PLATT),
    common=floats(PAIR),  # of more than two classes
    work=floats("banks", WORK),
    scores=floats(None, "banks"),
    labels=floats(None),  # class numbers
    out=floats(None, "classes"),
)


@inline
def probability(f, platt):
    """The calibrated probability of a score."""
    z = platt[SLOPE] * min(max(f, -FARTHEST), FARTHEST) + platt[OFFSET]
    if not math.isfinite(z):
        return 0.5
    p = 1.0 / (1.0 + exp(-min(max(z, -40.0), 40.0)))
    return min(max(p, SUREST), 1.0 - SUREST)


@inline
def update_platt(f, label, platt):
    """One step of Newton's method for the logistic loss, with forgetting back to the start."""
    f = min(max(f, -FARTHEST), FARTHEST)
    p = probability(f, platt)
    error = label - p
    weight = max(p * (1.0 - p), _FLAT)
    platt[FIRST] = FORGET * platt[FIRST] + (1.0 - FORGET) + weight * f * f
    platt[MIXED] = FORGET * platt[MIXED] + weight * f
    platt[SECOND] = FORGET * platt[SECOND] + (1.0 - FORGET) + weight
    determinant = platt[FIRST] * platt[SECOND] - platt[MIXED] * platt[MIXED]
    if determinant > 0.0:
        platt[SLOPE] += (platt[SECOND] * f - platt[MIXED]) * error / determinant
        platt[OFFSET] += (platt[FIRST] - platt[MIXED] * f) * error / determinant
    if not (math.isfinite(platt[SLOPE]) and math.isfinite(platt[OFFSET]) and determinant > 0.0):
        platt[SLOPE] = PLATT_START[SLOPE]
        platt[OFFSET] = PLATT_START[OFFSET]
        platt[FIRST] = PLATT_START[FIRST]
        platt[MIXED] = PLATT_START[MIXED]
        platt[SECOND] = PLATT_START[SECOND]


@inline
def _softmax(a, t):
    """work: probabilities of row t and what their update needs, if there are several scores."""
    if a.banks > 1:
        softmax(a.scores[t], a.common, a.platt, a.work)


@inline
def _probabilities(a, t):
    """out[t]: from one score for the second of two classes, or from one per class, by work."""
    out = a.out[t]
    if a.banks == 1:
        out[1] = probability(a.scores[t, 0], a.platt[0])
        out[0] = 1.0 - out[1]
        return
    for k in range(a.banks):
        out[k] = a.work[k, PROBABILITY]


@inline
def _update_curves(a, t):
    """Update the curves with the scores and the class of row t, and with work."""
    if a.banks == 1:
        update_platt(a.scores[t, 0], 1.0 if a.labels[t] == 1.0 else 0.0, a.platt[0])
    else:
        update_softmax(a.scores[t], a.labels[t], a.common, a.platt, a.work)


@native(PROBABILITIES)
def probability_rows(a, first, count):
    """out: probabilities; learns nothing."""
    for t in range(first, first + count):
        _softmax(a, t)
        _probabilities(a, t)


@native(PROBABILITIES)
def update_platt_rows(a, first, count):
    """Update the curves, row after row."""
    for t in range(first, first + count):
        _softmax(a, t)
        _update_curves(a, t)


@native(PROBABILITIES)
def probability_and_update_rows(a, first, count):
    """Probabilities, then the update of the curves, row after row."""
    for t in range(first, first + count):
        _softmax(a, t)
        _probabilities(a, t)
        _update_curves(a, t)

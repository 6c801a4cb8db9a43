"""Probabilities of more than two classes: a softmax of their scores, fitted online.

    z_k = (linear + slope_k) s_k + curved g(s_k) + offset_k,    g(s) = 0.3 asinh(25 (1 + s)),
    p_k = exp(z_k) / sum_j exp(z_j).

A score s_k is an estimate of the label of class k, which is 1 for its rows and -1 for all others.
g(s) is nearly a multiple of log((1 + s) / 2), the logarithm of the probability that the score
stands for, but finite where a score is below -1. `linear` and `curved` are common to all classes,
`slope_k` and `offset_k` belong to one class.

All are fitted together on the log loss -log p_y. After every row there is a step of Newton's method
for the common pair, and one for the pair of every class, each with its own 2 x 2 block of the
Hessian. Hessians forget old rows and return to their start, which keeps every step small. The cost
of a row is linear in the number of classes.
"""

# mypy: disable-error-code="no-untyped-def"
import math

import numpy as np

from ...native.jit import inline
from ...native.scalar_math import asinh, exp
from ...utils.validation import Floats

SLOPE, OFFSET, FIRST, MIXED, SECOND = range(5)
PAIR = 5
"""Two parameters and their Hessian: FIRST and SECOND on its diagonal, MIXED beside it."""

LINEAR, CURVED = SLOPE, OFFSET
"""The two parameters of the pair that is common to all classes."""

COMMON_START = (2.0, 1.0, 1.0, 0.0, 1.0)
CLASS_START = (0.0, 0.0, 10.0, 0.0, 30.0)
"""The Hessians say how many rows the start is worth: classes differ little from one another."""

LATE_OFFSET = 1.0
"""The offset with which a class starts that appears later than others. Its score is near -1 at
first, because it has hardly been seen, but a class that has just appeared often comes again."""

FORGET = 0.998
FARTHEST = 1.5  # scores are clipped here: labels are -1 and 1
SUREST = 1e-6  # about the least probability of a class
_LIMIT = 30.0  # of all parameters; those in common are not negative
_LARGEST = 400.0  # of z
_STEEPNESS, _UNIT = 25.0, 0.3  # of g, whose range is then about that of a score

PROBABILITY, SCORE, CURVED_SCORE = range(3)
WORK = 3
"""What is computed for a class and a row."""


def start_curves(count: int) -> Floats:
    """(count, PAIR): the parameters of classes that are known from the start."""
    return np.tile(np.array(CLASS_START), (count, 1))


def late_curve() -> Floats:
    """(PAIR,): the parameters of a class that appears later."""
    curve = np.array(CLASS_START)
    curve[OFFSET] = LATE_OFFSET
    return curve


@inline
def softmax(scores, common, curves, work):
    """work: the probability of every class, its clipped score and the curved score.

    scores (K,), common (PAIR,), curves (K, PAIR), work (K, WORK).
    """
    top = -_LARGEST
    for k in range(len(scores)):
        one, curve = work[k], curves[k]
        one[SCORE] = min(max(scores[k], -FARTHEST), FARTHEST)
        one[CURVED_SCORE] = _UNIT * asinh(_STEEPNESS * (1.0 + one[SCORE]))
        z = (common[LINEAR] + curve[SLOPE]) * one[SCORE]
        z += common[CURVED] * one[CURVED_SCORE] + curve[OFFSET]
        z = min(max(z, -_LARGEST), _LARGEST) if math.isfinite(z) else 0.0
        one[PROBABILITY] = z
        top = max(top, z)
    total = 0.0
    for k in range(len(scores)):
        work[k, PROBABILITY] = exp(work[k, PROBABILITY] - top)
        total += work[k, PROBABILITY]
    share = 1.0 + len(scores) * SUREST
    for k in range(len(scores)):
        work[k, PROBABILITY] = (work[k, PROBABILITY] / total + SUREST) / share


@inline
def update_softmax(scores, label, common, curves, work):
    """Fit all parameters to a row, for which `softmax` has filled work.

    A row that lacks a score (NaN) is left out: the class was not known when it was predicted.
    """
    for k in range(len(scores)):
        if math.isnan(scores[k]):
            return
    _update_common(label, common, work)
    for k in range(len(scores)):
        p, s = work[k, PROBABILITY], work[k, SCORE]
        error = (1.0 if label == k else 0.0) - p
        weight = p * (1.0 - p)
        _newton_step(
            curves[k], CLASS_START, weight * s * s, weight * s, weight, error * s, error, -_LIMIT
        )


@inline
def _update_common(label, common, work):
    """One step for the common pair; its Hessian is the covariance of (s, g(s)) under p."""
    mean_score, mean_curved, own_score, own_curved = 0.0, 0.0, 0.0, 0.0
    for k in range(len(work)):
        p, s, g = work[k, PROBABILITY], work[k, SCORE], work[k, CURVED_SCORE]
        mean_score += p * s
        mean_curved += p * g
        if label == k:
            own_score, own_curved = s, g
    first, mixed, second = 0.0, 0.0, 0.0
    for k in range(len(work)):
        p = work[k, PROBABILITY]
        s, g = work[k, SCORE] - mean_score, work[k, CURVED_SCORE] - mean_curved
        first += p * s * s
        mixed += p * s * g
        second += p * g * g
    gradient = own_score - mean_score
    curved_gradient = own_curved - mean_curved
    _newton_step(common, COMMON_START, first, mixed, second, gradient, curved_gradient, 0.0)


@inline
def _newton_step(pair, start, first, mixed, second, gradient, other_gradient, least):
    """Add a row to the Hessian of a pair, and move the pair by Hessian^-1 gradient.

    Parameters stay within [least, _LIMIT]. What is not finite returns to its start.
    """
    pair[FIRST] = FORGET * pair[FIRST] + (1.0 - FORGET) * start[FIRST] + first
    pair[MIXED] = FORGET * pair[MIXED] + mixed
    pair[SECOND] = FORGET * pair[SECOND] + (1.0 - FORGET) * start[SECOND] + second
    determinant = pair[FIRST] * pair[SECOND] - pair[MIXED] * pair[MIXED]
    a = pair[0] + (pair[SECOND] * gradient - pair[MIXED] * other_gradient) / determinant
    b = pair[1] + (pair[FIRST] * other_gradient - pair[MIXED] * gradient) / determinant
    if math.isfinite(a) and math.isfinite(b) and determinant > 0.0:
        pair[0] = min(max(a, least), _LIMIT)
        pair[1] = min(max(b, least), _LIMIT)
    else:
        for i in range(PAIR):
            pair[i] = start[i]

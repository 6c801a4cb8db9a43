"""The compiled functions of random features: the features of inputs, and gradients on them."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from ..native.arguments import Arguments, floats
from ..native.dense import dot
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, fma
from ..native.sincos import cosine_and_sine
from ..native.views import load_four, store_four

BLOCK = 2 * WIDTH
"""Trigonometric features come in blocks of this size."""

_MAPPED_POINTS = Arguments(
    "mapped_points",
    dimension=int,
    total=int,
    trigonometric=int,
    points=floats(None, "dimension"),
    frequencies=floats("dimension", "total"),
    phases=floats("total"),
    amplitudes=floats("total"),
)
_FEATURE_ROWS = _MAPPED_POINTS.extended("feature_rows", out=floats(None, "total"))
_SQUARED_GRADIENTS = _MAPPED_POINTS.extended(
    "squared_gradients",
    weights=floats("total"),
    row=floats("total"),  # scratch: phi,
    slopes=floats("total"),  # and weights_m times the derivative of phi_m by its angle
    sums=floats("dimension"),
)


@inline
def _angles(x, frequencies, phases, m):
    """phase + sum_k x_k frequency_k of features m .. m + 3, in the order of the coordinates."""
    angle = load_four(phases, m)
    for k in range(len(x)):
        angle = fma(x[k], load_four(frequencies[k], m), angle)
    return angle


@inline
def features(x, frequencies, phases, amplitudes, trigonometric, out):
    """out[m] = feature m of the input x, for m < total. The lanes run over features.

    x: (dimension,); frequencies: (dimension, total); phases, amplitudes, out: (total,). In a block
    of eight trigonometric features the last four have the frequencies of the first four and phases
    a quarter turn less, so that their cosines are sines: one sum and one reduction serve both, and
    only the frequencies and phases of the first four are read.
    """
    for m in range(0, trigonometric, BLOCK):
        cosine, sine = cosine_and_sine(_angles(x, frequencies, phases, m))
        store_four(out, m, load_four(amplitudes, m) * cosine)
        store_four(out, m + WIDTH, load_four(amplitudes, m + WIDTH) * sine)
    for m in range(trigonometric, len(out), WIDTH):
        store_four(out, m, load_four(amplitudes, m) * _angles(x, frequencies, phases, m))


@native(_FEATURE_ROWS)
def feature_rows(a, first, count):
    """out[t] = the features of points[t], for t < count."""
    for t in range(count):
        features(a.points[t], a.frequencies, a.phases, a.amplitudes, a.trigonometric, a.out[t])


@native(_SQUARED_GRADIENTS)
def add_squared_gradients(a, first, count):
    """sums[k] += (d f / d x_k)^2 at points[t], for t < count; f = weights . phi.

    A block of eight has amplitude cos(angle) and amplitude sin(angle), whose derivatives by the
    angle are minus the second and the first; all its slopes are put into the first half.
    """
    slopes, weights = a.slopes, a.weights
    for m in range(a.trigonometric, a.total):
        slopes[m] = weights[m] * a.amplitudes[m]
    for t in range(count):
        features(a.points[t], a.frequencies, a.phases, a.amplitudes, a.trigonometric, a.row)
        for m in range(0, a.trigonometric, BLOCK):
            for i in range(m, m + WIDTH):
                slopes[i] = weights[i + WIDTH] * a.row[i] - weights[i] * a.row[i + WIDTH]
                slopes[i + WIDTH] = 0.0
        for k in range(a.dimension):
            slope = dot(a.frequencies[k], slopes, a.total)
            a.sums[k] += slope * slope

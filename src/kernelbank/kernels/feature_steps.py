"""Random features of one input: cosines and sines of sums, and a few plain sums.

Feature m is amplitude[m] * cos(angle[m]) for m < trigonometric and amplitude[m] * angle[m] for the
rest, with angle[m] = phase[m] + sum_k x[k] frequency[k, m]. The lanes run over features, so:

- frequencies lie coordinate by coordinate, (dimension, total), and total is a multiple of four;
- trigonometric ones come in blocks of eight: four features, then four with the same frequencies
  whose phases are a quarter turn less, which makes their cosines the sines of the first four. One
  sum and one reduction serve both, and only the frequencies and phases of the first are read.

Places that are left over have the amplitude 0.
"""

from ..native.formulas import pointer
from ..native.jit import entry, inline
from ..native.simd import WIDTH, fma, load, store
from ..native.sincos import cosine_and_sine

BLOCK = 2 * WIDTH
"""Trigonometric features are laid out in blocks of so many."""


@inline
def _angles(x, dimension, frequencies, phases, rows, row):
    """phase + sum_k x[k] frequency[k] of four features, added in the order of the coordinates."""
    angle = load(phases, row)
    for k in range(dimension):
        angle = fma(x[k], load(frequencies, k * rows + row), angle)
    return angle


@inline
def features(x, dimension, frequencies, phases, amplitudes, trigonometric, total, out):
    """out[m] = feature m of the input x, for m < total; everything is a pointer or an array."""
    rows = total // WIDTH
    waves = trigonometric // WIDTH
    for row in range(0, waves, 2):
        angle = _angles(x, dimension, frequencies, phases, rows, row)
        cosine, sine = cosine_and_sine(angle)
        store(out, row, load(amplitudes, row) * cosine)
        store(out, row + 1, load(amplitudes, row + 1) * sine)
    for row in range(waves, rows):
        angle = _angles(x, dimension, frequencies, phases, rows, row)
        store(out, row, load(amplitudes, row) * angle)


@entry
def feature_rows(points, frequencies, phases, amplitudes, trigonometric, out):
    """out[t] = the features of points[t]: for calls by hand."""
    dimension = points.shape[1]
    total = out.shape[1]
    for t in range(points.shape[0]):
        features(
            pointer(points, t * dimension),
            dimension,
            pointer(frequencies, 0),
            pointer(phases, 0),
            pointer(amplitudes, 0),
            trigonometric,
            total,
            pointer(out, t * total),
        )

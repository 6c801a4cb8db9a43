"""Random features: maps phi with phi(x)'phi(t) close to k(x, t), so that a slot can be linear.

A kernel of x - t is the mean of cos(w'(x - t)) over its spectrum, a distribution of frequencies w
(Bochner). The mean over a few drawn frequencies is a sum of products of cosines and sines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import pi, sqrt

import numpy as np

from .. import _core
from ..utils import validation as check
from ..utils.validation import Floats
from .base import (
    ActiveDims,
    Additive,
    Kernel,
    Scaled,
    Sum,
    active_coordinates,
    active_width,
    require_kernel,
    without_active_dims,
)
from .elementary import Gaussian, Laplacian, Linear, Matern

WIDTH = _core.WIDTH


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """phi_m(x) = amplitude_m cos(angle_m) for m < trigonometric, amplitude_m angle_m for the rest.

    angle_m = frequency_m'x_c + phase_m, where x_c holds the coordinates c of x. `feature_map` makes
    it. Trigonometric features come in blocks of eight: four cosines, and the sines of the same
    angles. The linear features follow: the coordinates, and a constant. Both are padded, to a
    multiple of eight and of four, with features of amplitude 0.

    Parameters
    ----------
    frequencies : (len(coordinates), total), one column per feature.
    phases, amplitudes : (total,).
    trigonometric : number of trigonometric features, with padding; they come first.
    dimension : number of coordinates of the inputs.
    coordinates : the coordinates that the features use: all, or those of an outermost `ActiveDims`.

    >>> import numpy as np, kernelbank as kb
    >>> draw = np.random.default_rng(0)
    >>> phi = kb.kernels.feature_map(kb.kernels.Gaussian(width=1.0), 8, 2, draw)
    >>> phi.frequencies.shape, phi([[0.0, 0.0]]).round(2).tolist()
    ((2, 8), [[0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]])
    """

    frequencies: Floats
    phases: Floats
    amplitudes: Floats
    trigonometric: int
    dimension: int
    coordinates: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of features, with those of amplitude 0."""
        return int(self.frequencies.shape[1])

    def __call__(self, X: object) -> Floats:
        """(n, total): the features of the rows of an (n, d) array."""
        points = check.samples(X, None)
        if points.shape[1] != self.dimension:
            remedy = "Give samples with as many columns as the map was made for."
            raise check.refuse("X", f"have {self.dimension} columns", points.shape[1], remedy)
        if self.coordinates != tuple(range(self.dimension)):
            points = points[:, list(self.coordinates)]
        return _core.feature_rows(*self._arrays, points)

    @property
    def _arrays(self) -> tuple[Floats, Floats, Floats, int]:
        return self.frequencies, self.phases, self.amplitudes, self.trigonometric

    def squared_gradients(self, points: Floats, weights: Floats) -> Floats:
        """(len(coordinates),): the mean over points of the squared partial derivatives of f.

        f(x) = weights . phi(x). points : (n, len(coordinates)), n at least 1; weights : (total,).
        """
        return _core.squared_gradients(*self._arrays, points, weights) / len(points)


def feature_map(
    kernel: Kernel, count: int, dimension: int, draw: np.random.Generator
) -> FeatureMap:
    """Random features of a kernel: E phi(x)'phi(t) = k(x, t), and always phi(x)'phi(x) = k(x, x).

    For a single Gaussian, Laplacian or Matern kernel the standard deviation of phi(x)'phi(t) is at
    most sqrt(1 - k^2) / sqrt(count), k = k(x, t). The random parts of a sum have equal numbers of
    frequencies, up to one. Linear parts are exact. `Additive` draws a subset of the coordinates for
    each frequency.

    Parameters
    ----------
    kernel : made of Gaussian, Laplacian, Matern and Linear by positive factors, `+`, `ActiveDims`
        and, inside these, `Additive`.
    count : number of trigonometric features, cosines and sines; even. Linear ones are added.
    dimension : number of coordinates of the inputs.
    draw : the random generator of the frequencies; an equal generator gives an equal map.

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, NeurIPS 2007.

    >>> import numpy as np, kernelbank as kb
    >>> kernel = kb.kernels.Gaussian(width=1.0) + kb.kernels.Linear(offset=1.0)
    >>> phi = kb.kernels.feature_map(kernel, 2000, 1, np.random.default_rng(0))
    >>> features = phi([[0.0], [1.0]])
    >>> (features @ features.T).round(1).tolist(), kernel([[0.0]], [[1.0]]).round(1).tolist()
    ([[2.0, 1.6], [1.6, 3.0]], [[1.6]])
    """
    trigonometric, total = feature_counts(kernel, count, dimension)
    if not isinstance(draw, np.random.Generator):
        remedy = "Give np.random.default_rng(seed)."
        raise check.refuse("draw", "be a NumPy generator", draw, remedy, "feature_map")
    coordinates = active_coordinates(kernel, dimension)
    frequencies = np.zeros((len(coordinates), total))
    phases, amplitudes = np.zeros(total), np.zeros(total)
    result = FeatureMap(frequencies, phases, amplitudes, trigonometric, dimension, coordinates)
    terms = _as_terms(without_active_dims(kernel), tuple(range(len(coordinates))))
    _set_trigonometric(result, [term for term in terms if not term.linear], count // 2, draw)
    _set_linear(result, [term for term in terms if term.linear])
    return result


@lru_cache(maxsize=256, typed=True)
def feature_counts(kernel: Kernel, count: int, dimension: int) -> tuple[int, int]:
    """Numbers of trigonometric features, and of all features, of a map, with padding.

    Equal for kernels of equal structure, so that their slots can share an array.

    >>> import kernelbank as kb
    >>> feature_counts(kb.kernels.Gaussian(1.0) + kb.kernels.Linear(), 100, dimension=5)
    (104, 112)
    """
    owner = "feature_map"
    require_kernel("kernel", kernel, owner)
    check.count("dimension", dimension, owner, "Give the number of columns of the inputs.")
    kernel.check_width(dimension, "dimension")
    used = active_width(kernel, dimension)
    terms = _as_terms(without_active_dims(kernel), tuple(range(used)))
    remedy = "Features come in pairs, a cosine and a sine: give an even number, such as 100."
    if check.count("count", count, owner, remedy, least=2) % 2:
        raise check.refuse("count", "be even", count, remedy, owner)
    random = sum(not term.linear for term in terms)
    if count < 2 * random:
        remedy = "Each random part of a sum needs a pair of features of its own."
        raise check.refuse("count", f"be >= {2 * random} for {kernel!r}", count, remedy, owner)
    trigonometric = _padded(count, 2 * WIDTH) if random else 0
    linear = _padded(used + 1, WIDTH) if random < len(terms) else 0
    return trigonometric, trigonometric + linear


def _padded(count: int, size: int) -> int:
    return -(-count // size) * size


def _set_trigonometric(
    result: FeatureMap, terms: list[_Term], pairs: int, draw: np.random.Generator
) -> None:
    if not terms:
        return
    shares = [pairs // len(terms) + (i < pairs % len(terms)) for i in range(len(terms))]
    ends = list(accumulate(shares))
    dimension = len(result.coordinates)
    frequencies = np.zeros((_padded(pairs, WIDTH), dimension))
    amplitudes = np.zeros(len(frequencies))
    for term, share, end in zip(terms, shares, ends, strict=True):
        frequencies[end - share : end] = _draw_frequencies(term, share, dimension, draw)
        amplitudes[end - share : end] = sqrt(term.factor / share)
    # Four pairs make a block: their cosines, then their sines.
    blocks = (-1, 2, WIDTH)
    drawn = slice(0, result.trigonometric)
    pairs_twice = np.repeat(frequencies.reshape(-1, 1, WIDTH, dimension), 2, axis=1)
    result.frequencies[:, drawn] = pairs_twice.reshape(-1, dimension).T
    result.amplitudes[drawn].reshape(blocks)[...] = amplitudes.reshape(-1, 1, WIDTH)
    result.phases[drawn].reshape(blocks)[:, 1] = -pi / 2


def _set_linear(result: FeatureMap, terms: list[_Term]) -> None:
    """The features of all linear parts together: sum_k weight_k x_k t_k + constant."""
    if not terms:
        return
    dimension, start = len(result.coordinates), result.trigonometric
    weights = np.zeros(dimension)
    constant = 0.0
    for term in terms:
        assert isinstance(term.kernel, Linear)
        # A subset of `order` of n coordinates has each of them with the probability order / n.
        weights[list(term.coordinates)] += term.factor * (term.order / len(term.coordinates))
        constant += term.factor * term.kernel.offset
    result.frequencies[:, start : start + dimension] = np.eye(dimension)
    result.amplitudes[start : start + dimension] = np.sqrt(weights)
    result.phases[start + dimension] = 1.0
    result.amplitudes[start + dimension] = sqrt(constant)


# --- kernels as sums of spectra -------------------------------------------------------------------

_RANDOM = (Gaussian, Laplacian, Matern)
"""The kernels whose spectra are drawn from."""


@dataclass(frozen=True)
class _Term:
    """factor * the mean of kernel over the subsets of `order` of these coordinates."""

    factor: float
    kernel: Gaussian | Laplacian | Matern | Linear
    coordinates: tuple[int, ...]
    order: int

    @property
    def linear(self) -> bool:
        """Whether its features are exact, and none is drawn."""
        return isinstance(self.kernel, Linear)


def _as_terms(
    kernel: Kernel, coordinates: tuple[int, ...], factor: float = 1.0, order: int | None = None
) -> list[_Term]:
    """The parts of a sum on these coordinates; order : that of an `Additive` around it, if any."""
    if isinstance(kernel, Scaled):
        return _as_terms(kernel.kernel, coordinates, factor * kernel.factor, order)
    if isinstance(kernel, Sum):
        sides = (kernel.left, kernel.right)
        return [term for side in sides for term in _as_terms(side, coordinates, factor, order)]
    if isinstance(kernel, ActiveDims) and order is None:
        selected = tuple(coordinates[k] for k in kernel.coordinates)
        return _as_terms(kernel.base, selected, factor)
    if isinstance(kernel, Additive):
        return _as_terms(kernel.base, coordinates, factor, min(kernel.order, order or kernel.order))
    if isinstance(kernel, (Linear, *_RANDOM)):
        count = len(coordinates)
        return [_Term(factor, kernel, coordinates, min(order or count, count))]
    names = ", ".join(kind.__name__ for kind in (*_RANDOM, Linear))
    rule = f"be made of {names} by Scaled, Sum, ActiveDims and, inside these, Additive"
    remedy = "Use one of these, or a learner that works on kernel values."
    raise check.refuse("kernel", rule, kernel, remedy, "feature_map")


def _draw_frequencies(term: _Term, pairs: int, dimension: int, draw: np.random.Generator) -> Floats:
    """(pairs, dimension): frequencies, zero at the coordinates that a pair does not use."""
    chosen = np.tile(term.coordinates, (pairs, 1))
    if term.order < chosen.shape[1]:
        order = np.argsort(draw.random(chosen.shape), axis=1, kind="stable")
        picked = np.sort(order[:, : term.order], axis=1)
        chosen = np.take_along_axis(chosen, picked, axis=1)
    result = np.zeros((pairs, dimension))
    np.put_along_axis(result, chosen, _draw_spectrum(term.kernel, chosen.shape, draw), axis=1)
    return result


def _draw_spectrum(kernel: Kernel, shape: tuple[int, ...], draw: np.random.Generator) -> Floats:
    if isinstance(kernel, Laplacian):
        return draw.standard_cauchy(shape) / kernel.width
    assert isinstance(kernel, (Gaussian, Matern))
    drawn = draw.standard_normal(shape)
    if isinstance(kernel, Matern):  # t of 2 nu degrees: the coordinates share their denominator
        freedom = 2 * kernel.nu
        drawn /= np.sqrt(draw.chisquare(freedom, (shape[0], 1)) / freedom)
    return drawn / kernel.width

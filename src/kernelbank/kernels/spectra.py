"""Kernels as sums of spectra, from which the frequencies of random features are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from .base import Kernel, Scaled, Sum
from .dimensions import ActiveDims, Additive
from .elementary import Gaussian, Laplacian, Linear, Matern


@dataclass(frozen=True)
class Term:
    """factor * kernel on what the views (`ActiveDims`, `Additive`) select, outermost first."""

    factor: float
    kernel: Any
    views: tuple[ActiveDims | Additive, ...]

    @property
    def linear(self) -> bool:
        """Whether its features are exact, and none is drawn."""
        return isinstance(self.kernel, Linear)


def as_terms(
    kernel: Any, factor: float = 1.0, views: tuple[ActiveDims | Additive, ...] = ()
) -> list[Term]:
    """The parts of a sum, each a factor times a kernel that has a spectrum or is linear."""
    if isinstance(kernel, Scaled):
        return as_terms(kernel.kernel, factor * kernel.factor, views)
    if isinstance(kernel, Sum):
        return [*as_terms(kernel.left, factor, views), *as_terms(kernel.right, factor, views)]
    if isinstance(kernel, (ActiveDims, Additive)):
        return as_terms(kernel.base, factor, (*views, kernel))
    if isinstance(kernel, (Linear, *_SPECTRA)):
        return [Term(factor, kernel, views)]
    known = ", ".join(kind.__name__ for kind in (*_SPECTRA, Linear))
    raise check.refuse(
        "kernel",
        f"be made of {known} by Scaled, Sum, ActiveDims and Additive",
        kernel,
        "Use one of these, or a learner that works on kernel values.",
        "feature_map",
    )


def _normal(kernel: Gaussian, draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return draw.standard_normal(shape) / kernel.width


def _cauchy(kernel: Laplacian, draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return draw.standard_cauchy(shape) / kernel.width


def _student(kernel: Matern, draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Multivariate t of 2 nu degrees of freedom: the coordinates share their denominator."""
    freedom = 2 * kernel.nu
    normal = draw.standard_normal(shape)
    return normal / np.sqrt(draw.chisquare(freedom, (shape[0], 1)) / freedom) / kernel.width


_SPECTRA: dict[type[Kernel], Callable[..., Floats]] = {
    Gaussian: _normal,
    Laplacian: _cauchy,
    Matern: _student,
}


def draw_frequencies(term: Term, pairs: int, dimension: int, draw: np.random.Generator) -> Floats:
    """(pairs, dimension): frequencies, zero at the coordinates that a pair does not use."""
    chosen = np.tile(np.arange(dimension), (pairs, 1))
    for view in term.views:
        if isinstance(view, ActiveDims):
            chosen = chosen[:, list(view.coordinates)]
        elif view.order < chosen.shape[1]:
            order = np.argsort(draw.random(chosen.shape), axis=1, kind="stable")
            picked = np.sort(order[:, : view.order], axis=1)
            chosen = np.take_along_axis(chosen, picked, axis=1)
    spectrum = next(own for kind, own in _SPECTRA.items() if isinstance(term.kernel, kind))
    result = np.zeros((pairs, dimension))
    np.put_along_axis(result, chosen, spectrum(term.kernel, draw, chosen.shape), axis=1)
    return result


def mean_shares(views: tuple[ActiveDims | Additive, ...], width: int) -> list[Fraction]:
    """How often each of `width` coordinates is selected by the views, on average."""
    if not views:
        return [Fraction(1)] * width
    first, rest = views[0], views[1:]
    if isinstance(first, ActiveDims):
        shares = [Fraction(0)] * width
        inner = mean_shares(rest, len(first.coordinates))
        for k, share in zip(first.coordinates, inner, strict=True):
            shares[k] = share
        return shares
    if first.order >= width:
        return mean_shares(rest, width)
    # Of all subsets, C(k, i) C(width - 1 - k, order - 1 - i) have coordinate k as their member i.
    members = list(enumerate(mean_shares(rest, first.order)))
    after = first.order - 1
    subsets = comb(width, first.order)
    return [
        sum(share * comb(k, i) * comb(width - 1 - k, after - i) for i, share in members)
        * Fraction(1, subsets)
        for k in range(width)
    ]

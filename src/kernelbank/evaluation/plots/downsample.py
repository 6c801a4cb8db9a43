"""Fewer points, honestly: what a long run has in a stretch is shown by its ends, or by its mean."""

from __future__ import annotations

import numpy as np

from ...utils.validation import Floats

POINTS = 2000
"""Of a line, at most; two for each stretch."""

COLUMNS = 500
"""Of an image, if there are twice as many or more: stretches of one sample here and two there would
be uneven. So every column has a pixel in a figure as wide as a page."""


def starts(length: int, most: int) -> np.ndarray:
    """Where stretches begin that cut `length` samples into at most `most`, as equal as can be."""
    return np.unique(np.linspace(0, length, min(most, max(length, 1)), endpoint=False).astype(int))


def thinned(values: Floats, most: int = POINTS) -> np.ndarray:
    """The places that a line keeps: the lowest and the highest of each stretch, and both ends.

    Values that are not finite are not looked at; a stretch that has no others keeps one of them, so
    that the line is broken there.

    >>> import numpy as np
    >>> bumpy = np.zeros(1000)
    >>> bumpy[[123, 777]] = 1.0, -1.0
    >>> bumpy[thinned(bumpy, 10)].tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0]
    """
    length = len(values)
    if length <= most:
        return np.arange(length)
    begin = starts(length, most // 2)
    finite = np.isfinite(values)
    kept = [np.array([0, length - 1])]
    for worst, better in ((np.inf, np.minimum), (-np.inf, np.maximum)):
        shown = np.where(finite, values, worst)
        ends = better.reduceat(shown, begin)
        sizes = np.diff(begin, append=length)
        hit = np.flatnonzero(shown == np.repeat(ends, sizes))
        stretch = np.searchsorted(begin, hit, side="right")
        kept.append(hit[np.unique(stretch, return_index=True)[1]])  # the first of each stretch
    return np.unique(np.concatenate(kept))


def mean_of_stretches(rows: Floats, most: int = COLUMNS) -> Floats:
    """(n, P) to (stretches, P): the mean of each.

    >>> import numpy as np
    >>> mean_of_stretches(np.arange(6.0)[:, None], 3).ravel().tolist()
    [0.5, 2.5, 4.5]
    """
    begin = starts(len(rows), most if len(rows) >= 2 * most else len(rows))
    sizes = np.diff(begin, append=len(rows))
    found: Floats = np.add.reduceat(rows, begin, axis=0) / sizes[:, None]
    return found


def ends_of_stretches(low: Floats, high: Floats, most: int = POINTS) -> tuple[Floats, ...]:
    """For a band: middles of stretches, the lowest of `low` and the highest of `high` in each."""
    length = len(low)
    if length <= most:
        return np.arange(length, dtype=float), low, high
    begin = starts(length, most // 2)
    middle = 0.5 * (begin + np.append(begin[1:], length) - 1)
    return middle, np.minimum.reduceat(low, begin), np.maximum.reduceat(high, begin)

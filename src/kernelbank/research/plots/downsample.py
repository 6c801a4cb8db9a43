"""Fewer points of a long run: extremes of intervals for lines and bands, means for images."""

from __future__ import annotations

import numpy as np

from ...utils.validation import Floats

POINTS = 2000
"""The most points of a line; two for each interval."""

COLUMNS = 500
"""The columns of an image if there are at least twice as many samples (intervals of one sample and
of two would be uneven). Every column then has a pixel in a figure as wide as a page."""


def interval_starts(length: int, most: int) -> np.ndarray:
    """Where at most `most` intervals of nearly equal length begin that cover `length` samples."""
    return np.unique(np.linspace(0, length, min(most, max(length, 1)), endpoint=False).astype(int))


def line_indices(values: Floats, most: int = POINTS) -> np.ndarray:
    """The indices that a line keeps: the lowest and the highest of each interval, and both ends.

    Values that are not finite are ignored; an interval that has no others keeps one of them, so
    that the line is broken there.

    >>> import numpy as np
    >>> bumpy = np.zeros(1000)
    >>> bumpy[[123, 777]] = 1.0, -1.0
    >>> bumpy[line_indices(bumpy, 10)].tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0]
    """
    length = len(values)
    if length <= most:
        return np.arange(length)
    begin = interval_starts(length, most // 2)
    finite = np.isfinite(values)
    kept = [np.array([0, length - 1])]
    for worst, better in ((np.inf, np.minimum), (-np.inf, np.maximum)):
        shown = np.where(finite, values, worst)
        ends = better.reduceat(shown, begin)
        sizes = np.diff(begin, append=length)
        hit = np.flatnonzero(shown == np.repeat(ends, sizes))
        interval = np.searchsorted(begin, hit, side="right")
        kept.append(hit[np.unique(interval, return_index=True)[1]])  # the first of each interval
    return np.unique(np.concatenate(kept))


def interval_means(rows: Floats, most: int = COLUMNS) -> Floats:
    """(n, P) to (intervals, P): the mean of each.

    >>> import numpy as np
    >>> interval_means(np.arange(6.0)[:, None], 3).ravel().tolist()
    [0.5, 2.5, 4.5]
    """
    begin = interval_starts(len(rows), most if len(rows) >= 2 * most else len(rows))
    sizes = np.diff(begin, append=len(rows))
    found: Floats = np.add.reduceat(rows, begin, axis=0) / sizes[:, None]
    return found


def interval_band(low: Floats, high: Floats, most: int = POINTS) -> tuple[Floats, ...]:
    """For a band: middles of intervals, the lowest of `low` and the highest of `high` in each."""
    length = len(low)
    if length <= most:
        return np.arange(length, dtype=float), low, high
    begin = interval_starts(length, most // 2)
    middle = 0.5 * (begin + np.append(begin[1:], length) - 1)
    return middle, np.minimum.reduceat(low, begin), np.maximum.reduceat(high, begin)

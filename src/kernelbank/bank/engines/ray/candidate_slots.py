"""The slots of a shard that may have weight after each sample of a block, fewer with every look."""

from __future__ import annotations

import numpy as np

from ....combiners import distributed_threshold as hot
from ....utils.validation import Floats

Lists = tuple[np.ndarray, np.ndarray, Floats, Floats]
"""starts, places, curvatures, linear parts: see `_hot.search`."""


def outline(curvature: Floats, linear: Floats) -> Floats:
    """(3, n): what a shard tells of its slots first; see `_hot.search.outline`."""
    out = np.empty((3, len(curvature)))
    hot.outline(curvature, linear, out)
    return out


def listed(curvature: Floats, linear: Floats, level: Floats) -> Lists:
    """The slots with linear <= level[t]."""
    starts = np.empty(len(level) + 1, dtype=np.int64)
    hot.count_below(linear, level, starts)
    count = int(starts[-1])
    places = np.empty(count, dtype=np.int32)
    some_a, some_b = np.empty(count), np.empty(count)
    hot.list_below(curvature, linear, level, places, some_a, some_b)
    return starts, places, some_a, some_b


class Below:
    """Lists that are narrowed. The levels of a sample never rise."""

    def __init__(self, curvature: Floats, linear: Floats) -> None:
        self._whole = (curvature, linear)
        self._lists: Lists | None = None

    def narrow(self, level: Floats) -> Floats:
        """(2, n): mass and slope of the slots up to the levels; the others are let go."""
        if self._lists is None:
            self._lists = listed(*self._whole, level)
        out = np.empty((2, len(level)))
        hot.narrow(*self._lists, level, out)
        return out

    def take(self, level: Floats) -> Lists:
        """The lists up to these levels."""
        if self._lists is None:
            return listed(*self._whole, level)
        self.narrow(level)
        starts, *lists = self._lists
        places, a, b = (array[: starts[-1]] for array in lists)
        return starts, places, a, b

    def take_anew(self, level: Floats) -> Lists:
        """The lists up to levels that may be higher than before."""
        return listed(*self._whole, level)

"""The regret of a run, from the sums that its history keeps, for a sentence of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...research.regret import best_slot, best_slot_per_interval
from ..history import History

SEGMENTS = 10
"""At least so many segments, and fewer than twice as many: the best slot of a few rows is best by
chance."""

LEAST_ROWS = 200
"""Of a run. In a shorter one segments are too short."""


def run_regret(history: History) -> dict[str, Any] | None:
    """The model's sum of losses minus that of the best slot, and of the best slot per segment.

    Segments are of equal numbers of rows, the last perhaps of fewer. They are points of the
    history, joined, so that they follow from the number of rows alone. Returns the rows of a
    segment and the two figures; None for a short run, and if the losses are not known.
    """
    if history.rows < LEAST_ROWS:
        return None
    joined = 1
    while history.points >= 2 * SEGMENTS * joined:
        joined *= 2
    starts = np.arange(0, history.points, joined)
    own = np.add.reduceat(history.totals["loss"], starts)
    alone = np.add.reduceat(history.losses, starts, axis=0)
    known = np.isfinite(alone).all(axis=0)
    if not (np.isfinite(own).all() and known.any()):
        return None
    return {
        "segment": joined * history.stride,
        "best_slot": float(best_slot(own, alone[:, known])[-1]),
        "best_slot_per_segment": float(best_slot_per_interval(own, alone[:, known], 1)[-1]),
    }

"""Far targets are held back here, until it is clear what they mean.

A target that lies more than 10 standard deviations from the mean, though its inputs are usual, is
*far*. Its row is not learned at once, but held back:

- If a usual target follows, the far ones before it were outliers. Each is learned as if it were 10
  standard deviations away, or not at all if it is extreme (beyond 1,000).
- Five far targets in a row are a change. If the bank had predicted half of the way, the target's
  standard deviation was too small. Else, if the bank was off by much the same each time, the level
  has moved, and so does the mean. Else the scale is new, and the running statistics start anew. The
  five rows are then learned with the new statistics.

So a jump neither teaches the slots nonsense nor makes the combiner trust the wrong ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...utils.validation import Floats
from ..scaling.scaling import CHANGE_AFTER, EXTREME, Scaling
from .replay_buffer import with_missing

SAME_SCALE = 4.0
"""Errors whose spread is a smaller multiple of the standard deviation are much the same."""


class HeldRow(NamedTuple):
    """A row that is held back."""

    inputs: Floats
    lagged: Floats
    target: float
    predicted: float
    """The bank's prediction, in the target's units, not limited to the range of targets."""


class HeldTargets:
    """The rows that are held back, the oldest first, and how such streaks went on before."""

    def __init__(self) -> None:
        self.rows: list[HeldRow] = []
        self.streaks = np.zeros(CHANGE_AFTER)
        """streaks[k - 1]: how often k rows in a row were held back."""

    def __len__(self) -> int:
        return len(self.rows)

    def hold(self, row: HeldRow) -> None:
        """Hold a row back."""
        self.rows = [*self.rows, row]

    def count_streak(self) -> None:
        """One more far target in a row."""
        self.streaks[len(self.rows)] += 1.0

    def release(self) -> None:
        """Nothing is held back any longer."""
        self.rows = []

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs, which were missing so far."""
        self.rows = [
            row._replace(inputs=with_missing(row.inputs[None], count)[0]) for row in self.rows
        ]

    def expected_error(self, scaling: Scaling) -> float:
        """The error to expect of the next prediction, while rows are held back.

        The last error, times how often a streak of this length was followed by another far target:
        at first half of the time after one, always after two; and at least times the correlation of
        a target with the next, since a target that stays where it is also stays after a jump.
        """
        count = len(self.rows)
        if not count or any(is_extreme(row.target, scaling) for row in self.rows):
            return 0.0
        before = self.streaks[count - 1] - 1.0  # without this streak, whose end is unknown
        continued = (self.streaks[count] + min(count, 2)) / (before + 2.0)
        share = max(continued, scaling.target_correlation)
        return float(share * (self.rows[-1].target - self.rows[-1].predicted))

    # --- saving ---------------------------------------------------------------------------------

    def state(self, dimension: int, lags: int) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        arrays: dict[str, Any] = {
            "held_inputs": np.zeros((CHANGE_AFTER, dimension)),
            "held_lagged": np.zeros((CHANGE_AFTER, lags)),
            "held_targets": np.zeros(CHANGE_AFTER),
            "held_predicted": np.zeros(CHANGE_AFTER),
        }
        for index, row in enumerate(self.rows):
            for array, value in zip(arrays.values(), row, strict=True):
                array[index] = value
        return arrays | {"streaks": self.streaks}

    def restore(self, state: Mapping[str, Any], count: int) -> None:
        """Continue from `state` with `count` rows; `streaks` has been written in place."""
        names = ("held_inputs", "held_lagged", "held_targets", "held_predicted")
        rows = zip(*(state[name][:count] for name in names), strict=True)
        self.rows = [HeldRow(x.copy(), lags.copy(), float(y), float(f)) for x, lags, y, f in rows]


def is_extreme(target: float, scaling: Scaling) -> bool:
    """Whether a target is so far off that it cannot be a measurement."""
    return scaling.outlier_level(target) == EXTREME


def adapt_scaling(rows: list[HeldRow], scaling: Scaling) -> bool:
    """Adapt the target's statistics to five far targets in a row; whether the level is new."""
    targets = np.array([row.target for row in rows])
    errors = targets - np.array([row.predicted for row in rows])
    mean, sd = scaling.target_scale
    shift = float(np.median(errors))
    if abs(shift) < 0.5 * abs(float(np.median(targets)) - mean):
        scaling.widen_target()
        return False
    if np.median(np.abs(errors - shift)) < SAME_SCALE * sd:
        scaling.shift_target(shift)
    else:
        scaling.restart_target()
    return True

"""Which transform makes a skewed target more even.

Counts, concentrations and loads have a lower end and a long upper tail; effects on them multiply,
and errors grow with their level. Some slots then learn a shifted logarithm of the target
(`kb.transforms.ShiftedLog`), and see past targets by the same logarithm.
"""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np

from ...utils.validation import Floats

LEAST_ROWS = 30
"""With fewer rows nothing is said about skewness."""

SKEWED = 0.5
"""Skewness beyond which a target is transformed."""

LEAST_SHIFT = 1.2
"""In standard deviations: with a pole nearer to the mean, small differences at the lower end of a
heavy-tailed target would count more than all others."""

LARGEST = 10.0
"""Deviations beyond this count as this."""

_LOW_END = 0.02


def is_plausible_shift(shift: float) -> bool:
    """Whether `log_shift` can have returned this."""
    return shift == 0.0 or LEAST_SHIFT <= abs(shift) <= 3.0 * LARGEST


def log_shift(deviations: Floats) -> float:
    """The shift of a ShiftedLog for targets (n,), in deviations from their mean; 0 for none.

    With z as the targets, mirrored if they are skewed to the left, q their 2 % quantile and m
    their median, the shift is -q + (m - q): the pole of the logarithm is as far below the low end
    as the median is above it.
    """
    z = np.clip(deviations, -LARGEST, LARGEST)
    if len(z) < LEAST_ROWS:
        return 0.0
    centered = z - fsum(z) / len(z)  # sums and powers that are the same on every machine
    squares = centered * centered
    variance = fsum(squares) / len(z)
    if not variance > 0.0:
        return 0.0
    skewness = fsum(squares * centered) / len(z) / (variance * sqrt(variance))
    if abs(skewness) < SKEWED:
        return 0.0
    side = 1.0 if skewness > 0.0 else -1.0
    low, middle = np.quantile(side * z, (_LOW_END, 0.5))
    return side * max(float(middle - 2.0 * low), LEAST_SHIFT)

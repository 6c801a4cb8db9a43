"""Where the inputs of a run have been: curves are drawn there, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..auto.inputs import PERIODS
from ..errors import FileRefused
from ..utils.validation import Floats

CLOCK = 24
"""Into how many equal parts each period of time is cut: a day into hours."""

_MONDAY = 345_600.0
"""Seconds from the beginning of 1970, a Thursday, to a Monday."""

STARTS = {"day": 0.0, "week": _MONDAY, "year": 0.0}
"""Seconds since 1970 at which a period starts."""


class SeenInputs:
    """The range of every numeric input, and the parts of day, week and year with any row."""

    def __init__(self) -> None:
        self.ranges = np.zeros((0, 2))
        """(numeric inputs, 2): lowest and highest value; infinite before there is one."""
        self.clock = np.zeros((len(PERIODS), CLOCK))
        """(periods, CLOCK): 1 where there was a row."""

    def add(self, inputs: Floats, times: Floats) -> None:
        """Add n rows: numeric inputs (n, d), and times (n,), NaN where there are none."""
        if len(self.ranges) < inputs.shape[1]:
            self.ranges = np.tile([np.inf, -np.inf], (inputs.shape[1], 1))
        usual = inputs + 0.0  # a zero without a sign, whatever the order of the rows
        self.ranges[:, 0] = np.fmin(self.ranges[:, 0], np.fmin.reduce(usual))
        self.ranges[:, 1] = np.fmax(self.ranges[:, 1], np.fmax.reduce(usual))
        known = times[~np.isnan(times)]
        for seen, (name, period) in zip(self.clock, PERIODS.items(), strict=True):
            share = np.mod(known - STARTS[name], period) / period
            seen[np.minimum((share * CLOCK).astype(int), CLOCK - 1)] = 1.0

    def arrays(self) -> dict[str, Floats]:
        return {"seen_ranges": self.ranges.copy(), "seen_clock": self.clock.copy()}

    @classmethod
    def restore(cls, state: Mapping[str, Floats]) -> SeenInputs:
        """What `arrays` returned, checked."""
        seen = cls()
        ranges, clock = state["seen_ranges"], state["seen_clock"]
        if ranges.ndim != 2 or ranges.shape[1] != 2 or clock.shape != seen.clock.shape:
            raise FileRefused("the ranges of its inputs have an impossible shape.")
        seen.ranges, seen.clock = ranges.copy(), clock.copy()
        return seen

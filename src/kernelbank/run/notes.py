"""Notes about data that are probably not what their owner means: one line for each, once.

Nothing is changed by them, and they follow from the rows that this process reads: a resumed run may
note something again.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import KernelBankWarning
from ..io.cells import clock_change
from ..io.sources import RowBlock
from ..utils.validation import Floats
from .options import RunOptions

JUDGED_ROWS = 1000
"""After how many rows a column that has had one value, or none, is noted; or at the end."""

FEWEST_ROWS = 20
"""Of a shorter stream nothing is said at its end."""

REPEATS = 5
"""How often a value far from all others must have come."""

FAR = 3.0
"""How many times the range of the others a value must be away from them to be far."""

DISTINCT = 10
"""How many different values the others must have: a column of 0 and 1 has no far value."""

LARGEST_EXACT = 2.0**53
"""Whole numbers beyond this are rounded."""


class _Column:
    """The lowest and the highest different values of a column, and how often each has come."""

    def __init__(self) -> None:
        self.values = np.zeros(0)
        self.counts = np.zeros(0, dtype=int)

    def add(self, values: Floats) -> None:
        """Add finite values. One that is left out has more extreme ones on both sides for ever."""
        news, counts = np.unique(values, return_counts=True)
        self.values, places = np.unique(np.r_[self.values, news], return_inverse=True)
        self.counts = np.bincount(places, np.r_[self.counts, counts]).astype(int)
        if len(self.values) > 2 * DISTINCT:
            ends = np.r_[0:DISTINCT, -DISTINCT:0]
            self.values, self.counts = self.values[ends], self.counts[ends]

    @property
    def far_value(self) -> tuple[float, int] | None:
        """A value that repeats far from all others, and how often it has come."""
        if len(self.values) <= DISTINCT:
            return None
        for values, counts in ((self.values, self.counts), (self.values[::-1], self.counts[::-1])):
            distance, width = abs(values[1] - values[0]), abs(values[-1] - values[1])
            if counts[0] >= REPEATS and distance > FAR * width > 0:
                return float(values[0]), int(counts[0])
        return None


class DataNotes:
    """Watches the numbers and times of a run."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._columns: dict[str, _Column] = {}
        self._noted: set[tuple[str, str]] = set()
        self._rows = 0
        self._last_time: float | None = None

    def watch(self, names: list[str], numbers: Floats) -> None:
        """Look at n rows of numbers (n, d), the targets last."""
        before, self._rows = self._rows, self._rows + len(numbers)
        anew = "" if self._options.state is None else ", and another --state"
        for name, values in zip(names, numbers.T, strict=True):
            column = self._columns.setdefault(name, _Column())
            present = values[~np.isnan(values)]
            if not len(present):
                continue
            column.add(present)
            largest = float(np.abs(present).max())
            if LARGEST_EXACT < largest < 2.0**64 and name not in self._options.targets:
                self._note(
                    "large",
                    name,
                    f"column {name!r} has whole numbers beyond 2^53, which are rounded. If they "
                    f"are names, leave the column out of --features{anew}.",
                )
            if ("far", name) not in self._noted and column.far_value is not None:
                value, count = column.far_value
                option = ",".join([*self._options.missing, f"{value:.12g}"])
                self._note(
                    "far",
                    name,
                    f"{value:.12g} has come {count} times in {name!r}, far from all other values. "
                    f"If it means that there is none, use --missing {option}{anew}.",
                )
        if before < JUDGED_ROWS <= self._rows:
            self.judge()

    def judge(self) -> None:
        """Note columns that have had one value so far, or none."""
        if self._rows < FEWEST_ROWS:
            return
        for name, column in self._columns.items():
            what = "the target" if name in self._options.targets else "column"
            if not len(column.values):
                text = f"{what} {name!r} has had no value in {self._rows:,} rows so far."
            elif len(column.values) == 1:
                value = f"{column.values[0]:.12g}"
                text = f"{what} {name!r} has been {value} in all {self._rows:,} rows so far."
            else:
                continue
            if what != "column":
                text += " Is --target the right column?"
            self._note("same", name, text)

    def watch_times(self, block: RowBlock, rows: list[int], times: list[float]) -> None:
        """Look at the times of rows of a block."""
        zone = self._options.zone
        for row, time in zip(rows, times, strict=True):
            change = "" if zone is None else clock_change(time, zone)
            if change:
                verb = "twice, when it is set back" if change == "twice" else "never"
                used = "Both hours are the same time of day" if change == "twice" else "It is used"
                self._note(
                    change,
                    "",
                    f"{block.where(row)}: the clock of {self._options.timezone} shows this time "
                    f"{verb}. {used}, as it stands there.",
                )
            last, self._last_time = self._last_time, time
            if last is None or time > last or change == "twice":
                continue
            how = (
                "is that of the row before" if time == last else "is before that of the row before"
            )
            self._note(
                "repeats" if time == last else "backwards",
                "",
                f"{block.where(row)}: its time {how}. Rows are learned in the order in which they "
                "come; if that is not the order of time, sort them.",
            )

    def _note(self, kind: str, name: str, text: str) -> None:
        if (kind, name) not in self._noted:
            self._noted.add((kind, name))
            warnings.warn(text, KernelBankWarning, stacklevel=3)

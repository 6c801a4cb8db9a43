"""Seasons: what a row knows of earlier periods, and how periods are found.

With a season of p rows, a row knows the targets p, 2p and 3p rows before its own, and its phase.
These are further inputs, but for some slots only (`season_slots`). A row's number in the stream is
how many rows were learned, and how many were predicted that still wait for their targets. Periods
are named by the user, or found in the stream (`find_new_periods`): after fixed numbers of rows and
from the newest targets alone, so that nothing depends on how a stream is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np

from .. import _core
from ..utils.validation import Floats

SEASON_PAST: int = _core.SEASON_PAST
"""Numbers that a row knows for each period, beside its lagged targets: the last targets of its
phase, then cosines and sines of the phase."""

RECALLED: int = _core.RECALLED
"""How many targets of the same phase a row knows: 1, 2 and 3 periods before it."""

SEASON_INPUTS: int = _core.SEASON_INPUTS
"""Columns of a scaled row for each period: the last target of the phase, the mean of those known,
then cosines and sines."""

SHORTEST = 4  # the shortest period that is looked for
MULTIPLES = 8  # how many multiples of a period are looked at, at most
AUTO = "auto"  # the value of `seasons` by which periods are found in the stream
LARGEST_PERIOD = 20_000  # the longest period that can be named: two weeks of minutes
MOST_PERIODS = 4  # how many periods can be named
PLACES = 2  # how many periods are found in a stream: a day and a week

WINDOW = 4096
"""Newest targets in which periods are looked for; the longest that can be found is a quarter."""

LEAST_DAYS = 28  # how many times a period must have come before a longer one is looked for

LATE = 2048
"""Rows after which a period must be clearer, since the other slots have learned much by then."""


class Schedule(NamedTuple):
    """After which numbers of rows something is done: the first ones, then multiples of a period."""

    first: tuple[int, ...]
    period: int

    def is_due(self, rows: int) -> bool:
        """Whether it is done after so many rows."""
        return rows > 0 and (rows in self.first or rows % self.period == 0)

    def rows_left(self, rows: int) -> int:
        """How many rows are learned until the next time; at least one."""
        first = [number - rows for number in self.first if number > rows]
        return min([*first, self.period - rows % self.period])


FIRST_LOOKS, NEXT_LOOKS = (200, 300, 400, 500, 700, 1000, 1400, 2800), 2000
LOOKS = Schedule(FIRST_LOOKS, NEXT_LOOKS)
"""When periods are looked for: soon after four days, or four weeks, of hours or parts of them."""

SIGNIFICANT = 5.0  # standard deviations of chance that a period must exceed
SIGNIFICANT_DAYS = 3.5  # the same of a period of days: there are few that it may be

LEAST_HEIGHT, LEAST_LATE_HEIGHT = 0.15, 0.3
"""The least autocorrelation of a season; the second is for those found late."""

LEAST_GAIN = 0.1
"""By how much the autocorrelation of another period must exceed that of a period in use."""

SAME_HEIGHT = 0.05
"""Periods whose autocorrelation differs by this share are alike: the shortest is taken."""

FEWEST_PARTS, LEAST_PART = 3, 0.5
"""A part of a period, such as the day in a week, is a period too if the whole has at least three of
them, and its multiples inside the whole have this share of the whole's autocorrelation."""

Setting = str | tuple[int, ...] | None  # of `seasons`: periods, "auto" or None


def season_places(seasons: Setting) -> int:
    """How many periods have columns; those that are to be found have them from the start."""
    if seasons is None:
        return 0
    return PLACES if isinstance(seasons, str) else len(seasons)


def history_size(seasons: Setting) -> int:
    """How many of the newest targets are kept."""
    if seasons is None:
        return 0
    return WINDOW if isinstance(seasons, str) else RECALLED * max(seasons)


def find_new_periods(
    newest_targets: Callable[[int], Floats], rows: int, targets: int, before: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Look for periods; those to use from now on, None to stay with `before`.

    newest_targets : of target k, (n,).
    targets : how many there are, of which the first with a new period counts; 0 if they are numbers
        of classes: then the share of the most frequent one is looked at.
    """
    for k in range(max(targets, 1)):
        values = newest_targets(k)
        if not targets:
            names, frequency = np.unique(values, return_counts=True)
            values = (values == names[np.argmax(frequency)]).astype(np.float64)
        missing = np.isnan(values)
        if missing.any():
            if 2 * missing.sum() > len(values):
                continue
            values = np.where(missing, np.median(values[~missing]), values)
        periods = find_periods(values, before, LEAST_HEIGHT if rows <= LATE else LEAST_LATE_HEIGHT)
        if periods and periods != before:
            return periods
    return None


def find_periods(
    values: Floats, used: tuple[int, ...] = (), least: float = LEAST_HEIGHT
) -> tuple[int, ...]:
    """The periods of a stream: none, one, or two, of which one is a multiple of the other.

    If there is one, such as a day, a longer one is looked for in the means of the days, and in how
    much each has of the mean day. See `test_periods` of the core.

    Parameters
    ----------
    values : (n,), targets.
    used : periods in use. They are returned unless another one is better by LEAST_GAIN.
    least : the least mean autocorrelation at multiples of a period.
    """
    ranks = _ranks(values)
    periods = _whole_and_part(ranks, used, least)
    if len(periods) != 1 or len(ranks) // periods[0] < LEAST_DAYS:
        return periods
    (day,) = periods
    days = ranks[len(ranks) % day :].reshape(-1, day)
    profile = _means(days.T)
    heights: dict[int, float] = {}
    for series in (
        _means(days),
        _means((days - _means(days)[:, None]) * (profile - _means(profile[None]))),
    ):
        for period, height in _clear_periods(series, least, SIGNIFICANT_DAYS)[0].items():
            heights[period] = max(height, heights.get(period, 0.0))
    highest = max(heights.values(), default=0.0)
    longer = [period for period, height in heights.items() if height >= 0.9 * highest]
    return (day, min(longer) * day) if longer else periods


def _means(rows: Floats) -> Floats:
    """The mean of each row, the same on every machine."""
    return np.asarray(np.cumsum(rows, axis=1)[:, -1] / rows.shape[1])


def _whole_and_part(ranks: Floats, used: tuple[int, ...], least: float) -> tuple[int, ...]:
    """The clearest period, and the part of it that is a period too, if there is one."""
    heights, tests = _clear_periods(ranks, least)
    count, longest = len(ranks), len(ranks) // 4
    if not heights:
        return used
    highest = max(heights.values())
    if used and used[-1] <= longest and highest < float(tests[used[-1], 1]) + LEAST_GAIN:
        return used
    alike = highest - max(SAME_HEIGHT * highest, 2.0 / sqrt(count))
    whole = min(period for period, height in heights.items() if height >= alike)
    parts = {}
    for period, height in heights.items():
        times = whole // period
        if whole % period == 0 and times >= FEWEST_PARTS:
            inside = (times * height - heights[whole]) / (times - 1)
            if inside >= LEAST_PART * heights[whole]:
                parts[inside] = period
    return (parts[max(parts)], whole) if parts else (whole,)


def _clear_periods(
    ranks: Floats, least: float, significant: float = SIGNIFICANT
) -> tuple[dict[int, float], Floats]:
    """The mean autocorrelation at multiples of all periods that are no chance; and all tests."""
    count, longest = len(ranks), len(ranks) // 4
    factor, tests = _core.test_periods(ranks)
    if not factor > 0.0:
        return {}, tests
    heights: dict[int, float] = {}
    for period in range(SHORTEST, longest + 1):
        multiples = max(1, min(MULTIPLES, (count // 2) // period))
        most = significant * sqrt(factor / count / multiples)
        contrast, height, contrast_lasts, height_lasts = tests[period].tolist()
        # A contrast is a difference of three autocorrelations, with weights 1, -1/2, -1/2.
        clear = height > most and contrast > sqrt(1.5) * most
        if contrast_lasts >= 0.0 and height_lasts >= 0.0 and clear and height >= least:
            heights[period] = height
    return heights, tests


def _ranks(values: Floats) -> Floats:
    """(n,): the ranks of values, equal ones at their mean rank: a few large values do not count."""
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - 0.5 * (counts + 1))[number])

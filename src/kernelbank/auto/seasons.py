"""Seasons: periods after which a stream repeats, such as the 24 rows of a day.

With a period of p rows, a row knows the targets p, 2p and 3p rows before its own, and its phase.
These are further inputs, but for some slots only (`season_slots`). A row's number in the stream is
how many rows were learned, and how many were predicted that still wait for their targets.

Periods are named by the user, or found in the stream (`SeasonHistory.find`): after fixed numbers of
rows and from the newest targets alone, so that nothing depends on how a stream is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

import numpy as np

from ..native.phases import Phase
from ..native.progress import progress
from ..utils import validation as check
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from . import season_steps as steps
from .scaling.scaling_batch import CHUNK

AUTO = "auto"
"""The value of `seasons` by which periods are found in the stream."""

LARGEST_PERIOD = 20_000
"""The longest period that can be named: two weeks of minutes."""

MOST_PERIODS = 4
"""How many periods can be named."""

PLACES = 2
"""How many periods are found in a stream: a day and a week."""

WINDOW = 4096
"""Newest targets in which periods are looked for; the longest that can be found is a quarter."""

LATE = 2048
"""Rows after which a period must be clearer, since the other slots have learned much by then."""

FIRST_LOOKS, NEXT_LOOKS = (200, 500, 1000), 2000
"""After which numbers of rows periods are looked for: these, then every 2,000 rows."""

SIGNIFICANT = 5.0
"""Standard deviations of chance that a period must exceed."""

LEAST_HEIGHT, LEAST_LATE_HEIGHT = 0.15, 0.3
"""The least autocorrelation of a season; the second is for those found late."""

LEAST_GAIN = 0.1
"""By how much the autocorrelation of another period must exceed that of a period in use."""

SAME_HEIGHT = 0.05
"""Periods whose autocorrelation differs by this share are alike: the shortest is taken."""

FEWEST_PARTS, LEAST_PART = 3, 0.5
"""A part of a period, such as the day in a week, is a period too if the whole has at least three of
them, and its multiples inside the whole have this share of the whole's autocorrelation."""

Setting = str | tuple[int, ...] | None


def checked_seasons(seasons: Any) -> Setting:
    """None, "auto", or different periods in their order."""
    owner = "AutoBank"
    remedy = 'Give the rows of a period, such as 24 or (24, 168), or "auto", or None.'
    if seasons is None or (isinstance(seasons, str) and seasons == AUTO):
        return seasons
    given = [seasons]
    if isinstance(seasons, Iterable) and not isinstance(seasons, (str, bytes)):
        given = list(seasons)
    if isinstance(seasons, str) or not given:
        raise check.refuse("seasons", 'be periods, "auto" or None', seasons, remedy, owner)
    periods = [
        check.count("seasons", period, owner, remedy, least=2, most=LARGEST_PERIOD)
        for period in given
    ]
    if len(set(periods)) < len(periods) or len(periods) > MOST_PERIODS:
        rule = f"name at most {MOST_PERIODS} periods, none twice"
        raise check.refuse("seasons", rule, tuple(periods), remedy, owner)
    return tuple(sorted(periods))


def season_places(seasons: Setting) -> int:
    """How many periods have columns; those that are to be found have them from the start."""
    if seasons is None:
        return 0
    return PLACES if isinstance(seasons, str) else len(seasons)


class SeasonHistory:
    """The newest targets of a stream, its periods, and what a row knows of earlier periods.

    Parameters
    ----------
    seasons : periods, or "auto".
    """

    def __init__(self, seasons: str | tuple[int, ...]) -> None:
        self.automatic = isinstance(seasons, str)
        periods = () if isinstance(seasons, str) else seasons
        self._periods = np.zeros(season_places(seasons), dtype=np.int64)
        self.size = WINDOW if self.automatic else steps.RECALLED * max(periods)
        self.targets = np.zeros(self.size)
        """The newest targets; that of row n is at n % size."""
        self._rows = np.zeros(1, dtype=np.int64)
        self.periods = periods

    @property
    def periods(self) -> tuple[int, ...]:
        """The periods in use, in their order."""
        return tuple(int(period) for period in self._periods if period)

    @periods.setter
    def periods(self, periods: tuple[int, ...]) -> None:
        self._periods[:] = 0
        self._periods[: len(periods)] = periods
        self.is_known = len(periods) > 0
        """Whether there is a period. As long as there is none, rows know nothing: NaN."""

    @property
    def width(self) -> int:
        """How many numbers a row knows."""
        return len(self._periods) * steps.PAST

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but what holds the addresses of arrays."""
        return {name: value for name, value in self.__dict__.items() if name != "_arrays"}

    def append(self, rows: int, targets: Floats) -> None:
        """Add the newest targets of a stream of `rows` rows."""
        newest = targets[-self.size :]
        self.targets[(rows - len(newest) + np.arange(len(newest))) % self.size] = newest

    def append_one(self, rows: int, target: float) -> None:
        """Add the newest target of a stream of `rows` rows."""
        self.targets[(rows - 1) % self.size] = target

    # --- what rows know ---------------------------------------------------------------------------

    def recall(
        self, rows: int, positions: Any, known: Any, targets: Floats | None = None
    ) -> Floats:
        """(n, width): what rows know of earlier periods; see `season_steps.recall`.

        Parameters
        ----------
        rows : how many rows have been learned.
        positions : the numbers of the rows in the stream.
        known : how many targets were known when each was predicted.
        targets : of rows after those that have been learned, at most CHUNK.
        """
        arrays = self._batch()
        self._rows[0] = rows
        if targets is not None:
            arrays["targets"][: len(targets)] = targets
        out = np.empty((len(positions), self.width))
        for start in range(0, len(positions), CHUNK):
            some = slice(start, start + CHUNK)
            count = len(positions[some])
            arrays["positions"][:count] = positions[some]
            arrays["known"][:count] = known[some]
            arrays["phase"].run(0, count)
            out[some] = arrays["out"][:count]
        return out

    def recall_one(self, rows: int, position: int, out: Floats) -> None:
        """Write to `out` (width,) what a row at this position knows, if `rows` were learned."""
        arrays = self._batch()
        self._rows[0] = rows
        arrays["positions"][0] = position
        arrays["known"][0] = rows
        arrays["phase"].run(0, 1)
        out[:] = arrays["out"][0]

    def _batch(self) -> dict[str, Any]:
        """The arrays of a batch of rows, and the step on them."""
        found = self.__dict__.get("_arrays")
        if found is None:
            arrays: dict[str, Any] = {
                "targets": np.zeros(CHUNK),
                "positions": np.zeros(CHUNK, dtype=np.int64),
                "known": np.zeros(CHUNK, dtype=np.int64),
                "out": np.zeros((CHUNK, self.width)),
            }
            with defer_signals():  # compiling must not be interrupted
                phase = Phase(
                    steps.recall,
                    places=len(self._periods),
                    width=self.width,
                    size=self.size,
                    periods=self._periods,
                    history=self.targets,
                    rows=self._rows,
                    **arrays,
                )
            progress.finished()
            found = self._arrays = {**arrays, "phase": phase}
        return found

    # --- finding periods --------------------------------------------------------------------------

    def rows_to_look(self, rows: int) -> int:
        """After how many further rows periods are looked for, if they are not named."""
        first = [look - rows for look in FIRST_LOOKS if look > rows]
        return min([*first, NEXT_LOOKS - rows % NEXT_LOOKS])

    def is_due(self, rows: int) -> bool:
        """Whether periods are looked for after so many rows."""
        return self.automatic and rows > 0 and (rows in FIRST_LOOKS or rows % NEXT_LOOKS == 0)

    def find(self, rows: int, *, classes: bool) -> tuple[int, ...]:
        """Look for periods in the newest targets; the new ones, which are in use from now on.

        classes : whether targets are numbers of classes: then the share of the most frequent one
            is looked at.
        """
        count = min(rows, self.size)
        values = self.targets[(rows - count + np.arange(count)) % self.size]
        if classes:
            names, frequency = np.unique(values, return_counts=True)
            values = (values == names[np.argmax(frequency)]).astype(np.float64)
        least = LEAST_HEIGHT if rows <= LATE else LEAST_LATE_HEIGHT
        before = self.periods
        found = find_periods(values, before, least)
        if not found or found == before:
            return ()
        self.periods = found
        return tuple(period for period in found if period not in before)

    # --- saving -----------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        return {"season_targets": self.targets}

    def counters(self) -> dict[str, Any]:
        """The rest of the state, as plain data."""
        return {"periods": list(self.periods)}

    def restore_periods(self, counters: Mapping[str, Any]) -> None:
        """Continue with the periods of `counters`, which may be anything in a forged file."""
        found = checked_seasons(counters["periods"] or None)
        if found is not None and (
            isinstance(found, str) or len(found) > PLACES or found[-1] > WINDOW // 4
        ):
            raise ValueError("such periods cannot be found")
        if self.automatic:
            self.periods = found or ()
        elif found != self.periods:
            raise ValueError("its periods are not those of its settings")


def find_periods(
    values: Floats, used: tuple[int, ...] = (), least: float = LEAST_HEIGHT
) -> tuple[int, ...]:
    """The periods of a stream: none, one, or one and a part of it; see `season_steps.test_periods`.

    Parameters
    ----------
    values : (n,), targets.
    used : periods in use. They are returned unless another one is better by LEAST_GAIN.
    least : the least mean autocorrelation at multiples of a period.
    """
    count, longest = len(values), len(values) // 4
    lags = 5 * count // 8 + 2
    tests = np.zeros((longest + 1, steps.TESTS))
    spread = np.zeros(1)
    steps.test_periods(
        count=count,
        lags=lags,
        longest=longest,
        values=_ranks(values),
        residuals=np.zeros(count),
        correlations=np.zeros(lags),
        spread=spread,
        tests=tests,
    )
    if not spread[0] > 0.0:
        return used
    chance = [sqrt(float(spread[0]) / count / _multiples(count, p)) for p in range(1, longest + 1)]
    heights: dict[int, float] = {}
    for period in range(steps.SHORTEST, longest + 1):
        own, most = tests[period], SIGNIFICANT * chance[period - 1]
        lasts = own[steps.HEIGHT_LASTS] >= 0.0 and own[steps.CONTRAST_LASTS] >= 0.0
        # A contrast is a difference of three autocorrelations, with weights 1, -1/2, -1/2.
        clear = own[steps.HEIGHT] > most and own[steps.CONTRAST] > sqrt(1.5) * most
        if lasts and clear and own[steps.HEIGHT] >= least:
            heights[period] = float(own[steps.HEIGHT])
    if not heights:
        return used
    highest = max(heights.values())
    if used and used[-1] <= longest and highest < float(tests[used[-1], steps.HEIGHT]) + LEAST_GAIN:
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


def _multiples(count: int, period: int) -> int:
    return max(1, min(steps.MULTIPLES, (count // 2) // period))


def _ranks(values: Floats) -> Floats:
    """(n,): the ranks of values, equal ones at their mean rank: a few large values do not count."""
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - 0.5 * (counts + 1))[number])

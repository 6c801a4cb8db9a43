"""Times in cells: ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970.

What a cell means depends on this cell alone, so it does not matter where a stream is cut or where a
run is resumed. The unit of a number follows from its size: in one unit only it is a moment from
1980 to 2199. Dates of 8, 12 or 14 digits are such numbers in no unit, so 20240131 is a date. (Ten
digits are always seconds.) Another number is refused rather than guessed: 23 may be an hour.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

NUMBER_YEARS = (1980, 2199)
"""The first and the last year of times that are numbers."""

TEXT_YEARS = (1700, 2199)
"""The first and the last year of times that name their year."""

UNITS = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
"""How many of each unit a second has."""

NOT_A_TIME = (
    "is not a time: write times as ISO 8601 such as 2024-01-31T12:00, or as seconds, milliseconds, "
    "microseconds or nanoseconds since 1970"
)
IMPLAUSIBLE_NUMBER = (
    f"is not plausible as a time: in no unit since 1970 is it between {NUMBER_YEARS[0]} and "
    f"{NUMBER_YEARS[1]}. Write times as ISO 8601 such as 2024-01-31T12:00; a counter or an hour is "
    "a number: name it in --features, not in --time"
)
IMPLAUSIBLE_YEAR = (
    f"is not plausible as a time: its year is not between {TEXT_YEARS[0]} and {TEXT_YEARS[1]}. "
    "Correct it"
)

_DIGITS = re.compile(r"(\d{8})((?:\d{4}|\d{6})?)(?:\.0)?")
"""YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss; a table with gaps writes them with .0."""


def _seconds_of_year(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


_FIRST, _END = _seconds_of_year(NUMBER_YEARS[0]), _seconds_of_year(NUMBER_YEARS[1] + 1)


def parse_time(cell: str | None) -> float:
    """Seconds since 1970; UTC unless the cell says otherwise.

    Raises
    ------
    ValueError
        If the cell is not a plausible time; the message is the end of a sentence about the cell.

    >>> parse_time("2024-01-31"), parse_time("20240131"), parse_time("1706659200000")
    (1706659200.0, 1706659200.0, 1706659200.0)
    """
    text = (cell or "").strip()
    number = _as_number(text)
    if number is not None:
        for per_second in UNITS.values():
            if _FIRST <= number / per_second < _END:
                return number / per_second
    date = _DIGITS.fullmatch(text)
    if number is not None and date is None:
        raise ValueError(IMPLAUSIBLE_NUMBER)
    try:
        moment = datetime.fromisoformat(
            text if date is None else "T".join(date.groups()).strip("T")
        )
    except ValueError:
        raise ValueError(NOT_A_TIME if date is None else IMPLAUSIBLE_NUMBER) from None
    if not TEXT_YEARS[0] <= moment.year <= TEXT_YEARS[1]:
        raise ValueError(IMPLAUSIBLE_YEAR if date is None else IMPLAUSIBLE_NUMBER)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _as_number(text: str) -> float | None:
    """The cell as a number, None if it is none. NaN and infinity are no times."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None

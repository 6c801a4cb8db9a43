"""Times in cells: ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970.

What a cell means depends on this cell alone, so it does not matter where a stream is cut or where a
run is resumed. The unit of a number follows from its size: in one unit only it is a moment from
1980 to 2199. Dates of 8, 12 or 14 digits are such numbers in no unit, so 20240131 is a date. (Ten
digits are always seconds.) Another number is refused rather than guessed: 23 may be an hour. So is
05/06/2024, which may be in May or June, without a format; 31.1.2024 and 2024/1/31 are clear.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

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

_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T]+(.*))?")
"""31.1.2024, 1/31/2024 or 31-1-2024, perhaps with a time."""

_YEAR_FIRST = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?:[ T]+(.*))?")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?(\.\d{1,6})?( ?[AaPp][Mm])?")

_DIGITS = re.compile(r"(\d{8})((?:\d{4}|\d{6})?)(?:\.0)?")
"""YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss; a table with gaps writes them with .0."""


def _seconds_of_year(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


_FIRST, _END = _seconds_of_year(NUMBER_YEARS[0]), _seconds_of_year(NUMBER_YEARS[1] + 1)


def parse_time(cell: str | None, form: str | None = None, zone: ZoneInfo | None = None) -> float:
    """Seconds since 1970; UTC unless the cell says otherwise.

    Parameters
    ----------
    cell : what is parsed.
    form : its format, as for `datetime.strptime`; by default it is recognised.
    zone : whose clock is read: then the seconds are those of a clock in UTC that shows the same. A
        cell that names no zone is of this one already.

    Raises
    ------
    ValueError
        If the cell is not a plausible time; the message is the end of a sentence about the cell.

    >>> parse_time("2024-01-31"), parse_time("20240131"), parse_time("31.1.2024 00:00")
    (1706659200.0, 1706659200.0, 1706659200.0)
    >>> parse_time("1/31/24 2 PM", "%m/%d/%y %I %p") - parse_time("2024-01-31")
    50400.0
    """
    text = " ".join((cell or "").split())
    seconds = _as_seconds(text) if form is None else None
    if seconds is not None:
        if zone is None:
            return seconds
        offset = datetime.fromtimestamp(seconds, zone).utcoffset()
        return seconds + (offset.total_seconds() if offset else 0.0)
    moment = _parse(text, form)
    if moment.tzinfo is None or zone is None:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return moment.astimezone(zone).replace(tzinfo=UTC).timestamp()


def clock_change(seconds: float, zone: ZoneInfo) -> str:
    """ "twice" if the clock of a zone shows this time twice, "never" if never, else "".

    >>> berlin = ZoneInfo("Europe/Berlin")
    >>> [clock_change(parse_time(f"2024-{day} 02:30"), berlin) for day in ("10-27", "03-31")]
    ['twice', 'never']
    """
    shown = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=zone)
    first, second = shown.utcoffset(), shown.replace(fold=1).utcoffset()
    if first is None or second is None or first == second:
        return ""
    return "twice" if first > second else "never"


def time_format(cell: str) -> tuple[str, ...]:
    """The formats that a date with slashes or dashes may have, day or month first; else none.

    >>> time_format("1/31/2024 14:00")
    ('%m/%d/%Y %H:%M',)
    >>> time_format("05/06/2024")
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    date = _DATE.fullmatch(" ".join(cell.split()))
    if date is None or date[2] == ".":
        return ()
    clock = ""
    if date[5]:
        match = _CLOCK.fullmatch(date[5])
        if match is None:
            return ()
        seconds, fraction, half = match.groups()
        clock = f" {'%I' if half else '%H'}:%M{':%S' if seconds else ''}"
        clock += ("" if fraction is None else ".%f") + (half or "").replace(
            (half or "").strip() or " ", "%p"
        )
    mark = date[2]
    forms = (f"%d{mark}%m{mark}%Y{clock}", f"%m{mark}%d{mark}%Y{clock}")
    return tuple(form for form in forms if _fits(cell, form))


def _fits(cell: str, form: str) -> bool:
    try:
        parse_time(cell, form)
    except ValueError:
        return False
    return True


def _parse(text: str, form: str | None) -> datetime:
    """The moment that a text names, with a zone if it names that too."""
    if form is not None:
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            raise ValueError(f"is not a time as --time-format {form!r} says") from None
        return _of_plausible_year(moment, IMPLAUSIBLE_YEAR)
    digits = _DIGITS.fullmatch(text)
    if digits is None and _as_number(text) is not None:
        raise ValueError(IMPLAUSIBLE_NUMBER)
    try:
        moment = datetime.fromisoformat(_iso(text) if digits is None else _joined(digits))
    except ValueError:
        forms = " or ".join(f"--time-format '{form}'" for form in time_format(text))
        if forms:
            raise ValueError(f"is a time whose format has to be named: use {forms}") from None
        raise ValueError(NOT_A_TIME if digits is None else IMPLAUSIBLE_NUMBER) from None
    return _of_plausible_year(moment, IMPLAUSIBLE_YEAR if digits is None else IMPLAUSIBLE_NUMBER)


def _joined(digits: re.Match[str]) -> str:
    return "T".join(digits.groups()).strip("T")


def _iso(text: str) -> str:
    """A date whose parts are clear, such as 31.1.2024 or 2024/1/31, as ISO 8601."""
    date, year_first = _DATE.fullmatch(text), _YEAR_FIRST.fullmatch(text)
    if date is not None and date[2] == ".":
        day, month, year, clock = date[1], date[3], date[4], date[5]
    elif year_first is not None:
        year, month, day, clock = year_first.groups()
    else:
        return text
    clock = f"T{'0' * (clock[1:2] == ':')}{clock}" if clock else ""
    return f"{year}-{month:0>2}-{day:0>2}{clock}"


def _of_plausible_year(moment: datetime, otherwise: str) -> datetime:
    if not TEXT_YEARS[0] <= moment.year <= TEXT_YEARS[1]:
        raise ValueError(otherwise)
    return moment


def _as_seconds(text: str) -> float | None:
    """A number as seconds since 1970, in the one unit in which it is plausible; else None."""
    number = _as_number(text)
    if number is None:
        return None
    return next((number / unit for unit in UNITS.values() if _FIRST <= number / unit < _END), None)


def _as_number(text: str) -> float | None:
    """The cell as a number, None if it is none. NaN and infinity are no times."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None

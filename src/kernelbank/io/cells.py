"""Cells to numbers, texts and times: what a value means, whatever source it came from.

A number is what Python's `float` accepts, without underscores; true and false are 1 and 0. Empty
cells and the words NA, N/A, NaN, null and none, in any case, are missing. A number beyond 1e150,
and so infinity, is rejected: the square of a difference must not overflow.

As numbers, times are seconds since 1970 (UTC unless they say otherwise); as text they are ISO 8601.

What the time in a cell means depends on this cell alone, so it does not matter where a stream is
cut or where a run is resumed. The unit of a number follows from its size: in one unit only it is a
moment from 1980 to 2199. Dates of 8, 12 or 14 digits are such numbers in no unit, so 20240131 is a
date. (Ten digits are always seconds.) Another number is refused rather than guessed: 23 may be an
hour. So is 05/06/2024, which may be in May or June, without a format; 31.1.2024 and 2024/1/31 are
clear.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from ..utils.rendering import shortened
from ..utils.validation import LARGEST, Floats

_MISSING_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none"))
_BOOLEANS = {"true": 1.0, "false": 0.0}

LONGEST_SHOWN = 80  # characters of a value in a message
NOT_A_NUMBER = "is not a number"
MISSING = "is missing"
TOO_LARGE = f"is an overflow, beyond {LARGEST:g}"
NESTED = "is nested"
NOT_TEXT = "is not UTF-8 text"

Values = Sequence[Any]  # the values of a column, as they came

Fault = tuple[int, str]  # the index of an invalid value, and why it is invalid

_POINT = "(point)"
"""Stands for a point where commas are decimal points: what holds it is not a number."""

_PLAIN = frozenset((float, int, bool))


# --- numbers --------------------------------------------------------------------------------------


def parse_numbers(values: Values, kinds: Set[type] | None = None) -> tuple[Floats, list[Fault]]:
    """The values as float64, missing ones as NaN, and the faults of the invalid ones.

    `kinds` are the types of the values, where they are known.
    """
    faults: list[Fault] = []
    kinds = set(map(type, values)) if kinds is None else kinds
    array = None
    if kinds == {str}:
        with contextlib.suppress(ValueError):
            array = np.fromiter((float(text or "nan") for text in values), float, len(values))
            # float accepts 1_000, which is more likely a name than a number.
            array = None if "_" in "".join(values) else array
    elif kinds <= _PLAIN:
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats
            array = np.fromiter(map(float, values), float, len(values))
    if array is None:
        array = np.empty(len(values))
        for index, value in enumerate(values):
            result = parse_number(value)
            if isinstance(result, str):
                faults.append((index, result))
                result = 0.0
            array[index] = result
    return array, faults + range_faults(array)


def with_points(values: Sequence[str], decimal: str) -> Sequence[str]:
    """Numbers with another decimal character as numbers with points.

    A point in such a number may separate thousands or be a mistake: the cell is not a number.
    """
    return [
        value.replace(".", _POINT) if "." in value else value.replace(decimal, ".")
        for value in values
    ]


def range_faults(array: Floats) -> list[Fault]:
    """The numbers that are too large."""
    return [(index, TOO_LARGE) for index in np.flatnonzero(np.abs(array) > LARGEST).tolist()]


def parse_number(value: object) -> float | str:  # noqa: PLR0911  (one for each type)
    """One value as a float, NaN if it is missing; or why it is not a number."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            word = value.strip().lower()
            return math.nan if word in _MISSING_WORDS else _BOOLEANS.get(word, NOT_A_NUMBER)
        return NOT_A_NUMBER if "_" in value else number
    if value is None:
        return math.nan
    if isinstance(value, (float, int, Decimal)):
        try:
            return float(value)
        except OverflowError:
            return TOO_LARGE
        except ValueError:  # a signalling NaN
            return math.nan
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, date):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return NESTED if isinstance(value, (list, dict)) else NOT_A_NUMBER


@dataclass(frozen=True)
class MissingValues:
    """Values that mean that there is none, as text: of numbers, every way to write them."""

    words: frozenset[str]
    numbers: tuple[float, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> MissingValues:
        """From texts such as -999 or NA."""
        words = frozenset(text.strip() for text in texts)
        numbers = (parse_number(word) for word in sorted(words))
        return cls(words, tuple(n for n in numbers if isinstance(n, float) and not math.isnan(n)))

    def in_numbers(self, array: Floats, faults: list[Fault], values: Values) -> list[Fault]:
        """Write NaN where a value means that there is none; returns the faults of the others."""
        others = []
        for index, reason in faults:
            if str(values[index]).strip() in self.words:
                array[index] = math.nan
            else:
                others.append((index, reason))
        array[np.isin(array, self.numbers)] = math.nan
        return others

    def in_texts(self, texts: list[str | None]) -> list[str | None]:
        """The texts, None where one means that there is none."""
        return [None if text is not None and text.strip() in self.words else text for text in texts]


# --- texts ----------------------------------------------------------------------------------------


def parse_texts(values: Values) -> tuple[list[str | None], list[Fault]]:
    """The values as unchanged text, None for missing ones, and the faults of the invalid ones."""
    faults: list[Fault] = []
    result: list[str | None] = []
    for index, value in enumerate(values):
        text = value if isinstance(value, str) else _to_text(value)
        if text is None and value is not None:
            faults.append((index, NESTED))
        elif text and not text.isascii() and _shown(text) != text:
            faults.append((index, NOT_TEXT))
        result.append(text or None)
    return result, faults


def copied_text(value: object) -> str | None:
    """A value as text for a copy of it, None if it is missing; nothing is refused."""
    if value is None:
        return None
    text = value if isinstance(value, str) else _to_text(value)
    if text is None:
        text = json.dumps(value, default=str) if isinstance(value, (list, dict)) else str(value)
    return _shown(text) or None


def shown_cell(value: object) -> str:
    """The value of a cell for a message: short, and without lone surrogates."""
    return _shown(shortened(value if isinstance(value, str) else repr(value), LONGEST_SHOWN))


def _shown(text: str) -> str:
    """The text with escapes for what is not UTF-8: such a byte, or a lone surrogate in JSON."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _to_text(value: object) -> str | None:
    """A value of another type as text; None if it has no text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        with contextlib.suppress(ValueError):  # a whole number of thousands of digits
            return "" if isinstance(value, float) and math.isnan(value) else str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return repr(value.total_seconds())
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else None


# --- times ----------------------------------------------------------------------------------------

NUMBER_YEARS = (1980, 2199)  # the first and the last year of times that are numbers
TEXT_YEARS = (1700, 2199)  # the first and the last year of times that name their year
UNITS = (1.0, 1e3, 1e6, 1e9)
"""How many seconds, milliseconds, microseconds and nanoseconds a second has."""

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
_DIGITS = re.compile(r"(\d{8})((?:\d{4}|\d{6})?)(?:\.0)?")
"""YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss; a table with gaps writes them with .0."""


_FIRST = datetime(NUMBER_YEARS[0], 1, 1, tzinfo=UTC).timestamp()
_END = datetime(NUMBER_YEARS[1] + 1, 1, 1, tzinfo=UTC).timestamp()


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
    if moment.tzinfo is not None and zone is not None:
        moment = moment.astimezone(zone).replace(tzinfo=None)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


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


def time_format(cell: str) -> str:
    """The likely format of a date with slashes or dashes, the day first if it may be; else "".

    >>> time_format("1/31/2024 14:00"), time_format("05/06/2024")
    ('%m/%d/%Y %H:%M', '%d/%m/%Y')
    """
    match = _DATE.fullmatch(" ".join(cell.split()))
    if match is None or match[2] == ".":
        return ""
    _, mark, second, _, clock = match.groups()
    order = ("%m", "%d", "%Y") if int(second) > 12 else ("%d", "%m", "%Y")
    if not clock:
        return mark.join(order)
    half = re.sub("[AaPp][Mm]$", "%p", clock)
    parts = iter(("%H" if half == clock else "%I", "%M", "%S", "%f"))
    return f"{mark.join(order)} {re.sub('[0-9]+', lambda _: next(parts, ''), half)}"


def _parse(text: str, form: str | None) -> datetime:
    """The moment that a text names, with a zone if it names that too."""
    digits = _DIGITS.fullmatch(text) if form is None else None
    try:
        if form is not None:
            moment = datetime.strptime(text, form)
        elif digits is not None:
            moment = datetime.fromisoformat("T".join(digits.groups()).strip("T"))
        elif _as_number(text) is None:
            moment = datetime.fromisoformat(_iso(text))
        else:
            raise ValueError
    except ValueError:
        if form is not None:
            raise ValueError(f"is not a time as --time-format {form!r} says") from None
        if digits is not None or _as_number(text) is not None:
            raise ValueError(IMPLAUSIBLE_NUMBER) from None
        if likely := time_format(text):
            raise ValueError(
                f"is a time whose format has to be named: use --time-format '{likely}', if that is "
                "its order"
            ) from None
        raise ValueError(NOT_A_TIME) from None
    if not TEXT_YEARS[0] <= moment.year <= TEXT_YEARS[1]:
        raise ValueError(IMPLAUSIBLE_YEAR if digits is None else IMPLAUSIBLE_NUMBER)
    return moment


def _iso(text: str) -> str:
    """A date whose parts are clear, such as 31.1.2024 or 2024/1/31, as ISO 8601."""
    day_first, year_first = _DATE.fullmatch(text), _YEAR_FIRST.fullmatch(text)
    if day_first is not None and day_first[2] == ".":
        day, _, month, year, clock = day_first.groups()
    elif year_first is not None:
        year, month, day, clock = year_first.groups()
    else:
        return text
    clock = f"T{'0' * (clock[1:2] == ':')}{clock}" if clock else ""
    return f"{year}-{month:0>2}-{day:0>2}{clock}"


def _as_seconds(text: str) -> float | None:
    """A number as seconds since 1970, in the one unit in which it is plausible; else None."""
    number = _as_number(text)
    seconds = [] if number is None else [number / per_second for per_second in UNITS]
    return next((second for second in seconds if _FIRST <= second < _END), None)


def _as_number(text: str) -> float | None:
    """The cell as a number, None if it is none. NaN and infinity are no times."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None

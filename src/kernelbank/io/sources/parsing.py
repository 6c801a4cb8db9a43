"""CsvRows to numbers and texts: what a value of a source means, whatever source it came from.

A number is what Python's `float` takes, but without underscores; true and false are 1 and 0.
Empty cells and the words NA, N/A, NaN, null and none, in any case, are missing. A number beyond
1e150, and so infinity, is never taken: the square of a difference must not overflow.

As numbers, points of time are seconds since 1970 (UTC unless they say otherwise); as text they
are written as ISO 8601 does.
"""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Sequence, Set
from decimal import Decimal
from typing import Any

import numpy as np

from ...utils.validation import LARGEST, Floats
from . import fast_float as quick

MISSING_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none"))
TRUTH = {"true": 1.0, "false": 0.0}

NO_NUMBER = "is not a number"
MISSING = "is missing"
TOO_LARGE = f"is an overflow, beyond {LARGEST:g}"
NESTED = "is nested"
NO_TEXT = "is not UTF-8 text"

Fault = tuple[int, str]
"""Which of the values is wrong, and why."""

_PLAIN = frozenset((float, int, bool))
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def numbers(
    values: Sequence[Any], allow_missing: bool, kinds: Set[type] | None = None
) -> tuple[Floats, list[Fault]]:
    """The values as float64, missing ones as NaN, and what is wrong with some of them.

    `kinds` are the types of the values, where they are known.
    """
    faults: list[Fault] = []
    kinds = set(map(type, values)) if kinds is None else kinds
    array = None
    if kinds == {str}:
        array = quick.texts_to_numbers(values)
    elif kinds <= _PLAIN:
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats
            array = np.fromiter(map(float, values), np.float64, len(values))
    if array is None:
        array = np.empty(len(values))
        for index, value in enumerate(values):
            result = number(value)
            if isinstance(result, str):
                faults.append((index, result))
                result = 0.0
            array[index] = result
    return array, faults + outside(array, allow_missing)


def outside(array: Floats, allow_missing: bool) -> list[Fault]:
    """The members that are no ordinary numbers: missing and not allowed to be, or too large."""
    with np.errstate(invalid="ignore"):
        odd = ~(np.abs(array) <= LARGEST)
    faults: list[Fault] = []
    for index in np.flatnonzero(odd).tolist():
        if not math.isnan(array[index]):
            faults.append((index, TOO_LARGE))
        elif not allow_missing:
            faults.append((index, MISSING))
    return faults


def number(value: Any) -> float | str:  # noqa: PLR0911  (one for each kind)
    """One value as a float, NaN if it is missing; or why it is none."""
    if isinstance(value, str):
        return _number_of_text(value)
    if value is None:
        return math.nan
    if isinstance(value, (float, int, Decimal)):
        try:
            return float(value)
        except OverflowError:
            return TOO_LARGE
        except ValueError:  # a signalling NaN
            return math.nan
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return _seconds(value)
    if isinstance(value, bytes):
        return _number_of_text(value.decode("utf-8", "surrogateescape"))
    return NESTED if isinstance(value, (list, dict)) else NO_NUMBER


def texts(values: Sequence[Any], allow_missing: bool) -> tuple[list[str | None], list[Fault]]:
    """The values as text, just as they are; empty cells are missing and become None."""
    faults: list[Fault] = []
    result: list[str | None] = []
    for index, value in enumerate(values):
        said = value if isinstance(value, str) else _text(value)
        if not said:
            if said is None and value is not None:
                faults.append((index, NESTED))
            elif not allow_missing:
                faults.append((index, MISSING))
            result.append(None)
            continue
        if not said.isascii() and not _is_text(said):
            faults.append((index, NO_TEXT))
        result.append(said)
    return result, faults


def shown(value: Any, most: int = 80) -> str:
    """The value for a message: short, and without halves of characters."""
    said = value if isinstance(value, str) else repr(value)
    if len(said) > most:
        said = said[: most - 3] + "..."
    return said.encode("utf-8", "backslashreplace").decode("utf-8")


def _number_of_text(text: str) -> float | str:
    try:
        value = float(text)
    except ValueError:
        word = text.strip().lower()
        if word in MISSING_WORDS:
            return math.nan
        return TRUTH.get(word, NO_NUMBER)
    return NO_NUMBER if "_" in text else value


def _seconds(value: datetime.date | datetime.time | datetime.timedelta) -> float:
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return (moment - _EPOCH).total_seconds()


def _text(value: Any) -> str | None:  # noqa: PLR0911
    """A value that is no text, as text; None for what has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isnan(value):
        return ""
    if isinstance(value, (int, float, Decimal)):
        try:
            return str(value)
        except ValueError:  # a whole number of thousands of digits
            return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return repr(value.total_seconds())
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else None


def _is_text(said: str) -> bool:
    try:
        said.encode("utf-8")
    except UnicodeEncodeError:  # a byte that was no UTF-8, or half of a pair from JSON
        return False
    return True

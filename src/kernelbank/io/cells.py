"""Cells to numbers and texts: what a value means, whatever source it came from.

A number is what Python's `float` accepts, without underscores; true and false are 1 and 0. Empty
cells and the words NA, N/A, NaN, null and none, in any case, are missing. A number beyond 1e150,
and so infinity, is rejected: the square of a difference must not overflow.

As numbers, times are seconds since 1970 (UTC unless they say otherwise); as text they are ISO 8601.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ..utils.rendering import shortened
from ..utils.validation import LARGEST, Floats

_MISSING_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none"))
_BOOLEANS = {"true": 1.0, "false": 0.0}

LONGEST_SHOWN = 80
"""Characters of a value in a message."""

NOT_A_NUMBER = "is not a number"
MISSING = "is missing"
TOO_LARGE = f"is an overflow, beyond {LARGEST:g}"
NESTED = "is nested"
NOT_TEXT = "is not UTF-8 text"

Values = Sequence[Any]
"""The values of a column, as they came."""

Fault = tuple[int, str]
"""The index of an invalid value, and why it is invalid."""

POINT = "(point)"
"""Stands for a point where commas are decimal points: what holds it is not a number."""

_PLAIN = frozenset((float, int, bool))
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


# --- numbers --------------------------------------------------------------------------------------


def parse_numbers(
    values: Values, allow_missing: bool, kinds: Set[type] | None = None
) -> tuple[Floats, list[Fault]]:
    """The values as float64, missing ones as NaN, and the faults of the invalid ones.

    `kinds` are the types of the values, where they are known.
    """
    faults: list[Fault] = []
    kinds = set(map(type, values)) if kinds is None else kinds
    array = None
    if kinds == {str}:
        array = _parse_all(values)
    elif kinds <= _PLAIN:
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats
            array = np.fromiter(map(float, values), np.float64, len(values))
    if array is None:
        array = np.empty(len(values))
        for index, value in enumerate(values):
            result = parse_number(value)
            if isinstance(result, str):
                faults.append((index, result))
                result = 0.0
            array[index] = result
    return array, faults + range_faults(array, allow_missing)


def _parse_all(values: Sequence[str]) -> Floats | None:
    """All texts as numbers, NaN for empty ones; None if any is neither a number nor empty.

    By pyarrow if it is installed, else by Python's `float`. Both round correctly, so they give the
    same bits; pyarrow is faster.
    """
    arrow = _pyarrow()
    if arrow is None:
        try:
            array = np.fromiter(map(float, values), np.float64, len(values))
        except ValueError:
            return None
        # float accepts 1_000, which is more likely a name than a number.
        return None if "_" in "".join(values) else array
    empty = values.count("")
    texts = [value or None for value in values] if empty else values
    try:
        numbers = arrow.array(texts, arrow.string()).cast(arrow.float64())
    except ValueError:  # errors of arrow and of encoding are ValueErrors
        return None
    array = np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    # Arrow takes nan(0) for NaN; here it is not a number.
    return array if np.count_nonzero(np.isnan(array)) == empty else None


@cache
def _pyarrow() -> ModuleType | None:
    try:
        import pyarrow
    except ModuleNotFoundError:
        return None
    return pyarrow  # type: ignore[no-any-return]


def with_points(values: Sequence[str], decimal: str) -> Sequence[str]:
    """Numbers with another decimal character as numbers with points.

    A point in such a number may separate thousands or be a mistake: the cell is not a number.
    """
    if "." not in "".join(values):
        return [value.replace(decimal, ".") for value in values]
    return [
        value.replace(".", POINT) if "." in value else value.replace(decimal, ".")
        for value in values
    ]


def range_faults(array: Floats, allow_missing: bool) -> list[Fault]:
    """The numbers that are too large, and those that are missing unless they may be."""
    with np.errstate(invalid="ignore"):
        odd = ~(np.abs(array) <= LARGEST)
    faults: list[Fault] = []
    for index in np.flatnonzero(odd).tolist():
        if not math.isnan(array[index]):
            faults.append((index, TOO_LARGE))
        elif not allow_missing:
            faults.append((index, MISSING))
    return faults


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
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, datetime.date):
        return _seconds(value)
    return NESTED if isinstance(value, (list, dict)) else NOT_A_NUMBER


def _seconds(value: datetime.date) -> float:
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return (moment - _EPOCH).total_seconds()


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


def missing_faults(missing: Iterable[bool]) -> list[Fault]:
    """The faults of values of which none may be missing."""
    return [(index, MISSING) for index, is_missing in enumerate(missing) if is_missing]


# --- texts ----------------------------------------------------------------------------------------


def parse_texts(values: Values, allow_missing: bool) -> tuple[list[str | None], list[Fault]]:
    """The values as unchanged text, None for missing ones, and the faults of the invalid ones."""
    faults: list[Fault] = []
    result: list[str | None] = []
    for index, value in enumerate(values):
        text = value if isinstance(value, str) else _to_text(value)
        if not text:
            if text is None and value is not None:
                faults.append((index, NESTED))
            elif not allow_missing:
                faults.append((index, MISSING))
            result.append(None)
            continue
        if not text.isascii() and not _is_text(text):
            faults.append((index, NOT_TEXT))
        result.append(text)
    return result, faults


def copied_text(value: object) -> str | None:
    """A value as text for a copy of it, None if it is missing; nothing is refused."""
    if value is None:
        return None
    text = value if isinstance(value, str) else _to_text(value)
    if text is None:
        text = json.dumps(value, default=str) if isinstance(value, (list, dict)) else str(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") or None


def shown_cell(value: object) -> str:
    """The value of a cell for a message: short, and without lone surrogates."""
    text = shortened(value if isinstance(value, str) else repr(value), LONGEST_SHOWN)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _to_text(value: object) -> str | None:  # noqa: PLR0911
    """A value of another type as text; None if it has no text."""
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


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a byte that is not UTF-8, or a lone surrogate in JSON
        return False
    return True

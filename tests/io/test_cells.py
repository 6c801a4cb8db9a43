"""Cells to numbers and texts: every kind of value, with and without pyarrow."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from kernelbank.io import cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1.0), (" -2.5e3 ", -2500.0), ("+.5", 0.5), ("1e150", 1e150), ("1e-999", 0.0),
        ("true", 1.0), ("False", 0.0), ("", math.nan), ("  ", math.nan), ("NA", math.nan),
        ("NaN", math.nan), ("null", math.nan), ("-nan", math.nan), ("n/a", math.nan),
        ("1_000", cells.NOT_A_NUMBER), ("abc", cells.NOT_A_NUMBER), ("nan(0)", cells.NOT_A_NUMBER),
        ("0x10", cells.NOT_A_NUMBER), ("1,5", cells.NOT_A_NUMBER), ("1 2", cells.NOT_A_NUMBER),
        ("1e999", cells.TOO_LARGE), ("-inf", cells.TOO_LARGE), ("1.1e150", cells.TOO_LARGE),
        ("Infinity", cells.TOO_LARGE), ("1\udcff", cells.NOT_A_NUMBER),
    ],
)  # fmt: skip
@pytest.mark.parametrize("beside", [[], ["2"], ["", "2"], ["x"], [5], [None]])
def test_parse_numbers_of_every_text(text, expected, beside):
    array, faults = cells.parse_numbers([text, *beside])
    mine = [reason for index, reason in faults if index == 0]
    if isinstance(expected, str):
        assert mine == [expected]
    else:
        assert mine == []
        assert array[0] == pytest.approx(expected, abs=0, rel=0, nan_ok=True)


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [
        (True, 1.0, "true"), (7, 7.0, "7"), (0.5, 0.5, "0.5"), (None, math.nan, None),
        (10**400, cells.TOO_LARGE, str(10**400)), ([1], cells.NESTED, cells.NESTED),
        ({"a": 1}, cells.NESTED, cells.NESTED), (Decimal("0.1"), 0.1, "0.1"),
        (date(1970, 1, 2), 86400.0, "1970-01-02"), (timedelta(seconds=1.5), 1.5, "1.5"),
        (datetime(1970, 1, 1, 1), 3600.0, "1970-01-01T01:00:00"), (math.nan, math.nan, None),
        (datetime(1970, 1, 1, tzinfo=UTC), 0.0, "1970-01-01T00:00:00+00:00"),
        (b"2", 2.0, "2"), ("\ud800", cells.NOT_A_NUMBER, cells.NOT_TEXT),
    ],
)  # fmt: skip
def test_parse_values_of_other_types(value, number, text):
    array, faults = cells.parse_numbers([value])
    texts, text_faults = cells.parse_texts([value])
    if isinstance(number, str):
        assert faults == [(0, number)]
    else:
        assert faults == []
        assert array[0] == number or (math.isnan(array[0]) and math.isnan(number))
    if text in (cells.NESTED, cells.NOT_TEXT):
        assert text_faults == [(0, text)]
    else:
        assert (texts, text_faults) == ([text], [])


@pytest.mark.parametrize("beside", [[], ["2,5"], ["", "NaN"], ["x"], ["1.5"]])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1.0), ("0,94", 0.94), ("-2,5e3", -2500.0), (",5", 0.5), ("1,2,3", None),
        ("0.94", None), ("1.234,5", None), ("1,234.5", None), ("1;5", None),
    ],
)  # fmt: skip
def test_decimal_commas_are_points_and_points_are_not(text, expected, beside):
    array, faults = cells.parse_numbers(cells.with_points([text, *beside], ","))
    mine = [reason for index, reason in faults if index == 0]
    if expected is None:
        assert mine == [cells.NOT_A_NUMBER]
    else:
        assert (mine, array[0]) == ([], expected)

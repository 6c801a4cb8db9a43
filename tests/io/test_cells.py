"""Cells to numbers, texts and times: every kind of value for what it is, nothing guessed."""

import itertools
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from kernelbank.io import cells
from kernelbank.io.cells import (
    IMPLAUSIBLE_NUMBER,
    IMPLAUSIBLE_YEAR,
    NOT_A_TIME,
    clock_change,
    parse_time,
    time_format,
)


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


# --- times ----------------------------------------------------------------------------------------

DAY = datetime(2024, 1, 31, tzinfo=UTC).timestamp()
NOON = DAY + 43_200
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("2024-01-31", DAY), ("2024-01-31T12:00Z", NOON), (" 2024-01-31 14:00:00+02:00 ", NOON),
        ("1906-06-01", datetime(1906, 6, 1, tzinfo=UTC).timestamp()), ("20240131", DAY),
        ("20240131.0", DAY), ("202401311200", NOON), ("20240131120000", NOON), ("1706702400", NOON),
        ("1706702400.25", NOON + 0.25), ("1.7067024E9", NOON), ("1706702400000", NOON),
        ("1706702400250", NOON + 0.25), ("1706702400000000", NOON), ("1706702400000000000", NOON),
    ],
)  # fmt: skip
def test_time_is_read_for_what_it_is(cell, seconds):
    assert parse_time(cell) == seconds


def test_no_number_is_a_time_in_two_units():
    first, last = (
        datetime(year, 1, 1, tzinfo=UTC).timestamp()
        for year in (cells.NUMBER_YEARS[0], cells.NUMBER_YEARS[1] + 1)
    )
    ranges = [(first * unit, last * unit) for unit in cells.UNITS]
    # Dates of 8, 12 and 14 digits, as numbers.
    first, last = cells.TEXT_YEARS[0], cells.TEXT_YEARS[1] + 1
    ranges += [(first * 10.0**digits, last * 10.0**digits) for digits in (4, 8, 10)]
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(sorted(ranges)))


@pytest.mark.parametrize(
    ("reason", "unusable"),
    [
        (NOT_A_TIME, [None, "", "soon", "nan", "inf", "1_706_702_400", "2024-13-01", "31.13.2024"]),
        (NOT_A_TIME, ["2024/1/31 noon"]),
        (
            "is a time whose format has to be named: use --time-format '%d/%m/%Y', if that is its order",
            ["31/01/2024"],
        ),
        (
            IMPLAUSIBLE_NUMBER,
            ["0", "23", "2024", "3600", "-86400", "20241301", "15000101", "1e300"],
        ),
        (IMPLAUSIBLE_YEAR, ["0001-01-01", "9999-12-31"]),
    ],
)
def test_cell_that_is_no_plausible_time_is_refused(reason, unusable):
    for cell in unusable:
        with pytest.raises(ValueError) as caught:  # noqa: PT011  (the message is the reason)
            parse_time(cell)
        assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("cell", "form", "same"),
    [
        ("31.1.2024 5:03", None, "2024-01-31T05:03"),
        ("31.01.2024", None, "2024-01-31"),
        ("2024/1/31  17:03:02.5", None, "2024-01-31T17:03:02.500"),
        ("31/01/24 05:03", "%d/%m/%y %H:%M", "2024-01-31T05:03"),
        ("Jan 31, 2024", "%b %d, %Y", "2024-01-31"),
        ("31.1.2024 05:00 +0200", "%d.%m.%Y %H:%M %z", "2024-01-31T03:00"),
    ],
)
def test_other_formats_are_recognised_or_named(cell, form, same):
    assert parse_time(cell, form) == parse_time(same)


@pytest.mark.parametrize(
    "cell",
    ["5/6/2024 5:03 pm", "5/6/2024 5:03:10pm", "13-06-2024", "6/13/2024", "05/06/2024 17:03:02.25"],
)
def test_advised_format_fits_the_cell_that_was_refused(cell):
    with pytest.raises(ValueError, match="has to be named") as caught:
        parse_time(cell)
    form = time_format(cell)
    assert f"--time-format '{form}'" in str(caught.value)
    assert parse_time(cell, form) > 0


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("2024-07-01T12:00", "2024-07-01T12:00"),  # of the zone already
        ("2024-07-01T12:00Z", "2024-07-01T14:00"),
        ("1719835200", "2024-07-01T14:00"),
        ("2024-10-27T00:30Z", "2024-10-27T02:30"),  # an hour later the clock shows it again
        ("2024-10-27T01:30Z", "2024-10-27T02:30"),
    ],
)
def test_times_of_a_zone_are_those_of_its_clock(cell, shown):
    assert parse_time(cell, zone=BERLIN) == parse_time(shown)


@pytest.mark.parametrize(
    ("hour", "change"), [("01:59", ""), ("02:00", "X"), ("02:59", "X"), ("03:00", "")]
)
def test_clock_shows_some_times_twice_and_some_never(hour, change):
    for day, word in (("03-31", "never"), ("10-27", "twice"), ("06-01", "")):
        assert clock_change(parse_time(f"2024-{day} {hour}"), BERLIN) == (word if change else "")

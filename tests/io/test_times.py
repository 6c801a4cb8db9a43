"""Times in cells: every unit for what it is, dates of digits as dates, nothing guessed."""

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kernelbank.io.cells import (
    IMPLAUSIBLE_NUMBER,
    IMPLAUSIBLE_YEAR,
    NOT_A_TIME,
    NUMBER_YEARS,
    TEXT_YEARS,
    UNITS,
    clock_change,
    parse_time,
    time_format,
)

DAY = datetime(2024, 1, 31, tzinfo=UTC).timestamp()
NOON = DAY + 43_200


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("2024-01-31", DAY),
        ("2024-01-31T12:00Z", NOON),
        (" 2024-01-31 14:00:00+02:00 ", NOON),
        ("1906-06-01", datetime(1906, 6, 1, tzinfo=UTC).timestamp()),
        ("20240131", DAY),
        ("20240131.0", DAY),
        ("202401311200", NOON),
        ("20240131120000", NOON),
        ("1706702400", NOON),
        ("1706702400.25", NOON + 0.25),
        ("1.7067024E9", NOON),
        ("1706702400000", NOON),
        ("1706702400250", NOON + 0.25),
        ("1706702400000000", NOON),
        ("1706702400000000000", NOON),
    ],
)
def test_time_is_read_for_what_it_is(cell, seconds):
    assert parse_time(cell) == seconds


def test_no_number_is_a_time_in_two_units():
    first, last = (
        datetime(year, 1, 1, tzinfo=UTC).timestamp()
        for year in (NUMBER_YEARS[0], NUMBER_YEARS[1] + 1)
    )
    ranges = [(first * unit, last * unit) for unit in UNITS]
    # Dates of 8, 12 and 14 digits, as numbers.
    for digits in (0, 4, 6):
        ranges.append(
            (TEXT_YEARS[0] * 10.0 ** (4 + digits), (TEXT_YEARS[1] + 1) * 10.0 ** (4 + digits))
        )
    ranges.sort()
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ranges))


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (None, NOT_A_TIME),
        ("", NOT_A_TIME),
        ("soon", NOT_A_TIME),
        ("nan", NOT_A_TIME),
        ("inf", NOT_A_TIME),
        ("1_706_702_400", NOT_A_TIME),
        ("2024-13-01", NOT_A_TIME),
        ("31.13.2024", NOT_A_TIME),
        ("2024/1/31 noon", NOT_A_TIME),
        ("31/01/2024", "is a time whose format has to be named: use --time-format '%d/%m/%Y'"),
        ("0", IMPLAUSIBLE_NUMBER),
        ("23", IMPLAUSIBLE_NUMBER),
        ("2024", IMPLAUSIBLE_NUMBER),
        ("3600", IMPLAUSIBLE_NUMBER),
        ("-86400", IMPLAUSIBLE_NUMBER),
        ("20241301", IMPLAUSIBLE_NUMBER),
        ("15000101", IMPLAUSIBLE_NUMBER),
        ("1e300", IMPLAUSIBLE_NUMBER),
        ("0001-01-01", IMPLAUSIBLE_YEAR),
        ("9999-12-31", IMPLAUSIBLE_YEAR),
    ],
)
def test_cell_that_is_no_plausible_time_is_refused(cell, reason):
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


@pytest.mark.parametrize("cell", ["5/6/2024 5:03 pm", "13-06-2024", "05/06/2024 17:03:02.25"])
def test_advised_format_fits_the_cell_that_was_refused(cell):
    with pytest.raises(ValueError, match="has to be named") as caught:
        parse_time(cell)
    forms = time_format(cell)
    assert forms
    for form in forms:
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
    assert parse_time(cell, zone=ZoneInfo("Europe/Berlin")) == parse_time(shown)


def test_clock_shows_some_times_twice_and_some_never():
    zone = ZoneInfo("Europe/Berlin")
    changes = {
        f"{day} {hour:02}:{minute:02}": clock_change(
            parse_time(f"2024-{day} {hour:02}:{minute:02}"), zone
        )
        for day in ("03-31", "10-27", "06-01")
        for hour in (1, 2, 3)
        for minute in (0, 59)
    }
    assert {time: change for time, change in changes.items() if change} == {
        "03-31 02:00": "never",
        "03-31 02:59": "never",
        "10-27 02:00": "twice",
        "10-27 02:59": "twice",
    }

"""Times in cells: every unit for what it is, dates of digits as dates, nothing guessed."""

import itertools
from datetime import UTC, datetime

import pytest

from kernelbank.io.times import (
    IMPLAUSIBLE_NUMBER,
    IMPLAUSIBLE_YEAR,
    NOT_A_TIME,
    NUMBER_YEARS,
    TEXT_YEARS,
    UNITS,
    parse_time,
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
    ranges = [(first * unit, last * unit) for unit in UNITS.values()]
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
        ("31/01/2024", NOT_A_TIME),
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

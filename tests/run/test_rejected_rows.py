"""Rejected rows: counted, and the first and last kept."""

import pytest

from kernelbank.errors import FileRefused
from kernelbank.io.sources import RejectedRow
from kernelbank.run.runner import SHOWN, RejectedRows


def taken(count):
    rejected = RejectedRows()
    for n in range(count):
        one = RejectedRow(n, f"line {n}", "a", str(n), "is bad")
        words = rejected.add(one, 101 + n, "Repair it.")
        assert words == {
            "row": 101 + n,
            "where": f"line {n}",
            "column": "a",
            "value": str(n),
            "reason": "is bad",
            "advice": "Repair it.",
        }
    return rejected


@pytest.mark.parametrize("count", [0, 1, SHOWN, SHOWN + 1, 2 * SHOWN, 5 * SHOWN])
def test_rejected_rows_keeps_the_first_and_the_last(count):
    rejected = taken(count)
    assert rejected.count == count
    rows = [words["row"] - 101 for words in (*rejected.first, *rejected.last)]
    assert rows == [n for n in range(count) if n < SHOWN or n >= count - SHOWN]
    other = RejectedRows()
    other.restore(rejected.to_json())
    assert other.to_json() == rejected.to_json()


@pytest.mark.parametrize(
    "forged",
    [
        {"count": 5},
        {"count": True},
        {"count": 31.0},
        {"first": []},
        {"last": []},
        {"last": [{"row": 1}] * 11},
        {"last": [{"row": 1, "where": "", "column": "", "value": "", "reason": "", "x": ""}] * 11},
    ],
)
def test_forged_rejected_rows_are_refused(forged):
    plain = taken(31).to_json()
    RejectedRows().restore(plain)
    with pytest.raises(FileRefused):
        RejectedRows().restore({**plain, **forged})

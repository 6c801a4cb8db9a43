"""What a run notes of itself: when and how long, and which rows it set rejected."""

import itertools

import pytest

from kernelbank.app.runner.rejected_rows import SHOWN, RejectedRows
from kernelbank.app.runner.timings import ACTIVITIES, MODEL, READING, Timings
from kernelbank.errors import FileRefused
from kernelbank.io.sources import RejectedRow


class Clock:
    """Every look at it takes a second."""

    def __init__(self):
        self.seconds = itertools.count()

    def __call__(self):
        return float(next(self.seconds))


def test_measured_seconds_go_to_their_activity():
    timings = Timings(Clock())
    assert list(timings.measure_each(READING, iter("abc"))) == ["a", "b", "c"]
    with pytest.raises(ZeroDivisionError), timings.measure(MODEL):
        1 / 0  # noqa: B018
    assert timings.seconds == {**dict.fromkeys(ACTIVITIES, 0.0), READING: 4.0, MODEL: 1.0}


def test_restored_timings_continue():
    first, second = Timings(Clock()), Timings(Clock())
    for timings in (first, second):
        with timings.measure(MODEL):
            pass
    told = first.to_json()
    second.restore(told)
    assert (second.starts, second.seconds[MODEL]) == (2, 2.0)
    assert second.started == first.started
    assert set(told["versions"]) == {"kernelbank", "Python", "numpy", "numba", "system"}


@pytest.mark.parametrize(
    "forged",
    [
        {"starts": 0},
        {"starts": True},
        {"starts": 1.5},
        {"starts": 10**13},
        {"started": "yesterday"},
        {"started": "<script>"},
        {"seconds": {MODEL: -1.0}},
        {"seconds": {MODEL: float("nan")}},
        {"seconds": {MODEL: float("inf")}},
        {"seconds": {MODEL: "much"}},
    ],
)
def test_forged_timings_are_refused(forged):
    with pytest.raises((FileRefused, ValueError)):
        Timings().restore({**Timings().to_json(), **forged})


def taken(count):
    rejected = RejectedRows()
    for n in range(count):
        words = rejected.add(RejectedRow(n, f"line {n}", "a", str(n), "is bad"), 101 + n)
        assert words == {
            "row": 101 + n,
            "where": f"line {n}",
            "column": "a",
            "value": str(n),
            "reason": "is bad",
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
    ],
)
def test_forged_rejected_rows_are_refused(forged):
    plain = taken(31).to_json()
    RejectedRows().restore(plain)
    with pytest.raises(FileRefused):
        RejectedRows().restore({**plain, **forged})

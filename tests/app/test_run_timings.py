"""What a run notes of itself: when and how long, and which rows it set aside."""

import itertools

import pytest

from kernelbank.app.runner.rejected_rows import SHOWN, Aside
from kernelbank.app.runner.timings import BANK, PARTS, READING, Diary
from kernelbank.errors import FileRefused
from kernelbank.io.sources import Bad


class Clock:
    """Every look at it takes a second."""

    def __init__(self):
        self.seconds = itertools.count()

    def __call__(self):
        return float(next(self.seconds))


def test_seconds_go_to_their_parts():
    diary = Diary(Clock())
    assert list(diary.each(READING, iter("abc"))) == ["a", "b", "c"]
    with pytest.raises(ZeroDivisionError), diary.during(BANK):
        1 / 0  # noqa: B018
    assert diary.seconds == {**dict.fromkeys(PARTS, 0.0), READING: 4.0, BANK: 1.0}


def test_it_goes_on():
    first, second = Diary(Clock()), Diary(Clock())
    for diary in (first, second):
        with diary.during(BANK):
            pass
    told = first.plain()
    second.go_on(told)
    assert (second.starts, second.seconds[BANK]) == (2, 2.0)
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
        {"seconds": {BANK: -1.0}},
        {"seconds": {BANK: float("nan")}},
        {"seconds": {BANK: float("inf")}},
        {"seconds": {BANK: "much"}},
    ],
)
def test_forged_diaries_are_refused(forged):
    with pytest.raises((FileRefused, ValueError)):
        Diary().go_on({**Diary().plain(), **forged})


class Rows:
    first = 100


def taken(count):
    aside = Aside()
    for n in range(count):
        words = aside.take(Rows, Bad(n, f"line {n}", "a", str(n), "is bad"))
        assert words == {
            "row": 101 + n,
            "where": f"line {n}",
            "column": "a",
            "value": str(n),
            "reason": "is bad",
        }
    return aside


@pytest.mark.parametrize("count", [0, 1, SHOWN, SHOWN + 1, 2 * SHOWN, 5 * SHOWN])
def test_the_first_and_the_last_bad_rows_are_kept(count):
    aside = taken(count)
    assert aside.count == count
    rows = [words["row"] - 101 for words in (*aside.first, *aside.last)]
    assert rows == [n for n in range(count) if n < SHOWN or n >= count - SHOWN]
    other = Aside()
    other.restore(aside.plain())
    assert other.plain() == aside.plain()


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
def test_forged_bad_rows_are_refused(forged):
    plain = taken(31).plain()
    Aside().restore(plain)
    with pytest.raises(FileRefused):
        Aside().restore({**plain, **forged})

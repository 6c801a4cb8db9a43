"""Timings: seconds by activity, over all processes of a run."""

import itertools

import pytest

from kernelbank.errors import FileRefused
from kernelbank.run.timings import ACTIVITIES, MODEL, READING, Timings


class Clock:
    """Every call takes a second."""

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
    saved = first.to_json()
    second.restore(saved)
    assert (second.starts, second.seconds[MODEL]) == (2, 2.0)
    assert second.started == first.started
    assert set(saved["versions"]) == {"kernelbank", "Python", "numpy", "system"}


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

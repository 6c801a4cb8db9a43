"""Attempts to reach a broker: growing pauses, a line for each, an end."""

import warnings

import pytest

from kernelbank.errors import BrokerConnection, SourceLost
from kernelbank.io import brokers
from kernelbank.io.brokers import Retries


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(brokers.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_pauses_grow_until_patience_ends(clock):
    attempts = Retries("redis://host", 30.0)
    pauses = []

    def fail_until_the_end():
        while True:
            attempts.failed("broken")
            pauses.append(attempts.seconds_left)
            clock.now += pauses[-1]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(SourceLost, match=r"^redis://host: no connection for 30 seconds"):
            fail_until_the_end()
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 8, 6.25]
    assert clock.now == 130
    assert len(told) == len(pauses)
    assert str(told[0].message) == (
        "redis://host cannot be reached (broken). Next attempt in 0.25 s; giving up in 30 s."
    )


def test_success_starts_again_with_short_pauses_but_keeps_the_time_for_an_answer(clock):
    attempts = Retries("redis://host", 30.0)
    assert attempts.timeout < 2
    for _ in range(5):
        with pytest.warns(BrokerConnection, match="cannot be reached"):
            attempts.failed("slow")
    assert attempts.timeout == 10.0
    with pytest.warns(BrokerConnection, match="redis://host is reached again"):
        attempts.succeeded()
    assert attempts.seconds_left == 0
    clock.now += 1000
    with pytest.warns(BrokerConnection, match="giving up in 30 s"):
        attempts.failed("slow")
    assert attempts.timeout == 10.0


def test_success_without_a_failure_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Retries("redis://host").succeeded()

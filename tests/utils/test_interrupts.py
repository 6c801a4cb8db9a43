"""Deferred signals."""

import os
import signal
import threading

import pytest

from kernelbank.utils.whole_steps import defer_signals


@pytest.fixture
def handlers():
    """Puts back the handlers that a test sets."""
    numbers = (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1, signal.SIGRTMIN)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_deferred_signals_are_handled_at_the_end():
    seen = []
    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGRTMIN):
        signal.signal(number, lambda number, frame: seen.append((number, frame is not None)))
    with defer_signals():
        for number in (signal.SIGALRM, signal.SIGINT, signal.SIGALRM, signal.SIGRTMIN):
            signal.raise_signal(number)
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
        assert not seen
    assert seen == [(n, True) for n in (signal.SIGALRM, signal.SIGINT, signal.SIGRTMIN)]
    signal.raise_signal(signal.SIGALRM)
    assert len(seen) == 4


def test_interrupt_is_raised_at_the_end():
    handler = signal.getsignal(signal.SIGINT)
    reached = []

    def interrupted():
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append(1)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.usefixtures("handlers")
def test_all_handlers_run_and_are_put_back_even_if_they_raise():
    def fail(number, _):
        raise RuntimeError(number)

    seen = []
    signal.signal(signal.SIGALRM, fail)
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))

    def both():
        with defer_signals():
            signal.raise_signal(signal.SIGALRM)
            signal.raise_signal(signal.SIGUSR1)

    with pytest.raises(RuntimeError):
        both()
    assert seen == [1]
    assert signal.getsignal(signal.SIGALRM) is fail


@pytest.mark.usefixtures("handlers")
def test_handlers_that_are_not_python_are_left_alone():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with defer_signals():
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
        signal.raise_signal(signal.SIGUSR1)


def test_other_threads_defer_nothing():
    def look():
        with defer_signals():
            found.append(signal.getsignal(signal.SIGINT))

    found = []
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]


def test_child_of_another_thread_gets_its_signals():
    """The main thread defers signals; another one forks: in the child it is the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    ended = []

    def fork():
        child = os.fork()
        if not child:
            os._exit(7 if signal.getsignal(signal.SIGINT) is handler else 1)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with defer_signals():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert ended == [7]

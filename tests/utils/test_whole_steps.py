"""Interrupts, signals, forks: a bank is whole, or refuses every use."""

import ctypes
import os
import signal
import threading
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import HalfLearned, KernelBankWarning, SlotQuarantined
from kernelbank.utils.whole_steps import defer_signals
from support.auto_streams import assert_same_state as assert_same_auto
from support.auto_streams import labelled, numbers
from support.instances import cauchy
from support.interrupt_attack import attack, cases
from support.marks import slow, slow_unless


@pytest.fixture
def handlers():
    """Puts back the handlers that a test sets."""
    numbers = (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1, signal.SIGRTMIN)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_all_handlers_run_once_at_the_end_and_are_put_back_even_if_they_raise():
    def fail(number, frame):
        assert frame is not None
        raise RuntimeError(number)

    interrupt, seen = signal.getsignal(signal.SIGINT), []
    signal.signal(signal.SIGALRM, fail)
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    signal.signal(signal.SIGRTMIN, signal.SIG_IGN)

    def all_of_them():
        with defer_signals():
            # One that is no Python function is left alone.
            assert signal.getsignal(signal.SIGRTMIN) == signal.SIG_IGN
            for number in (signal.SIGALRM, signal.SIGRTMIN, signal.SIGUSR1, signal.SIGINT):
                with defer_signals():
                    signal.raise_signal(number)
                signal.raise_signal(number)
            seen.append(0)

    with pytest.raises(KeyboardInterrupt) as caught:
        all_of_them()
    assert seen == [0, 1]
    assert isinstance(caught.value.__context__, RuntimeError)
    assert (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT)) == (fail, interrupt)


def test_other_threads_defer_nothing_and_their_children_get_signals():
    """The main thread defers signals; another one forks: in the child it is the main thread."""
    handler, looked = signal.getsignal(signal.SIGINT), []

    def look():
        with defer_signals():
            looked.append(signal.getsignal(signal.SIGINT))

    def fork():
        child = os.fork()
        if not child:
            os._exit(7 if signal.getsignal(signal.SIGINT) is handler else 1)
        looked.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    def in_thread(work):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    in_thread(look)
    with defer_signals():
        in_thread(fork)
    assert looked == [handler, 7]


# An exception may come while Python collects garbage: there it is told and ignored.
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("name", slow_unless(lambda name: name != "forecasts", cases()))
def test_an_interrupt_leaves_no_bank_between_two_samples(name):
    found = attack(25, 1, (name,))
    assert found["interrupts"] >= 25


@pytest.mark.slow
def test_interrupts_of_all_kinds():
    attack(1000, 2)


def test_step_of_an_auto_bank_is_undone_if_a_users_function_fails():
    """Whatever the row: before the first bank, at a restart, one by one, in a batch."""
    X, y = numbers(150, dimension=2)
    fail = []

    def shaky(A, B):
        if fail and fail[0] == 0:
            fail.clear()
            raise RuntimeError("for once")
        if fail:
            fail[0] -= 1
        return cauchy(A, B)

    learner = kb.learners.Norma(0.1, 20)
    slots = [kb.Slot(k, learner) for k in (kb.kernels.Custom(shaky), kb.kernels.Gaussian(1.0))]
    bank, clean = (kb.AutoBank(slots=slots, lags=1) for _ in range(2))
    for n in range(40):
        bank.predict_one(X[n])
        fail[:] = [n % 3]
        for _ in range(2):
            try:
                bank.learn_one(X[n], y[n])
                break
            except RuntimeError:
                assert bank.samples == n
        fail.clear()
    for n in range(40):
        clean.predict_one(X[n])
        clean.learn_one(X[n], y[n])
    assert_same_auto(bank, clean)
    fail[:] = [30]
    with pytest.raises(RuntimeError, match="for once"):
        bank.run(X[40:], y[40:])
    assert bank.samples == 40
    bank.run(X[40:], y[40:])
    clean.run(X[40:], y[40:])
    assert_same_auto(bank, clean)


def test_warning_that_is_an_error_leaves_a_whole_bank():
    """Of a bank with three outputs, all have learned the batch when the warning is raised."""
    X, y = labelled(300, "three")
    slots = [kb.Slot(kb.kernels.Gaussian(0.5), kb.learners.Norma(1e200, 5))]
    slots += [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma(0.1, 20))]
    bank, quiet = (kb.AutoBank("classification", slots=slots) for _ in range(2))
    raised = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlotQuarantined)
        for _ in range(20):
            if bank.samples == 300:
                break
            try:
                bank.run(X[bank.samples :], y[bank.samples :])
            except SlotQuarantined:
                raised += 1
    assert raised
    assert bank.samples == 300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBankWarning)
        quiet.run(X, y)
    assert_same_auto(bank, quiet)


# --- what cannot be undone ------------------------------------------------------------------------


def raise_in(thread, error):
    """Raise an exception in another thread, as some libraries for timeouts do."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class Cut(Exception):
    """Raised from another thread."""


def check_refuses(bank, X, y, path):
    """Every use of the bank is refused."""
    assert "cannot be used" in repr(bank)
    for use in (
        lambda: bank.predict_one(X[0]),
        lambda: bank.learn_one(X[0], y[0]),
        lambda: bank.run(X[:5], y[:5]),
        lambda: bank.save(path),
        lambda: bank.samples,
    ):
        with pytest.raises(HalfLearned, match="Load it from a file"):
            use()
    assert not path.exists()


def test_bank_that_was_cut_off_refuses_every_use_and_others_are_whole(tmp_path):
    make, X, y = cases()["numbers"]
    draw = np.random.default_rng(3)
    undisturbed, refused = make(), 0
    undisturbed.run(X, y)
    for _ in range(40):
        bank = make()

        def learn(bank=bank):
            with suppress(Cut):
                bank.run(X, y)

        thread = threading.Thread(target=learn)
        thread.start()
        time.sleep(draw.uniform(0, 0.03))
        raise_in(thread.ident, Cut)
        thread.join()
        if "cannot be used" in repr(bank):
            refused += 1
            check_refuses(bank, X, y, tmp_path / "bank.kb")
            continue
        if bank.samples < len(y):
            bank.run(X[bank.samples :], y[bank.samples :])
        assert_same_auto(bank, undisturbed)
    assert refused


def in_child(code):
    """The exit code of a forked child that runs `code`, which must end soon."""
    child = os.fork()
    if not child:
        try:
            os._exit(code())
        finally:
            os._exit(99)
    for _ in range(3000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [slow("numbers"), slow("bank"), "bank in threads"])
def test_fork_while_another_thread_is_inside_a_bank(name):
    make, X, y = cases()[name]
    bank, other = make(), make()
    other.run(X, y)
    over = threading.Event()

    def learn():
        while not over.is_set():
            bank.run(X, y)

    thread = threading.Thread(target=learn)
    thread.start()

    def use():
        other.learn_one(X[0], y[0])  # nobody was inside this one
        try:
            bank.learn_one(X[0], y[0])
            return 5  # it was between two calls
        except HalfLearned as error:
            return 6 if "forked" in str(error) else 1

    codes = set()
    try:
        for _ in range(10):
            time.sleep(0.005)
            codes.add(in_child(use))
    finally:
        over.set()
        thread.join()
    assert codes <= {5, 6}
    assert 6 in codes
    bank.learn_one(X[0], y[0])  # the parent's goes on

"""Engines on this machine: threads by default, and banks after a fork."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import kernelbank as kb


def test_threads_by_default_are_the_cores_of_this_process(monkeypatch):
    fake = SimpleNamespace(sched_getaffinity=lambda _: {0, 3, 4}, cpu_count=lambda: 8)
    monkeypatch.setattr("kernelbank.bank.engines.base.os", fake)
    assert kb.engines.Threads().local_options()["threads"] == 3
    assert kb.engines.Threads(5).local_options()["threads"] == 5
    del fake.sched_getaffinity
    assert kb.engines.Threads().local_options()["threads"] == 8


FORK = """
import os, threading, time, warnings
import numpy as np
import kernelbank as kb

warnings.simplefilter("ignore")  # of forks while there are threads
x = np.arange(600.0)


def bits(bank):
    return b"".join(array.tobytes() for _, array in sorted(bank.state().items()))


def in_child(look):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, look()[:50_000])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        return pipe.read()


# The threads of the pool do not exist in the child: it makes others.
bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 40), engine=kb.engines.Threads(2))
bank.run(x, np.sin(x))


def go_on():
    bank.run(x, np.cos(x))
    return bits(bank)


assert in_child(go_on) == go_on()[:50_000]

# Nobody ends in the child what another thread was doing with a bank.
begun, ended = threading.Event(), threading.Event()


def slow(A, B):
    begun.set()
    ended.wait()
    return np.ones((len(A), len(B)))


busy = kb.KernelBank(kb.kernels.Custom(slow))
thread = threading.Thread(target=busy.run, args=(x[:9], x[:9]))
thread.start()
begun.wait()


def ask():
    try:
        busy.learn_one(0.0, 0.0)
    except kb.errors.HalfLearned as error:
        return str(error).encode()


assert b"forked while another thread was using it" in in_child(ask)
ended.set()
thread.join()
assert busy.samples == 9
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_bank_goes_on_in_a_child_unless_another_thread_was_using_it():
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=100)

"""Engines: the length of blocks, and threads after a fork."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb

K, M = kb.kernels, kb.learners
X, Y = np.arange(600.0), np.sin(np.arange(600.0))


def test_block_of_engine_is_its_setting_or_chosen():
    settings = kb.KernelBank()._settings
    chosen = settings.describe(1)["block"]
    assert settings.describe(1, **kb.engines.Serial(block=3).local_options())["block"] == 3
    assert settings.describe(1, **kb.engines.Threads(block=17).local_options())["block"] == 17
    assert settings.describe(1, **kb.engines.Serial().local_options())["block"] == chosen


def test_threads_by_default_are_the_cores_of_this_process(monkeypatch):
    fake = SimpleNamespace(sched_getaffinity=lambda _: {0, 3, 4}, cpu_count=lambda: 8)
    monkeypatch.setattr("kernelbank.bank.engines.local.os", fake)
    assert kb.engines.Threads().local_options()["threads"] == 3
    assert kb.engines.Threads(5).local_options()["threads"] == 5
    del fake.sched_getaffinity
    assert kb.engines.Threads().local_options()["threads"] == 8


FORK = """
import os, sys
import numpy as np
import kernelbank as kb

x = np.arange(600.0)
bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 40), engine=kb.engines.Threads(2))
bank.run(x, np.sin(x))
child = os.fork()
bank.run(x, np.cos(x))  # the pool's threads do not exist in the child
bits = b"".join(array.tobytes() for _, array in sorted(bank.state().items()))
if child == 0:
    with open(sys.argv[1], "wb") as file:
        file.write(bits)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
with open(sys.argv[1], "rb") as file:
    assert file.read() == bits
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_bank_on_threads_continues_with_the_same_bits_after_a_fork(tmp_path):
    command = [sys.executable, "-c", FORK, str(tmp_path / "bits")]
    subprocess.run(command, check=True, timeout=300)

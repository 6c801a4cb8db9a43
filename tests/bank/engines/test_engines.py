"""Engines: how leaves are divided among shards, the length of blocks, and threads after a fork."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.engines.base import block_length, partition

K, M = kb.kernels, kb.learners
X, Y = np.arange(600.0), np.sin(np.arange(600.0))


def groups_of(sizes):
    """Dependency groups of these sizes; a leaf is its number."""
    numbers = iter(range(sum(sizes)))
    return [[next(numbers) for _ in range(size)] for size in sizes]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("sizes", [[1], [1] * 5, [1] * 64, [3, 1, 2, 1, 1, 4]])
def test_partition_gives_every_leaf_to_one_shard_and_keeps_groups_together(sizes, shards):
    groups = groups_of(sizes)
    parts = partition(groups, shards)
    assert len(parts) == min(shards, len(groups))
    assert all(parts)
    assert sorted(leaf for part in parts for leaf in part) == list(range(sum(sizes)))
    for group in groups:
        assert sum(set(group) <= set(part) for part in parts) == 1


def test_block_of_engine_is_its_setting_or_chosen():
    bank = kb.KernelBank()
    arguments = (bank._settings.layout, bank._settings.objective, 1)
    assert kb.engines.Serial(block=3).length(*arguments) == 3
    assert kb.engines.Threads(block=17).length(*arguments) == 17
    assert kb.engines.Ray(block=5000).length(*arguments) == 5000
    assert kb.engines.Serial().length(*arguments) == block_length(*arguments)
    assert kb.engines.Ray().length(*arguments) == 1024


def test_threads_by_default_are_the_cores_of_this_process(monkeypatch):
    fake = SimpleNamespace(sched_getaffinity=lambda _: {0, 3, 4}, cpu_count=lambda: 8)
    monkeypatch.setattr("kernelbank.bank.engines.threads.os", fake)
    assert kb.engines.Threads().workers == 3
    assert kb.engines.Threads(5).workers == 5
    del fake.sched_getaffinity
    assert kb.engines.Threads().workers == 8


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

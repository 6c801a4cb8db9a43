"""Engines: how leaves are divided among shards, how long blocks are, and the pool of threads."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.engines import as_engine
from kernelbank.bank.engines.base import block_length, partition, workspace_bytes
from kernelbank.native.workspace import SLIDE_PERIOD

K, M = kb.kernels, kb.learners
X, Y = np.arange(600.0), np.sin(np.arange(600.0))


def groups_of(sizes):
    """Dependency groups of these sizes; a leaf is its number."""
    numbers = iter(range(sum(sizes)))
    return [[next(numbers) for _ in range(size)] for size in sizes]


def length_for(slots, window=10):
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, slots), window=window)
    return block_length(bank._settings.layout, bank._settings.objective, dimension=2)


def executor_of(bank):
    return bank._runtime.executor


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


def test_partition_of_many_groups_is_even():
    sizes = [len(part) for part in partition(groups_of([1] * 96), 3)]
    assert sizes == [32, 32, 32]


def test_block_of_small_bank_is_a_slide_period():
    assert length_for(10) == SLIDE_PERIOD


def test_block_of_huge_bank_is_shorter_but_not_below_eight_samples():
    lengths = [length_for(slots, window=50) for slots in (100, 3_000, 20_000)]
    assert lengths == sorted(lengths, reverse=True)
    assert 8 <= lengths[-1] < SLIDE_PERIOD


def test_block_of_engine_is_its_setting_or_chosen():
    bank = kb.KernelBank()
    arguments = (bank._settings.layout, bank._settings.objective, 1)
    assert kb.engines.Serial(block=3).length(*arguments) == 3
    assert kb.engines.Threads(block=17).length(*arguments) == 17
    assert kb.engines.Ray(block=5000).length(*arguments) == 5000
    assert kb.engines.Serial().length(*arguments) == block_length(*arguments)
    assert kb.engines.Ray().length(*arguments) == 1024


def test_workspace_bytes_grow_with_slots():
    banks = [kb.KernelBank(kb.gaussian_grid(0.1, 10, slots)) for slots in (10, 1000)]
    small, large = [
        workspace_bytes(bank._settings.layout, bank._settings.objective, 2) for bank in banks
    ]
    assert 0 < small < large


def test_engine_by_name_has_default_settings():
    assert as_engine("serial") == kb.engines.Serial()
    assert as_engine("threads") == kb.engines.Threads()
    assert as_engine(kb.engines.Threads(3)) == kb.engines.Threads(3)


def test_threads_by_default_are_the_cores_of_this_process(monkeypatch):
    fake = SimpleNamespace(sched_getaffinity=lambda _: {0, 3, 4}, cpu_count=lambda: 8)
    monkeypatch.setattr("kernelbank.bank.engines.threads.os", fake)
    assert kb.engines.Threads().workers == 3
    assert kb.engines.Threads(5).workers == 5
    del fake.sched_getaffinity
    assert kb.engines.Threads().workers == 8


def test_threads_make_their_pool_at_the_first_long_block():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 40), engine=kb.engines.Threads(2))
    bank.learn_one(X[0], Y[0])
    assert executor_of(bank)._pool is None
    bank.run(X[1:], Y[1:])
    pool = executor_of(bank)._pool
    assert pool is not None
    bank.run(X, Y)
    assert executor_of(bank)._pool is pool


def test_one_thread_makes_no_pool():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 40), engine=kb.engines.Threads(1))
    bank.run(X, Y)
    assert executor_of(bank)._pool is None


FORK = """
import os, sys
import numpy as np
import kernelbank as kb

x = np.arange(600.0)
bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 40), engine=kb.engines.Threads(2))
bank.run(x, np.sin(x))
child = os.fork()
bank.run(x, np.cos(x))  # the pool's threads do not exist in the child
bits = b"".join(array.tobytes() for _, array in sorted(bank._state().items()))
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

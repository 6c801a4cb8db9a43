"""Helpers for tests on a Ray cluster: killed processes and nodes, comparisons."""

import gc
import os
import signal
import time
from pathlib import Path

import numpy as np

import kernelbank as kb

K, M = kb.kernels, kb.learners


def share_test_modules():
    """Let the processes of a cluster that starts now find the modules of the tests."""
    here, paths = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    if here not in paths.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([here, paths] if paths else [here])


def no_token(name, default=None):
    """In place of `os.getenv`, for a head that requires no token."""
    return "disabled" if name == "RAY_AUTH_MODE" else os.environ.get(name, default)


class MeanModel:
    """A model whose state is not an array, in a module that all processes can import."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def predict_one(self, x):
        return self.total / max(1, self.count)

    def learn_one(self, x, y):
        self.total += y
        self.count += 1


def assert_same_arrays(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        assert np.array_equal(one[name], other[name], equal_nan=True), name


def assert_same_traces(one, other):
    assert one.fields == other.fields
    for name in one.fields:
        found = getattr(one, name), getattr(other, name)
        assert np.array_equal(*found, equal_nan=True), name


def assert_same_banks(one, other):
    """Compare the whole state, to the bit."""
    assert one.samples == other.samples
    assert_same_arrays(one.state(), other.state())


def run_both(make, engine, X, y, cuts=(0, 1, 130, 131, 300), record="all"):
    """Run a stream on `engine` and on `serial` in uneven parts, and compare traces and states."""
    serial, other = make("serial"), make(engine)
    for start, end in zip(cuts, [*cuts[1:], len(X)], strict=True):
        if end > start:
            one = serial.run(X[start:end], y[start:end], record=record)
            assert_same_traces(one, other.run(X[start:end], y[start:end], record=record))
    assert_same_banks(serial, other)
    return serial, other


def ray_bank(bank):
    """The bank of the engine."""
    return bank._bank


def process_ids(bank):
    return [shard.process_id for shard in ray_bank(bank)._shards]


def kill_process(bank, shard):
    """Kill the process of a shard."""
    os.kill(process_ids(bank)[shard], signal.SIGKILL)


def remove_node(nodes, node, bank, seconds=30.0):
    """Remove a node without warning, and wait until its shard's process has ended."""
    processes = process_ids(bank)
    nodes.remove_node(node, allow_graceful=False)
    until = time.monotonic() + seconds
    while all(os.path.exists(f"/proc/{number}") for number in processes):
        assert time.monotonic() < until, "no process has ended with its node"
        time.sleep(0.05)


def release_processes():
    """Let the processes of banks that are gone serve the next ones."""
    gc.collect()

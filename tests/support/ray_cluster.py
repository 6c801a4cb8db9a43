"""A small Ray cluster for tests, started by the engine itself or with several nodes."""

import gc
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import kernelbank as kb
from support import instances

K, M = kb.kernels, kb.learners


@contextmanager
def own_token(tmp_path_factory):
    """Ray's token in a folder of the tests', not in the user's; Ray reads it once a process."""
    folder = tmp_path_factory.getbasetemp() / "ray"
    folder.mkdir(exist_ok=True)
    before = os.environ.get("RAY_AUTH_TOKEN_PATH")
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(folder / "token")
    # The processes of a cluster that starts now find the modules of the tests.
    here, paths = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    if here not in paths.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([here, paths] if paths else [here])
    try:
        yield folder / "token"
    finally:
        if before is None:
            del os.environ["RAY_AUTH_TOKEN_PATH"]
        else:
            os.environ["RAY_AUTH_TOKEN_PATH"] = before


def fits(slot, loss):
    try:
        kb.KernelBank(slots=[slot], loss=loss)
    except kb.errors.InvalidArgument:
        return False
    return True


def slots_of_all(loss="squared"):
    """A slot of every learner that can work with the loss, and some of Norma."""
    slots = [kb.Slot(K.Gaussian(w), M.Norma(0.05, budget=20)) for w in (0.1, 0.3, 0.5, 1, 2, 4)]
    slots.append(kb.Slot(K.Custom(instances.cauchy), M.Norma(0.05, budget=20)))
    for learner in instances.LEARNERS:
        kernel = K.Gaussian(0.6)
        if isinstance(learner, M.LinearRLS):
            kernel = K.Linear(0.5)
        elif isinstance(learner, M.PartitionTree):
            kernel = K.TreeKernel(0.7, 6)
        slots.append(kb.Slot(kernel, learner))
    if loss == "squared":
        slots.append(kb.Slot(K.Gaussian(1.0), M.Residual(9, M.KRLS(budget=10))))
        slots.append(kb.Slot(K.Gaussian(1.0), M.Residual(2, M.Norma(0.05, budget=20))))
    return [slot for slot in slots if fits(slot, loss) or isinstance(slot.learner, M.Residual)]


def same_arrays(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        assert np.array_equal(one[name], other[name], equal_nan=True), name


def same_traces(one, other):
    assert one.fields == other.fields
    for name in one.fields:
        found = getattr(one, name), getattr(other, name)
        assert np.array_equal(*found, equal_nan=True), name


def same_banks(one, other):
    """The whole state, to the bit."""
    assert one.samples == other.samples
    same_arrays(one._state(), other._state())


def play_both(make, engine, X, y, cuts=(0, 1, 130, 131, 300), record="all"):
    """Play a stream on `engine` in ragged pieces, and compare it with the serial one."""
    serial, other = make("serial"), make(engine)
    for start, end in zip(cuts, [*cuts[1:], len(X)], strict=True):
        if end > start:
            one = serial.run(X[start:end], y[start:end], record=record)
            same_traces(one, other.run(X[start:end], y[start:end], record=record))
    same_banks(serial, other)
    return serial, other


def executor_of(bank):
    return bank._work.executor


def kill(bank, shard):
    """End the process of a shard at once."""
    os.kill(executor_of(bank).processes[shard], signal.SIGKILL)


def lose(nodes, node, bank, seconds=30.0):
    """Take a node away, and wait until its shard's process has followed it."""
    processes = executor_of(bank).processes
    nodes.remove_node(node, allow_graceful=False)
    until = time.monotonic() + seconds
    while all(os.path.exists(f"/proc/{number}") for number in processes):
        assert time.monotonic() < until, "no process has ended with its node"
        time.sleep(0.05)


def tidy():
    """Let the processes of banks that are gone serve the next ones."""
    gc.collect()

"""Banks of the core with the settings of a `KernelBank`; states of its objects, changed by hand."""

import numpy as np

from kernelbank import _core

BY_SAMPLE = ("predictions", "cost", "loss", "bound_gap", "cumulative_cost", "regret")
BY_SLOT = ("weights", "slot_cost", "slot_loss", "slot_predictions", "curvature", "window_loss")


def made(bank, dimension, **options):
    """A bank of the core with the settings of another."""
    return _core.Bank(bank._settings.describe(dimension) | options)


def learned(bank, X, Y):
    """The trace of a bank of the core: (n, K) and (n, K, P) arrays by name."""
    rows, outputs = Y.shape
    slots = len(bank.state()["output0/weights"])
    trace = {name: np.zeros((rows, outputs)) for name in BY_SAMPLE}
    trace |= {name: np.zeros((rows, outputs, slots)) for name in BY_SLOT}
    bank.learn(np.ascontiguousarray(X), np.ascontiguousarray(Y), None, trace)
    return trace


def put(part, **arrays):
    """Let an object go on from its state with some other arrays; it refuses impossible ones."""
    part.restore(part.state() | arrays)


def put_entry(part, name, index, value):
    """The same with another number in one of its arrays."""
    array = part[name]
    array[index] = value
    put(part, **{name: array})

"""Runs to plot, and what was drawn."""

import numpy as np

import kernelbank as kb
from kernelbank.bank.trace import Trace


def run_bank(samples=60, record="all"):
    """A bank, its trace and its targets."""
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 5), window=5)
    x = np.arange(samples) / 4
    return bank, bank.run(x, np.sin(x), record=record), np.sin(x)


def zero_trace(fields, samples=50, slots=3):
    """A trace of zeros to write to."""
    trace = Trace(samples, [f"slot {p}" for p in range(slots)], fields)
    for field in fields:
        getattr(trace, field)[:] = 0.0
    return trace


def drawn_line(axes, label):
    """(n, 2): the points of the line with this label."""
    (found,) = (one for one in axes.lines if one.get_label() == label)
    return found.get_xydata()

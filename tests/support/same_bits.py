"""Comparisons of banks, traces and runs, bit by bit."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class WholeRun(NamedTuple):
    """The trace of a run, and the file of its bank."""

    trace: Any
    file: bytes


def saved_bytes(bank):
    """The file that a bank is saved to: it holds the whole state."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "compared.kb")
        bank.save(path)
        return path.read_bytes()


def run_whole(case):
    """Run the stream of a case of `support.every_bank` in one call."""
    bank = case.make("serial")
    trace = bank.run(case.X, case.y, record="all")
    return WholeRun(trace, saved_bytes(bank))


def assert_same_bits(whole, bank, traces):
    """Check the traces of the parts of a stream from its start, and the bank at the end."""
    done = 0
    for trace in traces:
        rows = slice(done, done + len(trace))
        for name in whole.trace.fields:
            one, other = getattr(trace, name), getattr(whole.trace, name)[rows]
            assert one.tobytes() == other.tobytes() or np.array_equal(one, other), name
        done += len(trace)
    assert saved_bytes(bank) == whole.file


def assert_same_trace(one, other):
    """The recorded fields of two traces have the same bits."""
    for name in one.fields:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def assert_same_state(one, other):
    """The states of two banks have the same bits."""
    first, second = one.state(), other.state()
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True), name

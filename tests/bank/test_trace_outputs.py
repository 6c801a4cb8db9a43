"""Traces of a KernelBank with several outputs."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument


@pytest.fixture(scope="module")
def trace():
    x = np.arange(40) / 4
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 3), outputs=2)
    return bank.run(x, np.column_stack([np.sin(x), np.cos(x)]))


def test_outputs_have_numbers_as_names(trace):
    assert trace.target_names == ("output 0", "output 1")
    assert repr(trace).startswith("Trace(40 samples, 2 outputs; predictions")
    assert np.array_equal(trace.of_output("output 1").loss, trace.loss[:, 1])
    with pytest.raises(InvalidArgument, match=r"'output' of of_output .*'output 0', 'output 1'"):
        trace.of_output(2)


def test_jensen_gap_of_several_outputs_is_that_of_each(trace):
    gap = trace.jensen_gap()
    assert gap.shape == (40, 2)
    for k in range(2):
        assert np.array_equal(gap[:, k], trace.of_output(k).jensen_gap())

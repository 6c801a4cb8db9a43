"""Elementary functions inside other compiled functions: their types, and what they call."""

import math
import re

import numba
import numpy as np
import pytest

from kernelbank.native import scalar_math
from kernelbank.native.jit import inline


def test_functions_of_integers_and_small_floats_equal_those_of_float64():
    @numba.njit
    def values(x, y):
        return scalar_math.power(x, y), scalar_math.exp(y), scalar_math.sine(y)

    for y in (2, np.float32(2.0), True):
        assert values(3.0, y) == (3.0 ** float(y), *values(3.0, float(y))[1:])
        assert values(3.0, y)[1] == pytest.approx(math.exp(y), rel=1e-15)


# Of LLVM's own functions only these: its exp, sin and pow become calls of the C library.
ROUNDED = {
    "llvm.fma.f64",
    "llvm.sqrt.f64",
    "llvm.fabs.f64",
    "llvm.copysign.f64",
    "llvm.is.fpclass.f64",
}


def outside(python_function, count):
    """Names that compiled code needs from elsewhere; without a wrapper, which calls Python."""
    dispatcher = inline(python_function)
    dispatcher.compile((numba.float64,) * count)
    (code,) = dispatcher.inspect_llvm().values()
    names = re.findall(r'^declare .*@"?([^"(]+)', code, re.MULTILINE)
    whole_numbers = re.compile(r"llvm\.[a-z.]+\.i64")  # are not rounded
    return [name for name in names if name not in ROUNDED and not whole_numbers.fullmatch(name)]


@pytest.mark.parametrize("name", scalar_math.elementwise)
def test_compiled_function_calls_nothing_outside(name):
    called = getattr(scalar_math, name)
    assert outside(called.py_func, 2 if name == "power" else 1) == []


def test_call_of_the_c_library_is_noticed():
    def by_c(x):
        return math.tanh(x) + math.exp(x)

    assert outside(by_c, 1) == ["tanh", "llvm.exp.f64"]

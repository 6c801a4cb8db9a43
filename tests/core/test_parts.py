"""The parts of a bank on arrays, and users' functions in C."""

import ctypes
import pickle
import subprocess

import fixed_runs
import numpy as np
import pytest

import kernelbank as kb
from kernelbank import _core
from support.core_banks import learned, made
from support.marks import refuses

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
X, Y = fixed_runs.stream(40)
SOURCE = """
#include <stdint.h>
double cauchy(const double* x, const double* t, int64_t d) {
  double total = 0.0;
  for (int64_t k = 0; k < d; ++k) total += (x[k] - t[k]) * (x[k] - t[k]);
  return 1.0 / (1.0 + total);
}
double value(double f, double y) { return (f - y) * (f - y); }
double derivative(double f, double y) { return 2.0 * (f - y); }
"""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The addresses of the functions above, and the library that keeps them loaded."""
    folder = tmp_path_factory.mktemp("c")
    (folder / "functions.c").write_text(SOURCE)
    command = ["cc", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "functions.c", "-o", "f.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "f.so"))
    names = ("cauchy", "value", "derivative")
    found = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names}
    return found | {"library": library}


def cauchy(A, B):
    """The same in NumPy, coordinate by coordinate."""
    total = np.zeros((len(A), len(B)))
    for k in range(A.shape[1]):
        total += (A[:, None, k] - B[None, :, k]) ** 2
    return 1 / (1 + total)


def assert_same_bits(banks):
    """Two banks of the core, in threads, and the first one as Python has it."""
    one, other = (learned(made(bank, 2, threads=2), X, Y[:, None]) for bank in banks)
    assert all(np.array_equal(one[field], other[field]) for field in one)
    assert np.array_equal(one["predictions"][:, 0], banks[0].run(X, Y).predictions)


def test_kernel_in_c_has_the_bits_of_the_same_in_numpy(addresses):
    in_c, in_numpy = kb.kernels.Custom(addresses["cauchy"], "c"), kb.kernels.Custom(cauchy)
    assert np.array_equal(in_c(X, X[:7]), in_numpy(X, X[:7]))
    for form in (
        lambda k: 0.5 * k + kb.kernels.Gaussian(1.0),
        lambda k: kb.kernels.ActiveDims(k, [1]),
    ):
        for learner in (kb.learners.Norma(0.05, 30), kb.learners.KRLS()):
            assert_same_bits([kb.KernelBank(form(k), learner) for k in (in_c, in_numpy)])


def test_loss_in_c_has_the_bits_of_the_same_in_numpy(addresses):
    in_c = kb.losses.Custom(addresses["value"], addresses["derivative"], 2.0)
    in_numpy = kb.losses.Custom(lambda f, y: (f - y) * (f - y), lambda f, y: 2.0 * (f - y), 2.0)
    losses = [in_c, in_numpy]
    assert [loss.in_python for loss in losses] == [False, True]
    assert np.array_equal(in_c.value(X, 1.0), in_numpy.value(X, 1.0))
    assert np.array_equal(in_c.derivative(X, 1.0), in_numpy.derivative(X, 1.0))
    assert_same_bits([kb.KernelBank(kb.gaussian_grid(0.3, 2, 5), loss=one) for one in losses])


def test_address_is_not_pickled_but_saved_by_its_name(addresses):
    kernel = kb.kernels.Custom(addresses["cauchy"], name="cauchy")
    refuses(r"'function' of Custom must be in Python .* on Ray", pickle.dumps, 2.0 * kernel)
    bank = kb.KernelBank(kernel)
    bank.run(X, Y)
    refuses("needs the user-made component 'cauchy'", kb.from_bytes, bank.to_bytes())
    loaded = kb.from_bytes(bank.to_bytes(), components={"cauchy": kernel})
    assert loaded.predict_one(X[0]) == bank.predict_one(X[0])


def test_core_refuses_arrays_that_do_not_fit():
    spec = kb.kernels.Gaussian(1.0).core_spec(3)
    refuses("coordinate", _core.kernel_matrix, spec, X, X)
    refuses("fit", lambda: _core.kernel_matrix(spec, X, np.ones((2, 3))))
    refuses("fit", lambda: _core.loss_values(("squared", ()), np.ones(3), np.ones(4)))

"""Copies and pickles of banks: what they share and what is their own.

That copies continue with the same bits is tested for every component in `test_same_bits.py`.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest
from river import linear_model

import kernelbank as kb
from support.instances import stream

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

ROWS = 60


def pickled(bank):
    return pickle.loads(pickle.dumps(bank))


def agree(bank, copies, X, y):
    """Everything that comes after is the same, for the bank and for its copies."""
    expected = bank.run(X, y)
    for other in copies:
        found = other.run(X, y)
        for name in expected.fields:
            arrays = getattr(found, name), getattr(expected, name)
            numbers = arrays[0].dtype != object  # labels: None before one is known
            assert np.array_equal(*arrays, equal_nan=numbers), name
        after = bank.state() if isinstance(bank, kb.KernelBank) else {}
        for name, array in after.items():
            assert np.array_equal(array, other.state()[name], equal_nan=True), name


def assert_copies_continue(bank):
    X, y = stream(5, 2 * ROWS, 2)
    bank.run(X[:ROWS], y[:ROWS])
    agree(bank, [pickled(bank), copy.deepcopy(bank), copy.copy(bank)], X[ROWS:], y[ROWS:])


def test_bank_that_has_begun_nothing_is_copied_as_such():
    """Terms before the first sample are at this sample, of copies as well."""
    X, y = stream(5, 2 * ROWS, 2)
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    bank.run(X[:ROWS], y[:ROWS])
    alone = bank.new_output(20)
    agree(alone, [pickled(alone), copy.copy(alone)], X[20:], y[20:])


def test_models_behind_adapters_are_copied():
    slots = [
        kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(linear_model.LinearRegression())),
        kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma()),
    ]
    assert_copies_continue(kb.KernelBank(slots=slots))
    bank = kb.KernelBank(slots=slots, engine=kb.engines.Threads(2))
    X, y = stream(5, 2 * ROWS, 2)
    bank.run(X, y)
    other = copy.deepcopy(bank)
    other.run(X, 10 + y)
    assert abs(other.predict_one(X[0]) - bank.predict_one(X[0])) > 1


def test_new_bank_and_given_warnings_are_copied():
    for bank in (kb.KernelBank(), kb.AutoBank(), kb.AutoBank("classification", classes=["a", "b"])):
        other = pickled(bank)
        assert repr(other) == repr(bank)
        assert other.samples == 0
    bank = kb.KernelBank(
        kb.gaussian_grid(0.5, 2, 3), kb.learners.Norma(budget=10, learning_rate=0.5)
    )
    X, y = stream(5, ROWS, 1)
    with pytest.warns(kb.errors.KernelBankWarning):
        bank.run(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickled(bank).run(X, y)

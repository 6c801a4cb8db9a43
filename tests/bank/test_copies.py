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


FACTOR, OFFSET = 1.8, -3.5
K, L = kb.kernels, kb.learners
SLOTS = [
    kb.Slot(K.NoKernel(), L.LastValue()),
    kb.Slot(K.Linear(0.5), L.LinearRLS()),
    kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=24), residual_of=0),
    kb.Slot(K.Gaussian(1.0), L.Norma(0.1, 15)),
]


def targets_of(outputs=1):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(90, 2))
    return X, draw.normal(size=(90, outputs)).squeeze()


@pytest.mark.parametrize("window", [1, 4])
def test_the_last_value_is_mapped_and_what_is_on_it_goes_on(window):
    X, y = targets_of()
    bank = kb.KernelBank(slots=SLOTS, window=window)
    bank.run(X, y)
    before = bank.predict_slots(X[:5])
    bank.rescale(FACTOR, OFFSET)
    after = bank.predict_slots(X[:5])
    assert after[:, 0] == pytest.approx(FACTOR * y[-1] + OFFSET, rel=1e-12)
    assert after[:, 2] - after[:, 0] == pytest.approx(before[:, 2] - before[:, 0], abs=1e-12)
    assert (after[:, [1, 3]] == before[:, [1, 3]]).all()


def test_window_is_scored_in_the_new_units():
    """The last value stays right: of targets that stay at one value nothing is lost."""
    last = kb.Slot(K.NoKernel(), kb.learners.LastValue())
    line = kb.Slot(K.Linear(), kb.learners.LinearRLS(), residual_of=0)
    bank = kb.KernelBank(slots=[last, line], window=10)
    bank.run(np.arange(30.0), np.full(30, 20.0))
    usual = copy.deepcopy(bank).run([30.0], [20.0])
    bank.rescale(1.8, 32.0)
    mapped = bank.run([30.0], [68.0])
    # 20 -> 68 up to rounding, and with it the errors on the window.
    assert mapped.slot_cost[0] == pytest.approx(usual.slot_cost[0], rel=1e-9, abs=1e-25)
    assert mapped.window_loss[0] == pytest.approx(usual.window_loss[0], rel=1e-9, abs=1e-25)


def test_only_one_output_is_mapped():
    X, y = targets_of(outputs=2)
    bank = kb.KernelBank(slots=SLOTS, outputs=2)
    bank.run(X, y)
    bank.rescale(FACTOR, OFFSET, output=1)
    expected = [y[-1, 0], FACTOR * y[-1, 1] + OFFSET]
    assert bank.predict_slots(X[:1])[0, :, 0] == pytest.approx(expected, rel=1e-12)

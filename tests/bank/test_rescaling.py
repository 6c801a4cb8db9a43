"""Targets in other units: the last value is mapped, f' = factor f + offset."""

import numpy as np
import pytest

import kernelbank as kb

FACTOR, OFFSET = 1.8, -3.5
K, L = kb.kernels, kb.learners
SLOTS = [
    kb.Slot(K.NoKernel(), L.LastValue()),
    kb.Slot(K.Linear(0.5), L.LinearRLS()),
    kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=24), residual_of=0),
    kb.Slot(K.Gaussian(1.0), L.Norma(0.1, 15)),
]


def stream(outputs=1):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(90, 2))
    return X, draw.normal(size=(90, outputs)).squeeze()


@pytest.mark.parametrize("window", [1, 4])
def test_the_last_value_is_mapped_and_what_is_on_it_goes_on(window):
    X, y = stream()
    bank = kb.KernelBank(slots=SLOTS, window=window)
    bank.run(X, y)
    before = bank.predict_slots(X[:5])
    bank.rescale(FACTOR, OFFSET)
    after = bank.predict_slots(X[:5])
    assert after[:, 0] == pytest.approx(FACTOR * y[-1] + OFFSET, rel=1e-12)
    assert after[:, 2] - after[:, 0] == pytest.approx(before[:, 2] - before[:, 0], abs=1e-12)
    assert (after[:, [1, 3]] == before[:, [1, 3]]).all()


def test_only_one_output_is_mapped():
    X, y = stream(outputs=2)
    bank = kb.KernelBank(slots=SLOTS, outputs=2)
    bank.run(X, y)
    bank.rescale(FACTOR, OFFSET, output=1)
    expected = [y[-1, 0], FACTOR * y[-1, 1] + OFFSET]
    assert bank.predict_slots(X[:1])[0, :, 0] == pytest.approx(expected, rel=1e-12)


def test_bank_without_samples_has_nothing_to_map():
    bank, other = kb.KernelBank(slots=SLOTS), kb.KernelBank(slots=SLOTS)
    bank.rescale(FACTOR, OFFSET)
    X, y = stream()
    assert (bank.run(X, y).predictions == other.run(X, y).predictions).all()


def test_unknown_output_is_refused():
    with pytest.raises(kb.errors.InvalidArgument, match="output"):
        kb.KernelBank(slots=SLOTS).rescale(2.0, output=1)

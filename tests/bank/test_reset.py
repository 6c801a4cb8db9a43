"""A bank that was reset is a fresh one, to the last bit (`test_same_bits.py` runs every learner so)."""

import copy

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import KernelBankError
from support.instances import stream

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_reset_bank_with_other_slots_since_its_start_equals_a_new_one():
    def make():
        return kb.KernelBank(kb.gaussian_grid(0.5, 2, 2), kb.learners.FourierRLS(features=8))

    def changed(bank):
        bank.run(*stream(0, 40, 2))
        return bank.with_slots(bank.slots, [0, None])  # the new slot draws other features

    used = changed(make())
    used.reset()
    assert used.ledger.slot_changes == ()
    one, other = used.run(*stream(1, 40, 2)), make().run(*stream(1, 40, 2))
    np.testing.assert_array_equal(one.slot_predictions, other.slot_predictions)


def test_reset_before_the_first_sample_works_and_with_models_is_refused():
    bank = kb.KernelBank()
    bank.reset()
    assert bank.samples == 0

    class Zero:
        def learn_one(self, x, y):
            return self

        def predict_one(self, x):
            return 0.0

    bank = kb.KernelBank([kb.kernels.NoKernel()], kb.learners.Adapter(Zero()))
    bank.run([1.0, 2.0], [0.0, 1.0])
    with pytest.raises(KernelBankError, match="cannot be reset"):
        bank.reset()
    assert bank.samples == 2


def test_reset_bank_is_saved_and_copied_as_a_new_one(tmp_path):
    X, y = stream(0, 40, 2)
    bank = kb.KernelBank(kb.gaussian_grid(0.3, 3, 4))
    fresh = bank.fresh()
    expected = fresh.run(X, y)
    bank.run(X[::-1], y[::-1])
    bank.reset()
    bank.save(tmp_path / "bank.kb")
    for again in (kb.load(tmp_path / "bank.kb"), copy.deepcopy(bank)):
        found = again.run(X, y)
        np.testing.assert_array_equal(found.predictions, expected.predictions)
        assert again.describe()[0] == fresh.describe()[0]

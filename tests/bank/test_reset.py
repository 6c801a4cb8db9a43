"""A bank that was reset is a fresh one, to the last bit."""

import copy

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import KernelBankError
from support.instances import COMBINERS, LEARNERS, name_of, stream
from support.learner_cases import kernel_of, losses_of

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def same(make, labels=False):
    X, y = stream(0, 90, 2, labels)
    used, fresh = make(), make()
    used.run(X[::-1], y[::-1])
    used.predict_one(X[0])
    used.reset()
    assert used.samples == 0
    one, other = used.run(X, y), fresh.run(X, y)
    for name in one.fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    first, second = used._describe(), fresh._describe()
    assert first[0] == second[0]
    for name, array in first[1].items():
        np.testing.assert_array_equal(array, second[1][name], err_msg=name)


@pytest.mark.parametrize("learner", [kb.learners.Norma(), *LEARNERS], ids=name_of)
def test_reset_bank_with_any_learner_equals_a_new_one(learner):
    loss = losses_of(learner)[0]
    kernel = kernel_of(learner)
    slots = [kb.Slot(kernel, learner), kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma())]
    if loss not in ("logistic", "hinge"):
        slots.append(kb.Slot(kernel, learner, residual_of=0))
    labels = loss in ("logistic", "hinge")
    for engine in ("serial", "threads"):
        same(lambda e=engine: kb.KernelBank(slots=slots, loss=loss, window=3, engine=e), labels)


@pytest.mark.parametrize("pair", COMBINERS, ids=name_of)
def test_reset_bank_with_any_combiner_equals_a_new_one(pair):
    same(lambda: kb.KernelBank(kb.gaussian_grid(0.2, 2, 6), combiner=pair[0], window=4))


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
        assert again._describe()[0] == fresh._describe()[0]

"""Slots that become non-finite."""

import numpy as np
import pytest

import kernelbank as kb
from support.instances import COMBINERS, name_of, stream
from support.same_bits import assert_same_state

EPS = np.finfo(float).eps
K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_slot_that_becomes_non_finite_is_out_and_affects_no_other():
    X, y = stream(5, 400, 1)
    good = [K.Gaussian(0.3), K.Gaussian(1.0), K.Laplacian(0.5)]
    wild = kb.Slot(K.Linear(1.0), Norma(5.0, 20))
    calm = [kb.Slot(kernel, Norma(0.05, 20)) for kernel in good]
    bank = kb.KernelBank(slots=[calm[0], wild, *calm[1:]], window=5)
    with pytest.warns(kb.errors.SlotQuarantined, match=r"1 of 4 slots.*Linear"):
        trace = bank.run(X, y)
    assert bank.quarantined == (1,)
    assert bank.weights[1] == 0.0
    assert bank.ledger.slot_cumulative_cost[1] == np.inf
    assert np.isfinite(trace.predictions).all()
    assert np.isfinite(trace.cost).all()
    out = int(np.argmax(np.isinf(trace.slot_cost[:, 1])))
    assert (trace.weights[out + 1 :, 1] == 0).all()
    assert np.isinf(trace.slot_cost[out:, 1]).all()
    without = kb.KernelBank(slots=calm, window=5).run(X, y)
    assert (np.delete(trace.slot_cost, 1, axis=1) == without.slot_cost).all()
    assert np.abs(trace.weights[out + 1 :, [0, 2, 3]] - without.weights[out + 1 :]).max() <= 8 * EPS


@pytest.mark.parametrize("combiner", COMBINERS, ids=map(name_of, COMBINERS))
def test_bank_of_diverging_slots_never_predicts_nan(combiner):
    X, y = stream(5, 300, 1)
    kernels = [K.Linear(1.0), K.Polynomial(3, 1.0, 1.0), K.Gaussian(1.0)]
    blocks, loop = (
        kb.KernelBank(kernels, Norma(20.0, 20), combiner[0], window=5) for _ in range(2)
    )
    trace = blocks.run(X, y)
    for n in range(len(X)):
        loop.learn_one(X[n], y[n])
    assert_same_state(blocks, loop)
    assert len(blocks.quarantined) == 3
    assert blocks.weights.tolist() == [0.0] * 3 or not blocks.combiner.on_simplex
    if blocks.combiner.on_simplex:
        assert np.isfinite(trace.predictions).all()
    assert blocks.predict_one(0.5) == 0.0 or not blocks.combiner.on_simplex


def test_kernel_that_overflows_at_one_point_has_no_weight_there():
    bank = kb.KernelBank([K.Polynomial(64, 1.0, 1.0), K.Gaussian(1.0)], Norma(1e-3), window=2)
    bank.run([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert bank.weights[0] > 0
    alone = bank.predict_slots([1e150])[0]
    assert not np.isfinite(alone[0])
    assert bank.predict_one(1e150) == alone[1] == 0.0


def test_slot_that_is_out_after_the_first_block_affects_no_other():
    kernels = [K.Polynomial(degree) for degree in (60, 1, 1, 1, 1, 1, 1, 1)]
    x = 1 + np.arange(100) / 50
    blocks, loop = (kb.KernelBank(kernels, Norma(0.001)) for _ in range(2))
    blocks.run(x, np.sin(x))
    for n in range(100):
        loop.learn_one(x[n], np.sin(x[n]))
    assert blocks.quarantined == loop.quarantined == (0,)
    assert_same_state(blocks, loop)


def test_slot_without_a_finite_prediction_has_no_weight_in_that_prediction():
    bank = kb.KernelBank([K.Polynomial(64, 1.0, 1.0), K.Gaussian(1.0)], Norma(1e-3), window=2)
    bank.run([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert bank.weights[0] > 0
    expected = bank.predict_one(1e150)
    trace = bank.run([1e150], [0.0])
    assert trace.predictions[0] == expected == 0.0
    assert trace.weights[0].tolist() == [0.0, 1.0]
    assert bank.quarantined == (0,)


def test_slot_that_is_out_stays_out_with_omkr():
    def nan_once(X, Z):
        return np.where(X.sum() == 30.0, np.nan, np.exp(-((X - Z.T) ** 2)))

    bank = kb.KernelBank([K.Custom(nan_once), K.Gaussian(1.0)], combiner=kb.combiners.OMKR())
    trace = bank.run(np.arange(60.0), np.sin(np.arange(60.0)))
    assert bank.quarantined == (0,)
    assert (trace.weights[31:, 0] == 0).all()
    assert bank.weights[0] == 0
    assert (trace.weights[31:, 1] != 0).all()

"""Slots that learn the residual of another slot, or by a loss of their own."""

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_residual_slot_is_the_sum_of_base_and_learned_residual():
    X, y = stream(2, 150, 2)
    line, tree = kb.Slot(K.Linear(1.0), L.LinearRLS()), L.KLMS(0.2, 30)
    slots = [line, kb.Slot(K.Gaussian(0.5), tree, residual_of=0)]
    trace = kb.KernelBank(slots=slots, window=4).run(X, y)
    base = kb.KernelBank([line.kernel], line.learner, window=4).run(X, y)
    left = y - base.slot_predictions[:, 0]
    inner = kb.KernelBank([K.Gaussian(0.5)], tree, window=4).run(X, left)
    expected = base.slot_predictions[:, 0] + inner.slot_predictions[:, 0]
    assert np.array_equal(trace.slot_predictions[:, 1], expected)
    both = base.curvature[:, 0] + inner.curvature[:, 0]
    assert np.allclose(trace.curvature[:, 1], both, rtol=4 * EPS, atol=0)


def test_variance_of_a_residual_slot_is_the_sum_of_both():
    base = kb.Slot(K.Linear(1.0), L.LinearRLS())
    rest = kb.Slot(K.Gaussian(1.0), L.KRLSTracker(budget=5), residual_of=0)
    bank = kb.KernelBank(slots=[base, rest], window=2)
    bank.run(np.arange(9.0), np.ones(9))
    first, second = bank.predict_variance_slots([20.0])[0]
    assert second == pytest.approx(first + 1.0 / rest.learner.noise)


INNER = [
    (K.Gaussian(0.5), L.Norma(0.1, 20)),
    (K.Gaussian(0.5), L.FourierRLS(features=12)),
    (K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5)),
]


@pytest.mark.parametrize(("kernel", "learner"), INNER, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("judge", ["absolute", "hinge"])
def test_slot_with_own_loss_learns_by_it_and_is_judged_by_the_banks(kernel, learner, judge):
    def slots(loss):
        return [
            kb.Slot(K.Linear(1.0), L.LinearRLS(), loss),
            kb.Slot(kernel, learner, loss),
            kb.Slot(kernel, learner, loss, residual_of=0),
        ]

    X, y = stream(3, 300, 2, labels=judge == "hinge")
    bank = kb.KernelBank(slots=slots("squared"), loss=judge, window=3)
    expected = kb.KernelBank(slots=slots(None), window=3).run(X, y).slot_predictions
    found = bank.run(X[:150], y[:150])
    rest = kb.from_bytes(bank.to_bytes()).run(X[150:], y[150:])
    assert np.array_equal(np.vstack([found.slot_predictions, rest.slot_predictions]), expected)
    judged = bank.loss.value(expected[:150], y[:150, None]).sum(axis=0)
    assert bank.ledger.slot_loss == pytest.approx(judged, rel=1e-12)

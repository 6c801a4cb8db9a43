"""Warnings while a bank learns."""

import warnings

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import COMBINERS, name_of, stream
from support.same_bits import assert_same_state

K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_unstable_steps_are_warned_of_with_their_bound():
    x = np.linspace(0, 1, 60)
    with pytest.warns(kb.errors.UnstableStep, match="the bound .* at most") as record:
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20), window=10).run(x, np.sin(9 * x))
    assert [warning.filename for warning in record] == [__file__]  # said once, of this line
    message = str(record[0].message)
    bound = float(message.split("at most ")[1].split(". Lower", maxsplit=1)[0])
    gram = K.Gaussian(5.0)(x[:10], x[:10])
    true_bound = 2 / (2 * np.linalg.eigvalsh(gram).max() + 0.01)
    # g'Kg / g'g never exceeds the largest eigenvalue, so what is named is above the true bound.
    assert true_bound * (1 - 1e-9) <= bound < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.05, 60), window=10).run(x, np.sin(9 * x))
        # no curvature, no bound
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 60), loss="absolute").run(x, np.sin(9 * x))


def test_truncation_is_warned_of_when_it_matters():
    x, y = naive.ar1(0, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the paper's objective: what is dropped is far away
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20, spacing="linear"))
        bank.run(x, y)
    assert (bank.ledger.dropped > 0).all()
    with pytest.warns(kb.errors.TruncationMatters, match="Raise budget") as record:
        kb.KernelBank([K.Gaussian(30.0)], Norma(0.01, 12), window=5).run(x, y)
    assert len(record) == 1


def test_truncation_beyond_the_whole_has_no_percentage():
    # Terms of about 10, -20 and 11: f is near 1 when the first is dropped.
    bank = kb.KernelBank([K.Gaussian(500.0)], kb.learners.KLMS(0.5, 2))
    with pytest.warns(kb.errors.TruncationMatters, match="by more than 100%. Raise budget"):
        bank.run([0.0, 1.0, 2.0], [10.0, -10.0, 1.0])


def test_bound_of_a_curvature_that_varies_is_no_proof_of_instability():
    x = np.linspace(0, 1, 60)
    with pytest.warns(kb.errors.UnstableStep, match="1 of 1 slots may not be stable"):
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20), loss="huber").run(x, x)
    with pytest.warns(kb.errors.UnstableStep, match="1 of 1 slots cannot be stable"):
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20)).run(x, x)


# --- quarantine -----------------------------------------------------------------------------------

EPS = np.finfo(float).eps


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


def test_slot_without_a_finite_prediction_has_no_weight_in_that_prediction():
    bank = kb.KernelBank([K.Polynomial(64, 1.0, 1.0), K.Gaussian(1.0)], Norma(1e-3), window=2)
    bank.run([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert bank.weights[0] > 0
    expected = bank.predict_one(1e150)
    trace = bank.run([1e150], [0.0])
    assert trace.predictions[0] == expected == 0.0
    assert trace.weights[0].tolist() == [0.0, 1.0]
    assert bank.quarantined == (0,)

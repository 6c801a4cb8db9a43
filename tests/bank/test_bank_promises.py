"""The promises of a bank about itself: no side effects, bounded costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.instances import COMBINERS, KERNELS, LOSSES, TREE, stream, targets_for
from support.same_bits import assert_same_state
from support.second_order import PrototypeRLS

EPS = np.finfo(float).eps
K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@st.composite
def banks(draw):
    kernels = [kernel for kernel, _ in KERNELS]
    chosen = draw(st.lists(st.sampled_from(kernels), min_size=1, max_size=9))
    window = draw(st.integers(1, 7))
    learners = [
        Norma(draw(st.sampled_from([0.001, 0.02])), window + draw(st.sampled_from([0, 1, 20, 150])))
        for _ in range(2)
    ]
    slots = [kb.Slot(kernel, draw(st.sampled_from(learners))) for kernel in chosen]
    if draw(st.booleans()):
        slots.insert(draw(st.integers(0, len(slots))), kb.Slot(K.Gaussian(1.0), PrototypeRLS(8)))
    loss = draw(st.sampled_from([loss for loss, _ in LOSSES]))
    if isinstance(loss, (kb.losses.Squared, kb.losses.Logistic)) and draw(st.booleans()):
        slots.insert(draw(st.integers(0, len(slots))), TREE)
    combiner = draw(st.sampled_from([combiner for combiner, _ in COMBINERS]))
    ridge = draw(st.sampled_from([0.0, 0.01, 0.5]))
    return kb.KernelBank(
        slots=slots, combiner=combiner, loss=loss, window=window, regularization=ridge
    )


def data(bank, seed, samples):
    X, y = stream(seed, samples, 2)
    y = targets_for(bank.loss, y)
    if seed % 3 == 0:
        X = np.tile(np.arange(float(samples))[:, None] / 8, (1, 2))  # a regular grid
    return X, y


@settings(max_examples=12)
@given(banks(), st.integers(0, 100), st.integers(0, 200))
def test_predictions_leave_the_state_unchanged(bank, seed, moment):
    X, y = data(bank, seed, 201)
    assert (bank.predict(X) == 0).all()
    if moment > 0:
        bank.run(X[:moment], y[:moment])
    before = bank.state()
    together = bank.predict(X)
    assert [bank.predict_one(x) for x in X[:20]] == together[:20].tolist()
    assert (bank.predict(X[::-1]) == together[::-1]).all()
    bank.predict_slots(X)
    after = bank.state()
    assert all(np.array_equal(before[k], after[k], equal_nan=True) for k in before)


@settings(max_examples=25)
@given(banks(), st.integers(0, 100))
def test_weights_stay_on_the_simplex_and_costs_below_the_bound(bank, seed):
    X, y = data(bank, seed, 150)
    trace = bank.run(X, y)
    if not bank.combiner.on_simplex:
        assert np.isnan(trace.bound_gap).all()
        return
    slots = len(bank.slots)
    assert (trace.weights >= 0).all()
    assert np.abs(trace.weights.sum(axis=1) - 1).max() <= 8 * slots * EPS
    # Jensen's inequality holds exactly; the two sides are sums of window * P rounded terms.
    finite = np.where(np.isfinite(trace.slot_cost), trace.slot_cost, 0)
    rounding = 8 * (bank.window + slots) * EPS * (trace.weights * finite).sum(axis=1)
    assert (trace.bound_gap >= -rounding - 1e-300).all()
    if isinstance(bank.combiner, kb.combiners.Simplex) and bank.combiner.evidence == "window":
        live = np.isfinite(trace.window_loss).all(axis=0)
        curvature, linear = trace.curvature[:-1, live], trace.window_loss[:-1, live]
        if bank.combiner.bound == "jensen":
            curvature, linear = np.zeros_like(curvature), curvature + linear
        residual = kb.kkt_residual(trace.weights[1:, live], curvature, linear)
        assert residual.max() <= 8 * slots * EPS


def test_cumulative_metrics_continue_across_calls_of_run():
    X, y = stream(1, 50, 1)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 2, 5))
    first, second = bank.run(X[:20], y[:20]), bank.run(X[20:], y[20:])
    costs = np.concatenate([first.cost, second.cost])
    running = np.concatenate([first.cumulative_cost, second.cumulative_cost])
    assert (running == np.cumsum(costs)).all()
    ledger = bank.ledger
    assert ledger.cumulative_cost == running[-1]
    assert ledger.samples == bank.samples == 50
    slot_costs = np.concatenate([first.slot_cost, second.slot_cost])
    assert (ledger.slot_cumulative_cost == np.cumsum(slot_costs, axis=0)[-1]).all()
    assert ledger.regret == running[-1] - ledger.slot_cumulative_cost.min()
    assert second.regret[-1] == ledger.regret
    assert ledger.best_slot == np.argmin(ledger.slot_cumulative_cost)
    losses = np.concatenate([first.loss, second.loss])
    assert ledger.loss == np.cumsum(losses)[-1]
    predictions = np.concatenate([first.predictions, second.predictions])
    assert (losses == (predictions - y) ** 2).all()
    assert ledger.mean_loss == ledger.loss / 50
    gaps = np.concatenate([first.bound_gap, second.bound_gap])
    assert ledger.bound_gap == np.cumsum(gaps)[-1]
    assert "50 samples" in repr(ledger)


def test_new_bank_predicts_zero_and_has_an_empty_ledger():
    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4))
    assert bank.weights.tolist() == [0.25] * 4
    assert bank.predict_one([1.0, 2.0]) == 0.0
    assert bank.predict(np.ones((3, 5))).tolist() == [0.0] * 3
    assert np.isnan(bank.ledger.mean_loss)
    assert bank.ledger.dropped.tolist() == [0.0] * 4
    assert bank.dictionary == kb.gaussian_grid(1, 2, 4)
    bank.learn_one(3.0, 1.0)  # predictions have not fixed the width of the inputs
    assert bank.samples == 1


def test_inputs_and_results_are_copies():
    X, y = stream(1, 30, 2)
    bank, untouched = (kb.KernelBank(kb.gaussian_grid(0.1, 2, 5)) for _ in range(2))
    own_X, own_y = X.copy(), y.copy()
    bank.run(own_X[:15], own_y[:15])
    own_X[:], own_y[:] = 9.0, 9.0
    bank.weights[:] = 9.0
    bank.ledger.slot_cumulative_cost[:] = 9.0
    bank.ledger.dropped[:] = 9.0
    bank.run(X[15:], y[15:])
    untouched.run(X, y)
    assert_same_state(bank, untouched)
    X.flags.writeable = False
    assert (bank.predict(X) == untouched.predict(X.copy())).all()

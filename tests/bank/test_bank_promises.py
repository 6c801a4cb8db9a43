"""The promises of a bank about itself: no side effects, bounded costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.instances import COMBINERS, KERNELS, LOSSES, TREE, stream, targets_for
from support.marks import refuses
from support.naive import regret as naive
from support.python_learner import Gradient
from support.same_bits import assert_same_state

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
        slots.insert(draw(st.integers(0, len(slots))), kb.Slot(K.Gaussian(1.0), Gradient(budget=8)))
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


AR_X, AR_Y = kb.datasets.ar1(seed=0, samples=120)


def test_ledger_since_a_copy_has_the_sums_of_the_trace():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5), kb.learners.Norma(0.05, 20), window=5)
    bank.run(AR_X[:50], AR_Y[:50])
    earlier = bank.ledger
    before = earlier.cumulative_cost, earlier.slot_loss, earlier.dropped
    trace = bank.run(AR_X[50:], AR_Y[50:])
    part = bank.ledger.since(earlier)
    assert part.samples == 70
    assert part.cumulative_cost == pytest.approx(trace.cost.sum(), rel=1e-9)
    assert part.loss == pytest.approx(trace.loss.sum(), rel=1e-9)
    assert part.mean_loss == pytest.approx(trace.loss.mean(), rel=1e-9)
    assert part.slot_cumulative_cost == pytest.approx(trace.slot_cost.sum(axis=0), rel=1e-9)
    assert part.slot_mean_loss == pytest.approx(trace.slot_loss.mean(axis=0), rel=1e-9)
    assert part.regret == pytest.approx(naive.best_slot(trace.cost, trace.slot_cost), rel=1e-9)
    assert part.best_slot == trace.slot_cost.sum(axis=0).argmin()
    assert part.dropped == pytest.approx(bank.ledger.dropped - before[2])
    assert (part.dropped > 0).all()
    # The copy has not moved, nor has the ledger.
    assert earlier.cumulative_cost == before[0]
    assert (earlier.slot_loss == before[1]).all()
    assert bank.ledger.samples == 120


def test_a_slot_that_is_out_stays_out_of_intervals():
    nan_later = kb.kernels.Custom(
        lambda AR_X, Z: (
            np.where((AR_X.max() > 60) & (Z.max() > 60), np.nan, 1.0) * np.ones((len(AR_X), len(Z)))
        )
    )
    bank = kb.KernelBank([kb.kernels.Gaussian(1.0), nan_later])
    with pytest.warns(kb.errors.KernelBankWarning):
        bank.run(AR_X[:80], AR_Y[:80])
    assert bank.quarantined == (1,)
    earlier = bank.ledger
    bank.run(AR_X[80:], AR_Y[80:])
    part = bank.ledger.since(earlier)
    assert part.quarantined == (1,)
    assert np.isfinite(part.slot_cumulative_cost[0])
    assert part.best_slot == 0


def test_only_an_earlier_ledger_of_the_same_size_is_taken():
    bank, other = (kb.KernelBank(kb.gaussian_grid(0.1, 10, p)) for p in (5, 4))
    bank.run(AR_X[:9], AR_Y[:9])
    later = bank.ledger
    for wrong in (other.ledger, None, 3):
        refuses("'earlier' must be an earlier ledger", bank.ledger.since, wrong)
    refuses("earlier ledger", lambda: bank.fresh().ledger.since(later))


def test_outputs_of_a_trace_have_names_of_their_own():
    x = np.arange(40) / 4
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 3), outputs=2)
    trace = bank.run(x, np.column_stack([np.sin(x), np.cos(x)]))
    assert trace.target_names == ("output 0", "output 1")
    assert repr(trace).startswith("Trace(40 samples, 2 outputs; predictions")
    assert np.array_equal(trace.of_output("output 1").loss, trace.loss[:, 1])
    refuses(r"'output' of of_output .*'output 0', 'output 1'", trace.of_output, 2)


@pytest.mark.parametrize("ridge", [1e-9, 0.01])
@pytest.mark.parametrize("samples", [200_011, 1_000_011])
def test_norms_and_values_do_not_drift(samples, ridge):
    kernel, window, budget = kb.kernels.Gaussian(0.2), 8, 12
    x = np.arange(samples) / 4
    y = 100 * np.sin(x) + np.random.default_rng(0).normal(size=samples)
    bank = kb.KernelBank(
        [kernel], kb.learners.Norma(0.2, budget), window=window, regularization=ridge
    )
    bank.run(x[:-1], y[:-1], record=())
    last = bank.run(x[-1:], y[-1:])
    # f = sum_j alpha_j k(x_j, .) over the terms of the budget: |f|^2 = f' K^-1 f at these points.
    terms = x[-budget:]
    f, gram = bank.predict_slots(terms)[:, 0], kernel(terms, terms)
    alpha = np.linalg.solve(gram, f)
    magnitude = np.abs(alpha) @ np.abs(gram) @ np.abs(alpha)
    # norm^2 is refreshed every 32 samples: at most 31 steps of four roundings each lie between it
    # and a sum over 12 terms. Without the refresh, 2e5 steps leave thirty times as much.
    norm = last.curvature[0, 0] / (ridge / 2)
    assert abs(norm - alpha @ f) <= (31 * 4 + 12 + 10 * np.linalg.cond(gram)) * EPS * magnitude
    # A value is at most 8 steps old; |f(x)| <= norm for a kernel with k(x, x) = 1.
    losses = (f[-window:] - y[-window:]) ** 2
    slopes = 2 * np.abs(f[-window:] - y[-window:]).sum()
    bound = 100 * EPS * np.sqrt(magnitude) * slopes
    assert abs(last.window_loss[0, 0] - losses.sum()) <= bound

"""The forecaster of Vovk, Azoury and Warmuth, on features and on slots, against naive forms."""

import numpy as np
import pytest

import kernelbank as kb
from support.combining import run_combiner
from support.instances import stream
from support.naive.rivals import vaw

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps
KERNELS = [K.Gaussian(0.2), K.Gaussian(0.7), K.Laplacian(1.0)]
FEATURES, RIDGE, RIDGE_OVER_KERNELS = 16, 0.05, 0.7


def features(X):
    """(n, P, D): what the slots draw, each from the seed and its index."""
    return np.stack(
        [
            K.feature_map(kernel, FEATURES, X.shape[1], np.random.default_rng([0, p]))(X)
            for p, kernel in enumerate(KERNELS)
        ],
        axis=1,
    )


def preset():
    return kb.presets.vaw(
        KERNELS, features=FEATURES, ridge=RIDGE, ridge_over_kernels=RIDGE_OVER_KERNELS
    )


def test_preset_equals_the_independent_naive_form_of_vaw_squared():
    X, y = stream(5, 300, 2)
    trace = preset().run(X, y)
    expected = vaw.vaw2(features(X), y, RIDGE, RIDGE_OVER_KERNELS)
    # Rounding: n steps with matrices of a condition number below n / ridge.
    bound = 300 * EPS * 300 / RIDGE * 8
    assert bound < 1e-8
    assert np.abs(trace.slot_predictions - expected["expert_predictions"]).max() <= bound
    assert np.abs(trace.weights - expected["weights"]).max() <= 100 * bound
    assert np.abs(trace.predictions - expected["prediction"]).max() <= bound


def test_a_prediction_has_the_bits_of_the_trace_however_it_is_asked_for():
    X, y = stream(5, 90, 2)
    trace = preset().run(X, y)
    bank = preset()
    for n in range(90):
        one, many = bank.predict_one(X[n]), bank.predict(X[n : n + 1])[0]
        assert one == many == trace.predictions[n]
        bank.learn_one(X[n], y[n].item())
    assert np.array_equal(bank.predict(X), [bank.predict_one(x) for x in X])
    assert np.array_equal(bank.weights, trace.weights[-1])  # those of the last sample


@pytest.mark.parametrize("seed", range(3))
def test_regret_of_both_levels_is_below_the_bound(seed):
    X, y = stream(seed, 400, 2)
    trace = preset().run(X, y)
    limit = np.abs(y).max() ** 2

    def least(Z, ridge):  # min_w sum (w'z - y)^2 + ridge |w|^2
        w = np.linalg.solve(ridge * np.eye(Z.shape[1]) + Z.T @ Z, Z.T @ y)
        return ((Z @ w - y) ** 2).sum() + ridge * w @ w

    def regret(Z, predictions, ridge):
        size, R2 = Z.shape[1], (Z**2).sum(axis=1).max()
        bound = limit * size * np.log(1 + len(y) * R2 / (ridge * size))
        return ((predictions - y) ** 2).sum() - least(Z, ridge), bound

    phi = features(X)
    for p in range(len(KERNELS)):
        found, bound = regret(phi[:, p], trace.slot_predictions[:, p], RIDGE)
        assert found <= bound
    found, bound = regret(trace.slot_predictions, trace.predictions, RIDGE_OVER_KERNELS)
    assert found <= bound
    best = trace.slot_loss.sum(axis=0).min()  # w = e_p
    assert ((trace.predictions - y) ** 2).sum() <= best + RIDGE_OVER_KERNELS + bound


def test_shrinking_is_what_differs_from_least_squares():
    X, y = stream(5, 200, 2)
    plain = L.FourierRLS(features=FEATURES, ridge=RIDGE)
    slots = [kb.Slot(KERNELS[0], learner) for learner in (L.FourierVAW(FEATURES, RIDGE), plain)]
    recorder = kb.KernelBank(slots=slots[:1], window=1)
    ahead = kb.KernelBank(slots=slots[1:], window=1)
    for bank in (recorder, ahead):
        bank.run(X[:1], y[:1])
    for x, target in zip(X[1:], y[1:], strict=True):
        v = ahead.predict_variance_slots(x[None])[0, 0]
        expected = ahead.predict_slots(x[None])[0, 0] / (1 + v)
        assert recorder.predict_slots(x[None])[0, 0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        recorder.learn_one(x, target)
        ahead.learn_one(x, target)


def test_a_failed_slot_is_left_out_from_then_on():
    draw = np.random.default_rng(0)
    targets = draw.normal(size=80)
    predictions = targets[:, None] + draw.normal(size=(80, 3))
    with_all = run_combiner(kb.combiners.VAW(), values=predictions, targets=targets)
    predictions[30:, 1] = np.nan
    run = run_combiner(kb.combiners.VAW(), values=predictions, targets=targets)
    assert np.array_equal(run.weights[:30], with_all.weights[:30])
    assert np.isfinite(run.weights).all()
    assert (run.weights[30:, 1] == 0).all()
    assert (run.weights[30:, [0, 2]] != 0).all()


def test_only_the_squared_loss_is_taken():
    with pytest.raises(ValueError, match="'loss' must be Squared for FourierVAW"):
        kb.KernelBank([K.Gaussian(1.0)], L.FourierVAW(), loss="logistic")


@pytest.mark.parametrize("seed", range(3))
def test_on_a_stationary_stream_it_beats_raker_and_every_slot(seed):
    """As published: less error than gradient steps with exponential weights, at equal features."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, (1500, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.05 * draw.normal(size=1500)
    own, other = (preset(features=50, seed=seed) for preset in (kb.presets.vaw, kb.presets.raker))
    trace = own.run(X, y)
    assert trace.loss.sum() < 0.5 * other.run(X, y).loss.sum()
    assert trace.loss.sum() < 1.01 * trace.slot_loss.sum(axis=0).min()

"""Hilbert-space features, and ensembles of them, against naive forms."""

import numpy as np
import pytest

import kernelbank as kb
from support.naive.rivals import hilbert_space_gp as naive

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps


def stream(samples, dimension, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, (samples, dimension))
    y = np.sin(4 * X[:, 0]) + X[:, -1] ** 2 + np.linspace(0, 1, samples)
    return X, y + 0.1 * draw.normal(size=samples)


def features_of(kernel, learner, X):
    """(n, features): read from a bank that has learned one sample."""
    bank = kb.KernelBank([kernel], learner, window=1)
    bank.run(X[:1], [0.0])
    group = bank._runtime.executor._shards[0].groups[0].trained
    return learner.feature_rows(group, X)[0]


@pytest.mark.parametrize(
    ("kernel", "name", "nu"),
    [
        (K.Gaussian(0.6), "gaussian", 0.0),
        (K.Matern(0.6, 1.5), "matern", 1.5),
        (K.Matern(0.6, 2.5), "matern", 2.5),
        (K.Matern(0.6, 0.5), "matern", 0.5),
    ],
)
def test_features_equal_those_of_the_independent_naive_form(kernel, name, nu):
    X, _ = stream(12, 2)
    learner = L.HilbertRLS(features=30, half_range=1.0, boundary=1.7)
    own = features_of(kernel, learner, X)
    box = np.array([1.7, 1.7])
    grid = naive.features(X, box, [8, 8], [0.6, 0.6], 1.0, name, nu)
    index = [(i, j) for i in range(1, 9) for j in range(1, 9)]
    order = sorted(range(64), key=lambda m: (sum(k * k for k in index[m]), index[m]))[:30]
    assert np.allclose(own, grid[:, order], rtol=1e-12, atol=64 * EPS)
    additive = features_of(K.Additive(kernel, 1), learner, X)
    side_by_side = naive.additive_features(X, box, 15, [0.6, 0.6], 1.0, name, nu)
    both = side_by_side.reshape(12, 2, 15).transpose(0, 2, 1).reshape(12, 30)  # by j, then input
    assert np.allclose(additive, both / np.sqrt(2), rtol=1e-12, atol=64 * EPS)  # the mean of two


@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        (K.Gaussian(0.4), 1e-6),
        (K.Matern(0.4, 2.5), 2e-3),
        (2.5 * K.Matern(0.4, 1.5), 2e-2),
        (K.Additive(K.Gaussian(0.4), 1), 1e-6),
        (K.ActiveDims(K.Gaussian(0.4), [1]), 1e-6),
    ],
    ids=repr,
)
def test_products_of_features_approach_the_kernel(kernel, error):
    X, _ = stream(20, 2)
    learner = L.HilbertRLS(features=1500, half_range=1.0, boundary=3.0)
    rows = features_of(kernel, learner, X)
    assert np.abs(rows @ rows.T - kernel(X, X)).max() < error


def test_beyond_the_range_the_function_is_constant():
    X, y = stream(100, 1)
    bank = kb.KernelBank(K.Gaussian(0.5), L.HilbertRLS(features=20, half_range=1.0), window=2)
    bank.run(X, y)
    for side in (-1.0, 1.0):
        edge, far = bank.predict([[side], [side * 1e100]])
        assert edge == far != 0
        near, out = bank.predict_variance_slots([[side], [5 * side]])[:, 0]
        assert near == out > 0


@pytest.mark.parametrize("forgetting", [1.0, 0.999, 0.9])
def test_random_walk_equals_the_independent_naive_form(forgetting):
    X, y = stream(300, 2)
    ridge, noise = 0.2, 0.05
    learner = L.HilbertRLS(40, 1.0, 1.5, forgetting, ridge, "random_walk")
    kernel = K.Additive(K.Gaussian(0.5), 1)
    trace = kb.KernelBank([kernel], learner, window=1).run(X, y, record="all")
    rows = features_of(kernel, learner, X)
    prior = noise / ridge
    walk = (1 - forgetting) * prior
    mean, _, _, _ = naive.recursive_regression(rows, y, noise, prior, walk)
    # Rounding: n steps with covariances of a condition number below n / ridge.
    assert np.abs(trace.slot_predictions[:, 0] - mean).max() < 300 * EPS * 300 / ridge * 8


@pytest.mark.parametrize("switching", [0.0, 0.02])
def test_doebe_equals_the_independent_naive_form(switching):
    X, y = stream(250, 2)
    noise, ridge, step = 0.25, 0.25, 0.001
    combiner = kb.combiners.BayesianAveraging(switching=switching, noise=noise)
    kernels = [K.Additive(K.Gaussian(w), 1) for w in (0.2, 1.0)]
    bank = kb.presets.doebe(
        kernels, features=30, half_range=1.0, ridge=ridge, random_walk=step, combiner=combiner
    )
    trace = bank.run(X, y)
    runs = []
    for walk in (step, 0.0):  # prior variance 1, so that noise / prior = ridge
        for width in (0.2, 1.0):
            z = naive.additive_features(X, [1.5, 1.5], 15, [width, width], s2=0.5)
            runs.append(naive.recursive_regression(z, y, noise, 1.0, walk))
    mean, var = (np.stack([run[i] for run in runs], axis=1) for i in range(2))
    chain = None if switching == 0 else (1 - switching) * np.eye(4) + switching / 4
    mixed, _, weights = naive.ensemble(mean, var, y, Q=chain, drop=0.0)
    assert np.abs(trace.slot_predictions - mean).max() < 1e-10
    assert np.abs(trace.weights - weights).max() < 1e-8
    assert np.abs(trace.predictions - mixed).max() < 1e-8


def test_doebe_follows_a_drift_with_its_dynamic_slots():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (3000, 1))
    y = np.sin(2 * X[:, 0] + np.arange(3000) / 200) + 0.1 * draw.normal(size=3000)
    bank = kb.presets.doebe(features=40)
    trace = bank.run(X, y)
    assert bank.weights[:3].sum() > 0.95  # those that move
    static = trace.slot_loss[1000:, 3:].mean(axis=0).min()
    assert trace.loss[1000:].mean() < 0.5 * static


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: L.HilbertRLS(boundary=1.0), "'boundary' of HilbertRLS"),
        (lambda: L.HilbertRLS(half_range=0.0), "'half_range' of HilbertRLS"),
        (lambda: L.HilbertRLS(features=0), "'features' of HilbertRLS"),
        (lambda: L.HilbertRLS(forget="never"), "'forget' of HilbertRLS"),
        (lambda: kb.KernelBank([K.Linear(1.0)], L.HilbertRLS()), "for HilbertRLS"),
        (lambda: kb.KernelBank([K.Additive(K.Gaussian(1.0), 2)], L.HilbertRLS()), "for HilbertRLS"),
        (lambda: kb.presets.doebe(random_walk=0.0), "'random_walk' of doebe"),
    ],
)
def test_wrong_settings_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_random_walk_refuses_columns_that_come_later():
    bank = kb.KernelBank(K.Linear(1.0), L.LinearRLS(forgetting=0.99, forget="random_walk"))
    bank.run(np.ones((5, 1)), np.ones(5))
    with pytest.raises(ValueError, match="random_walk"):
        bank._runtime._layout.groups[0].learner.extend_inputs({}, {})


def test_an_initial_function_is_refused_by_a_forecaster_that_would_shrink_it():
    for learner in (L.FourierVAW(), L.HilbertRLS()):
        with pytest.raises(ValueError, match="'initial'"):
            kb.KernelBank([K.Gaussian(1.0)], learner, initial=([[0.0]], [1.0]))

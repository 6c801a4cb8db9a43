"""KRLS, KRLS-T and NORMA against kafbox's equations, with the settings for its conventions."""

import numpy as np
import pytest

import kernelbank as kb
from support.naive import kafbox

M = kb.learners
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def data(samples=150, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-2, 2, (samples, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * draw.normal(size=samples)
    return X, y


def predictions(learner, X, y, width=0.7):
    bank = kb.KernelBank([kb.kernels.Gaussian(width)], learner, window=1, regularization=0.0)
    return bank.run(X, y).slot_predictions[:, 0]


def test_krls_without_jitter_is_that_of_kafbox():
    X, y = data()
    expected, dictionaries, _ = kafbox.krls(X, y, 0.7, nu=0.05, M=60)
    assert 20 < len(dictionaries[-1]) < 60
    assert np.abs(predictions(M.KRLS(0.05, 60, jitter=0.0), X, y) - expected).max() < 1e-10
    assert np.abs(predictions(M.KRLS(0.05, 60), X, y) - expected).max() < 1e-5  # the jitter


@pytest.mark.slow
@pytest.mark.parametrize(("forgetting", "budget"), [(1.0, 200), (0.99, 200), (0.99, 30)])
def test_krls_tracker_in_the_order_of_kafbox_is_that_of_kafbox(forgetting, budget):
    X, y = data()
    options = {"lam": forgetting, "sn2": 0.01, "M": budget, "jitter": 1e-6}
    expected = kafbox.krls_t(X, y, 0.5, **options)["mean"]
    own = M.KRLSTracker(budget, forgetting, 0.01, forget_when="before", jitter=1e-6)
    found = predictions(own, X, y, 0.5)
    assert np.abs(found - expected).max() < 1e-7
    # Our order: the prediction after forgetting, which is kafbox's times sqrt(lambda).
    after = kafbox.krls_t(X, y, 0.5, **options, predict_after_forgetting=True)["mean"]
    own = M.KRLSTracker(budget, forgetting, 0.01, jitter=1e-6)
    found = predictions(own, X, y, 0.5)
    assert np.abs(found - after).max() < 1e-7
    assert np.abs(found - np.sqrt(forgetting) * expected).max() < 1e-7


def test_norma_is_that_of_kafbox_with_the_error_before_the_decay():
    X, y = data()
    # The loss is (f - y)^2: its derivative is twice the error, so the step is half as long.
    bank = kb.KernelBank(
        [kb.kernels.Gaussian(0.7)], M.Norma(0.1, 40), window=1, regularization=0.02
    )
    found = bank.run(X, y).slot_predictions[:, 0]
    expected, _ = kafbox.norma(X, y, 0.7, eta=0.2, lam=0.01, tau=40, order="paper")
    assert np.abs(found - expected).max() < 1e-12
    shrunk, _ = kafbox.norma(X, y, 0.7, eta=0.2, lam=0.01, tau=40)
    assert 1e-6 < np.abs(found - shrunk).max() < 0.05  # kafbox takes it after the decay

"""Variances, ridges and forgetting of the second-order learners."""

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import stream
from support.learner_cases import oracle_of
from support.naive.estimate import JITTER

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_tracker_variance_equals_the_naive_posterior():
    X, y = stream(1, 60, 2)
    learner = L.KRLSTracker(budget=20, forgetting=0.99, noise=0.05)
    bank = kb.KernelBank([K.Gaussian(0.6), K.Gaussian(1.2)], learner, window=3)
    bank.run(X, y)
    for p, width in enumerate((0.6, 1.2)):
        oracle = oracle_of(learner, naive.gaussian(width), "squared", 0.01)
        for x, target in zip(X, y, strict=True):
            oracle.learn(x, target)
        got = bank.predict_variance_slots(X[:5])[:, p]
        bound = EPS * len(X) * 20 / JITTER  # 1 / JITTER bounds the condition number
        expected = [oracle.variance(x) / learner.noise for x in X[:5]]
        assert np.allclose(got, expected, rtol=0, atol=bound / learner.noise)
    assert np.isnan(kb.KernelBank().predict_variance_slots([[1.0]])).all()


def test_tracker_variance_with_a_failing_kernel_raises_its_error():
    broken = []

    def fragile(A, B):
        if broken:
            raise RuntimeError("boom")
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    bank = kb.KernelBank([K.Custom(fragile)], L.KRLSTracker(budget=5), window=2)
    bank.run([0.0, 1.0, 2.0], [1.0, 2.0, 1.0])
    broken.append(True)
    with pytest.raises(RuntimeError, match="boom"):
        bank.predict_variance_slots([0.5])
    broken.clear()
    bank.learn_one(3.0, 1.0)


@pytest.mark.parametrize("learner", [L.SlidingWindowKRLS, L.FixedBudgetKRLS])
@pytest.mark.parametrize("ridge", [1e-4, 1e-7, 1e-12])
def test_ridge_regression_with_a_tiny_ridge_is_solved(learner, ridge):
    draw = np.random.default_rng(0)
    X, y = draw.uniform(-2, 2, (400, 1)), draw.normal(size=400)
    bank = kb.KernelBank([K.Gaussian(1.0)], learner(budget=30, ridge=ridge), window=3)
    bank.run(X, y)
    state = bank.slot_state(0)
    centres = state["centres"][:, :30].T
    A = K.Gaussian(1.0)(centres, centres) + np.diag(state["noises"][:30])
    residual = A @ state["coefficients"][:30] - state["responses"][:30]
    assert np.abs(residual).max() <= 1e-6 * np.abs(y).max()
    assert bank.quarantined == ()


def test_exponential_forgetting_too_fast_for_its_features_is_refused():
    bank = kb.KernelBank([K.Gaussian(1.0)], L.FourierRLS(40, forgetting=0.5))
    with pytest.raises(ValueError, match=r"'forgetting' of FourierRLS must be >= 0.88"):
        bank.learn_one(0.0, 1.0)
    assert bank.samples == 0
    bank = kb.KernelBank([K.Gaussian(1.0)], L.FourierRLS(40, forgetting=0.5, forget="prior"))
    bank.learn_one(0.0, 1.0)

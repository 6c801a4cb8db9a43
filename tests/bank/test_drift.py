"""Norms and values do not drift over long streams."""

import numpy as np
import pytest

import kernelbank as kb

EPS = np.finfo(float).eps
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


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

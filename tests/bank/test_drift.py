"""Norms and values do not drift over long streams."""

import numpy as np
import pytest

import kernelbank as kb

EPS = np.finfo(float).eps
K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def recomputed(bank):
    """norm^2 and the window's values of a one-slot bank, from its coefficients alone."""
    state = bank.state()
    seen, budget = bank.samples, bank.slots[0].learner.budget
    start = (seen - 1) % 256 + 1
    learner = bank.slots[0].learner
    scale = learner._decays(bank._settings.objective)[
        seen % learner._period(bank._settings.objective)
    ]
    alpha = scale * state["slots/group0/coefficients"][0, start : start + budget, 0]
    terms = state["slots/inputs"][:, start : start + budget].T
    gram = bank.slots[0].kernel(terms, terms)
    values = gram @ alpha
    magnitude = np.abs(alpha) @ np.abs(gram) @ np.abs(alpha)
    return alpha @ values, values[-bank.window :], magnitude


def check_drift(samples, ridge):
    draw = np.random.default_rng(0)
    x = np.cumsum(draw.uniform(0, 0.5, samples))
    y = 100 * np.sin(x) + draw.normal(size=samples)
    bank = kb.KernelBank([K.Gaussian(0.2)], Norma(0.2, 12), window=8, regularization=ridge)
    block = 10_000
    for start in range(0, samples, block):
        bank.run(x[start : start + block], y[start : start + block], record=())
    norm, values, magnitude = recomputed(bank)
    state = bank.state()
    # norm^2 is refreshed every 32 samples: at most 31 steps of four roundings each lie between it
    # and a sum over 12 terms. A value is at most 8 steps old. Without the refresh, 2e5 steps leave
    # thirty times as much.
    unit = EPS * magnitude
    assert abs(state["slots/group0/norms"][0, 0] - norm) <= (31 * 4 + 12) * unit
    size = np.sqrt(magnitude)  # |f(x)| <= norm for a kernel with k(x, x) = 1
    assert np.abs(state["slots/group0/values"][0, :, 0] - values).max() <= 100 * EPS * size


@pytest.mark.parametrize("ridge", [0.0, 1e-9, 0.01])
def test_norms_and_values_do_not_drift(ridge):
    check_drift(200_011, ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_norms_and_values_do_not_drift_in_a_million_steps(ridge):
    check_drift(1_000_011, ridge)

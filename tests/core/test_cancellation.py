"""Small targets after large ones: norm^2 and values on the window have the accuracy of a naive sum.

The large terms leave the budget, and what is left is far smaller than they were: sums that are kept
up to date by adding and subtracting would hold nothing but their rounding.
"""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.reference import FunctionEstimate, gaussian
from support import naive
from support.core_banks import learned, made

WIDTHS = np.linspace(0.1, 10, 8)
GAUSSIANS = [kb.kernels.Gaussian(float(width)) for width in WIDTHS]
SAMPLES = 420


def streams():
    """Targets of the paper's stream, some of them far larger or smaller."""
    y, draw = naive.ar1(0, SAMPLES)[1], np.random.default_rng(0)
    for size in (1e9, 1e12):
        far = y.copy()
        far[150] = size
        yield f"one of {size:g}", far
    yield "the first 40", np.where(np.arange(SAMPLES) < 40, 1e8 * y, y)
    yield "mixed", y * 10 ** draw.uniform(-12, 12, SAMPLES)
    yield "runs", y * np.repeat([1e12, 1e-12, 1.0, 1e6, 1e-6, 1.0], SAMPLES // 6)


STREAMS = dict(streams())


def definition(X, y, widths, window, budget, rate, regularization):
    """NORMA by its definition, each sum from scratch: the evidence of each slot."""
    names = ("slot_cost", "curvature", "window_loss", "slot_predictions")
    found = {name: np.zeros((len(y), len(widths))) for name in names}
    for p, width in enumerate(widths):
        f = FunctionEstimate(gaussian(width), 1, rate, regularization, budget)
        norm = 0.0
        for n in range(len(y)):
            recent = slice(max(0, n + 1 - window), n + 1)
            values = f(X[recent])
            found["slot_predictions"][n, p] = values[-1]
            found["slot_cost"][n, p] = ((values - y[recent]) ** 2).sum() + norm
            f.learn(X[recent], y[recent])
            norm = found["curvature"][n, p] = regularization / 2 * f.norm2()
            found["window_loss"][n, p] = ((f(X[recent]) - y[recent]) ** 2).sum()
    return found


@pytest.mark.parametrize("name", STREAMS)
def test_costs_and_weights_are_those_of_the_definition(name):
    X, y = np.arange(1.0, SAMPLES + 1)[:, None], STREAMS[name]
    learner = kb.learners.Norma()
    bank = kb.KernelBank(GAUSSIANS, learner, window=10, regularization=0.01)
    expected = definition(X, y, WIDTHS, 10, learner.budget, learner.learning_rate, 0.01)
    found = learned(made(bank, 1), X, y[:, None])
    for field in ("curvature", "slot_cost", "window_loss"):
        np.testing.assert_allclose(found[field][:, 0], expected[field], rtol=1e-9, err_msg=field)
    weights = [
        naive.simplex_qp_floats(a, b)
        for a, b in zip(expected["curvature"], expected["window_loss"], strict=True)
    ]
    np.testing.assert_allclose(found["weights"][1:, 0], weights[:-1], rtol=0, atol=1e-9)


def test_values_on_the_window_after_a_large_term_has_left():
    """At a small rate the samples beside a large term learn little from it: f falls with it."""
    draw = np.random.default_rng(1)
    X = draw.uniform(0, 0.5, (120, 1))
    y = 1e-12 * draw.normal(size=120)
    y[40] = 1e12
    rate, window, budget = 1e-12, 6, 20
    bank = kb.KernelBank(
        GAUSSIANS[:4], kb.learners.Norma(rate, budget), window=window, regularization=0.01
    )
    expected = definition(X, y, WIDTHS[:4], window, budget, rate, 0.01)
    found = learned(made(bank, 1), X, y[:, None])
    for field in ("window_loss", "slot_predictions"):
        np.testing.assert_allclose(found[field][:, 0], expected[field], rtol=1e-9, err_msg=field)
    # norm^2 has the rounding of values that are 1e-10 of the targets by now.
    np.testing.assert_allclose(found["curvature"][:, 0], expected["curvature"], rtol=1e-6)


@pytest.mark.parametrize("learner", [kb.learners.KLMS(0.1, 30), kb.learners.QKLMS(0.5, 1.0, 30)])
def test_norm_of_learners_on_centres(learner):
    """After a large target was learned, and again when its term has left or was learned away."""
    draw = np.random.default_rng(2)
    X = draw.uniform(0, 20, (200, 1))
    y = np.sin(X[:, 0]) + 0.1 * draw.normal(size=200)
    y[30] = 1e10
    kernel, regularization = kb.kernels.Gaussian(0.3), 0.01
    bank = kb.KernelBank(kernel, learner, window=1, regularization=regularization)
    core = made(bank, 1)
    width = 0.3
    for n in range(200):
        found = learned(core, X[n : n + 1], y[n : n + 1, None])["curvature"][0, 0, 0]
        state = core.state()
        size = int(state["pack0/learner/size"])
        c = state["pack0/learner/centres"][0, :size]
        alpha = state["pack0/learner/coefficients"][:size]
        norm = alpha @ np.exp(-((c[:, None] - c) ** 2) / (2 * width**2)) @ alpha
        np.testing.assert_allclose(found, regularization / 2 * norm, rtol=1e-9)

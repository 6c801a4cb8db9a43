"""Small targets after large ones: norm^2 and values on the window have the accuracy of a naive sum.

The large terms leave the budget, and what is left is far smaller than they were: sums that are kept
up to date by adding and subtracting would hold nothing but their rounding.
"""

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.core_banks import learned, made

WIDTHS = np.linspace(0.1, 10, 20)
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
    """NORMA by its definition, each sum from scratch: the evidence of each slot, and norm^2."""
    samples, slots = len(y), len(widths)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    names = ("slot_cost", "curvature", "window_loss", "slot_predictions")
    found = {name: np.zeros((samples, slots)) for name in names}
    for p, width in enumerate(widths):
        K, alpha, norm = np.exp(-distances / (2 * width**2)), np.zeros(samples), 0.0
        for n in range(samples):
            recent = np.arange(max(0, n + 1 - window), n + 1)
            terms = np.arange(max(0, n - budget), n)
            f = K[np.ix_(recent, terms)] @ alpha[terms]
            found["slot_predictions"][n, p] = f[-1]
            found["slot_cost"][n, p] = ((f - y[recent]) ** 2).sum() + regularization / 2 * norm
            alpha *= 1 - rate * regularization
            alpha[recent] -= rate * 2 * (f - y[recent])
            terms = np.arange(max(0, n - budget + 1), n + 1)
            norm = alpha[terms] @ K[np.ix_(terms, terms)] @ alpha[terms]
            f = K[np.ix_(recent, terms)] @ alpha[terms]
            found["curvature"][n, p] = regularization / 2 * norm
            found["window_loss"][n, p] = ((f - y[recent]) ** 2).sum()
            alpha[: terms[0]] = 0.0
    return found


def paper_bank(combiner=None, **options):
    return kb.KernelBank(
        GAUSSIANS, kb.learners.Norma(), window=10, regularization=0.01, combiner=combiner, **options
    )


def defined(y):
    X = np.arange(1.0, len(y) + 1)[:, None]
    rate, budget = kb.learners.Norma().learning_rate, kb.learners.Norma().budget
    return X, definition(X, y, WIDTHS, 10, budget, rate, 0.01)


@pytest.mark.parametrize("name", STREAMS)
def test_costs_and_weights_are_those_of_the_definition(name):
    y = STREAMS[name]
    X, expected = defined(y)
    found = learned(made(paper_bank(), 1), X, y[:, None])
    for field in ("curvature", "slot_cost", "window_loss"):
        np.testing.assert_allclose(found[field][:, 0], expected[field], rtol=1e-9, err_msg=field)
    weights = [
        naive.simplex_qp_floats(a, b)
        for a, b in zip(expected["curvature"], expected["window_loss"], strict=True)
    ]
    np.testing.assert_allclose(found["weights"][1:, 0], weights[:-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("combiner", [kb.combiners.OMKR(), kb.combiners.Joint()], ids=type)
def test_costs_under_other_combiners(combiner):
    y = STREAMS["one of 1e+12"]
    X, expected = defined(y)
    found = learned(made(paper_bank(combiner), 1), X, y[:, None])
    np.testing.assert_allclose(found["slot_cost"][:, 0], expected["slot_cost"], rtol=1e-9)
    if combiner.on_simplex:  # nothing large is left: the cost of ordinary samples
        assert np.all(found["cost"][-100:] < 100)


@pytest.mark.parametrize(("cut", "threads"), [(1, 1), (7, 2)])
def test_blocks_threads_copies_and_restored_states_change_no_bit(cut, threads):
    y = STREAMS["runs"]
    X = np.arange(1.0, SAMPLES + 1)[:, None]
    expected = learned(made(paper_bank(), 1), X, y[:, None])
    bank = made(paper_bank(), 1, threads=threads)
    parts = []
    for start in range(0, SAMPLES, cut):
        if start % 5 == 0:
            other = made(paper_bank(), 1, threads=threads)
            other.restore(bank.state())
            bank = other.copy()
        parts.append(learned(bank, X[start : start + cut], y[start : start + cut, None]))
    for field in expected:
        found = np.concatenate([part[field] for part in parts])
        assert np.array_equal(found, expected[field]), field


def test_a_slot_does_not_depend_on_the_others_of_its_pack():
    y = STREAMS["the first 40"]
    X = np.arange(1.0, SAMPLES + 1)[:, None]
    together = learned(made(paper_bank(), 1), X, y[:, None])["curvature"][:, 0]
    for p in (0, 7, 19):
        alone = kb.KernelBank(GAUSSIANS[p], kb.learners.Norma(), window=10, regularization=0.01)
        assert np.array_equal(
            learned(made(alone, 1), X, y[:, None])["curvature"][:, 0, 0], together[:, p]
        )


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

"""An initial function of the user's: its values, norm, decay, budget, files and refusals."""

from math import fsum

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import stream
from support.naive import bank as naive_bank

EPS = np.finfo(float).eps
K, M = kb.kernels, kb.learners
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

WIDTHS = (0.4, 0.9, 2.0, 0.7, 1.3)
KERNELS = [K.Gaussian(w) for w in WIDTHS]
NAIVE = [naive.gaussian(w) for w in WIDTHS]


def start(points, slots=5, seed=1):
    draw = np.random.default_rng(seed)
    return draw.uniform(0, 1.5, (points, 2)), draw.normal(size=(points, slots))


def naive_norma(X, y, initial, window, budget, rate, ridge):
    """Slot predictions, norm^2 and terms of NORMA by its definition, from the initial terms on."""
    points, coefficients = initial
    _, derivative = naive.squared()
    predictions, norms = [], []
    slots = [
        [(float(c), x) for c, x in zip(coefficients[:, p], points, strict=True)] for p in range(5)
    ]
    for n in range(len(X)):
        recent = [(X[i], float(y[i])) for i in range(max(0, n + 1 - window), n + 1)]
        predictions.append(
            [naive_bank.value(t, k, X[n]) for t, k in zip(slots, NAIVE, strict=True)]
        )
        for p, kernel in enumerate(NAIVE):
            step = (rate, ridge, budget)
            slots[p], _ = naive_bank.learn(slots[p], kernel, recent, derivative, *step)
        norms.append([fsum(naive_bank.gram_terms(t, k)) for t, k in zip(slots, NAIVE, strict=True)])
    return np.array(predictions), np.array(norms)


@pytest.mark.parametrize(
    ("points", "window", "budget"),
    [(1, 1, 4), (3, 4, 9), (5, 4, 9), (8, 3, 20), pytest.param(30, 4, 60, marks=pytest.mark.slow)],
)
def test_norma_from_an_initial_function_equals_the_definition(points, window, budget):
    X, y = stream(5, 90, 2)
    initial = start(points)
    rate, ridge = 0.05, 0.4
    bank = kb.KernelBank(
        KERNELS, M.Norma(rate, budget), window=window, regularization=ridge, initial=initial
    )
    trace = bank.run(X, y)
    expected, norms = naive_norma(X, y, initial, window, budget, rate, ridge)
    assert np.abs(trace.slot_predictions - expected).max() < 1e-12
    assert np.abs(trace.curvature - ridge / 2 * norms).max() < 1e-11
    weights = np.full(5, 0.2)  # the first prediction is that of uniform weights
    assert abs(trace.predictions[0] - weights @ expected[0]) < 1e-14
    gram = [kernel(initial[0], initial[0]) for kernel in KERNELS]
    first = [c @ g @ c for c, g in zip(initial[1].T, gram, strict=True)]
    loss = (expected[0] - y[0]) ** 2
    assert np.abs(trace.slot_cost[0] - (loss + ridge / 2 * np.array(first))).max() < 1e-12


@pytest.mark.parametrize(
    "learner", [M.Norma(0.05, 30), M.KLMS(0.1, 20), M.QKLMS(0.1, 0.3, 20), M.KNLMS(0.2, 0.8, 20)]
)
def test_prediction_before_the_first_sample_is_the_initial_function(learner, tmp_path):
    points, coefficients = start(6)
    bank = kb.KernelBank(KERNELS, learner, initial=(points, coefficients))
    X = np.random.default_rng(0).uniform(0, 1.5, (9, 2))
    expected = np.stack(
        [k(X, points) @ c for k, c in zip(KERNELS, coefficients.T, strict=True)], axis=1
    )
    assert np.abs(bank.predict_slots(X) - expected).max() < 1e-13
    assert np.abs(bank.predict(X) - expected.mean(axis=1)).max() < 1e-13
    assert abs(bank.fresh().predict_one(X[0]) - expected[0].mean()) < 1e-13
    bank.save(tmp_path / "asked.kb")  # before the first sample
    kb.KernelBank(KERNELS, learner, initial=(points, coefficients)).save(tmp_path / "new.kb")
    y = np.sin(X[:, 0])
    before = bank.run(X, y)
    for name in ("asked", "new"):
        again = kb.load(tmp_path / f"{name}.kb").run(X, y)
        assert np.array_equal(again.slot_predictions, before.slot_predictions)
        assert np.array_equal(again.slot_cost, before.slot_cost)
    bank.reset()
    assert np.array_equal(bank.predict(X), bank.fresh().predict(X))
    assert bank.predict_one(X[0]) == bank.fresh().predict_one(X[0])
    again = bank.run(X, y)
    assert np.array_equal(again.slot_predictions, before.slot_predictions)
    assert np.array_equal(again.slot_cost, before.slot_cost)


def test_status_shows_that_there_is_an_initial_function():
    assert kb.KernelBank(KERNELS, initial=start(4)).status().settings["initial"] == "4 points"
    assert "initial" not in kb.KernelBank(KERNELS).status().settings


def test_coefficients_of_one_column_are_those_of_all_slots():
    points, coefficients = start(4)
    one = kb.KernelBank(KERNELS, initial=(points, coefficients[:, 0]))
    all_slots = np.repeat(coefficients[:, :1], 5, axis=1)
    same = kb.KernelBank(KERNELS, initial=(points, all_slots))
    X, y = stream(2, 30, 2)
    assert np.array_equal(one.run(X, y).predictions, same.run(X, y).predictions)


@pytest.mark.parametrize("learner", [M.FourierSGD(400, 0.1), M.FourierRLS(400)], ids=repr)
def test_learner_on_random_features_starts_near_the_function(learner):
    points, coefficients = start(4)
    bank = kb.KernelBank(KERNELS, learner, initial=(points, coefficients))
    X, y = stream(2, 20, 2)
    exact = kb.KernelBank(KERNELS, initial=(points, coefficients)).predict_slots(X)
    found = bank.predict_slots(X)
    assert np.abs(found - exact).max() < 0.5  # 400 features: an error of about 1 / 20 each
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.98
    trace = bank.run(X, y)
    assert np.array_equal(trace.slot_predictions[0], found[0])


def test_klms_from_an_initial_function_equals_the_definition():
    X, y = stream(5, 40, 2)
    points, coefficients = start(6)
    trace = kb.KernelBank(KERNELS, M.KLMS(0.1, 12), initial=(points, coefficients)).run(X, y)
    for p, kernel in enumerate(NAIVE):
        terms = [(float(c), x) for c, x in zip(coefficients[:, p], points, strict=True)]
        for n in range(40):
            f = naive_bank.value(terms, kernel, X[n])
            assert abs(trace.slot_predictions[n, p] - f) < 1e-12
            terms = [*terms, (-0.1 * 2 * (f - y[n]), X[n])][-12:]
            norm = fsum(naive_bank.gram_terms(terms, kernel))
            assert abs(trace.curvature[n, p] - 0.005 * norm) < 1e-12


def test_bank_continues_on_more_columns_from_its_initial_function():
    points, coefficients = start(4)
    bank = kb.KernelBank(KERNELS, initial=(points, coefficients))
    X, y = stream(2, 30, 2)
    wide = np.column_stack([X, np.zeros(30)])
    new = bank.with_inputs(3)
    assert np.abs(new.predict(wide) - bank.predict(X)).max() < 1e-14
    bank.run(X[:10], y[:10])
    wider = bank.with_inputs(3)
    assert np.array_equal(wider.predict(wide), bank.predict(X))
    wider.reset()
    assert np.array_equal(wider.predict(wide), new.predict(wide))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 3}, "'initial' must be points and coefficients"),
        ({"initial": ([[0.0]], [[1.0, 2.0]])}, r"coefficients of shape \(1,\) or \(1, 20\)"),
        ({"initial": ([[0.0]], [1.0, 2.0])}, r"or \(1, 20\); got \(2,\)"),
        ({"initial": ([[0.0]], [np.nan])}, "'initial'"),
        ({"initial": (np.zeros((95, 1)), np.ones(95))}, "have at most 90 points for Norma"),
        ({"initial": ([0.0], [1.0]), "learner": M.KRLS()}, "left out for KRLS.*Norma"),
        ({"initial": ([0.0], [1.0]), "learner": M.POLK()}, "left out for POLK.*Norma"),
        (
            {"initial": (np.zeros((5, 1)), np.ones(5)), "learner": M.KLMS(budget=4)},
            "have at most 4 points for KLMS",
        ),
        ({"initial": ([-1.0], [1.0]), "dictionary": [K.Spline()]}, "'initial'"),
    ],
)
def test_initial_function_that_cannot_be_started_from_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        kb.KernelBank(**options)


def test_inputs_of_another_width_than_the_initial_points_are_refused():
    bank = kb.KernelBank(KERNELS, initial=start(3))
    for use in (bank.predict, lambda X: bank.run(X, np.zeros(len(X)))):
        with pytest.raises(ValueError, match="2"):
            use(np.zeros((4, 3)))

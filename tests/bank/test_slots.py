"""Slots that learn the residual of another slot, or by a loss of their own."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.reference import FunctionEstimate, gaussian
from support.instances import stream
from support.marks import refuses

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_residual_slot_is_the_sum_of_base_and_learned_residual():
    X, y = stream(2, 150, 2)
    line, tree = kb.Slot(K.Linear(1.0), L.LinearRLS()), L.KLMS(0.2, 30)
    slots = [line, kb.Slot(K.Gaussian(0.5), tree, residual_of=0)]
    trace = kb.KernelBank(slots=slots, window=4).run(X, y)
    base = kb.KernelBank([line.kernel], line.learner, window=4).run(X, y)
    left = y - base.slot_predictions[:, 0]
    inner = kb.KernelBank([K.Gaussian(0.5)], tree, window=4).run(X, left)
    expected = base.slot_predictions[:, 0] + inner.slot_predictions[:, 0]
    assert np.array_equal(trace.slot_predictions[:, 1], expected)
    both = base.curvature[:, 0] + inner.curvature[:, 0]
    assert np.allclose(trace.curvature[:, 1], both, rtol=4 * EPS, atol=0)


def test_variance_of_a_residual_slot_is_the_sum_of_both():
    base = kb.Slot(K.Linear(1.0), L.LinearRLS())
    rest = kb.Slot(K.Gaussian(1.0), L.KRLSTracker(budget=5), residual_of=0)
    bank = kb.KernelBank(slots=[base, rest], window=2)
    bank.run(np.arange(9.0), np.ones(9))
    first, second = bank.predict_variance_slots([20.0])[0]
    assert second == pytest.approx(first + 1.0 / rest.learner.noise)


INNER = [
    (K.Gaussian(0.5), L.Norma(0.1, 20)),
    (K.Gaussian(0.5), L.FourierRLS(features=12)),
    (K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5)),
]


@pytest.mark.parametrize(("kernel", "learner"), INNER, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("judge", ["absolute", "hinge"])
def test_slot_with_own_loss_learns_by_it_and_is_judged_by_the_banks(kernel, learner, judge):
    def slots(loss):
        return [
            kb.Slot(K.Linear(1.0), L.LinearRLS(), loss),
            kb.Slot(kernel, learner, loss),
            kb.Slot(kernel, learner, loss, residual_of=0),
        ]

    X, y = stream(3, 300, 2, labels=judge == "hinge")
    bank = kb.KernelBank(slots=slots("squared"), loss=judge, window=3)
    expected = kb.KernelBank(slots=slots(None), window=3).run(X, y).slot_predictions
    found = bank.run(X[:150], y[:150])
    rest = kb.from_bytes(bank.to_bytes()).run(X[150:], y[150:])
    assert np.array_equal(np.vstack([found.slot_predictions, rest.slot_predictions]), expected)
    judged = bank.loss.value(expected[:150], y[:150, None]).sum(axis=0)
    assert bank.ledger.slot_loss == pytest.approx(judged, rel=1e-12)


# --- initial --------------------------------------------------------------------------------------

WIDTHS = (0.4, 0.9, 2.0, 0.7, 1.3)
KERNELS = [K.Gaussian(w) for w in WIDTHS]


def start(points, slots=5, seed=1):
    draw = np.random.default_rng(seed)
    return draw.uniform(0, 1.5, (points, 2)), draw.normal(size=(points, slots))


def naive_norma(X, y, initial, window, budget, rate, ridge):
    """Slot predictions and norm^2 of NORMA by its definition, from the initial terms on."""
    predictions, norms = np.zeros((2, len(X), len(WIDTHS)))
    for p, width in enumerate(WIDTHS):
        f = FunctionEstimate(gaussian(width), 2, rate, ridge, budget)
        f.points, f.alpha = initial[0], initial[1][:, p]
        for n in range(len(X)):
            predictions[n, p] = f(X[n : n + 1])[0]
            f.learn(X[max(0, n + 1 - window) : n + 1], y[max(0, n + 1 - window) : n + 1])
            norms[n, p] = f.norm2()
    return predictions, norms


@pytest.mark.parametrize(
    ("points", "window", "budget"),
    [(1, 1, 4), (3, 4, 9), (5, 4, 9), (8, 3, 20), pytest.param(30, 4, 60, marks=pytest.mark.slow)],
)
def test_norma_from_an_initial_function_equals_the_definition(points, window, budget):
    X, y = stream(5, 90, 2)
    initial = start(points)
    rate, ridge = 0.05, 0.4
    bank = kb.KernelBank(
        KERNELS, L.Norma(rate, budget), window=window, regularization=ridge, initial=initial
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
    "learner", [L.Norma(0.05, 30), L.KLMS(0.1, 20), L.QKLMS(0.1, 0.3, 20), L.KNLMS(0.2, 0.8, 20)]
)
def test_prediction_before_the_first_sample_is_the_initial_function(learner):
    points, coefficients = start(6)
    bank = kb.KernelBank(KERNELS, learner, initial=(points, coefficients))
    X = np.random.default_rng(0).uniform(0, 1.5, (9, 2))
    expected = np.stack(
        [k(X, points) @ c for k, c in zip(KERNELS, coefficients.T, strict=True)], axis=1
    )
    assert np.abs(bank.predict_slots(X) - expected).max() < 1e-13
    assert np.abs(bank.predict(X) - expected.mean(axis=1)).max() < 1e-13
    assert abs(bank.fresh().predict_one(X[0]) - expected[0].mean()) < 1e-13
    new = kb.KernelBank(KERNELS, learner, initial=(points, coefficients))
    saved = bank.to_bytes(), new.to_bytes()  # before the first sample
    y = np.sin(X[:, 0])
    before = bank.run(X, y)
    for data in saved:
        again = kb.from_bytes(data).run(X, y)
        assert np.array_equal(again.slot_predictions, before.slot_predictions)
        assert np.array_equal(again.slot_cost, before.slot_cost)
    again = bank.fresh().run(X, y)
    assert np.array_equal(again.slot_predictions, before.slot_predictions)
    assert np.array_equal(again.slot_cost, before.slot_cost)


@pytest.mark.parametrize("learner", [L.FourierSGD(400, 0.1), L.FourierRLS(400)], ids=repr)
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
    assert np.array_equal(wider.fresh().predict(wide), new.predict(wide))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 3}, "'initial' must be points and coefficients"),
        ({"initial": ([[0.0]], [[1.0, 2.0]])}, r"coefficients of shape \(1,\) or \(1, 20\)"),
        ({"initial": ([[0.0]], [1.0, 2.0])}, r"or \(1, 20\); got \(2,\)"),
        ({"initial": ([[0.0]], [np.nan])}, "'initial'"),
        ({"initial": (np.zeros((95, 1)), np.ones(95))}, "have at most 90 points for Norma"),
        ({"initial": ([0.0], [1.0]), "learner": L.KRLS()}, "left out for KRLS.*Norma"),
        (
            {"initial": (np.zeros((5, 1)), np.ones(5)), "learner": L.KLMS(budget=4)},
            "have at most 4 points for KLMS",
        ),
    ],
)
def test_initial_function_that_cannot_be_started_from_is_refused(options, message):
    refuses(message, kb.KernelBank, **options)


def test_inputs_of_another_width_than_the_initial_points_are_refused():
    bank = kb.KernelBank(KERNELS, initial=start(3))
    for use in (bank.predict, lambda X: bank.run(X, np.zeros(len(X)))):
        refuses("2", use, np.zeros((4, 3)))

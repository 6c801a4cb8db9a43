"""Every learner against its naive definition, in blocks, saved, and on hostile data."""

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import LEARNERS, name_of, stream
from support.learner_cases import LOSS_PAIRS, RANDOM_FEATURES, kernel_of, losses_of, oracle_of
from support.marks import refuses
from support.naive import kafbox
from support.naive import learners as naive_learners
from support.naive.estimate import JITTER

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


KERNEL_PAIRS = [
    (K.Gaussian(0.6), naive.gaussian(0.6)),
    (K.Matern(1.2, nu=1.5), naive.matern(1.2, 1.5)),
    (K.Polynomial(2, offset=1.0, scale=0.5), naive.polynomial(2, 1.0, 0.5)),
]


CASES = [  # each learner with all its losses and one kernel in turn; losses but the first are slow
    pytest.param(learner, loss, pair, marks=[pytest.mark.slow] if i else [])
    for n, learner in enumerate(LEARNERS)
    if hasattr(naive_learners, type(learner).__name__)
    for i, loss in enumerate(losses_of(learner))
    for pair in [KERNEL_PAIRS[(n + i) % 3] if kernel_of(learner) == K.Gaussian(0.6) else None]
]


@pytest.mark.parametrize(("learner", "loss", "pair"), CASES, ids=lambda v: name_of(v) if v else "")
def test_learner_equals_its_naive_definition(learner, loss, pair):
    samples, window, ridge = 48, 4, 0.05
    X, y = stream(7, samples, 2, loss in ("logistic", "hinge"))
    X[30:34] = X[10]  # repeated inputs
    if pair is not None:
        kernel, definition = pair
    else:
        kernel, definition = kernel_of(learner), naive_learners.linear_features(0.5)
        if kernel is RANDOM_FEATURES:
            drawn = K.feature_map(kernel, 12, 2, np.random.default_rng([0, 0]))
            definition = lambda x: drawn(x[None])[0]  # noqa: E731
    bank = kb.KernelBank([kernel], learner, loss=loss, window=window, regularization=ridge)
    oracle = oracle_of(learner, definition, loss, ridge)
    trace = bank.run(X, y)
    # Rounding: one unit in the last place of the terms, times the condition number of the matrix
    # (below 1e7, by ridge and novelty), times the number of steps.
    inverse = (L.KRLS, L.KRLSTracker)  # they keep one
    solves = hasattr(learner, "ridge") or isinstance(learner, inverse)
    tolerance = EPS * samples * (1e7 if solves else 1e3)
    compared = 0
    for n in range(samples):
        size = max(1.0, oracle.magnitude(X[n]))
        assert abs(trace.slot_predictions[n, 0] - oracle.predict(X[n])) <= tolerance * size, n
        oracle.learn(X[n], y[n])
        if oracle.closest < 1e-9:
            break  # a decision on the edge of rounding: from here on both may be right
        largest = max(oracle.magnitude(X[i]) for i in range(max(0, n - 3), n + 1))
        norm = 2 * trace.curvature[n, 0] / ridge
        assert abs(norm - oracle.norm2()) <= tolerance * max(1.0, largest, oracle.norm2()) ** 2, n
        recent = range(max(0, n + 1 - window), n + 1)
        window_loss = sum(LOSS_PAIRS[loss][0][0](oracle.predict(X[i]), y[i]) for i in recent)
        assert (
            abs(trace.window_loss[n, 0] - window_loss) <= tolerance * (1 + largest) ** 2 * window
        ), n
        compared += 1
    assert compared >= samples // 2
    if compared == samples:
        grid = np.random.default_rng(0).uniform(0, 1.5, (5, 2))
        for x, value in zip(grid, bank.predict_slots(grid)[:, 0], strict=True):
            assert abs(value - oracle.predict(x)) <= tolerance * max(1.0, oracle.magnitude(x))
        dropped = getattr(oracle, "dropped", 0.0)
        assert abs(bank.ledger.dropped[0] - dropped) <= tolerance * max(1.0, dropped)


def test_core_refuses_whole_numbers_beyond_32_bits():
    learner = L.KLMS()
    object.__setattr__(learner, "budget", 10**12)
    with pytest.raises(ValueError, match="the setting is too large: budget"):
        kb.KernelBank([K.Gaussian(1.0)], learner).learn_one(0.0, 1.0)


def test_scratch_counts_as_memory_when_a_file_is_loaded():
    bank = kb.KernelBank([K.Gaussian(1.0)], L.KRLS(budget=600), window=2)
    bank.run(np.arange(9.0), np.ones(9))
    refuses("most_memory", kb.from_bytes, bank.to_bytes(), most_memory=9 * 2**20)


def test_tracker_variance_equals_the_naive_posterior():
    X, y = stream(1, 30, 2)
    learner = L.KRLSTracker(budget=12, forgetting=0.99, noise=0.05)
    bank = kb.KernelBank([K.Gaussian(0.6)], learner, window=3)
    bank.run(X, y)
    oracle = oracle_of(learner, naive.gaussian(0.6), "squared", 0.01)
    for x, target in zip(X, y, strict=True):
        oracle.learn(x, target)
    bound = EPS * len(X) * 12 / JITTER  # 1 / JITTER bounds the condition number
    expected = [oracle.variance(x) / learner.noise for x in X[:5]]
    found = bank.predict_variance_slots(X[:5])[:, 0]
    assert np.allclose(found, expected, rtol=0, atol=bound / learner.noise)
    assert np.isnan(kb.KernelBank().predict_variance_slots([[1.0]])).all()


@pytest.mark.parametrize("learner", [L.SlidingWindowKRLS, L.FixedBudgetKRLS])
@pytest.mark.parametrize("ridge", [1e-4, 1e-12])
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
    refuses(r"'forgetting' of FourierRLS must be >= 0.88", bank.learn_one, 0.0, 1.0)
    assert bank.samples == 0
    bank = kb.KernelBank([K.Gaussian(1.0)], L.FourierRLS(40, forgetting=0.5, forget="prior"))
    bank.learn_one(0.0, 1.0)
    refuses("'constant_forgetting' of LinearRLS", L.LinearRLS, constant_forgetting=0.9)
    refuses(r"'step_size' of KLMS must be one of", L.KLMS, step_size="sqrt")


# --- the conventions of kafbox --------------------------------------------------------------------


def of_one_slot(learner, regularization=0.0, width=0.7):
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (150, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * draw.normal(size=150)
    bank = kb.KernelBank([K.Gaussian(width)], learner, window=1, regularization=regularization)
    return X, y, bank.run(X, y).slot_predictions[:, 0]


def test_krls_without_jitter_is_that_of_kafbox():
    X, y, found = of_one_slot(L.KRLS(0.05, 60, jitter=0.0))
    expected, dictionary = kafbox.krls(X, y, 0.7, nu=0.05, M=60)
    assert 20 < len(dictionary) < 60
    assert np.abs(found - expected).max() < 1e-10
    assert np.abs(of_one_slot(L.KRLS(0.05, 60))[2] - expected).max() < 1e-5  # the jitter


def test_krls_tracker_in_the_order_of_kafbox_is_that_of_kafbox():
    own = L.KRLSTracker(30, 0.99, 0.01, forget_when="before", jitter=1e-6)
    X, y, found = of_one_slot(own, width=0.5)
    expected = kafbox.krls_t(X, y, 0.5, lam=0.99, sn2=0.01, M=30, jitter=1e-6)
    assert np.abs(found - expected).max() < 1e-7
    # Our order: the prediction after forgetting, which is kafbox's times sqrt(lambda).
    after = of_one_slot(L.KRLSTracker(30, 0.99, 0.01, jitter=1e-6), width=0.5)[2]
    assert np.abs(after - np.sqrt(0.99) * expected).max() < 1e-7


def test_norma_is_that_of_kafbox_with_the_error_before_the_decay():
    # The loss is (f - y)^2: its derivative is twice the error, so the step is half as long.
    X, y, found = of_one_slot(L.Norma(0.1, 40), regularization=0.02)
    expected = kafbox.norma(X, y, 0.7, eta=0.2, lam=0.01, tau=40, order="paper")
    assert np.abs(found - expected).max() < 1e-12
    shrunk = kafbox.norma(X, y, 0.7, eta=0.2, lam=0.01, tau=40)
    assert 1e-6 < np.abs(found - shrunk).max() < 0.05  # kafbox takes it after the decay

"""Every learner against its definition, cut into blocks, saved, and on hostile data."""

import warnings
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.io import checkpoint
from support import naive
from support.instances import LEARNERS, name_of, stream
from support.learner_cases import LOSS_PAIRS, WAVES, kernel_of, losses_of
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


def oracle_of(learner, kernel, loss, ridge):
    """The naive form of a learner, with the same settings."""
    kind = getattr(naive_learners, type(learner).__name__)
    values, second = LOSS_PAIRS[loss]
    given = {field.name: getattr(learner, field.name) for field in fields(learner)}
    if getattr(learner, "second_order", False):
        given["second"] = second
    given.pop("seed", None), given.pop("features", None)
    return kind(kernel, values, ridge, **given)


CASES = [  # with another loss or pair it is slower than all other tests of a learner
    pytest.param(
        learner,
        loss,
        pair,
        marks=[] if loss == "squared" and pair in (None, KERNEL_PAIRS[0]) else [pytest.mark.slow],
    )
    for learner in LEARNERS
    if hasattr(naive_learners, type(learner).__name__)
    for loss in losses_of(learner)
    for pair in (KERNEL_PAIRS if kernel_of(learner) == K.Gaussian(0.6) else [None])
    if pair in (None, KERNEL_PAIRS[0]) or loss == "squared"
]


@pytest.mark.parametrize(("learner", "loss", "pair"), CASES, ids=lambda v: name_of(v) if v else "")
def test_a_learner_follows_its_definition(learner, loss, pair):
    samples, window, ridge = 90, 4, 0.05
    X, y = stream(7, samples, 2, loss in ("logistic", "hinge"))
    X[40:44] = X[10]  # repeated inputs
    if pair is not None:
        kernel, definition = pair
    else:
        kernel, definition = kernel_of(learner), naive_learners.linear_features(0.5)
        if kernel is WAVES:
            drawn = K.feature_map(kernel, 12, 2, np.random.default_rng([0, 0]))
            definition = lambda x: drawn(x[None])[0]  # noqa: E731
    bank = kb.KernelBank([kernel], learner, loss=loss, window=window, regularization=ridge)
    oracle = oracle_of(learner, definition, loss, ridge)
    trace = bank.run(X, y)
    # Rounding: a unit in the last place of the terms, times the condition of what is solved (the
    # ridges and novelties keep it below 1e7), times the number of steps.
    solves = hasattr(learner, "ridge") or isinstance(learner, L.gram.GramBase)
    share = EPS * samples * (1e7 if solves else 1e3)
    compared = 0
    for n in range(samples):
        size = max(1.0, oracle.magnitude(X[n]))
        assert abs(trace.slot_predictions[n, 0] - oracle.predict(X[n])) <= share * size, n
        oracle.learn(X[n], y[n])
        if oracle.closest < 1e-9:
            break  # a decision on the edge of rounding: from here on both may be right
        largest = max(oracle.magnitude(X[i]) for i in range(max(0, n - 3), n + 1))
        norm = 2 * trace.curvature[n, 0] / ridge
        assert abs(norm - oracle.norm2()) <= share * max(1.0, largest, oracle.norm2()) ** 2, n
        recent = range(max(0, n + 1 - window), n + 1)
        loss_now = sum(LOSS_PAIRS[loss][0][0](oracle.predict(X[i]), y[i]) for i in recent)
        assert abs(trace.window_loss[n, 0] - loss_now) <= share * (1 + largest) ** 2 * window, n
        compared += 1
    assert compared >= samples // 2
    if compared == samples:
        grid = np.random.default_rng(0).uniform(0, 1.5, (5, 2))
        for x, value in zip(grid, bank.predict_slots(grid)[:, 0], strict=True):
            assert abs(value - oracle.predict(x)) <= share * max(1.0, oracle.magnitude(x))
        dropped = getattr(oracle, "dropped", 0.0)
        assert abs(bank.ledger.dropped[0] - dropped) <= share * max(1.0, dropped)


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
@settings(max_examples=4)
@given(seed=st.integers(0, 50), moment=st.integers(1, 330), data=st.data())
def test_blocks_and_files_change_no_bit(tmp_path_factory, learner, seed, moment, data):
    loss = losses_of(learner)[-1]
    X, y = stream(seed, 340, 2, loss in ("logistic", "hinge"))

    def make(engine="serial"):
        slots = [kb.Slot(kernel_of(learner), learner), kb.Slot(K.Gaussian(0.3), L.Norma(0.05, 20))]
        return kb.KernelBank(slots=slots, loss=loss, window=5, engine=engine)

    whole, cut = make(), make(kb.engines.Serial(2))
    trace = whole.run(X, y)
    done = 0
    while done < moment:
        step = min(data.draw(st.integers(1, 130)), moment - done)
        cut.run(X[done : done + step], y[done : done + step])
        done += step
    path = tmp_path_factory.mktemp("learner") / "bank.kb"
    cut.save(path)
    again = kb.load(path, engine=kb.engines.Threads(2))
    for n in range(moment, 340):
        if n % 7 == 0:
            assert again.predict_one(X[n]) == trace.predictions[n]
        again.learn_one(X[n], y[n])
    first, second = whole._state(), again._state()
    assert all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)
    assert np.array_equal(whole.predict(X[:9]), again.predict(X[:9]))


def hostile(kind, samples, labels):
    draw = np.random.default_rng(3)
    X, y = draw.normal(size=(samples, 3)), draw.normal(size=samples)
    if kind == "tiny":
        X, y = 1e-12 * X, 1e-12 * y
    elif kind == "huge":
        X, y = 1e12 * X, 1e12 * y
    elif kind == "huge targets":
        y = 1e12 * y
    elif kind == "constant":
        X[:] = 1.5
    elif kind == "zero":
        X[:] = 0.0
    elif kind == "duplicates":
        X = np.repeat(X[: samples // 10], 10, axis=0)
    elif kind == "nearly equal":
        X = 1.0 + 1e-9 * X
    elif kind == "glitch":
        y[samples // 2] = 1e9
    return X, np.where(y >= 0, 1.0, -1.0) if labels else y


HOSTILE = (
    "tiny",
    "huge",
    "huge targets",
    "constant",
    "zero",
    "duplicates",
    "nearly equal",
    "glitch",
)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_hostile_data_are_survived_or_the_slot_is_quarantined(learner, kind):
    loss = losses_of(learner)[0]
    X, y = hostile(kind, 400, loss in ("logistic", "hinge"))
    slots = [
        kb.Slot(kernel_of(learner), learner),
        kb.Slot(K.Gaussian(0.5), L.Norma(0.001, 20)),
    ]
    bank = kb.KernelBank(slots=slots, loss=loss, window=5)
    trace = bank.run(X, y)
    assert np.isfinite(trace.predictions).all()
    if 0 not in bank.quarantined:
        assert np.isfinite(trace.slot_predictions[:, 0]).all()
        assert np.isfinite(bank.predict_slots(X[-5:])[:, 0]).all()
        # Least squares on such data are never wildly beyond the targets that they have seen.
        if getattr(learner, "second_order", False) and loss == "squared":
            assert np.abs(trace.slot_predictions[:, 0]).max() <= 1e6 * max(np.abs(y).max(), 1e-300)


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_a_docstring_says_what_a_step_costs(learner):
    text = type(learner).__doc__
    for word in ("Cost", "emory", "Parameters", ">>>"):
        assert word in text, word


def test_variance_of_the_tracker_is_that_of_the_posterior():
    X, y = stream(1, 60, 2)
    learner = L.KRLSTracker(budget=20, forgetting=0.99, noise=0.05)
    bank = kb.KernelBank([K.Gaussian(0.6), K.Gaussian(1.2)], learner, window=3)
    bank.run(X, y)
    for p, width in enumerate((0.6, 1.2)):
        oracle = oracle_of(learner, naive.gaussian(width), "squared", 0.01)
        for x, target in zip(X, y, strict=True):
            oracle.learn(x, target)
        got = bank.predict_variance_slots(X[:5])[:, p]
        bound = EPS * len(X) * 20 / JITTER  # of the condition, at most
        assert np.allclose(got, [oracle.variance(x) for x in X[:5]], rtol=0, atol=bound)
    assert np.isnan(kb.KernelBank().predict_variance_slots([[1.0]])).all()


# --- models from outside --------------------------------------------------------------------------


class Counter:
    """Predicts how much it has learned."""

    def __init__(self, fail_at=None):
        self.count, self.fail_at = 0, fail_at

    def predict_one(self, x):
        assert x.shape == (2,)
        return float(self.count)

    def learn_one(self, x, y):
        if self.count == self.fail_at:
            raise RuntimeError("enough")
        self.count += 1


def outside(model, **settings):
    return kb.Slot(K.NoKernel(), L.Adapter(model, **settings))


def test_a_model_from_outside_is_a_slot():
    X, y = stream(3, 300, 2)
    model = Counter()
    slots = [outside(model, curvature=0.7), kb.Slot(K.Gaussian(0.5), L.Norma())]
    bank, loop = (kb.KernelBank(slots=slots, window=4) for _ in range(2))
    trace = bank.run(X, y)
    for x, target in zip(X, y, strict=True):
        loop.predict_one(x)
        loop.learn_one(x, target)
    assert np.array_equal(bank.weights, loop.weights)
    assert trace.slot_predictions[:, 0].tolist() == list(range(300))
    assert model.count == 0  # the bank's is a copy
    assert np.allclose(trace.curvature[:, 0], 0.7, rtol=4 * EPS)
    assert np.allclose(trace.window_loss[9, 0], ((10 - y[6:10]) ** 2).sum())


def test_a_model_that_fails_is_out_and_the_bank_goes_on():
    X, y = stream(3, 100, 2)
    bank = kb.KernelBank(slots=[outside(Counter(50)), kb.Slot(K.Gaussian(0.5), L.Norma())])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trace = bank.run(X, y)
    assert bank.quarantined == (0,)
    assert any("RuntimeError('enough')" in str(w.message) for w in said)
    assert np.isfinite(trace.predictions).all()
    assert bank.weights.tolist() == [0.0, 1.0]


def test_a_bank_with_a_model_from_outside_is_not_saved(tmp_path):
    bank = kb.KernelBank(slots=[outside(Counter())])
    with pytest.raises(kb.errors.KernelBankError, match=r"slot 0 is Adapter.*not arrays"):
        bank.save(tmp_path / "bank.kb")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="'model' of Adapter must have predict_one"):
        L.Adapter(3.0)
    with pytest.raises(ValueError, match="without regularization"):
        kb.KernelBank(slots=[outside(Counter(), curvature=1.0)], regularization=0)
    with pytest.raises(ValueError, match="NoKernel for Adapter"):
        kb.KernelBank(K.Gaussian(1.0), L.Adapter(Counter()))
    with pytest.raises(ValueError, match="kernel"):
        kb.KernelBank(K.NoKernel(), L.KLMS())


def test_models_of_river_and_scikit_learn_are_slots():
    from river import linear_model as river_linear
    from river import preprocessing
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    X, y = stream(6, 300, 2)
    line = preprocessing.StandardScaler() | river_linear.LinearRegression()
    alone, expected = line.clone(), []
    for x, target in zip(X, y, strict=True):
        named = {"x0": x[0], "x1": x[1]}
        expected.append(alone.predict_one(named))
        alone.learn_one(named, float(target))
    slots = [outside(line), outside(SGDRegressor(random_state=0))]
    trace = kb.KernelBank(slots=slots, window=3).run(X, y)
    assert np.allclose(trace.slot_predictions[:, 0], expected, rtol=1e-12)
    assert trace.slot_loss[150:, 1].mean() < (y[150:] ** 2).mean()

    labels = np.where(X[:, 0] > X[:, 1], 1.0, -1.0)
    slots = [outside(river_linear.LogisticRegression()), outside(SGDClassifier(random_state=0))]
    bank = kb.KernelBank(slots=slots, window=3, loss="hinge")
    trace = bank.run(X, labels)
    assert bank.quarantined == ()
    right = np.sign(trace.slot_predictions[100:]) == labels[100:, None]
    assert (right.mean(axis=0) > 0.8).all()


def test_an_undone_block_is_undone_in_models_from_outside_too():
    X, y = stream(3, 40, 2)

    def fails_later(A, B):
        if (A > 90).any():
            raise ValueError("no")
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    slots = [outside(Counter()), kb.Slot(K.Custom(fails_later), L.Norma())]
    bank = kb.KernelBank(slots=slots, window=3)
    bank.run(X[:20], y[:20])
    spoiled = X[20:30].copy()
    spoiled[7] = 99.0
    with pytest.raises(ValueError, match="no"):
        bank.run(spoiled, y[20:30])
    assert bank.predict_slots(X[:1])[0, 0] == 20.0
    trace = bank.run(X[20:], y[20:])
    assert trace.slot_predictions[:, 0].tolist() == list(range(20, 40))


# --- files that lie, settings at their edges ------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
@pytest.mark.parametrize("size", [0.0, -3.0, 0.5, np.nan, 1e300, "capacity", "beyond"])
def test_a_forged_size_reads_and_writes_nothing_outside(tmp_path, learner, size):
    bank = kb.KernelBank([kernel_of(learner)] * 3, learner, loss=losses_of(learner)[0], window=5)
    X, y = stream(1, 200, 2, losses_of(learner)[0] in ("logistic", "hinge"))
    bank.run(X[:100], y[:100])
    bank.save(tmp_path / "bank.kb")
    header, arrays = checkpoint.read(tmp_path / "bank.kb")
    name = "slots/group0/size"
    if name not in arrays:
        return
    capacity = arrays["slots/group0/coefficients"].shape[1]
    arrays[name][1] = {"capacity": capacity, "beyond": capacity + 1}.get(size, size)
    checkpoint.write(tmp_path / "bank.kb", header, arrays)
    forged = kb.load(tmp_path / "bank.kb")
    trace = forged.run(X[100:], y[100:])
    expected = bank.run(X[100:], y[100:])
    for p in (0, 2):  # the neighbours keep their bits
        assert np.array_equal(trace.slot_predictions[:, p], expected.slot_predictions[:, p])


def test_a_kernel_that_fails_is_heard_when_variances_are_asked_for():
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
def test_a_tiny_ridge_is_still_solved(learner, ridge):
    draw = np.random.default_rng(0)
    X, y = draw.uniform(-2, 2, (400, 1)), draw.normal(size=400)
    bank = kb.KernelBank([K.Gaussian(1.0)], learner(budget=30, ridge=ridge), window=3)
    bank.run(X, y)
    state = bank._state()
    centres = state["slots/group0/centres"][0, :, :30].T
    A = K.Gaussian(1.0)(centres, centres)
    A += np.diag(state["slots/group0/noises"][0, :30])
    wrong = A @ state["slots/group0/coefficients"][0, :30] - state["slots/group0/responses"][0, :30]
    assert np.abs(wrong).max() <= 1e-6 * np.abs(y).max()
    assert bank.quarantined == ()


def test_exponential_forgetting_that_no_dummy_can_keep_up_with_is_refused():
    bank = kb.KernelBank([K.Gaussian(1.0)], L.FourierRLS(40, forgetting=0.5))
    with pytest.raises(ValueError, match=r"'forgetting' of FourierRLS must be >= 0.88"):
        bank.learn_one(0.0, 1.0)
    assert bank.samples == 0
    bank = kb.KernelBank([K.Gaussian(1.0)], L.FourierRLS(40, forgetting=0.5, forget="prior"))
    bank.learn_one(0.0, 1.0)


def test_a_dropped_term_of_klms_is_told():
    with pytest.warns(kb.errors.TruncationMatters):
        kb.KernelBank([K.Gaussian(5.0)], L.KLMS(0.1, budget=3), window=2).run(
            np.arange(50.0) / 5, np.ones(50)
        )


def test_scratch_counts_as_memory(tmp_path):
    bank = kb.KernelBank([K.Gaussian(1.0)], L.KRLS(budget=600), window=2)
    bank.run(np.arange(9.0), np.ones(9))
    bank.save(tmp_path / "bank.kb")
    with pytest.raises(kb.errors.FileRefused, match="most_memory"):
        kb.load(tmp_path / "bank.kb", most_memory=9 * 2**20)

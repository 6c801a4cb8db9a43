"""Every learner against its naive definition, in blocks, saved, and on hostile data."""

from dataclasses import fields

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import LEARNERS, STEP_SIZES, name_of, stream
from support.learner_cases import LOSS_PAIRS, RANDOM_FEATURES, kernel_of, losses_of, oracle_of
from support.naive import learners as naive_learners

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


KERNEL_PAIRS = [
    (K.Gaussian(0.6), naive.gaussian(0.6)),
    (K.Matern(1.2, nu=1.5), naive.matern(1.2, 1.5)),
    (K.Polynomial(2, offset=1.0, scale=0.5), naive.polynomial(2, 1.0, 0.5)),
]


CASES = [  # other losses and kernels, and most step sizes, are slow
    pytest.param(
        learner,
        loss,
        pair,
        marks=[]
        if loss == "squared"
        and pair in (None, KERNEL_PAIRS[0])
        and (learner in LEARNERS or isinstance(learner, L.KLMS))
        else [pytest.mark.slow],
    )
    for learner in [*LEARNERS, *STEP_SIZES]
    if hasattr(naive_learners, type(learner).__name__)
    for loss in losses_of(learner)
    for pair in (KERNEL_PAIRS if kernel_of(learner) == K.Gaussian(0.6) else [None])
    if pair in (None, KERNEL_PAIRS[0]) or loss == "squared"
]


@pytest.mark.parametrize(("learner", "loss", "pair"), CASES, ids=lambda v: name_of(v) if v else "")
def test_learner_equals_its_naive_definition(learner, loss, pair):
    samples, window, ridge = 90, 4, 0.05
    X, y = stream(7, samples, 2, loss in ("logistic", "hinge"))
    X[40:44] = X[10]  # repeated inputs
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
    inverse = (L.KRLS, L.KRLSTracker, L.POLK, L.Projectron)  # they keep one
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


BY_LOSS: dict[str, list] = {}
for one in LEARNERS:
    BY_LOSS.setdefault(losses_of(one)[0], []).append(one)
"""All learners, by the first loss that they take."""


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("loss", BY_LOSS)
def test_hostile_data_leave_finite_values_or_a_quarantined_slot(loss, kind):
    X, y = hostile(kind, 400, loss in ("logistic", "hinge"))
    learners = [*BY_LOSS[loss], L.Norma(0.001, 20)]
    slots = [kb.Slot(kernel_of(learner), learner) for learner in learners]
    bank = kb.KernelBank(slots=slots, loss=loss, window=5)
    trace = bank.run(X, y)
    assert np.isfinite(trace.predictions).all()
    values = bank.predict_slots(X[-5:])
    for index, learner in enumerate(learners):
        if index in bank.quarantined:
            continue
        assert np.isfinite(trace.slot_predictions[:, index]).all(), learner
        assert np.isfinite(values[:, index]).all(), learner
        # Least squares never exceed the targets seen by orders of magnitude.
        if getattr(learner, "second_order", False) and loss == "squared":
            largest = np.abs(trace.slot_predictions[:, index]).max()
            assert largest <= 1e6 * max(np.abs(y).max(), 1e-300), learner


COUNTS = (
    "budget",
    "landmarks",
    "features",
    "nodes",
    "split_after",
    "neighbors",
    "memory",
    "restart",
)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, f.name) for k in L.standalone() for f in fields(k) if f.name in (*COUNTS, "column")],
)
def test_count_that_the_core_cannot_hold_is_refused(kind, name):
    message = rf"'{name}' of {kind.__name__} must be a whole number .* <= 1000000000; got 1\d+\. \w"
    with pytest.raises(kb.errors.InvalidArgument, match=message):
        kind(**{name: 10**12})


def test_core_refuses_whole_numbers_beyond_32_bits():
    learner = L.KLMS()
    object.__setattr__(learner, "budget", 10**12)
    with pytest.raises(ValueError, match="the setting is too large: budget"):
        kb.KernelBank([K.Gaussian(1.0)], learner).learn_one(0.0, 1.0)


def test_docstrings_state_cost_memory_parameters_and_example():
    for learner in LEARNERS:
        text = type(learner).__doc__
        for word in ("Cost", "emory", ">>>", *(["Parameters"] if fields(learner) else [])):
            assert word in text, (learner, word)


# --- saved files and memory -----------------------------------------------------------------------


def test_klms_with_a_dropped_term_that_matters_warns():
    with pytest.warns(kb.errors.TruncationMatters):
        kb.KernelBank([K.Gaussian(5.0)], L.KLMS(0.1, budget=3), window=2).run(
            np.arange(50.0) / 5, np.ones(50)
        )


def test_scratch_counts_as_memory_when_a_file_is_loaded(tmp_path):
    bank = kb.KernelBank([K.Gaussian(1.0)], L.KRLS(budget=600), window=2)
    bank.run(np.arange(9.0), np.ones(9))
    bank.save(tmp_path / "bank.kb")
    with pytest.raises(kb.errors.FileRefused, match="most_memory"):
        kb.load(tmp_path / "bank.kb", most_memory=9 * 2**20)

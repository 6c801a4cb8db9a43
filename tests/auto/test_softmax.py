"""Probabilities of more than two classes against their naive form and their promises."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank import _core
from support.auto_streams import SMALL
from support.core_state import put, put_entry
from support.marks import slow
from support.naive import auto as naive

EPS = np.finfo(float).eps
FORGED = [math.nan, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 1e19]


COMMON_START = [2.0, 1.0, 1.0, 0.0, 1.0]
CLASS_START = [0.0, 0.0, 10.0, 0.0, 30.0]
LATE = [0.0, 1.0, 10.0, 0.0, 30.0]
"""Two parameters and their Hessian: those in common, those of a class, and of one that came late."""


def new_softmax(classes, late=()):
    own = _core.Probabilities(scores=classes)
    for k in late:
        put_entry(own, "curves", k, LATE)
    return own


def stream(classes, rows, sharp, seed=0, rare=False):
    """Noisy labels of -1 and 1 as scores, and the classes of the rows."""
    draw = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(classes) if rare else np.ones(classes)
    labels = draw.choice(classes, size=rows, p=shares / shares.sum())
    truth = np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
    return np.clip(sharp * (truth + draw.normal(size=truth.shape)), -1e6, 1e6), labels


def from_known_softmax(rows, slope, offsets, seed=0):
    """Scores, and classes that are drawn from a softmax of slope * score + offset."""
    draw = np.random.default_rng(seed)
    scores = draw.uniform(-1, 1, size=(rows, len(offsets)))
    z = slope * scores + offsets
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    labels = (draw.random(rows)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=len(offsets) - 1)
    return scores, labels, p


def log_loss(p, labels):
    return -np.log(p[np.arange(len(labels)), labels]).mean()


# --- against the naive form -----------------------------------------------------------------------


@pytest.mark.parametrize("sharp", [0.0, 0.3, 1.0, 100.0])
@pytest.mark.parametrize(
    ("classes", "rare"), [(3, True), slow(3, False), slow(8, True), slow(8, False)]
)
def test_probabilities_equal_the_naive_form(classes, sharp, rare):
    """A step adds at most some 100 eps to a parameter, because |z| < 100.

    Steps solve a convex problem, so that earlier errors do not grow: 800 * 100 * eps < 1e-10.
    """
    scores, labels = stream(classes, 800, sharp, rare=rare)
    own, other = new_softmax(classes, late=[1]), naive.Softmax(classes, late=[1])
    out = own.predict_and_update(scores, labels)
    for t, label in enumerate(labels):
        assert np.allclose(out[t], other.probabilities(scores[t]), rtol=1e-10, atol=0), t
        other.learn(scores[t], label)
    assert np.allclose(own["common"][:2], other.common, rtol=0, atol=1e-10)
    assert np.allclose(own["curves"][:, :2], other.pairs, rtol=0, atol=1e-10)
    assert np.allclose(own["common"][2:], other.common_matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-10)
    for curve, matrix in zip(own["curves"], other.matrices, strict=True):
        assert np.allclose(curve[2:], matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-10)


@pytest.mark.parametrize("classes", [3, 40, 1000])
def test_probabilities_add_to_one_and_none_is_0(classes):
    scores, labels = stream(classes, 200, 1.0)
    out = new_softmax(classes).predict_and_update(scores, labels)
    # Numbers that add to 1 are rounded once each, by the two divisions and by the sums.
    assert np.abs(out.sum(axis=1) - 1).max() <= (classes + 4) * EPS
    assert out.min() >= 1e-6 / (1 + 1e-6 * classes)


# --- the same bits --------------------------------------------------------------------------------


def test_rows_at_once_equal_blocks_and_single_rows():
    scores, labels = stream(4, 300, 1.0)
    whole, blocks, single = new_softmax(4), new_softmax(4), new_softmax(4)
    out = whole.predict_and_update(scores, labels)
    ends = [7, 100]
    parts = zip(np.split(scores, ends), np.split(labels, ends), strict=True)
    np.testing.assert_array_equal(
        np.concatenate([blocks.predict_and_update(*part) for part in parts]), out
    )
    for t in range(len(labels)):
        np.testing.assert_array_equal(single.predict(scores[t : t + 1])[0], out[t])
        single.update(scores[t : t + 1], labels[t : t + 1])
    for other in (blocks, single):
        np.testing.assert_equal(other.state(), whole.state())


def with_late_classes(rows=400):
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, 2))
    y = np.digitize(X[:, 0] + 0.3 * draw.normal(size=rows), [0.0])
    y[(np.arange(rows) > 150) & (X[:, 1] > 0.8)] = 2
    y[(np.arange(rows) > 300) & (X[:, 1] < -0.8)] = 3
    return X, y


def test_restart_of_a_bank_starts_its_softmax_anew():
    """After 128 rows the banks start from the replay buffer, and have other scores."""
    X, y = with_late_classes()
    bank = kb.AutoBank("classification", classes=[0, 1, 2], **SMALL)
    bank.run(X[:127], y[:127])
    model = bank._model
    assert model.core.state()["probabilities/common"].tolist() != COMMON_START
    bank.learn_one(X[127], int(y[127]))
    assert model.core.state()["probabilities/common"].tolist() == COMMON_START
    assert model.core.state()["probabilities/curves"].tolist() == [CLASS_START] * 3


# --- what it is for -------------------------------------------------------------------------------


def test_softmax_finds_slope_and_offsets():
    offsets = np.array([0.0, 1.0, -1.0, 0.5])
    scores, labels, truth = from_known_softmax(8000, 4.0, offsets)
    out = new_softmax(4).predict_and_update(scores, labels)
    late = slice(4000, None)
    assert log_loss(out[late], labels[late]) < log_loss(truth[late], labels[late]) + 0.01
    assert np.sqrt(np.mean((out[late] - truth[late]) ** 2)) < 0.03


# --- classes that appear late ---------------------------------------------------------------------


def test_late_class_starts_with_a_higher_offset():
    own = _core.Probabilities(scores=0)
    own.grow(1)
    assert own["curves"].tolist() == [[2.0, 0.0, 1.0, 0.0, 1.0]]
    own.grow(3)
    assert own["curves"].tolist() == [CLASS_START, CLASS_START, LATE]
    own = _core.Probabilities(scores=0)
    own.grow(3)
    assert own["curves"].tolist() == [CLASS_START] * 3
    put(own, curves=np.full((3, 5), 7.0), common=np.full(5, 6.0))
    own.grow(5)
    assert own["curves"].tolist() == [*[[7.0] * 5] * 3, LATE, LATE]
    assert own["common"].tolist() == [6.0] * 5


def test_class_that_appears_late_keeps_the_curves_of_the_others():
    X, y = with_late_classes()
    first = np.flatnonzero(y == 3)[0]
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(X[:first], y[:first])
    model = bank._model
    curves, common = (
        model.core.state()["probabilities/curves"],
        model.core.state()["probabilities/common"],
    )
    bank.learn_one(X[first], 3)
    # The row of the new class was predicted without its score, so it is left out.
    np.testing.assert_array_equal(model.core.state()["probabilities/curves"], [*curves, LATE])
    np.testing.assert_array_equal(model.core.state()["probabilities/common"], common)
    bank.learn_one(X[first], 3)
    assert model.core.state()["probabilities/curves"][3].tolist() != LATE


# --- whatever comes -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1.0, 1e300])
def test_parameters_stay_within_their_limits(size):
    """Classes that are always those with the lowest score, and then with the highest one."""
    draw = np.random.default_rng(0)
    scores = size * draw.normal(size=(6000, 4))
    labels = np.where(np.arange(6000) < 3000, scores.argmin(axis=1), scores.argmax(axis=1))
    own = new_softmax(4)
    for part in range(0, 6000, 500):
        rows = slice(part, part + 500)
        out = own.predict_and_update(scores[rows], labels[rows])
        assert np.isfinite(out).all()
        assert (own["common"][:2] >= 0).all()
        assert (own["common"][:2] <= 30).all()
        assert (abs(own["curves"][:, :2]) <= 30).all()
    if size == 1.0:
        assert np.mean(out.argmax(axis=1) == labels[rows]) > 0.9


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forged_parameters_give_probabilities_and_return_to_their_start():
    draw = np.random.default_rng(1)
    possible = [value for value in FORGED if math.isfinite(value)]
    for _ in range(400):
        own = new_softmax(3)
        put(own, curves=draw.choice(possible, size=(3, 5)), common=draw.choice(possible, size=5))
        out = own.predict_and_update(draw.choice(FORGED, size=(3, 3)), np.zeros(3))
        assert (out > 0).all()
        assert np.allclose(out.sum(axis=1), 1)
    own = new_softmax(3)
    put_entry(own, "curves", (1, slice(2, None)), 1e308)  # a determinant that is not finite
    put_entry(own, "common", slice(2, None), [1e308, 0.0, -1e308])
    own.update(np.zeros((1, 3)), np.array([1.0]))
    assert own["curves"][1].tolist() == CLASS_START
    assert own["common"].tolist() == COMMON_START
    for name in ("curves", "common"):
        with pytest.raises(ValueError, match="finite"):
            put_entry(own, name, 0, math.nan)

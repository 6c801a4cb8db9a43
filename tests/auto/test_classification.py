"""AutoBank for classes: labels in and out, late classes, calibrated probabilities."""

import numpy as np
import pytest

import kernelbank as kb
from support.auto_streams import SMALL, numbers


@pytest.mark.parametrize(
    "names",
    [(-1, 1), (False, True), (2.5, -1.5), ("a", "b", "c")],
)
def test_labels_come_back_in_their_own_type(names):
    X, _ = numbers(300)
    kinds = np.digitize(X[:, 0], [0.0] if len(names) == 2 else [-0.5, 0.5])
    y = np.array(names)[kinds]
    bank = kb.AutoBank("classification", classes=names, **SMALL)
    trace = bank.run(X, y)
    assert bank.classes == names == trace.classes
    assert trace.predictions.dtype == y.dtype
    assert np.mean(trace.predictions[150:] == y[150:]) > 0.85
    np.testing.assert_allclose(trace.probabilities.sum(axis=1), 1, rtol=1e-12)
    best = np.array(names)[trace.probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(best, trace.predictions)
    one = bank.predict_proba_one(X[0])
    assert tuple(one) == names
    np.testing.assert_array_equal(list(one.values()), bank.predict_proba(X[:1])[0])
    assert bank.predict_one(X[0]) == bank.predict(X[:1])[0]
    assert type(bank.predict_one(X[0])) is type(names[0])


def test_classes_are_in_the_order_of_their_first_rows():
    X, _ = numbers(60)
    y = ["b" if x > 0 else "a" for x in X[:, 0]]
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(X, y)
    assert bank.classes == tuple(dict.fromkeys(y))


@pytest.mark.parametrize("first", [700, pytest.param(5000, marks=pytest.mark.slow)])
def test_class_that_appears_late_is_learned(first):
    count = first + 400
    X, _ = numbers(count)
    y = np.where(X[:, 0] > 0, "right", "left")
    late = (np.arange(count) >= first) & (X[:, 1] > 0.8)
    y = np.where(late, "top", y)
    bank = kb.AutoBank("classification", **SMALL)
    trace = bank.run(X, y)
    assert bank.classes[2] == "top"
    assert bank.bank.outputs == 3
    seen = np.flatnonzero(late)[0]
    assert (trace.probabilities[1 : seen + 1, 2] == 0).all()
    after = slice(count - 200, count)
    assert np.mean(trace.predictions[after] == y[after]) > 0.85
    assert np.mean(trace.predictions[first - 200 : first] == y[first - 200 : first]) > 0.9


def test_probabilities_are_calibrated():
    draw = np.random.default_rng(5)
    X = draw.normal(size=(3000, 2))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] - 1))
    y = draw.random(3000) < chance
    trace = kb.AutoBank("classification", classes=[False, True], **SMALL).run(X, y)
    said = trace.probabilities[500:, 1]
    happened = y[500:]
    edges = np.quantile(said, np.linspace(0, 1, 11)[1:-1])
    for group in range(10):
        own = np.digitize(said, edges) == group
        error = np.sqrt(0.25 / own.sum())
        assert abs(said[own].mean() - happened[own].mean()) < 3 * error
    assert np.mean((said - chance[500:]) ** 2) < 0.01


def test_single_class_is_predicted():
    X, _ = numbers(50)
    bank = kb.AutoBank("classification", **SMALL)
    trace = bank.run(X, ["on"] * 50)
    assert (trace.predictions[1:] == "on").all()
    assert bank.predict_one(X[0]) == "on"
    named = kb.AutoBank("classification", classes=["on", "off"], **SMALL)
    named.run(X, ["on"] * 50)
    assert named.predict_proba_one(X[0])["off"] < 0.1


@pytest.mark.parametrize("count", [2, 3])
def test_slot_classes_are_the_classes_of_the_slots_scores(count):
    draw = np.random.default_rng(4)
    X = draw.normal(size=(150, 2))
    labels = np.array(["one", "two", "three"][:count])[draw.integers(count, size=150)]
    slots = [kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS())] * 2
    slots += [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma(budget=200))]
    whole, single = (kb.AutoBank("classification", slots=slots) for _ in range(2))
    trace = whole.run(X, labels, record=["slot_classes"])
    assert (trace.slot_classes[0] == -1).all()  # no label was known
    for x, label, chosen in zip(X, labels, trace.slot_classes, strict=True):
        if single.banks:
            rows = single._model.scaling.scale_rows(x[None], np.zeros((1, 0)))
            scores = single.bank.predict_slots(rows)[0].reshape(single.bank.outputs, -1)
            wanted = scores.argmax(axis=0) if len(scores) > 1 else scores[0] > 0
            assert (chosen == wanted).all()
        told = single.predict_trace_one(x, record=["slot_classes"]).slot_classes
        assert (told[0] == chosen).all()
        single.learn_one(x, label)
    assert whole.bank.outputs == (1 if count == 2 else 3)

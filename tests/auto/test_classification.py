"""AutoBank for classes: labels, probabilities, classes that come late, many classes."""

import re
import warnings

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.config import AutoConfig
from kernelbank.auto.model import REPLAY
from kernelbank.auto.slots import START
from kernelbank.auto.targets import MAX_CLASSES, ClassLabels, nearest_label, plain
from kernelbank.errors import InvalidArgument, LargeModel
from support.auto_streams import SMALL, labelled, late_classes, numbers
from support.marks import refuses, slow

K, L = kb.kernels, kb.learners


def own_slots():
    return [
        kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=31), residual_of=0),
        kb.Slot(K.Matern(1.0), L.NearestNeighborGP(8, 64)),
    ]


def scaled(bank, rows):
    """Rows as the slots see them, without a past."""
    statistics = bank._model.scaling.statistics
    return statistics.scale_rows(np.array(rows), np.zeros((len(rows), bank._model.core.past)))


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
    assert (*one,) == names
    assert [*one.values()] == bank.predict_proba(X[:1])[0].tolist()
    assert bank.predict_one(X[0]) == bank.predict(X[:1])[0]
    assert type(bank.predict_one(X[0])) is type(names[0])


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


@pytest.mark.parametrize("kind", ["two", "three"])
def test_slot_classes_are_the_classes_of_the_slots_scores(kind):
    X, labels = labelled(150, kind)
    whole, single = (kb.AutoBank("classification", slots=own_slots()[::2]) for _ in range(2))
    trace = whole.run(X, labels, record=["slot_classes"])
    assert (trace.slot_classes[0] == -1).all()  # no label was known
    for x, label, chosen in zip(X, labels, trace.slot_classes, strict=True):
        if single.banks:
            scores = single.bank.predict_slots(scaled(single, [x]))[0]
            scores = scores.reshape(single.bank.outputs, -1)
            wanted = scores.argmax(axis=0) if len(scores) > 1 else scores[0] > 0
            assert (chosen == wanted).all()
        single.learn_one(x, label)
    assert whole.bank.outputs == (1 if kind == "two" else 3)


@pytest.mark.parametrize("late", [False, True])
def test_class_that_appears_between_prediction_and_target_gets_its_own_output(late):
    """The one output of two classes is the second's; with a third class it has another place."""
    X, y = numbers(102)
    labels = np.where(y > y[:2].mean(), "b", "a")
    bank = kb.AutoBank("classification", slots=own_slots()[:1], classes=None)
    bank.run(X[:100], labels[:100])
    second = bank.classes[1]
    row = np.array([3.0, 0.3, 0.0])
    own = bank.bank.predict_slots(scaled(bank, [row]))[0]
    bank.predict_one(row)
    if late:  # the third class is that of another row
        bank.learn_one(X[100], "c")
        assert bank.bank.outputs == 3
        bank = kb.from_bytes(bank.to_bytes())
        losses = bank.bank.ledger.slot_loss
        now = bank.bank.predict_slots(scaled(bank, [row]))[0]
        bank.learn_one(row, second)
        for head, (past, sign) in enumerate([(now[0], -1), (own, 1), (now[2], -1)]):
            added = bank.bank.ledger.slot_loss[head] - losses[head]
            assert added == pytest.approx((past - sign) ** 2, rel=1e-6, abs=1e-9)
    else:  # it is its own
        bank.learn_one(row, "c")
    # Rows that were predicted without the scores of all classes do not change the softmax.
    start, new = [0.0, 0.0, 10.0, 0.0, 30.0], [0.0, 1.0, 10.0, 0.0, 30.0]
    state = bank._model.core.state()
    assert state["probabilities/curves"].tolist() == [start, start, new]
    assert state["probabilities/common"].tolist() == [2.0, 1.0, 1.0, 0.0, 1.0]


def test_changes_of_a_classifier_are_detected_in_its_error_rate():
    """One error of size 0 or 1 a row, from the first bank on."""
    X, _ = numbers(600)
    labels = (X[:, 0] > 0).astype(int)
    labels[400:] = 1 - labels[400:]
    bank = kb.AutoBank("classification", slots=own_slots()[:1])
    actual = bank.run(X, labels).predictions
    wrong = (actual != labels).astype(float)
    ring = bank._model.core.state()["changes/errors"]
    signals = [c.row for c in bank.ledger.changes if c.what.startswith("error")]
    start = signals[-1] - 1 if signals else 5
    assert np.array_equal(ring[: 600 - start], wrong[start:])
    assert [c.what for c in bank.ledger.changes if 400 < c.row < 450] == ["error grew"]


@pytest.mark.parametrize(
    ("slots", "delay"),
    [slow(None, 0), (own_slots(), 5), slow(None, 5), slow(own_slots(), 0)],
    ids=["default-0", "own-5", "default-5", "own-0"],
)
def test_outputs_of_one_bank_are_like_one_bank_per_class(slots, delay, monkeypatch):
    X, y = late_classes(400)
    y = np.where(X[:, 1] > 0.8, "top", y)
    monkeypatch.setattr("kernelbank.auto.slots.SEVERAL_OUTPUTS", 100.0)  # all slots run
    # A bank per class has no relevant columns, since these are the same for all classes.
    monkeypatch.setattr(AutoConfig, "knows_previous", False)
    options = {"slots": slots, "classes": ["left", "right", "top"], "size": "small"}
    one = kb.AutoBank("classification", **options)
    trace = one.run(X, y, delay=delay, record="all")
    assert [bank.outputs for bank in one.banks] == [3]
    monkeypatch.setattr(AutoConfig, "one_bank", False)
    each = kb.AutoBank("classification", **options)
    other = each.run(X, y, delay=delay, record="all")
    assert [bank.outputs for bank in each.banks] == [1, 1, 1]
    for field in trace.fields:
        np.testing.assert_array_equal(getattr(trace, field), getattr(other, field), err_msg=field)
    for k, bank in enumerate(each.banks):
        np.testing.assert_array_equal(one.bank.weights[k], bank.weights)
    np.testing.assert_array_equal(one.weights, each.weights)
    np.testing.assert_array_equal(one.predict_proba(X), each.predict_proba(X))


@pytest.mark.parametrize("slots", [None, own_slots()], ids=["default", "own"])
def test_third_class_leaves_the_output_of_two_as_it_is_and_replays_the_others(slots, monkeypatch):
    monkeypatch.setattr("kernelbank.auto.slots.SEVERAL_OUTPUTS", 100.0)  # no slot is retired
    X, y = late_classes(700)
    y = np.where(X[:, 0] > 0, "right", "left")
    bank = kb.AutoBank("classification", slots=slots, **SMALL)
    bank.run(X, y)
    rows = scaled(bank, X[:50])
    before = bank.bank.predict(rows)
    first = bank.classes[0]
    bank.add_classes(["top"])
    assert bank.bank.outputs == 3
    after = bank.bank.predict(rows)
    np.testing.assert_array_equal(after[:, 1], before)
    assert np.mean((after[:, 0] > 0) == (y[:50] == first)) > 0.85
    assert (after[:, 2] < -0.5).all()
    assert (bank.predict_proba(X[:50])[:, 2] < 0.3).all()
    assert bank.bank.samples == 700
    assert bank.bank.ledger.missing.tolist() == [700 - REPLAY, 0, 700 - REPLAY]


def test_class_of_the_first_rows_is_as_if_it_had_been_named():
    """Up to the last restart, all rows are learned again with all classes."""
    X, y = late_classes(120)
    y[60:] = np.where(X[60:, 1] > 0.5, "top", y[60:])
    y[90:] = np.where(X[90:, 1] < -0.5, "bottom", y[90:])
    names = list(dict.fromkeys(y))
    actual, named = (
        kb.AutoBank("classification", classes=classes, slots=own_slots(), scalings=["none"])
        for classes in (None, names)
    )
    actual.run(X, y)
    named.run(X, y)
    assert actual.bank.outputs == 4
    np.testing.assert_array_equal(actual.bank.weights, named.bank.weights)
    np.testing.assert_array_equal(actual.bank.predict(X), named.bank.predict(X))


def many(classes, rows, late, seed=0):
    """Clusters: all classes from the start, or one after the other."""
    draw = np.random.default_rng(seed)
    centres = 2 * draw.normal(size=(classes, 5))
    first = (np.arange(classes) * 0.9 * rows / classes).astype(int) if late else np.zeros(classes)
    known = np.searchsorted(first, np.arange(rows), side="right")
    labels = (draw.random(rows) * known).astype(int)
    if late:
        labels[first] = np.arange(classes)
    return centres[labels] + 0.2 * draw.normal(size=(rows, 5)), labels


@pytest.mark.parametrize(("classes", "rows", "late"), [(15, 200, True), slow(200, 2000, False)])
def test_many_classes_are_learned(classes, rows, late):
    X, y = many(classes, rows, late)
    options = {"max_classes": classes} if late else {"classes": range(classes)}
    bank = kb.AutoBank("classification", **options, **SMALL)
    bank.run(X[: rows // 2], y[: rows // 2])
    trace = bank.run(X[rows // 2 :], y[rows // 2 :])
    assert bank.bank.outputs == classes
    for column, label in enumerate(bank.classes):
        first = np.flatnonzero(y == label)[0] - rows // 2
        assert not late or (trace.probabilities[: max(first + 1, 0), column] == 0).all()
    assert np.mean(trace.predictions == y[rows // 2 :]) > (0.7 if late else 0.6)
    pool = bank._model.pool
    assert pool.outputs == classes
    assert pool.fits(bank._model.selection.running, START)


# --- which values are labels -----------------------------------------------------------------------


def test_too_many_classes_are_refused():
    labels = ClassLabels(None)
    assert len(labels.check(list(range(MAX_CLASSES)), MAX_CLASSES)) == MAX_CLASSES
    rule = f"at most {MAX_CLASSES} different labels; got 100 in row 100. .*max_classes.*add_classes"
    refuses(rule, lambda: labels.check(list(range(MAX_CLASSES + 1)), MAX_CLASSES + 1))
    named = ClassLabels(range(150))  # as many as one likes, if they are named
    assert named.check([149], 1) == [149]
    refuses(r"label 150 in row 0, .* not one of the 150 classes", named.check, [150], 1)


def test_refused_labels_are_found_in_their_order_and_nothing_changes():
    labels = ClassLabels(None, 3)
    labels.add(["a"])
    actual = labels.refused(["a", "b", "c", "b", "d", "c", "e", "d"])
    assert [(one.row, one.label) for one in actual] == [(4, "d"), (6, "e"), (7, "d")]
    assert actual[0].reason == "is one label more than 3"
    # A label that waits to be learned counts, once.
    assert [one.label for one in labels.refused(["b", "c", "d"], waiting=["d", "a", "d"])] == ["c"]
    assert labels.labels == ["a"]


@pytest.mark.parametrize(
    ("label", "meant"),
    [("catt", "cat"), ("DOG", "dog"), (" dog ", "dog"), ("zebra", None), (1, None), ("", None)],
)
def test_label_that_is_likely_misspelled_names_the_one_that_was_meant(label, meant):
    known = [1, "cat", "dog"]
    assert nearest_label(label, known) == meant
    if label not in known:
        with pytest.raises(
            InvalidArgument, match="Did you mean" if meant else "Correct it, or"
        ) as e:
            ClassLabels(known).check(label, None)
        assert meant is None or f"mean {meant!r}?" in str(e.value)


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        ([True, False], np.bool_),
        ([3, -1], np.int64),
        ([1, 2.5], np.float64),
        (["a", "long"], np.str_),
        (["a", 1], np.object_),
        ([True, 2], np.object_),
        ([2**63 + 1, -1], np.object_),
        ([2**53 + 1, 0.5], np.object_),
        ([2**70, 1], np.object_),
    ],
)
def test_labels_come_back_as_they_were(known, kind):
    assert [(plain(np.array(label), "y"), type(label)) for label in known] == [
        (label, type(label)) for label in known
    ]
    labels = ClassLabels(known)
    actual = labels.array(np.array([1, 0, 1]))
    assert np.issubdtype(actual.dtype, kind)
    assert actual.tolist() == [known[1], known[0], known[1]]


# --- labels that a bank refuses -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "refused", "words"),
    [
        ({"max_classes": 2}, "never", r"add them: bank.add_classes\(\['never'\]\)"),
        ({"max_classes": 2}, "c", "at most 2 different labels"),
        ({"classes": ["a", "b"]}, "B", r"Did you mean 'b'\?"),
        ({"classes": ["a", "b"]}, "c", "not one of the 2 classes"),
    ],
)
def test_bank_that_refuses_a_label_has_changed_nothing_and_takes_it_when_it_is_added(
    settings, refused, words
):
    X, _ = numbers(40)
    bank = kb.AutoBank("classification", **SMALL, **settings)
    bank.run(X, ["a", "b"] * 20)
    before = bank.to_bytes()
    for one in (bank, kb.from_bytes(before)):
        refuses(words, one.learn_one, X[0], refused)
        refuses(r"'c' in row 2", one.run, X[:3], ["a", "b", "c"])
        assert one.to_bytes() == before
        one.add_classes([refused, "a"])
        one.learn_one(X[0], refused)
        assert one.classes == ("a", "b", refused)
        assert len(one.predict_proba_one(X[0])) == 3


def test_large_model_warns_once_with_the_size_of_its_file(monkeypatch):
    monkeypatch.setattr("kernelbank.auto.model.LARGE_MODEL", 300_000)
    bank, (X, _) = kb.AutoBank("classification", classes=range(12), **SMALL), numbers(130)
    labels = np.arange(130) // 10 % 12
    with pytest.warns(LargeModel, match="MB for 12 classes and 3 inputs, as a file") as told:
        bank.run(X, labels)
    assert [one.filename for one in told] == [__file__]
    size = re.search(r"([\d,]+) MB for", str(told[0].message))
    assert int(size[1]) == pytest.approx(len(bank.to_bytes()) / 1e6, rel=0.1, abs=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bank.run(X, labels)


def test_labels_that_come_after_a_burst_do_not_bend_the_probabilities():
    """Bursts of a rare class are over when their labels come; inputs that wander tell of them."""
    draw = np.random.default_rng(1)
    rows = 2400
    y = np.zeros(rows, dtype=int)
    for start in range(200, rows, 600):
        y[start : start + 60] = 1
    wandering, steps = np.zeros((rows, 4)), 0.3 * draw.normal(size=(rows, 4))
    for t in range(1, rows):
        wandering[t] = 0.95 * wandering[t - 1] + steps[t]
    X = wandering + 0.5 * draw.normal(size=(rows, 4)) + np.outer(y, [1.0, -1.0, 0.0, 0.0])
    bank = kb.AutoBank("classification", classes=[0, 1], **SMALL)
    p = bank.run(X, y, delay=100).probabilities[1200:, 1]
    positive, ranks = y[1200:] == 1, np.argsort(np.argsort(p))
    area = (ranks[positive].mean() - 0.5 * (positive.sum() - 1)) / (~positive).sum()
    assert area > 0.65


def test_a_class_that_is_alone_is_not_certain():
    bank = kb.AutoBank("classification", **SMALL)
    for n in range(4):
        bank.learn_one([float(n)], "a")
        assert bank.predict_proba_one([0.0]) == {"a": pytest.approx((n + 2) / (n + 3))}

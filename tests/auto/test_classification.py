"""AutoBank for classes: labels, probabilities, classes that come late, many classes."""

import math
import re
import warnings

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.config import AutoConfig
from kernelbank.auto.model import REPLAY
from kernelbank.auto.slots import LARGEST_STATE, SCALINGS, SIZES, START, default_pool
from kernelbank.auto.targets import MAX_CLASSES, ClassLabels, nearest_label, plain
from kernelbank.errors import FileRefused, InvalidArgument, LargeModel
from kernelbank.io import checkpoint
from kernelbank.losses import Squared
from support.auto_streams import SMALL, assert_same_state, numbers, predict_and_learn
from support.marks import slow


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


def test_class_that_appears_late_is_learned():
    first, count = 700, 1100
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
            rows = single._model.scaling.statistics.scale_rows(x[None], np.zeros((1, 0)))
            scores = single.bank.predict_slots(rows)[0].reshape(single.bank.outputs, -1)
            wanted = scores.argmax(axis=0) if len(scores) > 1 else scores[0] > 0
            assert (chosen == wanted).all()
        told = single.predict_trace_one(x, record=["slot_classes"]).slot_classes
        assert (told[0] == chosen).all()
        single.learn_one(x, label)
    assert whole.bank.outputs == (1 if count == 2 else 3)


# --- classes that appear while predictions are pending, and changes in the error rate -------------


K, L = kb.kernels, kb.learners


def slots():
    return [
        kb.Slot(K.Linear(), L.LinearRLS()),
        kb.Slot(K.Gaussian(0.5), L.Norma()),
        kb.Slot(K.Gaussian(2.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=15)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=15), residual_of=0),
    ]


def stream(rows, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * draw.normal(size=rows)


@pytest.mark.parametrize("late", [False, True])
def test_class_that_appears_between_prediction_and_target_gets_its_own_output(late, tmp_path):
    """The one output of two classes is the second's; with a third class it has another place."""
    X, y = stream(102)
    labels = np.where(y > 0, "b", "a")
    labels[:2] = "a", "b"
    bank = kb.AutoBank("classification", slots=slots()[:3:2])
    bank.run(X[:100], labels[:100])
    model = bank._model
    row = [3.0, 0.3]
    _, own = model.banks[0].predict_slots_one(
        model.scaling.statistics.scale_rows(np.array([row]), np.zeros((1, model.core.past)))[0]
    )
    bank.predict_one(row)
    if late:  # the third class is that of another row
        bank.learn_one(X[100], "c")
        assert bank.bank.outputs == 3
        bank.save(tmp_path / "bank")
        bank = kb.load(tmp_path / "bank")
        model = bank._model
        losses = bank.bank.ledger.slot_loss
        shown = model.scaling.statistics.scale_rows(np.array([row]), np.zeros((1, model.core.past)))
        now = bank.bank.predict_slots(shown)[0]
        bank.learn_one(row, "b")
        for head, (past, sign) in enumerate([(now[0], -1), (own, 1), (now[2], -1)]):
            added = bank.bank.ledger.slot_loss[head] - losses[head]
            assert added == pytest.approx((past - sign) ** 2, rel=1e-6, abs=1e-9)
    else:  # it is its own
        bank.learn_one(row, "c")
    # Rows that were predicted without the scores of all classes do not change the softmax.
    start, late = [0.0, 0.0, 10.0, 0.0, 30.0], [0.0, 1.0, 10.0, 0.0, 30.0]
    state = model.core.state()
    assert state["probabilities/curves"].tolist() == [start, start, late]
    assert state["probabilities/common"].tolist() == [2.0, 1.0, 1.0, 0.0, 1.0]


def test_changes_of_a_classifier_are_detected_in_its_error_rate():
    """One error of size 0 or 1 a row, from the first bank on."""
    X, _ = stream(600)
    labels = (X[:, 0] > 0).astype(int)
    labels[400:] = 1 - labels[400:]
    bank = kb.AutoBank("classification", slots=slots()[::2])
    actual = bank.run(X, labels).predictions
    wrong = (actual != labels).astype(float)
    ring = bank._model.core.state()["changes/errors"]
    signals = [c.row for c in bank.ledger.changes if c.what.startswith("error")]
    start = signals[-1] - 1 if signals else 5
    assert np.array_equal(ring[: 600 - start], wrong[start:])
    assert [c.what for c in bank.ledger.changes if 400 < c.row < 450] == ["error grew"]


# --- classes as outputs of one bank ---------------------------------------------------------------


THIRD, FOURTH = 150, 560
"""Rows at which classes appear, after the last restart and after the first revision."""


def late_classes(rows=620):
    """Two classes, from THIRD on three, from FOURTH on four."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, 3))
    y = np.where(X[:, 0] > 0, "right", "left")
    y = np.where((np.arange(rows) >= THIRD) & (X[:, 1] > 0.8), "top", y)
    return X, np.where((np.arange(rows) >= FOURTH) & (X[:, 2] > 0.8), "front", y)


def own_slots():
    return [
        kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=31), residual_of=0),
        kb.Slot(K.Matern(1.0), L.NearestNeighborGP(8, 64)),
    ]


# --- the same bits --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole():
    X, y = late_classes()
    bank = kb.AutoBank("classification", **SMALL)
    return bank, bank.run(X, y, record="all")


def test_late_classes_have_the_same_bits_through_files(whole, tmp_path):
    X, y = late_classes()
    expected, trace = whole
    assert expected.bank.outputs == 4
    bank = kb.AutoBank("classification", **SMALL)
    actual, bank = predict_and_learn(bank, X, y, 0, (140, 155, 520, 570), tmp_path / "bank.kb")
    np.testing.assert_array_equal(actual[1:], trace.predictions[1:])
    assert_same_state(bank, expected)


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


# --- classes that are added -----------------------------------------------------------------------


@pytest.mark.parametrize("slots", [None, own_slots()], ids=["default", "own"])
def test_third_class_leaves_the_output_of_two_as_it_is_and_replays_the_others(slots, monkeypatch):
    monkeypatch.setattr("kernelbank.auto.slots.SEVERAL_OUTPUTS", 100.0)  # no slot is retired
    X, y = late_classes(700)
    y = np.where(X[:, 0] > 0, "right", "left")
    bank = kb.AutoBank("classification", slots=slots, **SMALL)
    bank.run(X, y)
    rows = bank._model.scaling.statistics.scale_rows(X[:50], np.zeros((50, bank._model.core.past)))
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


# --- many classes ---------------------------------------------------------------------------------


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
    assert np.mean(trace.predictions == y[rows // 2 :]) > (0.7 if late else 0.6)
    pool = bank._model.pool
    assert pool.outputs == classes
    assert pool.fits(bank._model.selection.running, START)


# --- what runs for how many classes ---------------------------------------------------------------


def pool_for(outputs, size="default", dimension=20):
    config = AutoConfig("classification", size=size, scalings=SCALINGS)
    scaling = config.make_scaling(dimension, targets=0)
    return default_pool(scaling, SIZES[size], 0, Squared(), outputs)


def trees(pool, groups):
    slots = [pool.slots[index] for index in pool.members(groups)]
    return sum(isinstance(slot.learner, L.PartitionTree) for slot in slots)


@pytest.mark.parametrize("dimension", [2, 20, 100])
def test_more_classes_have_fewer_trees_and_the_same_slots_to_choose_from(dimension):
    one = pool_for(1, dimension=dimension)
    assert one.initial_groups == tuple(n for n, group in enumerate(one.groups) if group.initial)
    counts = [trees(one, one.initial_groups)]
    for outputs in (3, 10, 100, 1000):
        pool = pool_for(outputs, dimension=dimension)
        assert pool.names == one.names
        assert pool.slots == one.slots
        groups = pool.initial_groups
        assert groups
        assert {pool.groups[n].base for n in groups} - {None} <= set(groups)
        assert pool.fits(groups, START)
        assert pool.price(groups) <= START * pool.limit
        size = (outputs - 1) * sum(pool.groups[n].cost.size for n in groups)
        assert size <= LARGEST_STATE
        counts.append(trees(pool, groups))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 0


# --- files ----------------------------------------------------------------------------------------


def test_file_with_other_outputs_than_classes_is_refused(tmp_path):
    X, y = late_classes(200)
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(X, y)
    header, arrays = bank.describe()
    path = tmp_path / "x.kb"
    checkpoint.write(path, header, arrays)
    assert kb.load(path).bank.outputs == 3
    model = header["model"]
    for outputs in (1, 2, 4, 10**9, 0, -1, 1.5, "3", None, True):
        forged = model | {"outputs": [outputs]}
        forged["bank0"] = model["bank0"] | {"outputs": outputs}
        checkpoint.write(path, header | {"model": forged}, arrays)
        with pytest.raises(FileRefused):
            kb.load(path)
    for outputs in ([], [3, 3], [1, 1, 1], 3):
        checkpoint.write(path, header | {"model": model | {"outputs": outputs}}, arrays)
        with pytest.raises(FileRefused):
            kb.load(path)


# --- which values are labels -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_as", "value"),
    [
        (True, True),
        (np.bool_(False), False),
        (3, 3),
        (np.int8(-3), -3),
        (np.uint64(2**63), 2**63),
        (2.0, 2),
        (-0.0, 0),
        (np.float32(0.5), 0.5),
        (1e300, 1e300),
        ("yes", "yes"),
        (np.str_("no"), "no"),
        ("", ""),
        (np.array([4]), 4),
        (np.array(2.5), 2.5),
    ],
)
def test_plain_labels(given_as, value):
    actual = plain(given_as, "y")
    assert actual == value
    assert type(actual) is type(value)


@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), np.array([np.nan])])
def test_missing_labels_say_what_to_do(label):
    with pytest.raises(InvalidArgument, match=r"'y' has a missing label.*predict_one"):
        plain(label, "y")


def test_too_many_classes_are_refused():
    labels = ClassLabels(None)
    assert len(labels.check(list(range(MAX_CLASSES)), MAX_CLASSES)) == MAX_CLASSES
    rule = f"at most {MAX_CLASSES} different labels; got 100 in row 100. .*max_classes.*add_classes"
    with pytest.raises(InvalidArgument, match=rule):
        labels.check(list(range(MAX_CLASSES + 1)), MAX_CLASSES + 1)
    named = ClassLabels(range(150))  # as many as one likes, if they are named
    assert named.check([149], 1) == [149]
    with pytest.raises(InvalidArgument, match=r"label 150 in row 0, .* not one of the 150 classes"):
        named.check([150], 1)


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
    labels = ClassLabels(known)
    actual = labels.array(np.array([1, 0, 1]))
    assert np.issubdtype(actual.dtype, kind)
    assert actual.tolist() == [known[1], known[0], known[1]]


# --- labels that a bank refuses -------------------------------------------------------------------


COUNT = 130
LINEAR = kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS())
X = np.random.default_rng(0).normal(size=(COUNT, 2))


def test_bank_that_refuses_a_label_has_changed_nothing(tmp_path):
    bank = kb.AutoBank("classification", size="small", max_classes=3)
    bank.run(X[:40], np.arange(40) % 3)
    before = tmp_path / "before.kb"
    bank.save(before)
    with pytest.raises(InvalidArgument, match=r"at most 3 different labels; got 3 in row 3\."):
        bank.run(X[:10], np.arange(10) % 5)
    with pytest.raises(InvalidArgument, match=r"add them: bank.add_classes\(\[7\]\)"):
        bank.learn_one(X[0], 7)
    bank.save(tmp_path / "after.kb")
    assert before.read_bytes() == (tmp_path / "after.kb").read_bytes()
    again = kb.load(before)
    with pytest.raises(InvalidArgument, match="at most 3"):
        again.learn_one(X[0], 7)
    again.add_classes([7])
    again.learn_one(X[0], 7)
    assert again.classes == (0, 1, 2, 7)
    assert len(again.predict_proba_one(X[0])) == 4


def test_bank_whose_classes_are_named_takes_more_when_they_are_added(tmp_path):
    bank = kb.AutoBank("classification", size="small", classes=["no", "yes"])
    bank.run(X[:40], ["no", "yes"] * 20)
    bank.save(tmp_path / "b.kb")
    again = kb.load(tmp_path / "b.kb")
    for one in (bank, again):
        with pytest.raises(InvalidArgument, match=r"Did you mean 'yes'\?"):
            one.learn_one(X[0], "Yes")
        one.add_classes(["perhaps", "no"])
        one.run(X[:40], ["no", "yes", "perhaps", "yes"] * 10)
        assert one.classes == ("no", "yes", "perhaps")
        with pytest.raises(InvalidArgument, match="not one of the 3 classes"):
            one.learn_one(X[0], "never")
    assert np.array_equal(bank.predict_proba(X), again.predict_proba(X))


def test_large_model_warns_once(monkeypatch):
    monkeypatch.setattr("kernelbank.auto.model.LARGE_MODEL", 1_000_000)
    bank = kb.AutoBank("classification", size="small")
    labels = np.arange(COUNT) % 2
    with pytest.warns(LargeModel, match=r"\d+ MB for 2 inputs, as a file") as told:
        bank.run(X, labels)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bank.run(X, labels + 1)
        kb.AutoBank("classification", size="small", slots=[LINEAR]).run(X, labels)


def test_warning_of_a_large_model_has_the_size_of_its_file(monkeypatch, tmp_path):
    monkeypatch.setattr("kernelbank.auto.model.LARGE_MODEL", 300_000)
    bank = kb.AutoBank("classification", size="small", classes=range(12))
    with pytest.warns(LargeModel, match="MB for 12 classes and 2 inputs") as told:
        bank.run(X, np.arange(COUNT) // 10 % 12)
    size = re.search(r"([\d,]+) MB for", str(told[0].message))
    bank.save(tmp_path / "b.kb")
    saved = (tmp_path / "b.kb").stat().st_size / 1e6
    assert int(size[1]) == pytest.approx(saved, rel=0.1, abs=0.5)


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

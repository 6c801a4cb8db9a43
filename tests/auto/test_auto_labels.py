"""Labels: which are taken, in which order they stand, as what they come back, what is refused."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.auto.labels import MOST, Labels, plain
from kernelbank.errors import InvalidArgument


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
    found = plain(given_as, "y")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), np.array([np.nan])])
def test_missing_labels_say_what_to_do(label):
    with pytest.raises(InvalidArgument, match=r"'y' has a missing label.*predict_one"):
        plain(label, "y")


@pytest.mark.parametrize(
    "label",
    [
        *(math.inf, -np.inf, b"yes", 1j, [1], (1,), {}, Decimal(1), object),
        *(np.datetime64("2020-01-01"), np.array([1, 2]), np.array([])),
    ],
    ids=repr,
)
def test_what_is_no_label(label):
    with pytest.raises(InvalidArgument, match="must hold labels"):
        plain(label, "y")


def test_order_is_as_named_and_then_as_seen():
    labels = Labels(["no", "yes"])
    assert labels.check(["perhaps", "yes", "no", "never", "perhaps"], 5, 4)
    assert labels.known == ["no", "yes"]  # looking adds nothing
    labels.add(["perhaps", "yes", "never", "perhaps"])
    assert labels.known == ["no", "yes", "perhaps", "never"]
    assert [labels.number(label) for label in labels.known] == [0, 1, 2, 3]
    assert len(labels) == 4


def test_equal_numbers_are_one_label():
    labels = Labels(None)
    labels.add(labels.check([1, 1.0, True, np.int32(1)], 4, MOST))
    assert labels.known == [1]
    assert labels.number(1.0) == 0


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("yes", "be a list of labels"),
        (3, "be a list of labels"),
        ([], "at least two different"),
        (["one"], "at least two different"),
        ([1, 2, 1.0], "at least two different"),
        ([1, True], "at least two different"),
        ([1, None], "missing label"),
        ([1, [2]], "must hold labels"),
    ],
)
def test_classes_that_are_refused(classes, words):
    with pytest.raises(InvalidArgument, match=words):
        Labels(classes)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ("ab", "be a list of labels"),
        (5, "be a list of labels"),
        ([1], r"as many rows as X \(2\)"),
        ([1, 2, 3], r"as many rows as X \(2\)"),
        (np.ones((2, 2)), r"shape \(n,\)"),
        (np.array(1), r"shape \(n,\)"),
        ([1, None], "missing label"),
        (np.array([1.0, np.nan]), "missing label"),
        ([1, [1]], "must hold labels"),
    ],
)
def test_targets_that_are_refused(y, words):
    labels = Labels(None)
    with pytest.raises(InvalidArgument, match=words):
        labels.check(y, 2, MOST)
    assert labels.known == []


def test_columns_are_taken_as_rows():
    assert Labels(None).check(np.array([[1], [2]]), 2, MOST) == [1, 2]


def test_too_many_classes_are_refused():
    labels = Labels(None)
    assert len(labels.check(list(range(MOST)), MOST, MOST)) == MOST
    with pytest.raises(InvalidArgument, match=f"at most {MOST} different"):
        labels.check(list(range(MOST + 1)), MOST + 1, MOST)
    named = Labels(range(150))  # as many as one likes, if they are named
    assert named.check([149], 1, 150) == [149]
    with pytest.raises(InvalidArgument, match="at most 150"):
        named.check([150], 1, 150)


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
    labels = Labels(known)
    found = labels.array(np.array([1, 0, 1]))
    assert np.issubdtype(found.dtype, kind)
    assert found.tolist() == [known[1], known[0], known[1]]


texts = st.text(max_size=5)
some = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, width=64), texts)


@given(st.lists(some, min_size=1, max_size=8))
def test_every_label_comes_back(values):
    values = [v for v in values if not (isinstance(v, float) and math.isinf(v))] or [0]
    labels = Labels(None)
    labels.add(labels.check(values, len(values), MOST))
    numbers = np.array([labels.number(plain(v, "y")) for v in values])
    assert labels.array(numbers).tolist() == values
    assert sorted(set(numbers.tolist())) == list(range(len(labels)))


@pytest.mark.parametrize("count", [2, 3])
def test_what_slots_alone_would_answer(count):
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
            rows = single._desk.scaling.rows(x[None], np.zeros((1, 0)))
            scores = np.array([bank.predict_slots(rows)[0] for bank in single.banks])
            wanted = scores.argmax(axis=0) if len(scores) > 1 else scores[0] > 0
            assert (chosen == wanted).all()
        told = single.answer_one(x, record=["slot_classes"]).slot_classes
        assert (told[0] == chosen).all()
        single.learn_one(x, label)
    assert len(whole.banks) == (1 if count == 2 else 3)

"""Labels of classes: which values are labels, their numbers, and their way back."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelbank.auto.targets import MAX_CLASSES, ClassLabels, nearest_label, plain
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
    labels = ClassLabels(["no", "yes"])
    labels.named = False
    assert labels.check(["perhaps", "yes", "no", "never", "perhaps"], 5)
    assert labels.known == ["no", "yes"]  # looking adds nothing
    labels.add(["perhaps", "yes", "never", "perhaps"])
    assert labels.known == ["no", "yes", "perhaps", "never"]
    assert [labels.number(label) for label in labels.known] == [0, 1, 2, 3]
    assert len(labels) == 4


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("yes", "be a list of labels"),
        (3, "be a list of labels"),
        ([], "at least two labels"),
        (["one"], "at least two labels"),
        ([1, 2, 1.0], "be different labels"),
        ([1, True], "be different labels"),
        ([1, None], "missing label"),
        ([1, [2]], "must hold labels"),
    ],
)
def test_classes_that_are_refused(classes, words):
    with pytest.raises(InvalidArgument, match=words):
        ClassLabels(classes)


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
    labels = ClassLabels(None)
    with pytest.raises(InvalidArgument, match=words):
        labels.check(y, 2)
    assert labels.known == []


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
    found = labels.refused(["a", "b", "c", "b", "d", "c", "e", "d"])
    assert [(one.row, one.label) for one in found] == [(4, "d"), (6, "e"), (7, "d")]
    assert found[0].reason == "is one label more than 3"
    # A label that waits to be learned counts, once.
    assert [one.label for one in labels.refused(["b", "c", "d"], waiting=["d", "a", "d"])] == ["c"]
    assert labels.known == ["a"]


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
    found = labels.array(np.array([1, 0, 1]))
    assert np.issubdtype(found.dtype, kind)
    assert found.tolist() == [known[1], known[0], known[1]]


texts = st.text(max_size=5)


some = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, width=64), texts)


@settings(max_examples=30, deadline=None)
@given(st.lists(some, min_size=1, max_size=8))
def test_every_label_comes_back(values):
    values = [v for v in values if not (isinstance(v, float) and math.isinf(v))] or [0]
    labels = ClassLabels(None)
    labels.add(labels.check(values, len(values)))
    numbers = np.array([labels.number(plain(v, "y")) for v in values])
    assert labels.array(numbers).tolist() == values
    assert sorted(set(numbers.tolist())) == list(range(len(labels)))
